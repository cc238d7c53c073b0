//! What the admin side says in JSON, as types: written by the routes, read again by the command line. The OpenAPI file
//! describes the same; a test compares them. Keys are shown as text (UTF-8, what is none replaced) and, so that nothing
//! is lost, percent-encoded beside it. Times that end in `_ms` are milliseconds since 1970 on this proxy's clock, or
//! spans in milliseconds where the text says so. No type here has a place for an owner token or a stored value.

mod event;
mod lock;
mod query;
mod record;
mod rule;
mod suggestion;

pub use event::{EVENTS, Event};
pub use lock::{Dropped, Known, Lock, LockList, Span, Waiter, Warning, WarningKind};
pub use query::{EventsQuery, LocksQuery, Order, RecordsQuery, Sort};
pub use record::{Debt, LockDetail, Record, RecordPage};
pub use rule::{Recent, RuleView, Spread, Totals};
pub use suggestion::{Advice, AdviceKind, Suggestions, Uncovered};

use serde::{Deserialize, Serialize};

/// What a reload of the configuration has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// One line for each thing that is in force now.
    pub applied: Vec<String>,
    /// The keys whose new value waits for a restart.
    pub needs_restart: Vec<String>,
}

/// The process that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number, as it sees it itself.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it began.
    pub started_ms: u64,
    /// What it does with clients.
    pub state: ProcessState,
}

/// What a process does with clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// Serves them.
    #[default]
    Serving,
    /// Holds them back for a while.
    Paused,
    /// Ends, and sends them away.
    Draining,
}

/// A process that has taken the place of the one that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// Its number.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Where it serves HTTP.
    pub admin: String,
    /// The process that was asked, which drains.
    pub was: Process,
}

/// Whether clients are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// For how long they still are, in milliseconds; nothing if they are not.
    pub left_ms: Option<u64>,
    /// Clients that wait for an answer of the server, or are in the middle of a transaction.
    pub under_way: usize,
    /// Clients in a command that blocks.
    pub blocked: usize,
}

/// For how long clients are to be held back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PauseQuery {
    /// As in the configuration; 30 s if it is left out, 5 minutes at most.
    #[serde(rename = "for")]
    pub length: Option<String>,
    /// How long to wait until nothing is under way, 8 s at most; not at all if it is left out.
    pub wait: Option<String>,
}

/// What `/api/v1/live` sends: the table as asked for, and the rules, whenever either has changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The rows that were asked for.
    pub table: LockList,
    /// All rules with their figures.
    pub rules: Vec<RuleView>,
    /// Why this proxy is not ready; nothing if it is.
    pub not_ready: Option<String>,
}
