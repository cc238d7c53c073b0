//! How a query of the lock table is answered: in pieces, so that the keeper is never locked for long, and with nothing
//! copied but the rows that are given. The oldest leases are at hand by rule, and are enough where few are wanted; for
//! other queries every lease is looked at, and only the best of them are kept in mind. It changes nothing.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::{mem, vec};

use bytes::Bytes;

use super::Keeper;
use super::lease::{Lease, LeaseId, LockId};
use super::selection::Selection;
use super::table::{SortBy, Table, TableQuery};
use super::warning::warnings;
use crate::event::{RuleIndex, Time};

/// So many leases are looked at in one piece: a fraction of a millisecond.
const LEASES_AT_ONCE: usize = 2000;
/// So many bytes of keys and pattern are compared in one piece: a fraction of a millisecond too.
const COMPARED_AT_ONCE: usize = 250_000;
/// So many locks are looked up, or rows written, in one piece.
const ROWS_AT_ONCE: usize = 200;
/// So many waiters are shown of each row.
pub(super) const WAITERS_SHOWN: usize = 16;

/// What a row is sorted by; the least comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Number(u64),
    Key(Bytes),
    KeyDown(Reverse<Bytes>),
}

/// Its rank, its age, its place in the order of the grants, and which it is.
type Place = (Rank, Time, u64, LeaseId);

/// What comes next.
#[derive(Debug)]
enum Stage {
    Begin,
    /// Which leases are they that have waiters?
    Waited(vec::IntoIter<(LockId, usize)>),
    /// The first leases of each rule by age are enough.
    ByAge,
    /// All leases from this one on.
    All(LeaseId),
    /// Everything was offered: the best have to be put in order.
    Offered,
    Rows(vec::IntoIter<LeaseId>),
    Over,
}

/// One answer in the making. Leases that come and go meanwhile may be in it or not; what a row says is true when it is
/// written. (If the rules change meanwhile it may be the answer to another rule's query.)
#[derive(Debug)]
pub struct Reading {
    at: Time,
    query: TableQuery,
    usual_hold_ms: Vec<Option<u64>>,
    /// Whether leases of a rule are shown, by position.
    shown: Vec<bool>,
    /// How many wait for a lease; only where anybody does, and only if the query sorts by it.
    waiting: HashMap<LeaseId, usize>,
    selection: Selection<Place>,
    stage: Stage,
    /// Bytes compared so far in search of keys.
    compared: usize,
    table: Table,
}

impl Reading {
    /// Begins to answer a query as of `at`. Of the leases of each rule, by position, 99 of 100 are held no longer than
    /// `usual_hold_ms` says, where that is known.
    pub fn new(at: Time, query: TableQuery, usual_hold_ms: Vec<Option<u64>>) -> Reading {
        Reading {
            at,
            selection: Selection::new(query.offset.saturating_add(query.limit)),
            query,
            usual_hold_ms,
            shown: Vec::new(),
            waiting: HashMap::new(),
            stage: Stage::Begin,
            compared: 0,
            table: Table::default(),
        }
    }

    /// To be called between two pieces: does what needs no keeper, and may take its time if many rows are left out.
    pub fn digest(&mut self) {
        if matches!(self.stage, Stage::Offered) {
            self.stage = self.sorted();
        }
    }

    fn sorted(&mut self) -> Stage {
        let selection = mem::replace(&mut self.selection, Selection::new(0));
        let best = selection.into_sorted().into_iter().skip(self.query.offset);
        let ids: Vec<LeaseId> = best.map(|(.., id)| id).collect();
        Stage::Rows(ids.into_iter())
    }

    /// How many bytes of keys and pattern have been compared so far; about a thousand million take a second.
    pub fn compared(&self) -> usize {
        self.compared
    }

