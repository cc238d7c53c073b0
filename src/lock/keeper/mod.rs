//! What this proxy knows of the leases granted through it, and the chores that follow: renewal, release on disconnect,
//! marks for closed connections, a look at every lease that should have expired.
//!
//! The driver's contract:
//!
//! - Hand in each event of each session with [`Keeper::event`], and do so *before* the bytes of its answer go to the
//!   client: then nobody can answer to a grant that the keeper has not heard of. Never hand in the events that the
//!   keeper itself gave out. That a lease with a token expired is said to metrics and logs by the keeper alone: a
//!   session's `Expired` for it is only handed in here.
//! - Hand in a session's last events before [`Keeper::closed`]; what comes later is taken as of a closed connection.
//! - Call [`Keeper::tick`] when [`Keeper::deadline`] has come, and after each [`Keeper::done`]. It fills chores and
//!   events. Carry every chore out on lockward's own connection and answer each with exactly one `done`, also if it was
//!   never sent: the number under way is bounded, and only `done` makes room.
//!
//! What it deliberately does not do: it decides nothing about a client's command (the scripts and the model do), reads
//! no clock, and its knowledge proves nothing: each chore carries a token or a connection, and the server compares.
//! Leases in observe mode (the zero token) have no record on the server: they are counted, and end by their TTL, but no
//! chore ever speaks of them.

mod book;
mod chores;
mod closing;
mod counts;
mod events;
mod lease;
mod legacy;
mod reading;
mod results;
mod selection;
mod table;
mod warning;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use self::book::Book;
use self::chores::Queue;
use self::lease::{Elsewhere, LeaseId, Phase};
pub use self::legacy::Held;
pub use self::reading::Reading;
pub use self::table::{Row, SortBy, Table, TableQuery};
pub use self::warning::Warning;
use super::LONGEST_KEPT_KEY;
use super::owner::Bound;
use super::rule::{Mode, Rule};
use super::waiters::Waiters;
pub use super::waiters::{Waited, Waiting};
use crate::event::{Event, Owner, RuleIndex, Time};

/// Who closed a downstream connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The client: FIN, RST or keep-alive failure.
    ByClient,
    /// lockward (drain, protocol error) or the loss of the server. Says nothing about the client's tasks.
    ByProxyOrServer,
}

/// A chore that came to nothing: not sent, no answer in time, or an error instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// The bounds of a keeper.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Leases and debts remembered. Beyond it the oldest debt goes, or the oldest lease of a rule without `renew` and
    /// `release_on_disconnect`, or else the new one is not taken in.
    pub leases: usize,
    /// Locks with longer keys, in bytes, are not followed at all.
    pub longest_key: usize,
    /// Bytes of all keys of leases and debts together; beyond it room is made as for one lease more.
    pub key_bytes: usize,
    /// Watches remembered; one more is not, so a renewal may then fail somebody's EXEC.
    pub watches: usize,
    /// Waiters remembered.
    pub waiters: usize,
    /// Closed connections remembered, for events that come late.
    pub departed: usize,
    /// Chores handed out by one tick.
    pub chores_per_tick: usize,
    /// Chores handed out and not yet done.
    pub chores_under_way: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            leases: 100_000,
            longest_key: LONGEST_KEPT_KEY,
            key_bytes: 64 << 20,
            watches: 100_000,
            waiters: 10_000,
            departed: 4096,
            chores_per_tick: 64,
            chores_under_way: 256,
        }
    }
}

/// The gauges of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Live leases granted through this proxy.
    pub held: usize,
    /// Waiters whose last try is younger than ten seconds.
    pub waiters: usize,
    /// Live leases without TTL.
    pub without_ttl: usize,
    /// Age of the oldest live lease in microseconds, 0 if there is none.
    pub oldest_age_micros: u64,
}

/// What was left out because of a limit, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Leases not followed, or not to their end.
    pub leases: u64,
    /// Watches not noted.
    pub watches: u64,
    /// Marks given up after many failures.
    pub marks: u64,
    /// Waiters forgotten before their time.
    pub waiters: u64,
}

