//! The lock table as the admin side shows it: what the keeper and the chronicle know, with names and times for people.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use bytes::Bytes;

use super::{history, rules, warnings};
use crate::admin::api::{Dropped, Known, Lock, LockList, LocksQuery, Order, Sort, Waiter};
use crate::admin::encode;
use crate::config::parse_duration;
use crate::event::Time;
use crate::lock::keeper::{Reading, Row, SortBy, TableQuery, Waiting};
use crate::lock::search::Search;
use crate::metrics::printable;
use crate::proxy::shared::Shared;

/// So many rows are given where nothing is said.
const DEFAULT_ROWS: u32 = 100;
/// More cannot be asked for at once.
const MOST_ROWS: u32 = 1000;
/// So many bytes of keys and pattern are compared for one answer: about half a second.
const MOST_COMPARED: usize = 500_000_000;
/// How long the keeper is left alone between two pieces of a reading, at least.
const BETWEEN_PIECES: Duration = Duration::from_micros(20);

/// The table, filtered, sorted and cut.
pub(super) fn list(shared: &Shared, query: &LocksQuery) -> Result<LockList, String> {
    let asked = read(shared, query)?;
    let (at, offset) = (shared.now(), asked.offset as u64);
    let mut reading = Reading::new(at, asked, rules::usual_hold_ms(shared));
    // Locked anew for each piece, and left alone for a moment in between: whoever waits for a mutex would not get it
    // from somebody who takes it again at once, and lock commands of clients wait for this one.
    while shared.keeper().read_on(&mut reading) {
        reading.digest();
        if reading.compared() > MOST_COMPARED {
            return Err("pattern: it takes too long over so many long keys; give a shorter one, or a rule".to_owned());
        }
        sleep(BETWEEN_PIECES);
    }
    let (table, dropped) = (reading.into_table(), shared.keeper().dropped());
    Ok(LockList {
        now_ms: shared.clock.unix_ms(at),
        total: table.total as u64,
        matched: table.matched as u64,
        offset,
        locks: table.rows.iter().map(|row| lock(shared, row, at)).collect(),
        dropped: Dropped {
            leases: dropped.leases,
            waiters: dropped.waiters,
            histories: history::dropped(shared),
        },
    })
}

/// What is known of one lock.
pub(super) fn known(shared: &Shared, database: u32, key: &[u8]) -> Known {
    let rule = shared.policy().rules.find(key);
    let usual_ms = rule.and_then(|rule| shared.telling.chronicle().usual_hold_ms(rule));
    let key = Bytes::copy_from_slice(key);
    let (at, row, waiting, waiters) = {
        let keeper = shared.keeper();
        let at = shared.now();
        let (row, waiting, waiters) = keeper.lookup(at, database, &key, usual_ms);
        (at, row, waiting, waiters)
    };
    let mut known = Known {
        lease: row.map(|row| lock(shared, &row, at)),
        waiting: waiting as u64,
        waiters: waiters.iter().map(|waiting| waiter(shared, waiting, at)).collect(),
        ..Known::default()
    };
    history::fill(shared, database, &key, &mut known);
    known
}

fn read(shared: &Shared, query: &LocksQuery) -> Result<TableQuery, String> {
    let limit = query.limit.unwrap_or(DEFAULT_ROWS);
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(format!("limit must be 1 to {MOST_ROWS}, and is {limit}"));
    }
    let rule = query.rule.as_deref().filter(|name| !name.is_empty());
    let rule = rule.map(|name| rule_named(shared, name)).transpose()?;
    let older_than = query.older_than.as_deref().map(parse_duration).transpose();
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let search = filled(&query.pattern).map(|words| Search::new(&words)).transpose();
    Ok(TableQuery {
        search: search.map_err(|fault| fault.to_string())?,
        rule,
        owner: filled(&query.owner),
        database: query.db,
        older_than_ms: older_than.map_err(|fault| format!("older_than: {fault}"))?,
        warned: query.warned,
        sort: match query.sort {
            Sort::Age => SortBy::Age,
            Sort::Ttl => SortBy::Ttl,
            Sort::Waiters => SortBy::Waiters,
            Sort::Key => SortBy::Key,
        },
        descending: match (query.order, query.sort) {
            (Some(order), _) => order == Order::Desc,
            (None, Sort::Age | Sort::Waiters) => true,
            (None, Sort::Ttl | Sort::Key) => false,
        },
        offset: query.offset.unwrap_or(0) as usize,
        limit: limit as usize,
    })
}

fn rule_named(shared: &Shared, name: &str) -> Result<Arc<str>, String> {
    let policy = shared.policy();
    let mut rules = policy.rules.iter().map(|(_, rule)| rule);
    let found = rules.find(|rule| *rule.name == *name);
    found.map(|rule| rule.name.clone()).ok_or_else(|| {
        let names = policy.rules.iter().map(|(_, rule)| format!("\"{}\"", rule.name));
        let names: Vec<String> = names.collect();
        let (name, names) = (printable(name.as_bytes()), names.join(", "));
        format!("there is no rule \"{name}\"; the rules are: {names}")
    })
}

fn lock(shared: &Shared, row: &Row, at: Time) -> Lock {
    let client = shared.clients.find(&row.connection);
    let held_ms = at.since(row.granted) / 1000;
    let name = client.as_ref().and_then(|client| client.name.as_deref());
    Lock {
        key: String::from_utf8_lossy(&row.key).into_owned(),
        key_encoded: encode(&row.key),
        database: row.database,
        rule: row.rule.to_string(),
        mode: if row.observed { "observe" } else { "enforce" }.to_owned(),
        owner: row.owner.to_string(),
        connection: row.connection.to_string(),
        client_name: name.map(str::to_owned),
        client_address: client.as_ref().map(|client| client.address.to_string()),
        connected: row.connected,
        since_ms: shared.clock.unix_ms(row.granted),
        held_ms,
        ttl_ms: row.ttl_ms,
        ttl_left_ms: row.due.map(|due| due.since(at) / 1000),
        expires_at_ms: row.due.map(|due| shared.clock.unix_ms(due)),
        renewals: row.renewals,
        extensions: row.extensions,
        fence: row.fence,
        waiting: row.waiting as u64,
        waiters: row.waiters.iter().map(|waiting| waiter(shared, waiting, at)).collect(),
        owed: row.owed,
        warnings: row
            .warnings
            .iter()
            .map(|warning| warnings::shown(warning, held_ms))
            .collect(),
    }
}

fn waiter(shared: &Shared, waiting: &Waiting, at: Time) -> Waiter {
    Waiter {
        owner: waiting.owner.to_string(),
        connection: waiting.connection.to_string(),
        client_name: shared.clients.name(&waiting.connection),
        first_ms: shared.clock.unix_ms(waiting.first),
        waited_ms: at.since(waiting.first) / 1000,
        last_ms: shared.clock.unix_ms(waiting.last),
        tries: waiting.tries,
    }
}
