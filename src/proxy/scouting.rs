//! The scout among all connections: takes what sessions saw of keys that no rule matches, and has said once which rules
//! got no key. Judges nothing.

use std::sync::{Mutex, PoisonError, TryLockError};

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
    /// Takes what a session saw; only lock-shaped traffic without a rule comes here. No client waits for another, or for
    /// who reads: what cannot be taken now stays with the session, bounded as it is, for the next time.
    pub(super) fn sighted(&self, connection: u64, sightings: &mut Sightings) {
        let mut scout = match self.scout.try_lock() {
            Ok(scout) => scout,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        scout.sighted(connection, sightings);
        sightings.clear();
    }

    /// Takes what a session saw and still has at its end: once, so it may wait.
    pub(super) fn last_sighted(&self, connection: u64, sightings: &Sightings) {
        let mut scout = self.scout.lock().unwrap_or_else(PoisonError::into_inner);
        scout.sighted(connection, sightings);
    }

    /// What is known now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.scout.lock().unwrap_or_else(PoisonError::into_inner).snapshot()
    }
}

/// Says of each rule that has got no key in its first ten minutes, once.
pub(super) fn say_unmet(shared: &Shared) {
    let policy = shared.policy();
    let mut unmet = shared.scouting.unmet.lock().unwrap_or_else(PoisonError::into_inner);
    for index in unmet.due(shared.clock.age(), &policy.rules) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::scout::Sight;

    #[test]
    fn what_cannot_be_taken_now_is_taken_the_next_time() {
        let scouting = Scouting::default();
        let mut sightings = Sightings::default();
        sightings.push(Sight::Acquire { ttl: true }, b"app:mutex:1");
        let busy = scouting.scout.lock().unwrap();
        scouting.sighted(1, &mut sightings);
        assert!(!sightings.is_empty());
        drop(busy);
        scouting.sighted(1, &mut sightings);
        assert!(sightings.is_empty());
        assert_eq!(scouting.snapshot().groups().len(), 1);
    }
}
