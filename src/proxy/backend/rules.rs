//! The rules in force with their figures.

use crate::admin::api::RuleView;
use crate::lock::rule::{Mode, Rule};
use crate::proxy::shared::Shared;

/// All rules, in the order of the configuration.
pub(super) fn views(shared: &Shared) -> Vec<RuleView> {
    shared.policy.load().rules.list().iter().map(view).collect()
}

fn view(rule: &Rule) -> RuleView {
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
