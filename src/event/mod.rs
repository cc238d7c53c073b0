//! The only vocabulary of metrics, logs and the lock table: what can happen to a lock, and why. Events are plain
//! values; whoever shows them derives the words from here. Nothing in this module decides or formats anything.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

/// A moment on lockward's own monotonic clock, in microseconds since the process began. The shell reads the clock;
/// the core only compares. Times in lease records are the server's and are plain `i64` milliseconds instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The microseconds from `earlier` to here, 0 if it lies later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment plus `milliseconds`.
    pub fn plus_ms(self, milliseconds: u64) -> Time {
        Time(self.0.saturating_add(milliseconds.saturating_mul(1000)))
    }
}

/// One downstream connection for ever: the random identity of the proxy process and a number within it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    /// 16 hex digits drawn at the start of the process.
    pub instance: Arc<str>,
    /// Counts from 1 within the process.
    pub number: u64,
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.instance, self.number)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The owner token of a lease. It proves which acquire is meant, so it prints as nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub Uuid);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// The identity that may give a lease up, as the rule derives it: for example `address=10.0.0.7`. Printable ASCII.
pub type Owner = Arc<str>;

/// Which rule of the configuration in force, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleIndex(pub u16);

/// One thing that happened to one lock.
#[derive(Clone, Debug)]
pub struct Event {
    /// When the proxy learned of it.
    pub at: Time,
    /// The database number, part of a lock's identity.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    /// The rule that matched.
    pub rule: RuleIndex,
    /// Who asked (for what happens by itself: whose lease it was).
    pub owner: Owner,
    /// Through which connection.
    pub connection: ConnectionId,
    /// What happened.
    pub what: What,
}

/// What can happen to a lock.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An acquire was granted: a new lease.
    Granted(Grant),
    /// An acquire was refused because the lock is held.
    Contended {
        /// The server was not asked: the contention shield knew.
        shielded: bool,
    },
    /// An acquire ended in a server error (out of memory, no permission, wrong type).
    AcquireFailed,
    /// A release came; the outcome says what became of it.
    Release(Release),
    /// A release, extend or overwrite was refused, or would have been.
    Refused(Refusal),
    /// The lease's expiry was changed by its owner (or repaired by a stranger). TTL left in ms; `None`: no TTL now.
    Extended {
        /// TTL left, in milliseconds.
        ttl_ms: Option<u64>,
        /// `max_ttl` cut it, or kept a TTL that would have gone.
        reduced: bool,
    },
    /// The value was overwritten by the lease's owner: same lease.
    Overwritten {
        /// TTL left, in milliseconds.
        ttl_ms: Option<u64>,
        /// `max_ttl` cut it.
        reduced: bool,
    },
    /// A takeover by another owner opened the lock to all.
    TakenOver,
    /// A lease ended by its TTL, its release still owed. Held for so many milliseconds.
    Expired {
        /// From acquire to expiry, in milliseconds.
        held_ms: Option<u64>,
    },
    /// A lease ended in a way this proxy only found out afterwards (deleted past it, released elsewhere).
    Ended,
    /// What became of a renewal.
    Renewal(Renewal),
    /// Debts were dropped unpaid.
    DebtsDropped {
        /// Why.
        reason: DropReason,
        /// How many.
        count: u32,
    },
}

/// A granted acquire.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The lease's owner token; the zero token in observe mode, where none exists.
    pub token: Token,
    /// The fencing token, where the rule asks for one.
    pub fence: Option<u64>,
    /// TTL of the new lease in milliseconds; `None`: none.
    pub ttl_ms: Option<u64>,
    /// `default_ttl` gave the TTL.
    pub ttl_injected: bool,
    /// `max_ttl` cut the TTL.
    pub ttl_reduced: bool,
    /// The last holder, somebody else, never released it: two may be at work. Said once for each lease that ran out.
    pub overlap: bool,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Release {
    /// Which line of the accounting fitted.
    pub outcome: ReleaseOutcome,
    /// From acquire to this end in milliseconds, where a lease ended. A release in the shortest way leaves it out, and
    /// [`crate::lock::keeper::Keeper::complete`] puts it in.
    pub held_ms: Option<u64>,
    /// From expiry to this late release in milliseconds, where a debt was paid.
    pub overrun_ms: Option<u64>,
}

