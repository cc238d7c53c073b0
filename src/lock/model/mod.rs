//! The lease model: one lock, its record and the rules, in plain Rust. It decides in observe mode and is the oracle that
//! the Lua scripts are tested against. Times are milliseconds on one clock, the server's or, in observe mode, the
//! proxy's. Knows no keys, no commands and no clock of its own.
//!
//! The scripts leave a lease that is past its expiry where it is, and count it as a debt wherever they look; the model
//! turns it into one at once. Both must say the same.

mod account;
mod act;
mod chores;
#[cfg(test)]
mod tests;

use crate::event::{ConnectionId, Operation, Owner, RefusalReason, ReleaseOutcome, Token};

use super::decision::Row;
pub use super::idiom::Kind;

/// Two expiries that differ by no more than this are one.
pub const TOLERANCE_MS: i64 = 2;
/// A stranger who gives a TTL to a lease without one must leave its holder at least so long.
const REPAIR_MS: i64 = 10_000;
/// So many debts are kept for one lock.
const MOST_DEBTS: usize = 32;

/// One lock and what its record says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The lock key, if it exists.
    pub lock: Option<Lock>,
    /// The last lease, until it ends or becomes a debt.
    pub lease: Option<Lease>,
    /// Unpaid debts, the oldest first.
    pub debts: Vec<Debt>,
    /// The window that the record was written with.
    pub window_ms: i64,
    /// A record of another version, and the owner that it names. Nothing else of it is understood.
    pub alien: Option<Owner>,
    /// Debts that fell out of the window since the last grant.
    pub stale: u32,
    /// A lease whose expiry nobody has been told of.
    pub expired: Option<Expired>,
}

/// The lock key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// When it expires; `None`: never.
    pub expiry: Option<i64>,
}

/// A lease that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Whose it is; `None`: marked open by a takeover.
    pub holder: Option<Holder>,
    /// When it is due to expire; `None`: never.
    pub due: Option<i64>,
    /// Debts that were paid under it, perhaps wrongly.
    pub doubts: Vec<Debt>,
}

/// Whose a lease is.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// The owner when it was granted.
    pub owner: Owner,
    /// The connection that acquired it.
    pub connection: ConnectionId,
    /// Whether that connection is open, as far as is known.
    pub open: bool,
    /// Whether an expiry will owe a release.
    pub owing: bool,
    /// The owner token.
    pub token: Token,
    /// When it was granted.
    pub acquired_at: i64,
}

/// A release that is owed.
#[derive(Clone, Debug, PartialEq)]
pub struct Debt {
    /// Which acquire on this record it comes from, counted up.
    pub number: u64,
    /// Who owes it.
    pub owner: Owner,
    /// Through which connection the lease was acquired.
    pub connection: ConnectionId,
    /// When the lease expired.
    pub due: i64,
    /// Whether that connection is open, as far as is known.
    pub open: bool,
}

/// A lease that ended by its expiry and owes its release.
#[derive(Clone, Debug, PartialEq)]
pub struct Expired {
    /// Observe mode has told of it.
    pub told: bool,
    /// Whose it was.
    pub holder: Holder,
    /// From its grant to its expiry.
    pub held_ms: i64,
    /// The number of the debt that came of it.
    pub debt: u64,
}

/// Who asks, and what his rule says.
#[derive(Clone, Debug)]
pub struct Caller {
    /// His owner under the rule.
    pub owner: Owner,
    /// His connection.
    pub connection: ConnectionId,
    /// The token of the lease, if he gets one.
    pub token: Token,
    /// Locks without a live record: as Redis does it (`true`) or refused.
    pub allow: bool,
    /// `late_release_window`.
    pub window_ms: i64,
    /// `default_ttl`.
    pub default_ms: Option<i64>,
    /// `max_ttl`.
    pub max_ms: Option<i64>,
}

/// What a command leaves the lock's expiry as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewExpiry {
    /// As it is.
    Keep,
    /// None.
    Never,
    /// This.
    At(i64),
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A new lease.
    Granted(Granted),
    /// Refused because the lock is there.
    Contended,
    /// What the accounting said, and whether something was kept from being done.
    Release {
        /// Which line fitted.
        outcome: ReleaseOutcome,
        /// From grant to release.
        held_ms: Option<i64>,
        /// From expiry to late release.
        overrun_ms: Option<i64>,
        /// Why the lock was not removed.
        refused: Option<RefusalReason>,
        /// The debt was the last lease's, and nobody knew yet that it had expired.
        expired: Option<Expired>,
    },
    /// Not done.
    Refused(Operation, RefusalReason),
    /// The expiry was changed; whether `max_ttl` cut it.
    Extended(bool),
    /// The value was replaced under the same lease; whether a TTL was given or cut.
    Overwritten(bool),
    /// Open to all from now on.
    TakenOver,
    /// Nothing that concerns a lease.
    Nothing,
}

/// A new lease.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Granted {
    /// `default_ttl` gave the TTL.
    pub injected: bool,
    /// `max_ttl` cut it.
    pub reduced: bool,
    /// Somebody else may still be at work.
    pub overlap: bool,
    /// Debts dropped because of their age.
    pub dropped_by_window: u32,
    /// Debts dropped because there were too many.
    pub dropped_by_cap: u32,
    /// The last lease had expired, and nobody knew yet.
    pub expired: Option<Expired>,
}

