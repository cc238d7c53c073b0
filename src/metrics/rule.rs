//! The series of one lock rule, and what each event counts as: the only place that maps events to metrics. Decides
//! nothing about locks.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::catalog;
use crate::event::{
    Action, DropReason, Event, Operation, Refusal, RefusalReason, Release, ReleaseOutcome, Renewal, What,
};

/// What became of an acquire (metric label `outcome`).
#[derive(Clone, Copy)]
enum Acquire {
    Granted,
    Contended,
    Error,
}

/// The words of [`Acquire`], in its order.
const ACQUIRES: [&str; 3] = ["granted", "contended", "error"];

/// Handles to all series of one rule. Arrays follow the order of the enums' variants, which is that of their `ALL`.
#[derive(Debug)]
pub(super) struct RuleSeries {
    acquires: [Counter; 3],
    shielded: Counter,
    releases: [Counter; 9],
    refusals: [[[Counter; 2]; 3]; 3],
    expirations: Counter,
    overlaps: Counter,
    ttl_injected: Counter,
    ttl_reduced: Counter,
    takeovers: Counter,
    renewals: [Counter; 3],
    debts_dropped: [Counter; 2],
    hold: Histogram,
    wait: Histogram,
    overrun: Histogram,
    held: Gauge,
    waiters: Gauge,
    without_ttl: Gauge,
    oldest_age: Gauge,
}

/// What the lock table says of one rule at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RuleSummary {
    /// Locks held.
    pub held: u64,
    /// Owners that wait for a lock.
    pub waiters: u64,
    /// Locks held that have no TTL.
    pub without_ttl: u64,
    /// Age of the lock held longest in seconds, 0 without one.
    pub oldest_age_seconds: f64,
}

impl RuleSeries {
    /// Registers every series of the rule called `name`, all at 0, with the recorder in scope.
    pub(super) fn new(name: &Arc<str>) -> Self {
        let plain = |metric: &'static str| counter!(metric, "rule" => Arc::clone(name));
        let with = |metric: &'static str, label, word: &'static str| counter!(metric, "rule" => Arc::clone(name), label => word);
        let level = |metric: &'static str| gauge!(metric, "rule" => Arc::clone(name));
        let seconds = |metric: &'static str| histogram!(metric, "rule" => Arc::clone(name));
        let refusal = |operation: Operation, reason: RefusalReason, action: Action| {
            counter!(catalog::LOCK_REFUSALS, "rule" => Arc::clone(name), "operation" => operation.word(),
                "reason" => reason.word(), "action" => action.word())
        };
        RuleSeries {
            acquires: ACQUIRES.map(|word| with(catalog::LOCK_ACQUIRES, "outcome", word)),
            shielded: plain(catalog::LOCK_SHIELDED),
            releases: ReleaseOutcome::ALL.map(|outcome| with(catalog::LOCK_RELEASES, "outcome", outcome.word())),
            refusals: Operation::ALL.map(|operation| {
                RefusalReason::ALL.map(|reason| Action::ALL.map(|action| refusal(operation, reason, action)))
            }),
            expirations: plain(catalog::LOCK_EXPIRATIONS),
            overlaps: plain(catalog::LOCK_OVERLAPS),
            ttl_injected: plain(catalog::LOCK_TTL_INJECTED),
            ttl_reduced: plain(catalog::LOCK_TTL_REDUCED),
            takeovers: plain(catalog::LOCK_TAKEOVERS),
            renewals: Renewal::ALL.map(|outcome| with(catalog::LOCK_RENEWALS, "outcome", outcome.word())),
            debts_dropped: DropReason::ALL.map(|reason| with(catalog::LOCK_DEBTS_DROPPED, "reason", reason.word())),
            hold: seconds(catalog::LOCK_HOLD),
            wait: seconds(catalog::LOCK_WAIT),
            overrun: seconds(catalog::LOCK_OVERRUN),
            held: level(catalog::LOCKS_HELD),
            waiters: level(catalog::LOCK_WAITERS),
            without_ttl: level(catalog::LOCKS_WITHOUT_TTL),
            oldest_age: level(catalog::LOCK_OLDEST_AGE),
        }
    }

