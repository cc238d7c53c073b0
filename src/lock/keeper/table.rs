//! The lock table: what can be asked of it, and its rows. Which rows answer a query, and in which order, is found out
//! elsewhere. Nothing here changes anything or puts anything into words.

use std::sync::Arc;

use bytes::Bytes;

use super::Keeper;
use super::lease::Lease;
use super::reading::{Reading, WAITERS_SHOWN};
use super::warning::{Warning, warnings};
use crate::event::{ConnectionId, Owner, Time};
use crate::lock::search::Search;
use crate::lock::waiters::Waiting;

/// So many waiters are shown of one lock that is looked up.
const WAITERS_OF_ONE: usize = 256;

/// By what rows are sorted. Among equals the oldest comes first, unless the youngest are asked for.
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

impl Keeper {
    /// The whole answer to a query at once, as [`Keeper::read_on`] gives it in pieces.
    pub fn table(&self, at: Time, query: &TableQuery, usual_hold_ms: &[Option<u64>]) -> Table {
        let mut reading = Reading::new(at, query.clone(), usual_hold_ms.to_vec());
        while self.read_on(&mut reading) {
            reading.digest();
        }
        reading.into_table()
    }

    /// The lease that holds this lock, if one is known here; how many wait for it, and those of them who have waited
    /// longest. 99 of 100 leases of the lock's rule are held no longer than `usual_ms`.
    pub fn lookup(
        &self,
        at: Time,
        database: u32,
        key: &Bytes,
        usual_ms: Option<u64>,
    ) -> (Option<Row>, usize, Vec<Waiting>) {
        let (count, waiters) = self.waiters.of_lock(database, key, at, WAITERS_OF_ONE);
        let found = self
            .current(&(database, key.clone()))
            .and_then(|id| self.book.lease(id));
        let row = found.map(|lease| {
            let first = waiters.iter().take(WAITERS_SHOWN).cloned().collect();
            self.row(lease, at, usual_ms, (count, first))
        });
        (row, count, waiters)
    }

    /// The owner of the lease that holds this lock, if one is known here.
    pub fn holder(&self, database: u32, key: &Bytes) -> Option<Owner> {
        let id = self.current(&(database, key.clone()))?;
        self.book.lease(id).map(|lease| lease.owner.clone())
    }

    /// How many leases of the lock of this one are owed.
    pub(super) fn owed_beside(&self, lease: &Lease) -> u64 {
        if !lease.has_forerunners {
            return 0;
        }
        self.book
            .on_lock(&lease.lock())
            .map(|(_, other)| u64::from(other.is_owed()))
            .sum()
    }

    pub(super) fn row(&self, lease: &Lease, at: Time, usual_ms: Option<u64>, waiting: (usize, Vec<Waiting>)) -> Row {
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