/// What the lock is, compared with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no lock.
    Free,
    /// Held under the lease.
    Current,
    /// The lease is not yet due, but the lock's expiry is another.
    Adrift,
    /// Open to all.
    Open,
    /// No live lease.
    Unmanaged,
    /// A record that is not understood.
    Alien,
}

impl Model {
    /// Lets the time come: expired locks go, a lease that is past becomes a debt, and debts fall out of the window.
    pub fn ripen(&mut self, now: i64) {
        // The server keeps a key for the whole of its last millisecond.
        if self
            .lock
            .is_some_and(|lock| lock.expiry.is_some_and(|expiry| expiry < now))
        {
            self.lock = None;
        }
        if self.alien.is_none() && !self.in_line() && self.lease.as_ref().is_some_and(|lease| !ahead(lease, now)) {
            self.lapse();
        }
        let window_ms = self.window_ms;
        let before = self.debts.len();
        self.debts.retain(|debt| window_ms > 0 && now - debt.due < window_ms);
        self.stale += u32::try_from(before - self.debts.len()).unwrap_or(u32::MAX);
        let debts = &self.debts;
        if self
            .expired
            .as_ref()
            .is_some_and(|expired| debts.iter().all(|debt| debt.number != expired.debt))
        {
            self.expired = None;
        }
    }

    /// The lease ended by its expiry: the youngest doubtful debt comes back, or its own is added.
    fn lapse(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let (Some(holder), Some(due)) = (lease.holder, lease.due) else {
            return;
        };
        let own = || Debt {
            number: self.next_number(),
            owner: holder.owner.clone(),
            connection: holder.connection.clone(),
            due,
            open: holder.open,
        };
        let debt = match lease.doubts.into_iter().last() {
            Some(doubtful) => doubtful,
            None if holder.owing => own(),
            None => return,
        };
        let held_ms = (due - holder.acquired_at).max(0);
        self.expired = Some(Expired {
            told: false,
            held_ms,
            debt: debt.number,
            holder,
        });
        let place = self.debts.iter().take_while(|other| other.number < debt.number).count();
        self.debts.insert(place, debt);
    }

    /// Numbers only have to grow.
    fn next_number(&self) -> u64 {
        let doubts = self.lease.iter().flat_map(|lease| &lease.doubts);
        self.debts
            .iter()
            .chain(doubts)
            .map(|debt| debt.number)
            .max()
            .unwrap_or(0)
            + 1
    }

    /// Whether the lock exists with the expiry that the lease is due at.
    fn in_line(&self) -> bool {
        match (self.lock, &self.lease) {
            (Some(lock), Some(lease)) => match (lock.expiry, lease.due) {
                (None, None) => true,
                (Some(expiry), Some(due)) => (expiry - due).abs() <= TOLERANCE_MS,
                _ => false,
            },
            _ => false,
        }
    }

    /// What the lock is now; [`Model::ripen`] comes first.
    pub fn standing(&self) -> Standing {
        match (&self.lock, &self.alien, &self.lease) {
            (None, _, _) => Standing::Free,
            (Some(_), Some(_), _) => Standing::Alien,
            (Some(_), None, None) => Standing::Unmanaged,
            (Some(_), None, Some(Lease { holder: None, .. })) => Standing::Open,
            (Some(_), None, Some(_)) if self.in_line() => Standing::Current,
            (Some(_), None, Some(_)) => Standing::Adrift,
        }
    }

    /// Whose the lease is.
    pub fn holder(&self) -> Option<&Holder> {
        self.lease.as_ref().and_then(|lease| lease.holder.as_ref())
    }

    /// Whether a lock that is adrift or not understood is the caller's.
    fn is_of(&self, caller: &Caller) -> bool {
        match (&self.alien, self.holder()) {
            (Some(owner), _) => *owner == caller.owner,
            (None, Some(holder)) => holder.owner == caller.owner || holder.connection == caller.connection,
            (None, None) => false,
        }
    }

    /// The caller's row of the decision table.
    pub fn row(&self, caller: &Caller) -> Row {
        match (self.standing(), self.holder()) {
            (Standing::Free, _) => Row::Free,
            (Standing::Open | Standing::Unmanaged, _) => Row::Unmanaged,
            (Standing::Adrift | Standing::Alien, _) if self.is_of(caller) => Row::Unmanaged,
            (Standing::Adrift | Standing::Alien, _) => Row::Other,
            (Standing::Current, Some(holder)) if holder.connection == caller.connection => Row::Holder,
            (Standing::Current, Some(holder)) if holder.owner != caller.owner => Row::Other,
            (Standing::Current, _) if self.debts.iter().any(|debt| debt.connection == caller.connection) => Row::Debtor,
            (Standing::Current, _) => Row::Sibling,
        }
    }

    /// Whether the caller may do to an unmanaged lock what Redis would do.
    fn allowed(&self, caller: &Caller) -> bool {
        caller.allow || self.standing() != Standing::Unmanaged
    }

    /// The lease may have been given up in a way that cannot be told: its expiry will owe nothing.
    pub fn owe_nothing(&mut self) {
        if let Some(holder) = self.lease.as_mut().and_then(|lease| lease.holder.as_mut()) {
            holder.owing = false;
        }
    }

    /// A lease whose lock went before it was due was given up in a way that nobody saw.
    pub fn settle_early(&mut self) {
        if self.lock.is_none() {
            self.lease = None;
        }
    }
}

fn ahead(lease: &Lease, now: i64) -> bool {
    lease.due.is_none_or(|due| due - now > TOLERANCE_MS)
}