    /// Sets the gauges.
    pub(super) fn summary(&self, summary: &RuleSummary) {
        self.held.set(summary.held as f64);
        self.waiters.set(summary.waiters as f64);
        self.without_ttl.set(summary.without_ttl as f64);
        self.oldest_age.set(summary.oldest_age_seconds);
    }

    /// See [`super::Metrics::waited`].
    pub(super) fn waited(&self, micros: u64) {
        self.wait.record(micros as f64 / 1e6);
    }

    /// Counts one event. A new kind of event, or a new field of one, does not compile until it is counted here.
    pub(super) fn event(&self, event: &Event) {
        match &event.what {
            What::Granted(grant) => {
                self.acquire(Acquire::Granted);
                self.ttl_injected.increment(grant.ttl_injected.into());
                self.ttl_reduced.increment(grant.ttl_reduced.into());
                self.overlaps.increment(grant.overlap.into());
            }
            What::Contended { shielded } => {
                self.acquire(Acquire::Contended);
                self.shielded.increment((*shielded).into());
            }
            What::AcquireFailed => self.acquire(Acquire::Error),
            What::Release(release) => self.release(release),
            What::Refused(refusal) => self.refusal(refusal),
            What::Extended { ttl_ms: _, reduced } | What::Overwritten { ttl_ms: _, reduced } => {
                self.ttl_reduced.increment((*reduced).into());
            }
            What::TakenOver => self.takeovers.increment(1),
            What::Expired { held_ms } => {
                self.expirations.increment(1);
                record_ms(&self.hold, *held_ms);
            }
            // How long it was held nobody knows, and how it ended is told by the release, if this proxy saw one.
            What::Ended => {}
            What::Renewal(outcome) => count(&self.renewals, *outcome as usize, 1),
            What::DebtsDropped { reason, count: number } => {
                count(&self.debts_dropped, *reason as usize, (*number).into());
            }
        }
    }

    fn acquire(&self, outcome: Acquire) {
        count(&self.acquires, outcome as usize, 1);
    }

    fn release(&self, release: &Release) {
        let Release {
            outcome,
            held_ms,
            overrun_ms,
        } = release;
        count(&self.releases, *outcome as usize, 1);
        record_ms(&self.hold, *held_ms);
        record_ms(&self.overrun, *overrun_ms);
    }

    fn refusal(&self, refusal: &Refusal) {
        let Refusal {
            operation,
            reason,
            action,
            without_ttl: _,
        } = refusal;
        let reasons = self.refusals.get(*operation as usize);
        if let Some(actions) = reasons.and_then(|reasons| reasons.get(*reason as usize)) {
            count(actions, *action as usize, 1);
        }
    }
}

fn count(counters: &[Counter], index: usize, number: u64) {
    if let Some(counter) = counters.get(index) {
        counter.increment(number);
    }
}

fn record_ms(histogram: &Histogram, milliseconds: Option<u64>) {
    if let Some(milliseconds) = milliseconds {
        histogram.record(milliseconds as f64 / 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enums_stand_in_the_order_of_their_lists() {
        assert!(
            ReleaseOutcome::ALL
                .iter()
                .enumerate()
                .all(|(index, outcome)| *outcome as usize == index)
        );
        assert!(
            Operation::ALL
                .iter()
                .enumerate()
                .all(|(index, operation)| *operation as usize == index)
        );
        assert!(
            RefusalReason::ALL
                .iter()
                .enumerate()
                .all(|(index, reason)| *reason as usize == index)
        );
        assert!(
            Action::ALL
                .iter()
                .enumerate()
                .all(|(index, action)| *action as usize == index)
        );
        assert!(
            Renewal::ALL
                .iter()
                .enumerate()
                .all(|(index, renewal)| *renewal as usize == index)
        );
        assert!(
            DropReason::ALL
                .iter()
                .enumerate()
                .all(|(index, reason)| *reason as usize == index)
        );
        let acquires = [Acquire::Granted, Acquire::Contended, Acquire::Error];
        assert!(
            acquires
                .iter()
                .enumerate()
                .all(|(index, outcome)| *outcome as usize == index)
        );
    }
}
