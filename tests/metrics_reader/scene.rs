//! Metrics and events for the tests.

use std::sync::Arc;

use lockward::event::{ConnectionId, Event, Grant, Release, ReleaseOutcome, RuleIndex, Time, Token, What};
use lockward::metrics::{Metrics, TableSummary};
use uuid::Uuid;

use super::{Exposition, read};

/// The names of the commands.
const COMMANDS: &[&str] = &["get", "set", "del"];

pub fn metrics(rules: &[&str]) -> Metrics {
    Metrics::new(&names(rules), COMMANDS)
}

pub fn names(rules: &[&str]) -> Vec<Arc<str>> {
    rules.iter().map(|name| Arc::from(*name)).collect()
}

pub fn scrape(metrics: &Metrics) -> Exposition {
    read(&metrics.render(&TableSummary::default()))
}

pub fn event(rule: u16, owner: &str, ms: u64, what: What) -> Event {
    Event {
        at: Time::default().plus_ms(ms),
        database: 0,
        key: "lock:a".into(),
        rule: RuleIndex(rule),
        owner: owner.into(),
        connection: ConnectionId {
            instance: "0123456789abcdef".into(),
            number: 7,
        },
        what,
    }
}

pub fn grant() -> Grant {
    Grant {
        token: Token(Uuid::nil()),
        fence: None,
        ttl_ms: Some(1000),
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    }
}

pub fn release(outcome: ReleaseOutcome, held_ms: Option<u64>, overrun_ms: Option<u64>) -> What {
    What::Release(Release {
        outcome,
        held_ms,
        overrun_ms,
    })
}
