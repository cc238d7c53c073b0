//! `lockward locks`: the lock table of a running lockward, once, for people and for machines.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Closed, print, print_json};
use super::rows::{COLUMNS, cells, key, word};
use super::table::Table;
use super::target::Target;
use super::{complain, runtime};
use crate::admin::api::{Lock, LockList, LocksQuery, Order, Sort};
use crate::admin::client::{Client, ClientError};
use crate::config::duration;

/// As many rows as one answer holds.
const PAGE: u32 = 1000;

/// Show who holds which lock, since when, and who waits.
#[derive(Args)]
pub(super) struct Locks {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    target: Target,
    /// Which end of the order comes first; default: the oldest, the least TTL left, the most waiters.
    #[arg(long, value_enum)]
    order: Option<OrderWord>,
    /// At most so many rows.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// A table for people, the API's JSON, or CSV. In CSV a name that begins with = + - or @ has a ' before it, or a
    /// spreadsheet would take it for a formula; key_encoded is always exact.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Which locks, and in which order.
#[derive(Args, Clone)]
pub(super) struct Filter {
    /// A glob as in SCAN MATCH ('lock:*'); without any of *?[ every key that contains it.
    pattern: Option<String>,
    /// Only those held at least so long, as 250ms, 30s, 5m, 1h30m.
    #[arg(long, value_name = "TIME", value_parser = time)]
    older_than: Option<String>,
    /// Only those under the rule of this name.
    #[arg(long)]
    rule: Option<String>,
    /// Only those whose owner contains this.
    #[arg(long)]
    owner: Option<String>,
    /// Only those of this database.
    #[arg(long)]
    db: Option<u32>,
    /// Only those with a warning.
    #[arg(long)]
    warned: bool,
    /// By what they are sorted.
    #[arg(long, value_enum, default_value_t = SortWord::Age)]
    sort: SortWord,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortWord {
    /// The oldest first.
    Age,
    /// The least TTL left first.
    Ttl,
    /// The most waiters first.
    Waiters,
    /// By the bytes of the key.
    Key,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderWord {
    /// The least first.
    Asc,
    /// The greatest first.
    Desc,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// The API's own.
    Json,
    /// For spreadsheets.
    Csv,
}

/// Says at once what is no time.
fn time(text: &str) -> Result<String, String> {
    duration::parse(text).map(|_| text.to_owned())
}

impl Filter {
    /// As the API reads it.
    pub(super) fn query(&self) -> LocksQuery {
        LocksQuery {
            pattern: self.pattern.clone(),
            rule: self.rule.clone(),
            owner: self.owner.clone(),
            db: self.db,
            older_than: self.older_than.clone(),
            warned: self.warned,
            sort: match self.sort {
                SortWord::Age => Sort::Age,
                SortWord::Ttl => Sort::Ttl,
                SortWord::Waiters => Sort::Waiters,
                SortWord::Key => Sort::Key,
            },
            ..LocksQuery::default()
        }
    }
}

impl Locks {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, _) = self.target.client()?;
        let query = LocksQuery {
            order: self.order.map(|order| match order {
                OrderWord::Asc => Order::Asc,
                OrderWord::Desc => Order::Desc,
            }),
            ..self.filter.query()
        };
        let list = runtime()?
            .block_on(fetch(&client, query, self.limit))
            .map_err(|error| {
                complain(&error.to_string());
                ExitCode::FAILURE
            })?;
        let printed = match self.output {
            Output::Table => print(&text(&list, columns_of_terminal())),
            Output::Json => print_json(&list),
            Output::Csv => csv(&list).and_then(|text| print(&text)),
        };
        printed.map_err(Closed::code)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The width of the terminal, if there is one.
pub(super) fn columns_of_terminal() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    let size = crossterm::terminal::size().ok().filter(|_| terminal)?;
    Some(usize::from(size.0)).filter(|columns| *columns > 0)
}

/// Page after page. The table may change in between: a lock that is seen twice is shown once.
async fn fetch(client: &Client, mut query: LocksQuery, limit: u32) -> Result<LockList, ClientError> {
    query.limit = Some(limit.min(PAGE));
    let mut list = client.locks(&query).await?;
    let mut seen: std::collections::HashSet<(u32, String)> = list.locks.iter().map(name).collect();
    let mut offset = u32::try_from(list.locks.len()).unwrap_or(u32::MAX);
    while offset < limit && u64::from(offset) < list.matched {
        query.offset = Some(offset);
        query.limit = Some((limit - offset).min(PAGE));
        let page = client.locks(&query).await?;
        let count = u32::try_from(page.locks.len()).unwrap_or(u32::MAX);
        if count == 0 {
            break;
        }
        offset = offset.saturating_add(count);
        list.locks
            .extend(page.locks.into_iter().filter(|lock| seen.insert(name(lock))));
    }
    Ok(list)
}

fn name(lock: &Lock) -> (u32, String) {
    (lock.database, lock.key_encoded.clone())
}

/// The table, and under it how much of all it is.
pub(super) fn text(list: &LockList, most: Option<usize>) -> String {
    let mut table = Table::new(&COLUMNS);
    for lock in &list.locks {
        table.push(cells(lock, 0));
    }
    let mut text = table.lines(most).join("\n");
    text.push('\n');
    text.push_str(&foot(list));
    text.push('\n');
    text
}

/// How much of all locks a list shows.
pub(super) fn foot(list: &LockList) -> String {
    let mut text = match (list.locks.len() as u64, list.matched, list.total) {
        (shown, matched, total) if shown == total => format!("{matched} locks held"),
        (shown, matched, total) => format!("{shown} shown of {matched} that match, {total} locks held"),
    };
    let dropped = list.dropped;
    if dropped.leases > 0 {
        text.push_str(&format!(
            "; {} leases were not followed, or not to their end",
            dropped.leases
        ));
    }
    if dropped.waiters > 0 {
        text.push_str(&format!("; {} waiters were forgotten early", dropped.waiters));
    }
    text
}

fn csv(list: &LockList) -> Result<String, Closed> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| Closed::from(std::io::Error::other(error));
    writer.write_record(CSV_HEAD).map_err(failed)?;
    for lock in &list.locks {
        writer.write_record(csv_row(lock)).map_err(failed)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| Closed::from(std::io::Error::other(error.to_string())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const CSV_HEAD: [&str; 21] = [
    "database",
    "key",
    "key_encoded",
    "rule",
    "mode",
    "owner",
    "connection",
    "client_name",
    "client_address",
    "connected",
    "since_ms",
    "held_ms",
    "ttl_ms",
    "ttl_left_ms",
    "expires_at_ms",
    "renewals",
    "extensions",
    "fence",
    "waiting",
    "owed",
    "warnings",
];

/// A cell that no spreadsheet takes for a formula: clients choose their keys and names.
fn no_formula(mut cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        cell.insert(0, '\'');
    }
    cell
}

fn csv_row(lock: &Lock) -> [String; CSV_HEAD.len()] {
    use super::shown::shown_text;
    let shown = |text: &str| no_formula(shown_text(text));
    let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let words: Vec<&str> = lock.warnings.iter().map(|warning| word(warning.kind)).collect();
    [
        lock.database.to_string(),
        no_formula(key(&lock.key, &lock.key_encoded)),
        shown_text(&lock.key_encoded),
        shown(&lock.rule),
        shown(&lock.mode),
        shown(&lock.owner),
        shown(&lock.connection),
        shown(lock.client_name.as_deref().unwrap_or_default()),
        shown(lock.client_address.as_deref().unwrap_or_default()),
        lock.connected.to_string(),
        lock.since_ms.to_string(),
        lock.held_ms.to_string(),
        number(lock.ttl_ms),
        number(lock.ttl_left_ms),
        number(lock.expires_at_ms),
        lock.renewals.to_string(),
        lock.extensions.to_string(),
        number(lock.fence),
        lock.waiting.to_string(),
        lock.owed.to_string(),
        words.join("; "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keys: &[&str]) -> LockList {
        let lock = |key: &&str| Lock {
            key: (*key).to_owned(),
            key_encoded: crate::admin::client::key_encoded(key.as_bytes()),
            rule: "jobs".to_owned(),
            mode: "enforce".to_owned(),
            owner: "address=10.0.0.7".to_owned(),
            held_ms: 4_000,
            waiting: 3,
            ..Lock::default()
        };
        LockList {
            total: 7,
            matched: 2,
            locks: keys.iter().map(lock).collect(),
            ..LockList::default()
        }
    }

    #[test]
    fn a_table_for_people() {
        assert_eq!(
            text(&list(&["lock:a", "lock:\x1b[2J"]), Some(100)),
            "KEY             RULE  OWNER             HELD  TTL LEFT  WAITING  WARNINGS\n\
             lock:a          jobs  address=10.0.0.7  4.0s      none        3\n\
             lock:\\u{1b}[2J  jobs  address=10.0.0.7  4.0s      none        3\n\
             2 shown of 2 that match, 7 locks held\n"
        );
    }

    #[test]
    fn csv_is_quoted_and_keeps_every_key_apart() {
        let Ok(text) = csv(&list(&["=1+1", "a,\"b\"\n"])) else {
            panic!("it can be written")
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], CSV_HEAD.join(","));
        assert!(lines[1].starts_with("0,'=1+1,%3D1%2B1,jobs,enforce,"), "{text}");
        assert!(
            lines[2].starts_with("0,\"a,\"\"b\"\"\\n\",a%2C%22b%22%0A,jobs,"),
            "{text}"
        );
        assert_eq!(lines.len(), 3, "{text}");
    }

    #[test]
    fn no_name_that_a_client_chooses_is_a_formula_in_a_spreadsheet() {
        for begin in ["=", "+", "-", "@", "\t=", "\r="] {
            let text = format!("{begin}HYPERLINK(1)");
            let lock = Lock {
                key: text.clone(),
                key_encoded: crate::admin::client::key_encoded(text.as_bytes()),
                rule: text.clone(),
                owner: text.clone(),
                connection: text.clone(),
                client_name: Some(text.clone()),
                client_address: Some(text.clone()),
                ..Lock::default()
            };
            let row = csv_row(&lock);
            let exact = CSV_HEAD.iter().position(|name| *name == "key_encoded");
            for (place, cell) in row.iter().enumerate() {
                let harmless = !cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
                assert!(harmless || Some(place) == exact, "{begin:?}: {cell}");
            }
            assert_eq!(row[2], lock.key_encoded);
        }
        assert_eq!(no_formula("lock:a=1".to_owned()), "lock:a=1");
    }
}
