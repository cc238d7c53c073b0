//! The rules in force with their figures, and what these advise.

use crate::admin::api::{Advice, AdviceKind, Recent, RuleView, Spread, Totals};
use crate::config::check::{mode_word, owner_word};
use crate::event::{RuleIndex, Time};
use crate::lock::chronicle::advice::Kind;
use crate::lock::chronicle::{self, Chronicle, STEP_MS, STEPS, Step};
use crate::lock::keeper::Summary;
use crate::lock::rule::Rule;
use crate::proxy::shared::Shared;

/// All rules, in the order of the configuration.
pub(super) fn views(shared: &Shared) -> Vec<RuleView> {
    let policy = shared.policy();
    let now = shared.now();
    let gauges = shared.keeper().summary(now);
    let views = policy.rules.iter().map(|(index, rule)| {
        let mut view = settings(rule);
        view.matched = policy.rules.has_met(index);
        if let Some(gauges) = gauges.get(usize::from(index.0)) {
            gauge(&mut view, gauges);
        }
        // For each rule anew, so that no client waits for the figures of all.
        figures(shared, &shared.telling.chronicle(), index, now, &mut view);
        view
    });
    views.collect()
}

/// What the figures of the rules advise.
pub(super) fn advice(shared: &Shared) -> Vec<Advice> {
    let policy = shared.policy();
    let mut all = Vec::new();
    for (index, rule) in policy.rules.iter() {
        let advice = shared.telling.chronicle().advice(index, rule);
        all.extend(advice.into_iter().map(|advice| Advice {
            rule: rule.name.to_string(),
            kind: kind(advice.kind),
            text: advice.text,
            toml: advice.line,
        }));
    }
    all
}

/// For each rule, by its place: 99 of 100 of its leases are held no longer, in milliseconds.
pub(super) fn usual_hold_ms(shared: &Shared) -> Vec<Option<u64>> {
    let policy = shared.policy();
    let places = (0..=u16::MAX).zip(policy.rules.list());
    places
        .map(|(place, _)| shared.telling.chronicle().usual_hold_ms(RuleIndex(place)))
        .collect()
}

fn kind(kind: Kind) -> AdviceKind {
    match kind {
        Kind::NotALock => AdviceKind::NotALock,
        Kind::TtlTooShort => AdviceKind::TtlTooShort,
        Kind::NoTtl => AdviceKind::NoTtl,
        Kind::ChooseOwner => AdviceKind::ChooseOwner,
        Kind::Enforce => AdviceKind::Enforce,
    }
}

fn settings(rule: &Rule) -> RuleView {
    let patterns = rule.patterns.iter();
    RuleView {
        name: rule.name.to_string(),
        patterns: patterns
            .map(|pattern| String::from_utf8_lossy(pattern).into_owned())
            .collect(),
        mode: mode_word(rule).to_owned(),
        owner: rule.owner.iter().map(|part| owner_word(part).to_owned()).collect(),
        default_ttl_ms: rule.default_ttl_ms,
        max_ttl_ms: rule.max_ttl_ms,
        late_release_window_ms: rule.late_release_window_ms,
        renew: rule.renew,
        release_on_disconnect: rule.release_on_disconnect,
        ..RuleView::default()
    }
}

fn gauge(view: &mut RuleView, gauges: &Summary) {
    view.held = gauges.held as u64;
    view.waiters = gauges.waiters as u64;
    view.without_ttl = gauges.without_ttl as u64;
    view.oldest_age_ms = gauges.oldest_age_micros / 1000;
}

fn figures(shared: &Shared, chronicle: &Chronicle, index: RuleIndex, now: Time, view: &mut RuleView) {
    let Some(figures) = chronicle.figures(index) else {
        return;
    };
    view.totals = totals(&figures.totals);
    view.hold = spread(&figures.hold);
    view.wait = spread(&figures.wait);
    if let Some((steps, last)) = chronicle.recent(index, now) {
        view.recent = recent(&steps, shared.clock.unix_ms(last));
    }
}

fn totals(totals: &chronicle::Totals) -> Totals {
    Totals {
        granted: totals.granted,
        contended: totals.contended,
        released: totals.released,
        late: totals.late,
        foreign: totals.foreign,
        expired: totals.expired,
        overlaps: totals.overlaps,
        refused: totals.refused,
        would_refuse: totals.would_refuse,
    }
}

fn spread(spread: &chronicle::Spread) -> Spread {
    Spread {
        count: spread.count(),
        p50_ms: spread.quantile_ms(0.5),
        p95_ms: spread.quantile_ms(0.95),
        p99_ms: spread.quantile_ms(0.99),
        max_ms: spread.max_ms(),
    }
}

fn recent(steps: &[Step], last_unix_ms: u64) -> Recent {
    let row = |count: fn(&Step) -> u32| steps.iter().map(|step| count(step).into()).collect();
    Recent {
        step_ms: STEP_MS,
        start_ms: last_unix_ms.saturating_sub(STEP_MS * (STEPS as u64 - 1)),
        granted: row(|step| step.granted),
        contended: row(|step| step.contended),
        refused: row(|step| step.refused),
        would_refuse: row(|step| step.would_refuse),
        expired: row(|step| step.expired),
        overlaps: row(|step| step.overlaps),
    }
}
