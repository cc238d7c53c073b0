//! Lease records as they stand in the server: the locks of all proxies.

use serde::{Deserialize, Serialize};

use super::Known;
use crate::admin::encoding::encode;
use crate::lock::chore::Seen;

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
    /// `free`, `held`, `unmanaged`, `adrift` or `open`; `unknown` if the server could not be asked.
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

impl Record {
    /// The lock as it was seen; its state is `unknown` if it was not.
    pub(crate) fn new(database: u32, key: &[u8], rule: Option<&str>, seen: Option<Seen>) -> Record {
        // Every field by name: a new one does not compile until it is shown, or left out on purpose.
        let Seen {
            exists,
            state,
            ttl_ms,
            owner,
            connection,
            connection_open,
            fence,
            acquired_at_ms,
            debts,
        } = seen.unwrap_or_else(|| Seen {
            state: "unknown".to_owned(),
            ..Seen::default()
        });
        let debts = debts.into_iter();
        Record {
            key: String::from_utf8_lossy(key).into_owned(),
            key_encoded: encode(key),
            database,
            rule: rule.map(str::to_owned),
            exists,
            state,
            ttl_ms,
            owner,
            connection,
            connection_open,
            fence,
            acquired_at_ms,
            debts: debts
                .map(|(owner, expired_at_ms)| Debt { owner, expired_at_ms })
                .collect(),
        }
    }
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