    /// What was found so far: the answer, once there is nothing more to read.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// Whether the leases by age, which every rule has at hand, are enough to answer the query, and few enough of them for
    /// one piece.
    fn is_by_age_alone(&self) -> bool {
        let TableQuery {
            search,
            rule: _,
            owner,
            database,
            older_than_ms,
            warned,
            sort,
            descending,
            offset: _,
            limit: _,
        } = &self.query;
        let all = older_than_ms.is_none() && search.is_none() && owner.is_none() && database.is_none() && !warned;
        let rules = self.shown.iter().filter(|shown| **shown).count();
        let offered = self.selection.wanted().saturating_mul(rules);
        // Those that are waited for are passed over where they stand, and offered once.
        let looked_at = offered.saturating_add(self.waiting.len().saturating_mul(2));
        all && looked_at <= LEASES_AT_ONCE && (*sort == SortBy::Age || (*sort == SortBy::Waiters && *descending))
    }

    fn is_youngest_first(&self) -> bool {
        self.query.sort == SortBy::Age && !self.query.descending
    }

    fn usual_ms(&self, rule: RuleIndex) -> Option<u64> {
        self.usual_hold_ms.get(usize::from(rule.0)).copied().flatten()
    }

    fn rule_is_shown(&self, rule: RuleIndex) -> bool {
        self.shown.get(usize::from(rule.0)).copied().unwrap_or(false)
    }

    /// Only leases granted up to here are old enough; `None`: the process itself is not.
    fn granted_until(&self) -> Option<Time> {
        match self.query.older_than_ms.unwrap_or(0) {
            // A lease may be younger than the moment as of which the table is read.
            0 => Some(Time(u64::MAX)),
            older_than => self.at.0.checked_sub(older_than.saturating_mul(1000)).map(Time),
        }
    }

    fn is_old_enough(&self, lease: &Lease) -> bool {
        self.granted_until().is_some_and(|until| lease.granted <= until)
    }

    fn rank(&self, id: LeaseId, lease: &Lease) -> Rank {
        let descending = self.query.descending;
        let number = |number: u64| Rank::Number(if descending { !number } else { number });
        match self.query.sort {
            // The oldest was granted first.
            SortBy::Age => Rank::Number(if descending { lease.granted.0 } else { !lease.granted.0 }),
            SortBy::Ttl => lease.due.map_or(Rank::Number(u64::MAX), |due| number(due.0)),
            SortBy::Waiters => number(self.waiting.get(&id).map_or(0, |count| *count as u64)),
            SortBy::Key if descending => Rank::KeyDown(Reverse(lease.key.clone())),
            SortBy::Key => Rank::Key(lease.key.clone()),
        }
    }

    fn offer(&mut self, id: LeaseId, lease: &Lease) {
        let rank = self.rank(id, lease);
        let order = if self.is_youngest_first() { !id } else { id };
        self.selection.offer((rank, lease.granted, order, id));
    }
}

impl Keeper {
    /// Reads one more piece of the answer. Returns whether there is more to read.
    pub fn read_on(&self, reading: &mut Reading) -> bool {
        reading.stage = match mem::replace(&mut reading.stage, Stage::Over) {
            Stage::Begin => self.begin_reading(reading),
            Stage::Waited(mut locks) => {
                for (lock, count) in locks.by_ref().take(ROWS_AT_ONCE) {
                    reading.waiting.extend(self.current(&lock).map(|id| (id, count)));
                }
                if locks.len() > 0 {
                    Stage::Waited(locks)
                } else {
                    choose(reading)
                }
            }
            Stage::ByAge => {
                self.read_by_age(reading);
                Stage::Offered
            }
            Stage::All(from) => match self.read_all(reading, from) {
                Some(next) => Stage::All(next),
                None => Stage::Offered,
            },
            Stage::Offered => reading.sorted(),
            Stage::Rows(mut ids) => {
                self.write_rows(reading, ids.by_ref().take(ROWS_AT_ONCE));
                if ids.len() > 0 { Stage::Rows(ids) } else { Stage::Over }
            }
            Stage::Over => Stage::Over,
        };
        !matches!(reading.stage, Stage::Over)
    }

