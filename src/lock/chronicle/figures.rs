//! The figures of one rule: counts since the start, how long its locks are held and waited for, the last minutes. Counts;
//! what they mean is said by the advice.

use super::recent::Recent;
use super::spans::Learned;
use super::spread::Spread;
use crate::event::{
    Action, ConnectionId, Event, Grant, Operation, Owner, Refusal, RefusalReason, ReleaseOutcome, What,
};

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Acquires granted.
    pub granted: u64,
    /// Acquires refused because the lock was held.
    pub contended: u64,
    /// Leases given up in time, by whichever connection or command of their owner.
    pub released: u64,
    /// Releases that came too late.
    pub late: u64,
    /// Releases by somebody else.
    pub foreign: u64,
    /// Leases that ended by their TTL with their release still owed.
    pub expired: u64,
    /// Acquires by somebody else while a release was owed.
    pub overlaps: u64,
    /// Releases, extends and overwrites that were refused.
    pub refused: u64,
    /// Those that would have been.
    pub would_refuse: u64,
}

/// What is counted for the advice alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Everything that somebody asked of a lock.
    pub operations: u64,
    /// Of the leases given up in time, through another connection of the owner.
    pub pooled: u64,
    /// Releases of locks that nobody held, or that had no lease.
    pub vain: u64,
    /// Holds whose length is known and that ended too late.
    pub late_holds: u64,
    /// Acquires granted without a TTL, and without one from `default_ttl`.
    pub without_ttl: u64,
    /// Of those, leases that were given one afterwards.
    pub got_ttl: u64,
    /// Grants whose TTL `default_ttl` gave.
    pub injected: u64,
    /// Grants whose TTL `max_ttl` cut.
    pub reduced: u64,
    /// Of what would have been refused: late releases.
    pub would_refuse_late: u64,
    /// Leases that ended unseen, by force, by disconnect or by a takeover.
    pub ended_otherwise: u64,
}

/// Whether more than one was seen.
#[derive(Clone, Debug)]
pub(super) enum Seen<T> {
    None,
    One(T),
    Several,
}

impl<T: PartialEq + Clone> Seen<T> {
    fn see(&mut self, value: &T) {
        match self {
            Seen::None => *self = Seen::One(value.clone()),
            Seen::One(known) if known != value => *self = Seen::Several,
            Seen::One(_) | Seen::Several => {}
        }
    }
}

/// The figures of one rule.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Counts since the start.
    pub totals: Totals,
    /// How long holders worked, overruns included. A lease that expired and was never released is none.
    pub hold: Spread,
    /// How long owners waited, from their first refused try to their grant.
    pub wait: Spread,
    /// TTLs of the leases, of those granted without one as soon as they get it.
    pub ttl: Spread,
    pub(super) counts: Counts,
    pub(super) owners: Seen<Owner>,
    pub(super) connections: Seen<ConnectionId>,
    pub(super) recent: Recent,
}

impl Default for Figures {
    fn default() -> Self {
        Figures {
            totals: Totals::default(),
            hold: Spread::default(),
            wait: Spread::default(),
            ttl: Spread::default(),
            counts: Counts::default(),
            owners: Seen::None,
            connections: Seen::None,
            recent: Recent::default(),
        }
    }
}

impl Figures {
    pub(super) fn event(&mut self, event: &Event, waited_ms: Option<u64>, learned: Option<Learned>) {
        self.recent.event(event);
        let (totals, counts) = (&mut self.totals, &mut self.counts);
        counts.operations += u64::from(is_asked(&event.what));
        match &event.what {
            What::Granted(grant) => self.granted(event, grant, waited_ms),
            What::Contended { .. } => totals.contended += 1,
            What::Release(release) => match release.outcome {
                ReleaseOutcome::Released | ReleaseOutcome::SelfChecked => totals.released += 1,
                ReleaseOutcome::Pooled => {
                    totals.released += 1;
                    counts.pooled += 1;
                }
                ReleaseOutcome::Late => totals.late += 1,
                ReleaseOutcome::Foreign => totals.foreign += 1,
                ReleaseOutcome::Absent | ReleaseOutcome::Unmanaged => counts.vain += 1,
                ReleaseOutcome::Disconnect | ReleaseOutcome::Forced => counts.ended_otherwise += 1,
            },
            What::Refused(refusal) => self.refused(refusal),
            What::Expired { .. } => totals.expired += 1,
            What::TakenOver | What::Ended => counts.ended_otherwise += 1,
            What::AcquireFailed
            | What::Extended { .. }
            | What::Overwritten { .. }
            | What::Renewal(_)
            | What::DebtsDropped { .. } => {}
        }
        match learned {
            Some(Learned::Worked { ms, late }) => {
                self.hold.record(ms);
                self.counts.late_holds += u64::from(late);
            }
            // `SETNX`, then `EXPIRE`: the way of old.
            Some(Learned::GotTtl(ttl_ms)) => {
                self.counts.got_ttl += 1;
                self.ttl.record(ttl_ms);
            }
            None => {}
        }
    }

    fn granted(&mut self, event: &Event, grant: &Grant, waited_ms: Option<u64>) {
        self.totals.granted += 1;
        self.totals.overlaps += u64::from(grant.overlap);
        self.counts.injected += u64::from(grant.ttl_injected);
        self.counts.reduced += u64::from(grant.ttl_reduced);
        match grant.ttl_ms {
            Some(ttl_ms) => self.ttl.record(ttl_ms),
            None => self.counts.without_ttl += 1,
        }
        if let Some(waited_ms) = waited_ms {
            self.wait.record(waited_ms);
        }
        self.owners.see(&event.owner);
        self.connections.see(&event.connection);
    }

    fn refused(&mut self, refusal: &Refusal) {
        match refusal.action {
            Action::Refused => self.totals.refused += 1,
            Action::Observed => {
                self.totals.would_refuse += 1;
                self.counts.would_refuse_late += u64::from(refusal.reason == RefusalReason::Late);
            }
        }
    }

    /// Bytes in use besides itself.
    pub(super) fn bytes(&self) -> usize {
        self.hold.bytes() + self.wait.bytes() + self.ttl.bytes() + self.recent.bytes()
    }
}

/// Whether somebody asked for it, just now. A refused release is asked for once, as a release.
fn is_asked(what: &What) -> bool {
    match what {
        What::Granted(_)
        | What::Contended { .. }
        | What::AcquireFailed
        | What::Extended { .. }
        | What::Overwritten { .. }
        | What::TakenOver => true,
        What::Refused(refusal) => refusal.operation != Operation::Release,
        What::Release(release) => !matches!(release.outcome, ReleaseOutcome::Disconnect | ReleaseOutcome::Forced),
        What::Expired { .. } | What::Ended | What::Renewal(_) | What::DebtsDropped { .. } => false,
    }
}
