//! The lines about locks: which events write one, what it says, what never stands in it, and how a flood is cut.

mod log_sink;

use std::sync::Arc;

use bytes::Bytes;
use lockward::event::{
    Action, ConnectionId, DropReason, Event, Grant, Operation, Refusal, RefusalReason, Release, ReleaseOutcome,
    Renewal, RuleIndex, Time, Token, What,
};
use lockward::metrics::{LockLog, Metrics, TableSummary};
use log_sink::Sink;
use serde_json::Value;
use uuid::Uuid;

const TOKEN: &str = "6f1cd1b2-3f5a-4d0e-9b0c-8d1a2b3c4d5e";

struct Scene {
    metrics: Arc<Metrics>,
    log: LockLog,
}

impl Scene {
    fn new() -> Self {
        let rules = [Arc::from("idle"), Arc::from("jobs")];
        let metrics = Arc::new(Metrics::new(&rules, &[]));
        Scene {
            log: LockLog::new(&rules, Arc::clone(&metrics)),
            metrics,
        }
    }

    /// The lines that `run` writes.
    fn lines(&self, run: impl FnOnce(&LockLog)) -> Vec<Value> {
        let sink = Sink::default();
        let writer = sink.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || run(&self.log));
        let text = sink.text();
        assert!(!text.contains(TOKEN));
        text.lines().map(parse).collect()
    }

    fn kinds(&self, what: What) -> Vec<String> {
        let lines = self.lines(|log| log.event(&event(1000, what)));
        lines
            .iter()
            .map(|line| line["kind"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn event(ms: u64, what: What) -> Event {
    Event {
        at: Time::default().plus_ms(ms),
        database: 3,
        key: Bytes::from_static(b"lock:a"),
        rule: RuleIndex(1),
        owner: "address=10.0.0.7".into(),
        connection: ConnectionId {
            instance: "0123456789abcdef".into(),
            number: 7,
        },
        what,
    }
}

fn grant() -> Grant {
    Grant {
        token: Token(Uuid::parse_str(TOKEN).unwrap()),
        fence: Some(5),
        ttl_ms: Some(30_000),
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    }
}

fn refusal(operation: Operation, without_ttl: bool) -> What {
    What::Refused(Refusal {
        operation,
        reason: RefusalReason::Foreign,
        action: Action::Observed,
        without_ttl,
    })
}

fn release(outcome: ReleaseOutcome) -> What {
    What::Release(Release {
        outcome,
        held_ms: Some(31_000),
        overrun_ms: Some(1500),
    })
}

#[test]
fn a_refusal_says_who_what_and_why() {
    let lines = Scene::new().lines(|log| log.event(&event(1000, refusal(Operation::Extend, true))));
    let [line] = &lines[..] else { panic!("{lines:?}") };
    for (field, value) in [
        ("kind", "refusal"),
        ("level", "WARN"),
        ("rule", "jobs"),
        ("key", "lock:a"),
        ("owner", "address=10.0.0.7"),
        ("connection", "0123456789abcdef-7"),
        ("operation", "extend"),
        ("reason", "foreign"),
        ("action", "observed"),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    assert_eq!(line["database"], 3);
    assert_eq!(line.get("held_ms"), None, "{line}");
}

#[test]
fn a_refusal_names_the_holder_where_he_is_known() {
    let holder = || Some("address=10.0.0.9\n".into());
    let lines = Scene::new().lines(|log| {
        log.event_held_by(&event(1000, refusal(Operation::Release, false)), &holder);
        log.event_held_by(&event(1000, release(ReleaseOutcome::Late)), &holder);
        log.event(&event(1000, refusal(Operation::Release, false)));
    });
    assert_eq!(lines[0]["holder"], "address=10.0.0.9\\n");
    assert_eq!((lines[1].get("holder"), lines[2].get("holder")), (None, None));
}

#[test]
fn a_refused_release_of_a_lock_without_ttl_names_the_ways_out() {
    let lines = Scene::new().lines(|log| log.event(&event(1000, refusal(Operation::Release, true))));
    let message = lines[0]["message"].as_str().unwrap();
    assert_eq!(
        (lines[0]["kind"].as_str(), lines[0]["level"].as_str()),
        (Some("stuck"), Some("WARN"))
    );
    for word in ["`default_ttl`", "`owner`", "`lockward release KEY`"] {
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn an_overrun_says_by_how_much() {
    let lines = Scene::new().lines(|log| log.event(&event(1000, release(ReleaseOutcome::Late))));
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["overrun_ms"]),
        (&Value::from("overrun"), &Value::from(1500))
    );
}

#[test]
fn what_deserves_a_line_has_one_and_the_course_of_things_has_none() {
    let scene = Scene::new();
    assert_eq!(scene.kinds(What::Granted(grant())), [""; 0]);
    let odd = Grant {
        overlap: true,
        ttl_injected: true,
        ..grant()
    };
    assert_eq!(scene.kinds(What::Granted(odd)), ["overlap", "ttl_injected"]);
    assert_eq!(scene.kinds(refusal(Operation::Release, false)), ["refusal"]);
    assert_eq!(scene.kinds(What::TakenOver), ["takeover"]);
    assert_eq!(scene.kinds(What::Renewal(Renewal::Lost)), ["lease_lost"]);
    assert_eq!(scene.kinds(What::Renewal(Renewal::Capped)), ["renewal_capped"]);
    assert_eq!(
        scene.kinds(What::DebtsDropped {
            reason: DropReason::Cap,
            count: 2
        }),
        ["debts_dropped"]
    );
    assert_eq!(scene.kinds(release(ReleaseOutcome::Forced)), ["forced"]);
    for outcome in ReleaseOutcome::ALL {
        let line = matches!(outcome, ReleaseOutcome::Late | ReleaseOutcome::Forced);
        assert_eq!(scene.kinds(release(outcome)).len(), usize::from(line), "{outcome:?}");
    }
    for ordinary in [
        What::Contended { shielded: false },
        What::AcquireFailed,
        What::Extended {
            ttl_ms: None,
            reduced: true,
        },
        What::Overwritten {
            ttl_ms: None,
            reduced: true,
        },
        What::Expired { held_ms: Some(1) },
        What::Ended,
        What::Renewal(Renewal::Extended),
    ] {
        assert_eq!(scene.kinds(ordinary), [""; 0]);
    }
}

#[test]
fn a_lock_without_ttl_is_told_once_a_minute_for_each_rule() {
    let scene = Scene::new();
    let without = |ms, rule| Event {
        rule: RuleIndex(rule),
        ..event(
            ms,
            What::Granted(Grant {
                ttl_ms: None,
                ..grant()
            }),
        )
    };
    let lines = scene.lines(|log| {
        for (ms, rule) in [(1000, 1), (2000, 1), (3000, 0), (60_999, 1), (61_000, 1), (61_001, 1)] {
            log.event(&without(ms, rule));
        }
    });
    let rules: Vec<&str> = lines.iter().map(|line| line["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["jobs", "idle", "jobs"]);
}

#[test]
fn keys_and_owners_cannot_break_a_line() {
    let odd = Event {
        key: Bytes::from(b"lock:\r\n\x1b[31m\xff\"".repeat(100)),
        owner: "client-name=a\nb".into(),
        ..event(1000, What::TakenOver)
    };
    let lines = Scene::new().lines(|log| log.event(&odd));
    let key = lines[0]["key"].as_str().unwrap();
    assert!(key.starts_with(r#"lock:\r\n\x1b[31m\xff\""#), "{key}");
    assert!(key.ends_with("... (1400 bytes)") && key.len() < 300, "{key}");
    assert_eq!(lines[0]["owner"], r"client-name=a\nb");
}

#[test]
fn a_flood_is_cut_counted_and_told() {
    let scene = Scene::new();
    let lines = scene.lines(|log| {
        (0..100).for_each(|_| log.event(&event(5000, refusal(Operation::Release, false))));
        log.event(&event(5000, What::TakenOver));
        log.event(&event(6000, refusal(Operation::Release, false)));
    });
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(
        (of("refusal"), of("takeover")),
        (22, 1),
        "20, the count and the next one; other kinds are not cut"
    );
    assert_eq!(lines[21]["message"], "80 lines of this kind were dropped");
    assert_eq!(lines[21]["dropped"], 80);
    let text = scene.metrics.render(&TableSummary::default());
    assert!(text.contains("lockward_log_events_dropped_total{kind=\"refusal\"} 80\n"));
}

#[test]
fn a_flood_that_ends_is_told_when_the_second_is_over() {
    let lines = Scene::new().lines(|log| {
        (0..25).for_each(|_| log.event(&event(5000, What::TakenOver)));
        log.settle(Time::default().plus_ms(5500));
        log.settle(Time::default().plus_ms(6000));
        log.settle(Time::default().plus_ms(7000));
    });
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[20]["dropped"], 5);
}
