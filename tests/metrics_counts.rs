//! What events, commands and connections count as.

mod metrics_reader;

use lockward::event::{
    Action, DropReason, Grant, Operation, Refusal, RefusalReason, ReleaseOutcome, Renewal, RuleIndex, What,
};
use lockward::metrics::{Direction, LogKind, Side, TableSummary};
use metrics_reader::scene::{event, grant, metrics, release, scrape};

#[test]
fn nothing_that_happens_makes_a_new_series() {
    let metrics = metrics(&["jobs"]);
    let (before, text) = (
        metrics.series(),
        metrics.render(&TableSummary::default()).lines().count(),
    );
    for happening in everything_that_can_happen() {
        metrics.event(&event(0, "b", 1, happening));
    }
    for id in 0..10 {
        count(&metrics, id, id % 2 == 0, id % 3 == 0, 10, 5);
    }
    assert_eq!(metrics.series(), before);
    assert_eq!(metrics.render(&TableSummary::default()).lines().count(), text);
}

fn everything_that_can_happen() -> Vec<What> {
    let mut all = vec![
        What::Granted(Grant {
            ttl_injected: true,
            ttl_reduced: true,
            overlap: true,
            ..grant()
        }),
        What::Contended { shielded: true },
        What::AcquireFailed,
        What::Extended {
            ttl_ms: Some(1),
            reduced: true,
        },
        What::Overwritten {
            ttl_ms: None,
            reduced: true,
        },
        What::TakenOver,
        What::Expired { held_ms: Some(30_000) },
        What::Ended,
        What::DebtsDropped {
            reason: DropReason::Window,
            count: 3,
        },
        What::DebtsDropped {
            reason: DropReason::Cap,
            count: 4,
        },
    ];
    all.extend(ReleaseOutcome::ALL.map(|outcome| release(outcome, Some(20), Some(40))));
    all.extend(Renewal::ALL.map(What::Renewal));
    for operation in Operation::ALL {
        for reason in RefusalReason::ALL {
            let refusal = |action| {
                What::Refused(Refusal {
                    operation,
                    reason,
                    action,
                    without_ttl: false,
                })
            };
            all.extend(Action::ALL.map(refusal));
        }
    }
    all
}

#[test]
fn each_event_counts_where_it_belongs() {
    let metrics = metrics(&["idle", "jobs"]);
    for happening in everything_that_can_happen() {
        metrics.event(&event(1, "b", 1, happening));
    }
    let shown = scrape(&metrics);
    let one = |name: &str, labels: &[(&str, &str)], expected: f64| {
        for (rule, expected) in [("jobs", expected), ("idle", 0.0)] {
            let labels: Vec<(&str, &str)> = [("rule", rule)].into_iter().chain(labels.iter().copied()).collect();
            assert_eq!(
                shown.value(&format!("lockward_lock_{name}"), &labels),
                Some(expected),
                "{name} {labels:?}"
            );
        }
    };
    for outcome in ["granted", "contended", "error"] {
        one("acquires_total", &[("outcome", outcome)], 1.0);
    }
    for outcome in ReleaseOutcome::ALL {
        one("releases_total", &[("outcome", outcome.word())], 1.0);
    }
    for operation in Operation::ALL {
        for reason in RefusalReason::ALL {
            for action in Action::ALL {
                let labels = [
                    ("operation", operation.word()),
                    ("reason", reason.word()),
                    ("action", action.word()),
                ];
                one("refusals_total", &labels, 1.0);
            }
        }
    }
    for outcome in Renewal::ALL {
        one("renewals_total", &[("outcome", outcome.word())], 1.0);
    }
    one("debts_dropped_total", &[("reason", "window")], 3.0);
    one("debts_dropped_total", &[("reason", "cap")], 4.0);
    one("expirations_total", &[], 1.0);
    one("overlaps_total", &[], 1.0);
    one("ttl_injected_total", &[], 1.0);
    one("ttl_reduced_total", &[], 3.0);
    one("shielded_total", &[], 1.0);
    one("takeovers_total", &[], 1.0);
    one("hold_seconds_count", &[], 10.0);
    one("hold_seconds_sum", &[], 30.18);
    one("overrun_seconds_count", &[], 9.0);
    one("overrun_seconds_sum", &[], 0.36);
    one("overrun_seconds_bucket", &[("le", "0.01")], 0.0);
    one("overrun_seconds_bucket", &[("le", "0.1")], 9.0);
    one("hold_seconds_bucket", &[("le", "30")], 10.0);
}

