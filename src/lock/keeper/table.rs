//! The lock table: the leases that hold their locks, filtered, sorted and cut to the rows that somebody asked for. It is
//! read under the keeper's mutex, so it copies nothing but those rows, and looks at no lease that the query's indexes
//! leave out. It changes nothing and puts nothing into words.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::Keeper;
use super::lease::{Lease, LeaseId};
use super::selection::Selection;
use super::warning::{Warning, warnings};
use crate::event::{ConnectionId, Owner, RuleIndex, Time};
use crate::lock::search::Search;
use crate::lock::waiters::Waiting;

/// So many waiters are shown of each row.
const WAITERS_SHOWN: usize = 16;

/// By what rows are sorted. Among equals the oldest comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// How long the lease is held.
    #[default]
    Age,
    /// What is left of its TTL. Leases without TTL come last in either order.
    Ttl,
    /// How many wait for it.
    Waiters,
    /// The key's bytes.
    Key,
}

/// Which rows of the table. Each filter that is there must let a row through.
#[derive(Clone, Debug, Default)]
pub struct TableQuery {
    /// The key.
    pub search: Option<Search>,
    /// The name of its rule.
    pub rule: Option<Arc<str>>,
    /// Part of its owner.
    pub owner: Option<String>,
    /// Its database.
    pub database: Option<u32>,
    /// Held at least so long.
    pub older_than_ms: Option<u64>,
    /// Only with a warning.
    pub warned: bool,
    /// By what to sort.
    pub sort: SortBy,
    /// The greatest first.
    pub descending: bool,
    /// So many rows are left out.
    pub offset: usize,
    /// At most so many are given.
    pub limit: usize,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Leases that hold their locks.
    pub total: usize,
    /// How many of them the filters let through.
    pub matched: usize,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One lease that holds its lock, as far as this proxy knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The database.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    /// The name of the rule.
    pub rule: Arc<str>,
    /// Under an observe rule.
    pub observed: bool,
    /// Whose it is.
    pub owner: Owner,
    /// The connection that acquired it.
    pub connection: ConnectionId,
    /// That connection is still open.
    pub connected: bool,
    /// When it was acquired.
    pub granted: Time,
    /// The full TTL as last set, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// When it runs out. In the past: it has, and the server has not said yet what became of the lease.
    pub due: Option<Time>,
    /// The fencing token, where the rule asks for one.
    pub fence: Option<u64>,
    /// How often it was renewed by this proxy.
    pub renewals: u64,
    /// How often a client set its TTL anew.
    pub extensions: u64,
    /// How many wait for it.
    pub waiting: usize,
    /// Who they are, the longest first.
    pub waiters: Vec<Waiting>,
    /// Earlier leases of the lock that ended by their TTL, and whose releases have not come.
    pub owed: u64,
    /// What is wrong with it.
    pub warnings: Vec<Warning>,
}

/// What a row is sorted by; the least comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Number(u64),
    Key(&'a [u8]),
    KeyDown(Reverse<&'a [u8]>),
}

/// Its rank, its age, and the order of the grants.
type Place<'a> = (Rank<'a>, Time, LeaseId);

/// What a query needs to know of each rule, by position.
struct View {
    shown: bool,
    usual_ms: Option<u64>,
}

/// One query under way.
struct Reading<'a> {
    keeper: &'a Keeper,
    query: &'a TableQuery,
    at: Time,
    rules: Vec<View>,
    /// How many wait for a lease; only of those for which anybody does, and only if the query sorts by it.
    waiting: HashMap<LeaseId, usize>,
}

impl Keeper {
    /// The table at `at`. Of the leases of each rule, by position, 99 of 100 are held no longer than `usual_hold_ms`
    /// says, where that is known. The oldest leases of all, or of a rule, cost what the rows cost that are given; most
    /// other queries cost a look at every lease.
    pub fn table(&self, at: Time, query: &TableQuery, usual_hold_ms: &[Option<u64>]) -> Table {
        let shown = |name: &str| query.rule.as_deref().is_none_or(|rule| rule == name);
        let usual_ms = |place: usize| usual_hold_ms.get(place).copied().flatten();
        let rules = self.rules.iter().enumerate();
        let rules = rules.map(|(place, rule)| View {
            shown: shown(&rule.name),
            usual_ms: usual_ms(place),
        });
        let reading = Reading {
            keeper: self,
            query,
            at,
            rules: rules.collect(),
            waiting: if query.sort == SortBy::Waiters {
                self.waiting_by_lease(at)
            } else {
                HashMap::new()
            },
        };
        reading.table()
    }