    fn begin_reading(&self, reading: &mut Reading) -> Stage {
        let rule = reading.query.rule.as_deref();
        let shown = |name: &str| rule.is_none_or(|rule| rule == name);
        reading.shown = self.rules.iter().map(|rule| shown(&rule.name)).collect();
        reading.table.total = self.book.held();
        if reading.query.sort == SortBy::Waiters {
            return Stage::Waited(self.waiters.by_lock(reading.at).into_iter());
        }
        choose(reading)
    }

    /// Offers the first leases of each rule by age, and those that have waiters if the query asks for them.
    fn read_by_age(&self, reading: &mut Reading) {
        let wanted = reading.selection.wanted();
        let youngest_first = reading.is_youngest_first();
        let mut offered: Vec<LeaseId> = Vec::new();
        for rule in (0..=u16::MAX).zip(&reading.shown).filter(|(_, shown)| **shown) {
            let Some(gauge) = self.book.gauge(RuleIndex(rule.0)) else {
                continue;
            };
            reading.table.matched += gauge.held.len();
            let ids = gauge
                .held
                .iter()
                .map(|(_, id)| *id)
                .filter(|id| !reading.waiting.contains_key(id));
            if youngest_first {
                offered.extend(ids.rev().take(wanted));
            } else {
                offered.extend(ids.take(wanted));
            }
        }
        offered.extend(reading.waiting.keys());
        for id in offered {
            if let Some(lease) = self.book.lease(id)
                && reading.rule_is_shown(lease.rule)
            {
                reading.offer(id, lease);
            }
        }
    }

    /// Offers what matches among the next leases. Returns where to go on.
    fn read_all(&self, reading: &mut Reading, from: LeaseId) -> Option<LeaseId> {
        let mut leases = self.book.leases_from(from);
        let enough = reading.compared.saturating_add(COMPARED_AT_ONCE);
        for (id, lease) in leases.by_ref().take(LEASES_AT_ONCE) {
            if self.lets_through(reading, lease) {
                reading.table.matched += 1;
                reading.offer(id, lease);
            }
            let search = reading.query.search.as_ref();
            reading.compared += search.map_or(0, |search| search.cost(lease.key.len()));
            if reading.compared >= enough {
                break;
            }
        }
        leases.next().map(|(id, _)| id)
    }

    /// What costs least is asked first.
    fn lets_through(&self, reading: &Reading, lease: &Lease) -> bool {
        let query = &reading.query;
        lease.is_held()
            && reading.rule_is_shown(lease.rule)
            && query.database.is_none_or(|database| lease.database == database)
            && reading.is_old_enough(lease)
            && query.owner.as_ref().is_none_or(|part| lease.owner.contains(&**part))
            && query.search.as_ref().is_none_or(|search| search.matches(&lease.key))
            && (!query.warned || self.is_warned(reading, lease))
    }

    fn is_warned(&self, reading: &Reading, lease: &Lease) -> bool {
        let usual_ms = reading.usual_ms(lease.rule);
        let wrong = |owed| warnings(lease, owed, usual_ms, reading.at).next().is_some();
        // The debts of a lock have to be looked up, so they come last.
        wrong(0) || wrong(self.owed_beside(lease))
    }

    fn write_rows(&self, reading: &mut Reading, ids: impl Iterator<Item = LeaseId>) {
        for id in ids {
            // It may be over by now.
            let Some(lease) = self.book.lease(id).filter(|lease| lease.is_held()) else {
                continue;
            };
            let waiting = self
                .waiters
                .of_lock(lease.database, &lease.key, reading.at, WAITERS_SHOWN);
            let row = self.row(lease, reading.at, reading.usual_ms(lease.rule), waiting);
            reading.table.rows.push(row);
        }
    }
}

fn choose(reading: &Reading) -> Stage {
    if reading.is_by_age_alone() {
        Stage::ByAge
    } else {
        Stage::All(0)
    }
}