#[test]
fn a_wait_is_measured() {
    let metrics = metrics(&["jobs"]);
    metrics.waited(RuleIndex(0), 500_000);
    let shown = scrape(&metrics);
    assert_eq!(
        shown.value("lockward_lock_wait_seconds_count", &[("rule", "jobs")]),
        Some(1.0)
    );
    assert_eq!(
        shown.value("lockward_lock_wait_seconds_sum", &[("rule", "jobs")]),
        Some(0.5)
    );
}

#[test]
fn commands_count_by_name_and_class() {
    let metrics = metrics(&[]);
    count(&metrics, 1, false, true, 100, 60);
    count(&metrics, 1, true, true, 100, 60);
    count(&metrics, 0, false, false, 30, 20);
    count(&metrics, 3, false, false, 30, 20);
    count(&metrics, usize::MAX, false, false, u32::MAX, u32::MAX);
    let shown = scrape(&metrics);
    let commands = |command, outcome| {
        shown
            .value("lockward_commands_total", &[("command", command), ("outcome", outcome)])
            .unwrap()
    };
    assert_eq!(
        (commands("set", "ok"), commands("set", "error"), commands("get", "ok")),
        (1.0, 1.0, 1.0)
    );
    assert_eq!(commands("other", "ok"), 2.0);
    assert_eq!(
        shown.value("lockward_request_seconds_sum", &[("class", "lock")]),
        Some(0.0002)
    );
    assert_eq!(
        shown.value("lockward_upstream_seconds_sum", &[("class", "lock")]),
        Some(0.00012)
    );
    let bucket = |le| {
        shown
            .value("lockward_request_seconds_bucket", &[("class", "lock"), ("le", le)])
            .unwrap()
    };
    assert_eq!(
        (bucket("0.00005"), bucket("0.0001")),
        (0.0, 2.0),
        "100 us stand under the bound of 100 us"
    );
    assert_eq!(
        shown.value("lockward_request_seconds_count", &[("class", "other")]),
        Some(3.0)
    );
}

#[test]
fn connections_and_bytes_count_for_each_side() {
    let metrics = metrics(&[]);
    metrics.opened(Side::Downstream);
    metrics.opened(Side::Downstream);
    metrics.closed(Side::Downstream);
    metrics.opened(Side::Upstream);
    metrics.moved(Side::Upstream, Direction::Out, 1 << 40);
    metrics.upstream_up(true);
    metrics.log_dropped(LogKind::Overrun);
    let shown = scrape(&metrics);
    assert_eq!(shown.value("lockward_downstream_connections", &[]), Some(1.0));
    assert_eq!(shown.value("lockward_upstream_connections", &[]), Some(1.0));
    assert_eq!(shown.value("lockward_upstream_up", &[]), Some(1.0));
    let labels = [("side", "upstream"), ("direction", "out")];
    assert_eq!(
        shown.value("lockward_transferred_bytes_total", &labels),
        Some((1_u64 << 40) as f64)
    );
    assert_eq!(
        shown.value("lockward_log_events_dropped_total", &[("kind", "overrun")]),
        Some(1.0)
    );
}

#[test]
fn counts_from_many_threads_at_once_are_exact() {
    let metrics = metrics(&["jobs"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    count(&metrics, 2, false, true, 200, 100);
                    metrics.event(&event(0, "b", 1, What::TakenOver));
                }
            });
        }
    });
    let shown = scrape(&metrics);
    let deletes = shown.value("lockward_commands_total", &[("command", "del"), ("outcome", "ok")]);
    assert_eq!(deletes, Some(160_000.0));
    assert_eq!(
        shown.value("lockward_request_seconds_count", &[("class", "lock")]),
        Some(160_000.0)
    );
    assert_eq!(
        shown.value("lockward_request_seconds_sum", &[("class", "lock")]),
        Some(32.0)
    );
    assert_eq!(
        shown.value("lockward_lock_takeovers_total", &[("rule", "jobs")]),
        Some(160_000.0)
    );
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
