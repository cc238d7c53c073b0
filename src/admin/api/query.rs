//! What can stand behind the question mark of a path. A misspelt name is an error, so that it does not pass for a
//! default.

use serde::{Deserialize, Serialize};

/// Which rows of the lock table, and in which order. Each filter that is there must let a row through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocksQuery {
    /// A glob as in SCAN MATCH; one without any of `*?[` matches every key that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The name of a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Part of the holder's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db: Option<u32>,
    /// Held at least so long, as people write it: `250ms`, `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// Only with a warning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    /// By what to sort.
    pub sort: Sort,
    /// Which end comes first; by default what a reader looks for first: the oldest, the most waiters, the least TTL
    /// left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// At most so many rows: 1 to 1000, by default 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// So many rows are left out before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
}

/// By what locks are sorted. Rows without TTL come last by `ttl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// How long it is held.
    #[default]
    Age,
    /// What is left of the TTL.
    Ttl,
    /// How many wait for it.
    Waiters,
    /// The key's bytes.
    Key,
}

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The least first.
    Asc,
    /// The greatest first.
    Desc,
}

/// Which events a stream tells of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventsQuery {
    /// As in [`LocksQuery`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The name of a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db: Option<u32>,
    /// Which kinds, as in [`super::Event::event`], with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// Which lease records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordsQuery {
    /// As in [`LocksQuery`], of the lock key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The database.
    pub db: u32,
    /// What the page before gave; nothing for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
