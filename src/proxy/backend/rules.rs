//! The rules in force with their figures.

use crate::admin::api::RuleView;
use crate::event::RuleIndex;
use crate::lock::rule::{Mode, Rule};
use crate::proxy::shared::Shared;

/// All rules, in the order of the configuration.
pub(super) fn views(shared: &Shared) -> Vec<RuleView> {
    let policy = shared.policy.load();
    let rules = (0..=u16::MAX).zip(policy.rules.list());
    rules
        .map(|(index, rule)| view(rule, policy.rules.has_met(RuleIndex(index))))
        .collect()
}

fn view(rule: &Rule, matched: bool) -> RuleView {
    let patterns = rule.patterns.iter();
    RuleView {
        name: rule.name.to_string(),
        patterns: patterns
            .map(|pattern| String::from_utf8_lossy(pattern).into_owned())
            .collect(),
        mode: mode(rule.mode).to_owned(),
        default_ttl_ms: rule.default_ttl_ms,
        max_ttl_ms: rule.max_ttl_ms,
        late_release_window_ms: rule.late_release_window_ms,
        renew: rule.renew,
        release_on_disconnect: rule.release_on_disconnect,
        matched,
        ..RuleView::default()
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}
