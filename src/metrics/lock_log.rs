//! The log of what happens to locks: one structured line for each refusal, overrun, overlap, lost lease, TTL given, lock
//! without TTL, takeover and release by force. Rate-limited for each kind, keys and owners escaped. Never a token: no line
//! has a field for one. Ordinary acquires and releases are not logged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::Metrics;
use super::kind::LogKind;
use super::limit::{Limit, Verdict};
use super::printable::printable;
use crate::event::{Event, Grant, Operation, Owner, Refusal, Release, ReleaseOutcome, Renewal, RuleIndex, Time, What};

/// A lock without TTL is told once in so many microseconds for each rule.
const WITHOUT_TTL_US: u64 = 60_000_000;

/// The lines about locks. Lines go to the `tracing` subscriber in scope, under the target `lockward::lock`.
#[derive(Debug)]
pub struct LockLog {
    metrics: Arc<Metrics>,
    rules: ArcSwap<Vec<Arc<str>>>,
    limits: [Limit; LogKind::ALL.len()],
    without_ttl: Mutex<HashMap<RuleIndex, Time>>,
}

/// Says who holds the lock.
type Holder<'a> = dyn Fn() -> Option<Owner> + 'a;

/// What a line says besides who, where and which lock. Empty fields are left out.
#[derive(Default)]
struct Details<'a> {
    operation: Option<&'static str>,
    reason: Option<&'static str>,
    action: Option<&'static str>,
    holder: Option<&'a Holder<'a>>,
    ttl_ms: Option<u64>,
    held_ms: Option<u64>,
    overrun_ms: Option<u64>,
    count: Option<u32>,
}

impl LockLog {
    /// A log for these rules, by position in the configuration. What it leaves out is counted in `metrics`.
    pub fn new(rule_names: &[Arc<str>], metrics: Arc<Metrics>) -> Self {
        LockLog {
            metrics,
            rules: ArcSwap::from_pointee(rule_names.to_vec()),
            limits: Default::default(),
            without_ttl: Mutex::default(),
        }
    }

