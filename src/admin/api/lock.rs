//! One row of the lock table, and all that is known of one lock.

use serde::{Deserialize, Serialize};

use super::Event;

/// The lock table, or the part of it that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockList {
    /// When it was read, milliseconds since 1970.
    pub now_ms: u64,
    /// Live leases that this proxy knows.
    pub total: u64,
    /// How many of them the filters let through.
    pub matched: u64,
    /// How many of those stand before the first row shown.
    pub offset: u64,
    /// The rows.
    pub locks: Vec<Lock>,
    /// What was left out of the table because of its bounds, since the start.
    pub dropped: Dropped,
}

/// What was left out because of a bound, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Leases not followed, or not to their end.
    pub leases: u64,
    /// Waiters forgotten before their time.
    pub waiters: u64,
    /// Locks whose history was forgotten to make room for others.
    pub histories: u64,
}

/// One live lease that this proxy knows of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The lock key as text.
    pub key: String,
    /// The lock key percent-encoded, as it stands in the path of `/api/v1/locks/{key}`.
    pub key_encoded: String,
    /// Its database.
    pub database: u32,
    /// The name of the rule that matched.
    pub rule: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// The holder's owner.
    pub owner: String,
    /// The holder's connection.
    pub connection: String,
    /// What that connection calls itself (CLIENT SETNAME), while it is open here and has a name.
    pub client_name: Option<String>,
    /// Where that connection comes from, while it is open here.
    pub client_address: Option<String>,
    /// That connection is still open here.
    pub connected: bool,
    /// When it was acquired, milliseconds since 1970.
    pub since_ms: u64,
    /// For how long it has been held, in milliseconds.
    pub held_ms: u64,
    /// The TTL as last set, in milliseconds; nothing without one.
    pub ttl_ms: Option<u64>,
    /// What is left of it, in milliseconds; 0 when it has run out and the server was not asked yet.
    pub ttl_left_ms: Option<u64>,
    /// When it expires, milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
    /// How often lockward renewed it.
    pub renewals: u64,
    /// How often a client extended it.
    pub extensions: u64,
    /// The fencing token, where the rule asks for one.
    pub fence: Option<u64>,
    /// How many owners wait for it.
    pub waiting: u64,
    /// Who waits for it, the longest first; at most 16.
    pub waiters: Vec<Waiter>,
    /// Earlier leases of this lock that expired with their release still owed: their holders may be at work.
    pub owed: u64,
    /// What is wrong or will be.
    pub warnings: Vec<Warning>,
}

/// Somebody who was refused a lock lately and has not got it since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// The owner that was refused.
    pub owner: String,
    /// The connection of its last try.
    pub connection: String,
    /// What that connection calls itself, while it is open here and has a name.
    pub client_name: Option<String>,
    /// Its first try, milliseconds since 1970.
    pub first_ms: u64,
    /// Since its first try, in milliseconds.
    pub waited_ms: u64,
    /// Its last try, milliseconds since 1970.
    pub last_ms: u64,
    /// How often it tried.
    pub tries: u64,
}

/// Something about a lock that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Which kind.
    pub kind: WarningKind,
    /// One sentence for people.
    pub text: String,
}

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// The lock has no TTL: a crash leaves it for ever.
    NoTtl,
    /// Held longer than 99 of 100 leases under its rule.
    LongHeld,
    /// Little of its TTL is left, and nobody has extended it.
    NearExpiry,
    /// Somebody else tried to release it.
    ForeignRelease,
    /// An earlier holder's release is still owed: two may be at work.
    Overrun,
}

/// What this proxy itself knows of one lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The live lease, if this proxy knows one.
    pub lease: Option<Lock>,
    /// How many owners wait, also if nobody known here holds it.
    #[serde(default)]
    pub waiting: u64,
    /// Who they are, the longest first; at most 256.
    pub waiters: Vec<Waiter>,
    /// What happened to it lately, the oldest first.
    pub history: Vec<Event>,
    /// Older entries that had to make room.
    pub history_dropped: u64,
    /// The same as a row of leases, to be drawn as a timeline, the oldest first.
    pub spans: Vec<Span>,
}

/// One lease on a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Whose lease.
    pub owner: String,
    /// Its connection.
    pub connection: String,
    /// What that connection calls itself, while it is open here and has a name.
    pub client_name: Option<String>,
    /// When it was acquired, milliseconds since 1970.
    pub start_ms: u64,
    /// When its TTL runs or ran out, milliseconds since 1970; nothing without one.
    pub due_ms: Option<u64>,
    /// When the lease ended, milliseconds since 1970; nothing while it is live.
    pub end_ms: Option<u64>,
    /// How: `released`, `expired`, `forced`, `disconnect`, `taken_over`, `removed` (where a rule only observes:
    /// somebody else's release or overwrite took the lock away), `ended` (found out afterwards), or nothing.
    pub ended: Option<String>,
    /// When the release came, the lease having expired or been removed before: until then its holder was at work.
    /// Milliseconds since 1970.
    pub late_release_ms: Option<u64>,
    /// It expired or was removed, and its release is still expected: its holder may be at work.
    pub owed: bool,
    /// Somebody else acquired the lock while its release was owed.
    pub overlapped: bool,
}
