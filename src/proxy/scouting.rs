//! The scout among all connections: takes what sessions saw of keys that no rule matches, and has said once which rules
//! got no key. Judges nothing.

use std::sync::{Mutex, PoisonError};

use super::shared::Shared;
use crate::lock::scout::{Scout, Sightings, Snapshot, UNMET_AFTER_MS, Unmet};
use crate::metrics::printable;

/// The scout, shared.
#[derive(Default)]
pub(super) struct Scouting {
    scout: Mutex<Scout>,
    unmet: Mutex<Unmet>,
}

impl Scouting {
    /// Takes what a session saw. Held for a moment; only lock-shaped traffic without a rule comes here.
    pub(super) fn sighted(&self, connection: u64, sightings: &mut Sightings) {
        let mut scout = self.scout.lock().unwrap_or_else(PoisonError::into_inner);
        scout.sighted(connection, sightings);
        sightings.clear();
    }

    /// What is known now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.scout.lock().unwrap_or_else(PoisonError::into_inner).snapshot()
    }
}

/// Says of each rule that has got no key in its first ten minutes, once.
pub(super) fn say_unmet(shared: &Shared) {
    let policy = shared.policy.load();
    let mut unmet = shared.scouting.unmet.lock().unwrap_or_else(PoisonError::into_inner);
    for index in unmet.due(shared.now(), &policy.rules) {
        let rule = policy.rules.rule(index);
        let patterns: Vec<String> = rule.patterns.iter().map(|pattern| printable(pattern)).collect();
        tracing::warn!(
            rule = %rule.name,
            patterns = patterns.join(" "),
            minutes = UNMET_AFTER_MS / 60_000,
            "no lock command has named a key of this rule since the start: is the pattern right? `lockward suggest` shows keys \
             that look like locks and have no rule"
        );
    }
}