    /// Puts other rules in force.
    pub fn set_rules(&self, rule_names: &[Arc<str>]) {
        self.rules.store(Arc::new(rule_names.to_vec()));
        self.without_ttl.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Writes the lines of one event, if it is worth any.
    pub fn event(&self, event: &Event) {
        self.event_held_by(event, &|| None);
    }

    /// The same. Lines about refusals name the owner of the lease that holds the lock, where `holder` knows it; it is asked
    /// only if such a line is written.
    pub fn event_held_by(&self, event: &Event, holder: &dyn Fn() -> Option<Owner>) {
        match &event.what {
            What::Granted(grant) => self.granted(event, grant),
            What::Release(release) => self.release(event, release),
            What::Refused(refusal) => self.refused(event, refusal, holder),
            What::TakenOver => self.line(LogKind::Takeover, event, Details::default()),
            What::Renewal(Renewal::Lost) => self.line(LogKind::LeaseLost, event, Details::default()),
            What::Renewal(Renewal::Capped) => self.line(LogKind::RenewalCapped, event, Details::default()),
            What::DebtsDropped { reason, count } => {
                let details = Details {
                    reason: Some(reason.word()),
                    count: Some(*count),
                    ..Details::default()
                };
                self.line(LogKind::DebtsDropped, event, details);
            }
            // The course of things. An expiry by itself is no overrun: a third to a half of all locks in the wild are
            // markers that nobody ever releases.
            What::Contended { .. }
            | What::AcquireFailed
            | What::Extended { .. }
            | What::Overwritten { .. }
            | What::Expired { .. }
            | What::Ended
            | What::Renewal(Renewal::Extended) => {}
        }
    }

    /// Tells of lines dropped by the rate limit that no later line has told of. To be called about once a second.
    pub fn settle(&self, now: Time) {
        for (kind, limit) in LogKind::ALL.into_iter().zip(&self.limits) {
            tell_dropped(kind, limit.settle(now));
        }
    }

    fn granted(&self, event: &Event, grant: &Grant) {
        let details = || Details {
            ttl_ms: grant.ttl_ms,
            ..Details::default()
        };
        if grant.overlap {
            self.line(LogKind::Overlap, event, details());
        }
        if grant.ttl_injected {
            self.line(LogKind::TtlInjected, event, details());
        }
        if grant.ttl_ms.is_none() && self.first_in_a_minute(event) {
            self.line(LogKind::WithoutTtl, event, details());
        }
    }

    fn first_in_a_minute(&self, event: &Event) -> bool {
        let mut told = self.without_ttl.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told
            .get(&event.rule)
            .is_none_or(|last| event.at.since(*last) >= WITHOUT_TTL_US);
        if due {
            told.insert(event.rule, event.at);
        }
        due
    }

    fn release(&self, event: &Event, release: &Release) {
        let kind = match release.outcome {
            ReleaseOutcome::Late => LogKind::Overrun,
            ReleaseOutcome::Forced => LogKind::Forced,
            ReleaseOutcome::Released
            | ReleaseOutcome::Pooled
            | ReleaseOutcome::Foreign
            | ReleaseOutcome::Absent
            | ReleaseOutcome::Unmanaged
            | ReleaseOutcome::SelfChecked
            | ReleaseOutcome::Disconnect => return,
        };
        let details = Details {
            held_ms: release.held_ms,
            overrun_ms: release.overrun_ms,
            ..Details::default()
        };
        self.line(kind, event, details);
    }

    fn refused(&self, event: &Event, refusal: &Refusal, holder: &Holder<'_>) {
        let stuck = refusal.operation == Operation::Release && refusal.without_ttl;
        let details = Details {
            operation: Some(refusal.operation.word()),
            reason: Some(refusal.reason.word()),
            action: Some(refusal.action.word()),
            holder: Some(holder),
            ..Details::default()
        };
        self.line(if stuck { LogKind::Stuck } else { LogKind::Refusal }, event, details);
    }

    fn line(&self, kind: LogKind, event: &Event, details: Details<'_>) {
        match self.limits.get(kind as usize).map(|limit| limit.ask(event.at)) {
            Some(Verdict::Write { dropped }) => {
                tell_dropped(kind, dropped);
                let rules = self.rules.load();
                let rule = rules.get(usize::from(event.rule.0)).map_or("", |name| &**name);
                write(kind, rule, event, &details);
            }
            Some(Verdict::Drop) | None => self.metrics.log_dropped(kind),
        }
    }
}

fn write(kind: LogKind, rule: &str, event: &Event, details: &Details<'_>) {
    let holder = details.holder.and_then(|holder| holder());
    let holder = holder.map(|owner| printable(owner.as_bytes()));
    // The level of a tracing line must be constant, so the line stands here twice.
    macro_rules! write_at {
        ($level:expr) => {
            tracing::event!(
                target: "lockward::lock",
                $level,
                kind = kind.word(),
                rule,
                database = event.database,
                key = printable(&event.key),
                owner = printable(event.owner.as_bytes()),
                connection = %event.connection,
                operation = details.operation,
                reason = details.reason,
                action = details.action,
                holder,
                ttl_ms = details.ttl_ms,
                held_ms = details.held_ms,
                overrun_ms = details.overrun_ms,
                count = details.count,
                "{}",
                kind.sentence()
            )
        };
    }
    if kind.warns() {
        write_at!(tracing::Level::WARN)
    } else {
        write_at!(tracing::Level::INFO)
    }
}

fn tell_dropped(kind: LogKind, dropped: u64) {
    if dropped > 0 {
        let kind = kind.word();
        tracing::warn!(target: "lockward::lock", kind, dropped, "{dropped} lines of this kind were dropped");
    }
}