    /// The lease that holds this lock, if one is known here, and all who wait for it, the longest first.
    pub fn lookup(
        &self,
        at: Time,
        database: u32,
        key: &Bytes,
        usual_hold_ms: &[Option<u64>],
    ) -> (Option<Row>, Vec<Waiting>) {
        let (count, waiters) = self.waiters.of_lock(database, key, at, usize::MAX);
        let found = self
            .current(&(database, key.clone()))
            .and_then(|id| self.book.lease(id));
        let row = found.map(|lease| {
            let usual_ms = usual_hold_ms.get(usize::from(lease.rule.0)).copied().flatten();
            self.row(lease, at, usual_ms, (count, waiters.clone()))
        });
        (row, waiters)
    }

    /// The owner of the lease that holds this lock, if one is known here.
    pub fn holder(&self, database: u32, key: &Bytes) -> Option<Owner> {
        let id = self.current(&(database, key.clone()))?;
        self.book.lease(id).map(|lease| lease.owner.clone())
    }

    fn waiting_by_lease(&self, at: Time) -> HashMap<LeaseId, usize> {
        let locks = self.waiters.by_lock(at).into_iter();
        locks
            .filter_map(|(database, key, count)| Some((self.current(&(database, key))?, count)))
            .collect()
    }

    /// How many leases of the lock of this one are owed.
    fn owed_beside(&self, lease: &Lease) -> u64 {
        if !lease.has_forerunners {
            return 0;
        }
        self.book
            .on_lock(&lease.lock())
            .map(|(_, other)| u64::from(other.is_owed()))
            .sum()
    }

    fn row(&self, lease: &Lease, at: Time, usual_ms: Option<u64>, waiting: (usize, Vec<Waiting>)) -> Row {
        let owed = self.owed_beside(lease);
        Row {
            database: lease.database,
            key: lease.key.clone(),
            rule: self
                .rule(lease.rule)
                .map_or_else(|| "".into(), |rule| rule.name.clone()),
            observed: lease.is_observed(),
            owner: lease.owner.clone(),
            connection: lease.connection.clone(),
            connected: lease.connected,
            granted: lease.granted,
            ttl_ms: lease.ttl_ms,
            due: lease.due,
            fence: lease.fence,
            renewals: lease.renewals,
            extensions: lease.extensions,
            waiting: waiting.0,
            waiters: waiting.1,
            owed,
            warnings: warnings(lease, owed, usual_ms, at).collect(),
        }
    }
}

impl<'a> Reading<'a> {
    fn table(&self) -> Table {
        let query = self.query;
        let mut selection = Selection::new(query.offset.saturating_add(query.limit));
        let matched = if self.is_by_age_alone() {
            self.select_by_age(&mut selection)
        } else {
            self.select_from_all(&mut selection)
        };
        let rows = selection.into_sorted().into_iter().skip(query.offset);
        let rows = rows.filter_map(|(_, _, id)| self.keeper.book.lease(id)).map(|lease| {
            let waiters = &self.keeper.waiters;
            let waiting = waiters.of_lock(lease.database, &lease.key, self.at, WAITERS_SHOWN);
            self.keeper.row(lease, self.at, self.usual_ms(lease.rule), waiting)
        });
        Table {
            total: self.keeper.book.held(),
            matched,
            rows: rows.collect(),
        }
    }

    fn usual_ms(&self, rule: RuleIndex) -> Option<u64> {
        self.rules.get(usize::from(rule.0)).and_then(|view| view.usual_ms)
    }

    /// Only leases granted up to here are old enough; `None`: the process itself is not.
    fn granted_until(&self) -> Option<Time> {
        match self.query.older_than_ms.unwrap_or(0) {
            // A lease may be younger than the moment at which the table is read.
            0 => Some(Time(u64::MAX)),
            older_than => self.at.0.checked_sub(older_than.saturating_mul(1000)).map(Time),
        }
    }

