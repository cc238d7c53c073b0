//! The memory of the metrics is settled at the start. Alone in its program, since it looks at the whole process.

use std::sync::Arc;

use lockward::event::{ConnectionId, Event, Grant, Release, ReleaseOutcome, RuleIndex, Time, Token, What};
use lockward::metrics::{Metrics, TableSummary};
use uuid::Uuid;

/// What the waits may take once all places are in use, and slack for the allocator.
const GROWTH: u64 = 3 * 1024 * 1024;

#[cfg(target_os = "linux")]
#[test]
fn a_million_observations_that_nobody_scrapes_take_no_memory() {
    let metrics = Metrics::new(&[Arc::from("jobs")], &["get"]);
    let instance: Arc<str> = "0123456789abcdef".into();
    let grant = What::Granted(Grant {
        token: Token(Uuid::nil()),
        fence: None,
        ttl_ms: None,
        ttl_injected: false,
        ttl_reduced: false,
        overlap: true,
    });
    let observe = |number: u64| {
        count(&metrics, 0, false, true, number as u32, number as u32);
        let event = |what| Event {
            at: Time(number),
            database: 0,
            key: format!("lock:{number}").into(),
            rule: RuleIndex(0),
            owner: "address=10.0.0.7".into(),
            connection: ConnectionId {
                instance: Arc::clone(&instance),
                number,
            },
            what,
        };
        metrics.event(&event(What::Contended { shielded: false }));
        if number.is_multiple_of(2) {
            metrics.event(&event(grant.clone()));
        }
        let (held_ms, overrun_ms) = (Some(number), Some(number));
        metrics.event(&event(What::Release(Release {
            outcome: ReleaseOutcome::Late,
            held_ms,
            overrun_ms,
        })));
    };
    (0..1000).for_each(observe);
    let (lines, series) = (
        metrics.render(&TableSummary::default()).lines().count(),
        metrics.series(),
    );
    let before = resident();
    (1000..1_000_000).for_each(observe);
    let growth = resident().saturating_sub(before);
    assert!(growth < GROWTH, "grew by {growth} bytes");
    assert_eq!(metrics.series(), series);
    assert_eq!(metrics.render(&TableSummary::default()).lines().count(), lines);
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn count(
    metrics: &lockward::metrics::Metrics,
    command: usize,
    error: bool,
    lock: bool,
    request_us: u32,
    upstream_us: u32,
) {
    metrics.commands(&lockward::metrics::Settled {
        command,
        error,
        lock,
        count: 1,
        request_us,
        upstream_us,
    });
}
