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