/// The outcomes of a release (metric label `outcome`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReleaseOutcome {
    /// The holder's own connection gave the lease up.
    Released,
    /// Another connection of the same owner gave it up.
    Pooled,
    /// It paid a debt: its lease had expired before.
    Late,
    /// The lock is another owner's.
    Foreign,
    /// The lock was free.
    Absent,
    /// No live record: done as Redis does it, or refused by the rule.
    Unmanaged,
    /// A script or compare command of the client removed the lock.
    SelfChecked,
    /// lockward released it after its owner's last connection closed.
    Disconnect,
    /// An operator released it by force.
    Forced,
}

impl ReleaseOutcome {
    /// Every outcome, in the order of the documentation.
    pub const ALL: [ReleaseOutcome; 9] = [
        ReleaseOutcome::Released,
        ReleaseOutcome::Pooled,
        ReleaseOutcome::Late,
        ReleaseOutcome::Foreign,
        ReleaseOutcome::Absent,
        ReleaseOutcome::Unmanaged,
        ReleaseOutcome::SelfChecked,
        ReleaseOutcome::Disconnect,
        ReleaseOutcome::Forced,
    ];

    /// The word used in labels, logs and scripts.
    pub fn word(self) -> &'static str {
        match self {
            ReleaseOutcome::Released => "released",
            ReleaseOutcome::Pooled => "pooled",
            ReleaseOutcome::Late => "late",
            ReleaseOutcome::Foreign => "foreign",
            ReleaseOutcome::Absent => "absent",
            ReleaseOutcome::Unmanaged => "unmanaged",
            ReleaseOutcome::SelfChecked => "self_checked",
            ReleaseOutcome::Disconnect => "disconnect",
            ReleaseOutcome::Forced => "forced",
        }
    }
}

/// A release, extend or overwrite that was not done, or in observe mode would not have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked.
    pub operation: Operation,
    /// Why not.
    pub reason: RefusalReason,
    /// Whether it was refused or only observed.
    pub action: Action,
    /// The lock has no TTL: it stays until somebody acts.
    pub without_ttl: bool,
}

/// What can be refused (metric label `operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A release.
    Release,
    /// An extend.
    Extend,
    /// An overwrite.
    Overwrite,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 3] = [Operation::Release, Operation::Extend, Operation::Overwrite];

    /// The word used in labels, logs and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Release => "release",
            Operation::Extend => "extend",
            Operation::Overwrite => "overwrite",
        }
    }
}

/// Why something was refused (metric label `reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// Its own lease had expired.
    Late,
    /// The lock is another owner's.
    Foreign,
    /// No live record, and the rule refuses that.
    Unmanaged,
}

impl RefusalReason {
    /// Every reason.
    pub const ALL: [RefusalReason; 3] = [RefusalReason::Late, RefusalReason::Foreign, RefusalReason::Unmanaged];

    /// The word used in labels, logs and scripts.
    pub fn word(self) -> &'static str {
        match self {
            RefusalReason::Late => "late",
            RefusalReason::Foreign => "foreign",
            RefusalReason::Unmanaged => "unmanaged",
        }
    }
}

/// Whether a refusal took effect (metric label `action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Enforce mode: nothing was changed.
    Refused,
    /// Observe mode: the server did as it was told.
    Observed,
}

impl Action {
    /// Both actions.
    pub const ALL: [Action; 2] = [Action::Refused, Action::Observed];

    /// The word used in labels and logs.
    pub fn word(self) -> &'static str {
        match self {
            Action::Refused => "refused",
            Action::Observed => "observed",
        }
    }
}

/// What became of a renewal (metric label `outcome`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// The lease was extended to its full TTL again.
    Extended,
    /// The lease is gone or somebody else's.
    Lost,
    /// `max_hold` is reached; the lease ends by its TTL.
    Capped,
}

impl Renewal {
    /// Every outcome.
    pub const ALL: [Renewal; 3] = [Renewal::Extended, Renewal::Lost, Renewal::Capped];

    /// The word used in labels and logs.
    pub fn word(self) -> &'static str {
        match self {
            Renewal::Extended => "extended",
            Renewal::Lost => "lost",
            Renewal::Capped => "capped",
        }
    }
}

/// Why a debt was dropped unpaid (metric label `reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Older than `late_release_window`.
    Window,
    /// More than 32 on one record.
    Cap,
}

impl DropReason {
    /// Both reasons.
    pub const ALL: [DropReason; 2] = [DropReason::Window, DropReason::Cap];

    /// The word used in labels and logs.
    pub fn word(self) -> &'static str {
        match self {
            DropReason::Window => "window",
            DropReason::Cap => "cap",
        }
    }
}
