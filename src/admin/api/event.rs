//! One thing that happened to a lock, as the event stream, the history and `lockward tap` show it.

use serde::{Deserialize, Serialize};

/// Every kind of event, as [`Event::event`] and its filter name them.
pub const EVENTS: [&str; 17] = [
    "acquired",
    "contended",
    "acquire_failed",
    "released",
    "late_release",
    "foreign_release",
    "absent_release",
    "refused",
    "extended",
    "overwritten",
    "taken_over",
    "expired",
    "ended",
    "renewed",
    "renewal_lost",
    "renewal_capped",
    "debts_dropped",
];

/// One thing that happened to a lock. Fields that do not fit are left out of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Counts all events of this proxy from 1; a gap means that some were left out.
    pub id: u64,
    /// When, milliseconds since 1970.
    pub time_ms: u64,
    /// What: one of [`EVENTS`].
    pub event: String,
    /// The lock key as text.
    pub key: String,
    /// The lock key percent-encoded.
    pub key_encoded: String,
    /// Its database.
    pub database: u32,
    /// The name of the rule.
    pub rule: String,
    /// Who asked, or whose lease it was.
    pub owner: String,
    /// Through which connection.
    pub connection: String,
    /// What that connection calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Of a release: its outcome, as in `lockward_lock_releases_total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of a refusal: `release`, `extend` or `overwrite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Of a refusal: `late`, `foreign` or `unmanaged`; of dropped debts: `window` or `cap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a refusal or a late or foreign release: `refused`, or `observed` where it was only seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// TTL left afterwards, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long the lease was held, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
    /// From the first refused try to this grant, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// From the expiry to this late release, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrun_ms: Option<u64>,
    /// The fencing token of a new lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Of a new lease: the last holder, somebody else, still owes its release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
    /// In a history: so many events like this one in a row (refused tries), the last at `until_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The last of them, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The whole as one sentence, without the key.
    pub text: String,
}