/// What the keeper needs of a rule.
#[derive(Clone, Debug)]
struct Settings {
    name: Arc<str>,
    /// Its locks are not followed.
    off: bool,
    renew: bool,
    max_hold_ms: u64,
    release_on_disconnect: bool,
    disconnect_grace_ms: u64,
    window_ms: u64,
}

impl From<&Rule> for Settings {
    fn from(rule: &Rule) -> Self {
        Settings {
            name: rule.name.clone(),
            off: rule.mode == Mode::Off,
            // Under an observe rule nothing is done, also with what was acquired before it was one.
            renew: rule.renew && rule.mode == Mode::Enforce,
            max_hold_ms: rule.max_hold_ms,
            release_on_disconnect: rule.release_on_disconnect && rule.mode == Mode::Enforce,
            disconnect_grace_ms: rule.disconnect_grace_ms,
            window_ms: rule.late_release_window_ms,
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Keeper {
    rules: Vec<Settings>,
    limits: Limits,
    book: Book,
    waiters: Waiters,
    queue: Queue,
    /// Events waiting for the next tick.
    outbox: Vec<Event>,
    departed: BTreeMap<u64, Closing>,
    departed_order: VecDeque<u64>,
    dropped: Dropped,
    /// The other process that is there now: owners may have connections to it.
    companion: Elsewhere,
}

impl Keeper {
    /// A keeper that knows nothing yet. [`RuleIndex`] is the position in `rules`.
    pub fn new(rules: &[Rule], limits: Limits) -> Self {
        Keeper {
            rules: rules.iter().map(Settings::from).collect(),
            limits,
            book: Book::default(),
            waiters: Waiters::new(limits.waiters),
            queue: Queue::default(),
            outbox: Vec::new(),
            departed: BTreeMap::new(),
            departed_order: VecDeque::new(),
            dropped: Dropped::default(),
            companion: Elsewhere::Nowhere,
        }
    }

    /// Takes a new configuration. Rules keep their leases by name; leases of a rule that is gone or off are not followed
    /// any more. A lease keeps its owner, and the TTL it has.
    pub fn reload(&mut self, at: Time, rules: &[Rule]) {
        let old: Vec<Settings> = std::mem::replace(&mut self.rules, rules.iter().map(Settings::from).collect());
        let new_place = |known: &Settings| {
            let same = |rule: &Rule| rule.name == known.name && rule.mode != Mode::Off;
            let index = rules.iter().position(same)?;
            u16::try_from(index).ok().map(RuleIndex)
        };
        let places: Vec<Option<RuleIndex>> = old.iter().map(new_place).collect();
        let place = |rule: RuleIndex| places.get(usize::from(rule.0)).copied().flatten();
        self.book.renumber(place);
        self.waiters.renumber(place);
        let all: Vec<LeaseId> = self.book.leases().map(|(id, _)| id).collect();
        for id in all {
            let rule = self.book.lease(id).and_then(|lease| self.rule(lease.rule));
            let (renews, releases) = rule.map_or((false, false), |rule| (rule.renew, rule.release_on_disconnect));
            self.book.change(id, |lease| {
                match (renews, lease.renew_at) {
                    (true, None) => lease.renew_at = Some(at),
                    (false, Some(_)) => lease.renew_at = None,
                    _ => {}
                }
                if !releases {
                    lease.leave_at = None;
                }
            });
            self.plan(id);
        }
    }

    /// A session tells its owner for a rule, as soon as it derives it and whenever it changes. Events do the same.
    pub fn bound(&mut self, connection: u64, rule: RuleIndex, owner: &Owner) {
        if self.departed.contains_key(&connection) {
            return;
        }
        let [came, went] = self.book.bind(connection, rule, owner);
        for owner in [came, went].into_iter().flatten() {
            self.presence_changed(owner);
        }
    }

    /// A session watches a lock, or does not any more (UNWATCH, EXEC, DISCARD): meanwhile it is not renewed.
    pub fn watching(&mut self, connection: u64, database: u32, key: &Bytes, watches: bool) {
        if self.departed.contains_key(&connection) {
            return;
        }
        if watches {
            let lock = (database, Bytes::copy_from_slice(key));
            if self.is_too_long(key) || !self.book.watch(connection, lock.clone(), self.limits.watches) {
                self.dropped.watches += 1;
            }
            self.plan_lock(&lock);
        } else {
            let lock = (database, key.clone());
            if self.book.unwatch(connection, &lock) {
                self.plan_lock(&lock);
            }
        }
    }

    /// The gauges, one entry for each rule.
    pub fn summary(&self, at: Time) -> Vec<Summary> {
        let mut summaries = vec![Summary::default(); self.rules.len()];
        for (index, summary) in (0..=u16::MAX).zip(&mut summaries) {
            let Some(gauge) = self.book.gauge(RuleIndex(index)) else {
                continue;
            };
            summary.held = gauge.held.len();
            summary.without_ttl = gauge.without_ttl;
            summary.oldest_age_micros = gauge.held.first().map_or(0, |(granted, _)| at.since(*granted));
        }
        for rule in self.waiters.waiting(at) {
            if let Some(summary) = summaries.get_mut(usize::from(rule.0)) {
                summary.waiters += 1;
            }
        }
        summaries
    }

    /// How many live leases are known in a database, or in all: what FLUSHDB or FLUSHALL took away.
    pub fn known(&self, database: Option<u32>) -> usize {
        let here = |database_of_lease| database.is_none_or(|database| database == database_of_lease);
        self.book
            .leases()
            .filter(|(_, lease)| lease.is_live() && here(lease.database))
            .count()
    }

    /// Every live lease of a database (or of all) is looked at soon: after FLUSHDB, FLUSHALL or SWAPDB.
    pub fn look_again(&mut self, at: Time, database: Option<u32>) {
        let here = |database_of_lease| database.is_none_or(|database| database == database_of_lease);
        let live = self
            .book
            .leases()
            .filter(|(_, lease)| lease.is_live() && here(lease.database));
        for id in live.map(|(id, _)| id).collect::<Vec<_>>() {
            self.ask(id, at);
        }
    }

    /// The server was away: every lease that it can be asked about is looked at.
    pub fn reconnected(&mut self, at: Time) {
        let kept = self
            .book
            .leases()
            .filter(|(_, lease)| lease.is_live() && !lease.is_observed());
        for id in kept.map(|(id, _)| id).collect::<Vec<_>>() {
            self.ask(id, at);
        }
    }

    /// Somebody saw that the lock is not as this proxy knows it: its lease is looked at.
    pub fn doubt(&mut self, at: Time, database: u32, key: &Bytes) {
        if let Some(id) = self.current(&(database, key.clone())) {
            self.ask(id, at.plus_ms(lease::SETTLE_MS));
        }
    }

    /// What was left out because of a limit.
    pub fn dropped(&self) -> Dropped {
        Dropped {
            waiters: self.dropped.waiters + self.waiters.dropped(),
            ..self.dropped
        }
    }

    /// How many leases and debts are remembered.
    pub fn len(&self) -> usize {
        self.book.len()
    }

    /// Whether no lease and no debt is remembered.
    pub fn is_empty(&self) -> bool {
        self.book.len() == 0
    }

    /// Whoever stores keys of any length gives all memory to those who make them up.
    fn is_too_long(&self, key: &Bytes) -> bool {
        key.len() > self.limits.longest_key
    }

    fn rule(&self, rule: RuleIndex) -> Option<&Settings> {
        self.rules.get(usize::from(rule.0))
    }

    /// The lease has to be asked about at `at`, or again if a look is under way.
    fn ask(&mut self, id: LeaseId, at: Time) {
        self.book.change(id, |lease| match &mut lease.phase {
            Phase::Live => {
                lease.phase = Phase::Unsure {
                    check_at: at,
                    superseded: false,
                    given_up: false,
                }
            }
            Phase::Unsure { check_at, .. } if lease.pending.is_some() => *check_at = at,
            Phase::Unsure { .. } | Phase::Owed { .. } => {}
        });
        self.plan(id);
    }
}
