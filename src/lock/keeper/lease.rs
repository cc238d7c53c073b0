//! What the keeper remembers of one lease, and when that lease needs attention next. Values and small rules over them;
//! nothing here looks at another lease, an owner or a connection.

use bytes::Bytes;

use super::Bound;
use crate::event::{ConnectionId, Event, Grant, Owner, RuleIndex, Time, Token, What};
use crate::lock::DUE_MARGIN_MS;
use crate::lock::chore::Task;

/// Events of several sessions may arrive in another order than the server's. A lease that seems to have ended is looked
/// at only after so many milliseconds, so that the event which explains its end can arrive.
pub(super) const SETTLE_MS: u64 = 100;
/// A lease without TTL is looked at so often at first, in milliseconds, and the older it is, the more seldom: its end may
/// have come through another proxy, and no expiry ever tells.
pub(super) const ENDLESS_MS: u64 = 60_000;
/// An expiry that lies later than known by so many milliseconds was moved by somebody.
const MOVED_MS: u64 = 250;

pub(super) type LeaseId = u64;
pub(super) type OwnerId = u64;
/// Database and key.
pub(super) type LockId = (u32, Bytes);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Current, as far as this proxy knows.
    Live,
    /// Past its due time, superseded or lost: the server has to be asked.
    Unsure {
        /// When to ask.
        check_at: Time,
        /// A newer lease on the same lock is known.
        superseded: bool,
        /// That newer lease came before this one was due, so this one was given up by somebody and did not expire.
        given_up: bool,
    },
    /// Ended by its TTL; kept so that its connection's end can still be marked, until the debt is too old.
    Owed {
        /// When the debt is dropped.
        until: Time,
    },
}

/// The one thing that is under way with a lease (marks go beside it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Renew,
    /// What became of it?
    Check,
    /// Before a release on disconnect: was it extended elsewhere? Without TTL: is it still there?
    Look,
    Free,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) step: Step,
    /// When it was handed out; `None` while it waits its turn.
    pub(super) sent: Option<Time>,
}

/// What the record has to be told about the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Gone,
    DropDebts,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) kind: MarkKind,
    pub(super) state: MarkState,
    pub(super) attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkState {
    Queued,
    Sent,
    RetryAt(Time),
    Done,
}

/// Which other process serves the same clients. What becomes of a lease may be told there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Elsewhere {
    #[default]
    Nowhere,
    /// The one whose place this one takes.
    Before,
    /// The one that takes this one's place.
    After,
}

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) database: u32,
    pub(super) key: Bytes,
    pub(super) token: Token,
    pub(super) rule: RuleIndex,
    pub(super) owner: Owner,
    pub(super) owner_id: OwnerId,
    pub(super) connection: ConnectionId,
    /// The acquiring connection is still open.
    pub(super) connected: bool,
    pub(super) bond: Bound,
    pub(super) granted: Time,
    /// The fencing token, where the rule asks for one.
    pub(super) fence: Option<u64>,
    /// The full TTL as last set.
    pub(super) ttl_ms: Option<u64>,
    pub(super) due: Option<Time>,
    pub(super) phase: Phase,
    /// When the next renewal is due; `None`: the rule does not renew.
    pub(super) renew_at: Option<Time>,
    /// No more renewals: capped, doubtful or lost.
    pub(super) renewal_over: bool,
    /// A renewal found it lost; said once the server confirms it.
    pub(super) lost: bool,
    /// Past its due time the server said that it has ended: believed when said again, since a grant that has replaced it
    /// in the record may just be on its way to us, and tells more.
    pub(super) said_ended: bool,
    /// Who may know better: the process before, until the lease is seen once that has ended; the next, once it was told.
    pub(super) elsewhere: Elsewhere,
    /// When it is to be released because its owner is gone.
    pub(super) leave_at: Option<Time>,
    /// When it is looked at next, as long as it has no TTL.
    pub(super) endless_look_at: Time,
    pub(super) pending: Option<Pending>,
    /// Failures of the step under way, in a row.
    pub(super) attempts: u32,
    pub(super) mark: Option<Mark>,
    /// Renewed so often by this proxy.
    pub(super) renewals: u64,
    /// Its TTL was set anew so often by a client.
    pub(super) extensions: u64,
    /// Other owners tried to release it so often.
    pub(super) foreign_tries: u64,
    /// Its debt was paid; it is only kept because the payment may come back, or for the end of its connection.
    pub(super) paid: bool,
    /// Other leases on the lock were known when it was granted, or told of later. Without them none can be owed beside it.
    pub(super) has_forerunners: bool,
    /// Where it stands in the timer queue.
    pub(super) timer: Option<Time>,
}

