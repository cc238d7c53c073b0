//! Advice on rules, with names and times for people.

use super::rules;
use crate::admin::api::Suggestions;
use crate::event::Time;
use crate::proxy::shared::Shared;

/// All of it.
pub(super) fn all(shared: &Shared) -> Suggestions {
    Suggestions {
        since_ms: shared.unix_ms(Time(0)),
        now_ms: shared.unix_ms(shared.now()),
        rules: rules::advice(shared),
        ..Suggestions::default()
    }
}
