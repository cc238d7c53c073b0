//! Advice: which rules are missing, and what those that are there should say.

use serde::{Deserialize, Serialize};

/// What `/api/v1/suggestions` and `lockward suggest` say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Suggestions {
    /// Since when traffic was watched, milliseconds since 1970.
    pub since_ms: u64,
    /// When this was said, milliseconds since 1970.
    pub now_ms: u64,
    /// The rule that is in force because the configuration has none: to be pasted before the first of the others, which
    /// would replace it.
    pub built_in: Option<String>,
    /// Lock-shaped traffic on keys that no rule matches, the busiest first.
    pub uncovered: Vec<Uncovered>,
    /// What the rules that are there should say.
    pub rules: Vec<Advice>,
    /// Keys that were not followed because too many were.
    pub dropped_keys: u64,
}

/// Keys that look like locks and that no rule matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncovered {
    /// A pattern that covers them.
    pub pattern: String,
    /// Different keys seen (those that are remembered).
    pub keys: u64,
    /// Acquires seen (`SET … NX`, `SETNX`).
    pub acquires: u64,
    /// Of them without a TTL.
    pub without_ttl: u64,
    /// Releases seen (`DEL`, `UNLINK` of such a key).
    pub releases: u64,
    /// Of them from another connection than the acquire's.
    pub releases_elsewhere: u64,
    /// Extends seen (`EXPIRE` and its like).
    pub extends: u64,
    /// Scripts and compare commands seen that name such a key.
    pub scripts: u64,
    /// Some of the keys, at most 3.
    pub examples: Vec<String>,
    /// What it looks like, as one sentence.
    pub text: String,
    /// A rule to paste into the configuration.
    pub toml: String,
}

/// What one rule should say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The rule's name.
    pub rule: String,
    /// Which kind of advice.
    pub kind: AdviceKind,
    /// The advice with its figures, as one or two sentences.
    pub text: String,
    /// A line to put into the rule, where there is one.
    pub toml: Option<String>,
}

/// The kinds of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviceKind {
    /// Holders overrun the TTL.
    TtlTooShort,
    /// Locks are taken without a TTL.
    NoTtl,
    /// Releases come from other connections or owners than the acquires.
    ChooseOwner,
    /// Never released: markers.
    NotALock,
    /// No key has matched it.
    MatchedNothing,
    /// In observe mode, nothing would have been refused: it can be enforced.
    Enforce,
}
