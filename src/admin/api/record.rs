//! Lease records as they stand in the server: the locks of all proxies.

use serde::{Deserialize, Serialize};

use super::Known;

/// A page of lease records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordPage {
    /// What was found; a page may be empty though more follow.
    pub records: Vec<Record>,
    /// What to ask with for the next page; nothing at the end.
    pub cursor: Option<String>,
}

/// A lock and its record as they stand in the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The lock key as text.
    pub key: String,
    /// The lock key percent-encoded.
    pub key_encoded: String,
    /// Its database.
    pub database: u32,
    /// The rule that matches it here, if one does.
    pub rule: Option<String>,
    /// The lock key exists.
    pub exists: bool,
    /// `free`, `held`, `unmanaged`, `adrift` or `open`.
    pub state: String,
    /// TTL left of the lock key in milliseconds; nothing without one.
    pub ttl_ms: Option<u64>,
    /// The lease's owner.
    pub owner: Option<String>,
    /// The lease's connection: the proxy's instance, a hyphen, a number.
    pub connection: Option<String>,
    /// Whether that connection is still open, as far as the record says.
    pub connection_open: bool,
    /// Fencing token.
    pub fence: Option<u64>,
    /// When it was acquired, milliseconds since 1970 on the server's clock.
    pub acquired_at_ms: Option<i64>,
    /// Releases owed.
    pub debts: Vec<Debt>,
}

/// A release that is owed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    /// Whose.
    pub owner: String,
    /// When its lease expired, milliseconds since 1970 on the server's clock.
    pub expired_at_ms: i64,
}

/// One lock: what the server says of it, and what this proxy knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockDetail {
    /// The lock as it stands in the server; its `state` is `unknown` if the server could not be asked.
    #[serde(flatten)]
    pub record: Record,
    /// Why the server could not be asked.
    pub server_error: Option<String>,
    /// What this proxy itself knows.
    pub known: Known,
}