impl Lease {
    /// A lease that was granted just now, through a connection that is not linked to it yet. Its owner gets its number in
    /// the book.
    pub(super) fn new(event: &Event, grant: &Grant, bond: Bound) -> Lease {
        Lease {
            database: event.database,
            // The key may be a slice of a whole read buffer, which it would keep alive.
            key: Bytes::copy_from_slice(&event.key),
            token: grant.token,
            rule: event.rule,
            owner: event.owner.clone(),
            owner_id: 0,
            connection: event.connection.clone(),
            connected: false,
            bond,
            granted: event.at,
            fence: grant.fence,
            ttl_ms: grant.ttl_ms,
            due: grant.ttl_ms.map(|ttl| event.at.plus_ms(ttl)),
            phase: Phase::Live,
            renew_at: None,
            renewal_over: false,
            lost: false,
            said_ended: false,
            elsewhere: Elsewhere::Nowhere,
            leave_at: None,
            endless_look_at: event.at.plus_ms(ENDLESS_MS),
            pending: None,
            attempts: 0,
            mark: None,
            renewals: 0,
            extensions: 0,
            foreign_tries: 0,
            paid: false,
            has_forerunners: false,
            timer: None,
        }
    }

    /// Observed only: there is no record on the server that a chore could speak of.
    pub(super) fn is_observed(&self) -> bool {
        self.token.0.is_nil()
    }

    pub(super) fn lock(&self) -> LockId {
        (self.database, self.key.clone())
    }

    pub(super) fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// The lock is this lease's until the server says otherwise.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Live | Phase::Unsure { superseded: false, .. })
    }

    /// It ended by its TTL, and its release has not come.
    pub(super) fn is_owed(&self) -> bool {
        matches!(self.phase, Phase::Owed { .. }) && !self.paid
    }

    pub(super) fn is_superseded(&self) -> bool {
        matches!(self.phase, Phase::Unsure { superseded: true, .. })
    }

    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.phase, Phase::Unsure { given_up: true, .. })
    }

    /// Its TTL has surely run out at `at`, unless somebody extended it past this proxy: then nothing can release it.
    pub(super) fn has_run_out(&self, at: Time) -> bool {
        self.due.is_some_and(|due| due <= at)
    }

    /// Its TTL has run out at `at`, or will within the margin.
    pub(super) fn is_past_due(&self, at: Time) -> bool {
        self.due.is_some_and(|due| due <= at.plus_ms(DUE_MARGIN_MS))
    }

    /// From the acquire to `end`, in milliseconds.
    pub(super) fn held_ms(&self, end: Time) -> u64 {
        end.since(self.granted) / 1000
    }

    /// Takes a TTL that was set at `at` as the full one.
    pub(super) fn set_ttl(&mut self, at: Time, ttl_ms: Option<u64>) {
        self.ttl_ms = ttl_ms;
        self.due = ttl_ms.map(|ttl| at.plus_ms(ttl));
        self.endless_look_at = self.next_endless_look(at);
        if self.renew_at.is_some() {
            self.renew_at = Some(renewal_after(at, ttl_ms));
        }
    }

    /// When a lease without TTL is looked at again after `at`.
    pub(super) fn next_endless_look(&self, at: Time) -> Time {
        at.plus_ms((at.since(self.granted) / 1000).max(ENDLESS_MS))
    }

    /// When its end can only be found out by looking: it has no TTL. In observe mode there is nothing to look at.
    pub(super) fn endless_look(&self) -> Option<Time> {
        (self.due.is_none() && !self.is_observed()).then_some(self.endless_look_at)
    }

    /// Whether a TTL seen by a chore between `sent` and `at` is one that this proxy does not know of.
    pub(super) fn was_moved(&self, sent: Time, at: Time, ttl_ms: Option<u64>) -> bool {
        match (self.due, ttl_ms) {
            (None, None) => false,
            (Some(due), Some(ttl)) => {
                sent.plus_ms(ttl) > due.plus_ms(MOVED_MS) || at.plus_ms(ttl).plus_ms(4 * MOVED_MS) < due
            }
            _ => true,
        }
    }

    /// How long a failed renewal waits, so that several tries fit in before the expiry.
    pub(super) fn renewal_retry(&self, at: Time) -> Time {
        let left_ms = self.due.map_or(0, |due| due.since(at)) / 1000;
        at.plus_ms((left_ms / 4).clamp(20, 5000))
    }

    /// The task of a mark of this kind for this lease.
    pub(super) fn mark_task(&self, kind: MarkKind) -> Task {
        match kind {
            MarkKind::Gone => Task::Gone {
                connection: self.connection.clone(),
            },
            MarkKind::DropDebts => Task::DropDebts {
                owner: self.owner.clone(),
            },
        }
    }

    /// An event about this lease.
    pub(super) fn event(&self, at: Time, what: What) -> Event {
        Event {
            at,
            database: self.database,
            key: self.key.clone(),
            rule: self.rule,
            owner: self.owner.clone(),
            connection: self.connection.clone(),
            what,
        }
    }
}

/// A renewal comes at a third of the TTL; never more often than every five milliseconds.
pub(super) fn renewal_after(at: Time, ttl_ms: Option<u64>) -> Time {
    at.plus_ms((ttl_ms.unwrap_or(u64::MAX) / 3).max(5))
}

/// Doubles from a quarter of a second to half a minute.
pub(super) fn backoff(at: Time, attempts: u32) -> Time {
    at.plus_ms((250u64 << attempts.min(7)).min(30_000))
}
