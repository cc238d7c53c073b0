//! Which series there are: all of a rule from the start, in a text that a strict reader of the Prometheus format takes.

mod metrics_reader;

use lockward::event::{Action, DropReason, Operation, RefusalReason, ReleaseOutcome, Renewal, What};
use lockward::metrics::{LogKind, RuleSummary, TableDropped, TableSummary};
use metrics_reader::read;
use metrics_reader::scene::{event, metrics, names, scrape};

#[test]
fn every_series_of_a_rule_is_there_from_the_start_with_0() {
    let shown = scrape(&metrics(&["jobs", "lock:*"]));
    for rule in ["jobs", "lock:*"] {
        let zero = |name: &str, labels: &[(&str, &str)]| {
            let labels: Vec<(&str, &str)> = [("rule", rule)].into_iter().chain(labels.iter().copied()).collect();
            assert_eq!(shown.value(name, &labels), Some(0.0), "{name} {labels:?}");
        };
        for outcome in ["granted", "contended", "error"] {
            zero("lockward_lock_acquires_total", &[("outcome", outcome)]);
        }
        for outcome in ReleaseOutcome::ALL {
            zero("lockward_lock_releases_total", &[("outcome", outcome.word())]);
        }
        for operation in Operation::ALL {
            for reason in RefusalReason::ALL {
                for action in Action::ALL {
                    let labels = [
                        ("operation", operation.word()),
                        ("reason", reason.word()),
                        ("action", action.word()),
                    ];
                    zero("lockward_lock_refusals_total", &labels);
                }
            }
        }
        for outcome in Renewal::ALL {
            zero("lockward_lock_renewals_total", &[("outcome", outcome.word())]);
        }
        for reason in DropReason::ALL {
            zero("lockward_lock_debts_dropped_total", &[("reason", reason.word())]);
        }
        for name in [
            "lock_expirations_total",
            "lock_overlaps_total",
            "lock_ttl_injected_total",
            "lock_ttl_reduced_total",
            "lock_takeovers_total",
            "locks_held",
            "lock_waiters",
            "locks_without_ttl",
            "lock_oldest_age_seconds",
            "lock_hold_seconds_count",
            "lock_wait_seconds_count",
            "lock_overrun_seconds_count",
        ] {
            zero(&format!("lockward_{name}"), &[]);
        }
    }
}

#[test]
fn the_series_of_the_proxy_are_there_from_the_start() {
    let shown = scrape(&metrics(&[]));
    for command in ["get", "set", "del", "other"] {
        for outcome in ["ok", "error"] {
            let labels = [("command", command), ("outcome", outcome)];
            assert_eq!(shown.value("lockward_commands_total", &labels), Some(0.0));
        }
    }
    for class in ["lock", "other"] {
        assert_eq!(
            shown.value("lockward_request_seconds_count", &[("class", class)]),
            Some(0.0)
        );
        assert_eq!(
            shown.value("lockward_upstream_seconds_count", &[("class", class)]),
            Some(0.0)
        );
    }
    for side in ["downstream", "upstream"] {
        for direction in ["in", "out"] {
            let labels = [("side", side), ("direction", direction)];
            assert_eq!(shown.value("lockward_transferred_bytes_total", &labels), Some(0.0));
        }
        assert_eq!(shown.value(&format!("lockward_{side}_connections"), &[]), Some(0.0));
    }
    for kind in LogKind::ALL {
        assert_eq!(
            shown.value("lockward_log_events_dropped_total", &[("kind", kind.word())]),
            Some(0.0)
        );
    }
    assert_eq!(
        shown.value("lockward_build_info", &[("version", env!("CARGO_PKG_VERSION"))]),
        Some(1.0)
    );
    assert_eq!(shown.value("lockward_upstream_up", &[]), Some(0.0));
    assert_eq!(shown.value("lockward_config_reload_successful", &[]), Some(1.0));
    assert!(shown.value("lockward_start_time_seconds", &[]).unwrap() > 1.7e9);
    assert!(shown.value("process_resident_memory_bytes", &[]).unwrap() > 1e5);
}

#[test]
fn the_gauges_of_the_rules_are_those_of_the_table() {
    let metrics = metrics(&["a", "b", "a"]);
    let summary = |held, waiters, without_ttl, oldest_age_seconds| RuleSummary {
        held,
        waiters,
        without_ttl,
        oldest_age_seconds,
    };
    let table = TableSummary {
        rules: vec![summary(1, 2, 0, 9.5), summary(0, 0, 0, 0.0), summary(4, 0, 3, 2.0)],
        ..TableSummary::default()
    };
    let shown = read(&metrics.render(&table));
    let gauge = |name: &str| shown.value(&format!("lockward_{name}"), &[("rule", "a")]).unwrap();
    assert_eq!(gauge("locks_held"), 5.0, "two rules of one name share their series");
    assert_eq!((gauge("lock_waiters"), gauge("locks_without_ttl")), (2.0, 3.0));
    assert_eq!(gauge("lock_oldest_age_seconds"), 9.5);
    assert_eq!(
        scrape(&metrics).value("lockward_locks_held", &[("rule", "a")]),
        Some(0.0)
    );
}

#[test]
fn what_the_table_left_out_is_counted_by_kind() {
    let metrics = metrics(&["a"]);
    let dropped = TableDropped {
        leases: 5,
        watches: 4,
        marks: 3,
        waiters: 2,
    };
    let kinds = ["lease", "watch", "mark", "waiter"];
    let values = |text: &str| {
        let shown = read(text);
        kinds.map(|kind| shown.value("lockward_lock_table_dropped_total", &[("kind", kind)]))
    };
    let nothing = metrics.render(&TableSummary::default());
    assert_eq!(values(&nothing), [Some(0.0); 4], "there from the start");
    let table = TableSummary {
        dropped,
        ..TableSummary::default()
    };
    for _ in 0..2 {
        assert_eq!(values(&metrics.render(&table)), [5.0, 4.0, 3.0, 2.0].map(Some));
    }
}

#[test]
fn a_reload_keeps_what_was_counted_and_adds_what_is_new() {
    let metrics = metrics(&["old", "both"]);
    metrics.event(&event(0, "b", 1, What::TakenOver));
    metrics.event(&event(1, "b", 1, What::TakenOver));
    metrics.set_rules(&names(&["both", "new"]));
    metrics.config_reload(true);
    metrics.config_reload(false);
    metrics.event(&event(0, "b", 1, What::TakenOver));
    metrics.event(&event(7, "b", 1, What::TakenOver));
    let shown = scrape(&metrics);
    let takeovers = |rule| shown.value("lockward_lock_takeovers_total", &[("rule", rule)]);
    assert_eq!(
        (takeovers("old"), takeovers("both"), takeovers("new")),
        (Some(1.0), Some(2.0), Some(0.0))
    );
    assert_eq!(
        shown.value("lockward_config_reload_total", &[("outcome", "ok")]),
        Some(1.0)
    );
    assert_eq!(
        shown.value("lockward_config_reload_total", &[("outcome", "error")]),
        Some(1.0)
    );
    assert_eq!(shown.value("lockward_config_reload_successful", &[]), Some(0.0));
}

#[test]
fn names_of_rules_may_hold_anything() {
    let odd = "a\"b\\c\nd{e=\"f\"}, é";
    let shown = scrape(&metrics(&[odd]));
    assert_eq!(shown.value("lockward_locks_held", &[("rule", odd)]), Some(0.0));
}