    fn is_old_enough(&self, lease: &Lease) -> bool {
        self.granted_until().is_some_and(|until| lease.granted <= until)
    }

    /// Whether the leases by age, which every rule has at hand, are enough to answer the query.
    fn is_by_age_alone(&self) -> bool {
        let TableQuery {
            search,
            rule: _,
            owner,
            database,
            older_than_ms: _,
            warned,
            sort,
            descending,
            offset: _,
            limit: _,
        } = self.query;
        let unfiltered = search.is_none() && owner.is_none() && database.is_none() && !warned;
        unfiltered && (*sort == SortBy::Age || (*sort == SortBy::Waiters && *descending))
    }

    /// Offers the first leases of each rule by age, and those that have waiters if the query asks for them. Returns how
    /// many match.
    fn select_by_age(&self, selection: &mut Selection<Place<'a>>) -> usize {
        let (mut matched, wanted) = (0, selection.wanted());
        let Some(until) = self.granted_until() else { return 0 };
        for (index, _) in (0..=u16::MAX).zip(&self.rules).filter(|(_, view)| view.shown) {
            let Some(gauge) = self.keeper.book.gauge(RuleIndex(index)) else {
                continue;
            };
            let held = gauge.held.range(..=(until, LeaseId::MAX));
            matched += match self.query.older_than_ms {
                None => gauge.held.len(),
                Some(_) => held.clone().count(),
            };
            let ids = held.map(|(_, id)| *id).filter(|id| !self.waiting.contains_key(id));
            let offer = |id| self.offer(id, selection);
            if self.query.sort == SortBy::Age && !self.query.descending {
                ids.rev().take(wanted).for_each(offer);
            } else {
                ids.take(wanted).for_each(offer);
            }
        }
        for id in self.waiting.keys() {
            let lease = self.keeper.book.lease(*id);
            if lease.is_some_and(|lease| self.rule_is_shown(lease) && self.is_old_enough(lease)) {
                self.offer(*id, selection);
            }
        }
        matched
    }

    fn select_from_all(&self, selection: &mut Selection<Place<'a>>) -> usize {
        let mut matched = 0;
        for (id, lease) in self.keeper.book.leases() {
            if self.lets_through(lease) {
                matched += 1;
                selection.offer((self.rank(id, lease), lease.granted, id));
            }
        }
        matched
    }

    fn offer(&self, id: LeaseId, selection: &mut Selection<Place<'a>>) {
        if let Some(lease) = self.keeper.book.lease(id) {
            selection.offer((self.rank(id, lease), lease.granted, id));
        }
    }

    fn rule_is_shown(&self, lease: &Lease) -> bool {
        self.rules.get(usize::from(lease.rule.0)).is_some_and(|view| view.shown)
    }

    /// What costs least is asked first.
    fn lets_through(&self, lease: &Lease) -> bool {
        let query = self.query;
        lease.is_held()
            && self.rule_is_shown(lease)
            && query.database.is_none_or(|database| lease.database == database)
            && self.is_old_enough(lease)
            && query.owner.as_ref().is_none_or(|part| lease.owner.contains(&**part))
            && query.search.as_ref().is_none_or(|search| search.matches(&lease.key))
            && (!query.warned || self.is_warned(lease))
    }

    fn is_warned(&self, lease: &Lease) -> bool {
        let wrong = |owed| warnings(lease, owed, self.usual_ms(lease.rule), self.at).next();
        // The debts of a lock have to be looked up, so they come last.
        wrong(0).is_some() || wrong(self.keeper.owed_beside(lease)).is_some()
    }

    fn rank(&self, id: LeaseId, lease: &'a Lease) -> Rank<'a> {
        let descending = self.query.descending;
        let number = |number: u64| Rank::Number(if descending { !number } else { number });
        match self.query.sort {
            // The oldest was granted first.
            SortBy::Age => Rank::Number(if descending { lease.granted.0 } else { !lease.granted.0 }),
            SortBy::Ttl => lease.due.map_or(Rank::Number(u64::MAX), |due| number(due.0)),
            SortBy::Waiters => number(self.waiting.get(&id).map_or(0, |count| *count as u64)),
            SortBy::Key if descending => Rank::KeyDown(Reverse(&lease.key)),
            SortBy::Key => Rank::Key(&lease.key),
        }
    }
}
