//! One rule with its figures.

use serde::{Deserialize, Serialize};

/// One rule with its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleView {
    /// Its name.
    pub name: String,
    /// Its patterns.
    pub patterns: Vec<String>,
    /// `enforce`, `observe` or `off`.
    pub mode: String,
    /// From what owners are made, such as `["user", "address"]`.
    pub owner: Vec<String>,
    /// `default_ttl` in milliseconds, where set.
    pub default_ttl_ms: Option<u64>,
    /// `max_ttl` in milliseconds, where set.
    pub max_ttl_ms: Option<u64>,
    /// `late_release_window` in milliseconds.
    pub late_release_window_ms: u64,
    /// Whether leases are renewed.
    pub renew: bool,
    /// Whether a lease ends with its owner's last connection.
    pub release_on_disconnect: bool,
    /// Whether any key has matched it since the start.
    pub matched: bool,
    /// Live leases known here.
    pub held: u64,
    /// Owners that wait.
    pub waiters: u64,
    /// Live leases without TTL.
    pub without_ttl: u64,
    /// Age of the oldest live lease in milliseconds.
    pub oldest_age_ms: u64,
    /// Counts since the start.
    pub totals: Totals,
    /// How long its holders worked, in milliseconds, overruns included, since the start.
    pub hold: Spread,
    /// How long owners waited, in milliseconds, since the start.
    pub wait: Spread,
    /// The last minutes, step by step.
    pub recent: Recent,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Acquires granted.
    pub granted: u64,
    /// Acquires refused because the lock was held.
    pub contended: u64,
    /// Leases given up in time.
    pub released: u64,
    /// Releases that came too late.
    pub late: u64,
    /// Releases by somebody else.
    pub foreign: u64,
    /// Leases that ended by their TTL with their release still owed.
    pub expired: u64,
    /// Acquires by somebody else while a release was owed.
    pub overlaps: u64,
    /// Releases, extends and overwrites that were refused (enforce).
    pub refused: u64,
    /// Those that would have been (observe).
    pub would_refuse: u64,
}

/// How a figure is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many were measured.
    pub count: u64,
    /// Half of them were at most this.
    pub p50_ms: u64,
    /// 95 of 100 were at most this.
    pub p95_ms: u64,
    /// 99 of 100 were at most this.
    pub p99_ms: u64,
    /// The greatest.
    pub max_ms: u64,
}

/// The last minutes in equal steps, the oldest first; the last step is the one under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// The length of a step in milliseconds.
    pub step_ms: u64,
    /// When the first step began, milliseconds since 1970.
    pub start_ms: u64,
    /// Acquires granted.
    pub granted: Vec<u64>,
    /// Acquires refused.
    pub contended: Vec<u64>,
    /// Refusals (enforce).
    pub refused: Vec<u64>,
    /// What would have been refused (observe).
    pub would_refuse: Vec<u64>,
    /// Leases that ended by their TTL with their release owed.
    pub expired: Vec<u64>,
    /// Overlaps.
    pub overlaps: Vec<u64>,
}
