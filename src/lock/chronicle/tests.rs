//! Scenes of the chronicle: what histories, timelines and figures say after them.

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::advice::Kind;
use super::*;
use crate::event::{
    Action, ConnectionId, DropReason, Grant, Refusal, RefusalReason, Release, ReleaseOutcome, Renewal, Token,
};
use crate::lock::rule::{Mode, OwnerPart};

const KEY: &str = "lock:a";

fn connection(number: u64) -> ConnectionId {
    ConnectionId {
        instance: "aaaaaaaaaaaaaaaa".into(),
        number,
    }
}

fn event(at_ms: u64, key: &str, who: u64, what: What) -> Event {
    Event {
        at: Time(at_ms * 1000),
        database: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
        rule: RuleIndex(0),
        owner: format!("address=10.0.0.{}", who / 10).into(),
        connection: connection(who),
        what,
    }
}

fn granted(ttl_ms: impl Into<Option<u64>>) -> What {
    What::Granted(Grant {
        token: Token(Uuid::nil()),
        fence: None,
        ttl_ms: ttl_ms.into(),
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    })
}

fn granted_over_a_debt(ttl_ms: u64) -> What {
    match granted(ttl_ms) {
        What::Granted(grant) => What::Granted(Grant { overlap: true, ..grant }),
        other => other,
    }
}

fn release(outcome: ReleaseOutcome, held_ms: impl Into<Option<u64>>) -> What {
    What::Release(Release {
        outcome,
        held_ms: held_ms.into(),
        overrun_ms: None,
    })
}

fn late(overrun_ms: u64) -> What {
    What::Release(Release {
        outcome: ReleaseOutcome::Late,
        held_ms: None,
        overrun_ms: Some(overrun_ms),
    })
}

fn refused(operation: Operation, reason: RefusalReason, action: Action) -> What {
    What::Refused(Refusal {
        operation,
        reason,
        action,
        without_ttl: false,
    })
}

fn expired(held_ms: u64) -> What {
    What::Expired { held_ms: Some(held_ms) }
}

/// One rule and a chronicle. Client `who` is of host `who / 10`.
struct Scene {
    rule: Rule,
    chronicle: Chronicle,
}

impl Default for Scene {
    fn default() -> Self {
        Scene::under(Rule::new("lock:*"))
    }
}

impl Scene {
    fn under(rule: Rule) -> Scene {
        let chronicle = Chronicle::new(std::slice::from_ref(&rule), Limits::default());
        Scene { rule, chronicle }
    }

    fn on(&mut self, key: &str, at_ms: u64, who: u64, what: What) -> Option<u64> {
        self.chronicle.event(&event(at_ms, key, who, what), None)
    }

    fn then(&mut self, at_ms: u64, who: u64, what: What) -> &mut Scene {
        self.on(KEY, at_ms, who, what);
        self
    }

    fn figures(&self) -> &Figures {
        self.chronicle.figures(RuleIndex(0)).unwrap()
    }

    fn spans(&self) -> Vec<Span> {
        let view = self.chronicle.lock(0, KEY.as_bytes());
        view.map(|view| view.spans().cloned().collect()).unwrap_or_default()
    }

    /// The timeline as a text: `10 0..100 expired late@220 overlapped`, in milliseconds.
    fn timeline(&self, now_ms: u64) -> Vec<String> {
        let ms = |time: Time| time.0 / 1000;
        let spans = self.spans();
        let lines = spans.iter().map(|span| {
            let mut line = format!("{} {}..", span.connection.number, ms(span.start));
            if let Some((end, how)) = span.end {
                line.push_str(&format!("{} {}", ms(end), how.word()));
            }
            if let Some(late) = span.late {
                line.push_str(&format!(" late@{}", ms(late)));
            }
            line.push_str(if span.is_owed(Time(now_ms * 1000)) { " owed" } else { "" });
            line.push_str(if span.overlapped { " overlapped" } else { "" });
            line
        });
        lines.collect()
    }

    /// What happened to the lock.
    fn history(&self) -> Vec<Happening> {
        let view = self.chronicle.lock(0, KEY.as_bytes());
        view.map(|view| view.entries().map(|entry| entry.what).collect())
            .unwrap_or_default()
    }

    fn advice(&self) -> Vec<(Kind, String, Option<String>)> {
        let advice = self.chronicle.advice(RuleIndex(0), &self.rule).into_iter();
        advice.map(|advice| (advice.kind, advice.text, advice.line)).collect()
    }
}

/// A (10) takes it for 100 ms and overruns, B (20) takes it, A's release comes, B releases.
fn the_founding_bug(scene: &mut Scene) {
    scene
        .then(0, 10, granted(100))
        .then(40, 20, What::Contended { shielded: false })
        .then(90, 20, What::Contended { shielded: false })
        .then(150, 20, granted_over_a_debt(30_000))
        // The keeper waits until it has asked the server.
        .then(153, 10, expired(100))
        .then(220, 10, late(120))
        .then(
            220,
            10,
            refused(Operation::Release, RefusalReason::Late, Action::Refused),
        )
        .then(500, 20, release(ReleaseOutcome::Released, 350));
}

#[test]
fn the_founding_bug_is_told() {
    let mut scene = Scene::default();
    the_founding_bug(&mut scene);
    assert_eq!(
        scene.timeline(500),
        ["10 0..100 expired late@220 overlapped", "20 150..500 released"]
    );
    let history = scene.history();
    assert!(
        matches!(
            history.as_slice(),
            [
                Happening::Granted(_),
                Happening::Contended,
                Happening::Granted(Granted { overlap: true, .. }),
                Happening::Expired(Some(100)),
                Happening::Release(
                    Release {
                        outcome: ReleaseOutcome::Late,
                        overrun_ms: Some(120),
                        ..
                    },
                    Some(Action::Refused)
                ),
                Happening::Release(
                    Release {
                        outcome: ReleaseOutcome::Released,
                        ..
                    },
                    None
                ),
            ]
        ),
        "{history:?}"
    );
    let view = scene.chronicle.lock(0, KEY.as_bytes()).unwrap();
    let refused_tries = view.entries().nth(1).unwrap();
    assert_eq!((refused_tries.count, refused_tries.id), (2, 3));
    assert_eq!((refused_tries.at, refused_tries.until), (Time(40_000), Time(90_000)));
    // The refusal has no number of its own.
    assert_eq!(view.entries().last().unwrap().id, 7);
    let figures = scene.figures();
    let totals = Totals {
        granted: 2,
        contended: 2,
        released: 1,
        late: 1,
        expired: 1,
        overlaps: 1,
        refused: 1,
        ..Totals::default()
    };
    assert_eq!(figures.totals, totals);
    // A worked 220 ms, B 350.
    assert_eq!((figures.hold.count(), figures.hold.max_ms()), (2, 350));
    assert!((220..=222).contains(&figures.hold.quantile_ms(0.5)));
}

#[test]
fn the_same_bug_observed_takes_the_lock_from_its_holder() {
    let mut scene = Scene::default();
    let observed = |reason| refused(Operation::Release, reason, Action::Observed);
    scene
        .then(0, 10, granted(100))
        .then(150, 10, expired(100))
        .then(151, 20, granted_over_a_debt(30_000))
        // This DEL removes B's lock, so C can take it while B is at work …
        .then(220, 10, late(120))
        .then(220, 10, observed(RefusalReason::Late))
        .then(300, 30, granted(30_000));
    assert_eq!(
        scene.timeline(300),
        [
            "10 0..100 expired late@220 overlapped",
            "20 151..220 removed owed overlapped",
            "30 300.."
        ]
    );
    // … and B's own release removes C's.
    scene
        .then(400, 20, release(ReleaseOutcome::Foreign, None))
        .then(400, 20, observed(RefusalReason::Foreign))
        .then(500, 30, release(ReleaseOutcome::Absent, None));
    assert_eq!(
        scene.timeline(500),
        [
            "10 0..100 expired late@220 overlapped",
            "20 151..220 removed late@400 overlapped",
            "30 300..400 removed late@500"
        ]
    );
    // The keeper finds out late what has become of B's and C's.
    assert_eq!(scene.on(KEY, 550, 20, What::Ended), None);
    assert_eq!(scene.on(KEY, 550, 30, What::Ended), None);
    let figures = scene.figures();
    assert_eq!((figures.hold.count(), figures.counts.late_holds), (3, 1));
    assert_eq!((figures.totals.would_refuse, figures.totals.refused), (2, 0));
}

#[test]
fn a_late_release_may_come_before_the_word_that_it_expired() {
    let mut scene = Scene::default();
    scene.then(0, 10, granted(100)).then(130, 10, late(30));
    assert_eq!(scene.timeline(130), ["10 0..100 expired late@130"]);
    // The same connection has it again when the word comes.
    scene.then(131, 10, granted(100)).then(132, 10, expired(99));
    assert_eq!(scene.timeline(132), ["10 0..99 expired late@130", "10 131.."]);
    assert_eq!(scene.figures().totals.expired, 1);
    scene.then(180, 10, release(ReleaseOutcome::Released, 49));
    assert_eq!(
        scene.timeline(180),
        ["10 0..99 expired late@130", "10 131..180 released"]
    );
}

#[test]
fn a_late_release_is_its_connections_own_or_else_its_owners_oldest() {
    let mut scene = Scene::default();
    for (start, who) in [(0, 10), (200, 11), (400, 12)] {
        scene
            .then(start, who, granted(100))
            .then(start + 150, who, expired(100));
    }
    scene.then(600, 11, late(300));
    assert_eq!(scene.timeline(600)[1], "11 200..300 expired late@600");
    // 13 is of the same host and has none of its own; how late it is says whose it was.
    scene.then(700, 13, late(200));
    assert_eq!(scene.timeline(700)[2], "12 400..500 expired late@700");
    scene.then(800, 13, late(700)).then(900, 13, late(800));
    assert_eq!(scene.timeline(900)[0], "10 0..100 expired late@800");
    // The fourth is a lease that this proxy has not heard of.
    assert_eq!((scene.figures().totals.late, scene.figures().counts.late_holds), (4, 3));
    // Another host's does not concern these.
    let mut scene = Scene::default();
    scene
        .then(0, 10, granted(100))
        .then(150, 10, expired(100))
        .then(200, 20, late(100));
    assert_eq!(scene.timeline(200), ["10 0..100 expired owed"]);
}

#[test]
fn extends_and_renewals_move_the_due_time() {
    let mut scene = Scene::default();
    let due = |scene: &Scene| scene.spans()[0].due;
    scene.then(0, 10, granted(100));
    assert_eq!(due(&scene), Some(Time(100_000)));
    let extended = |ttl_ms| What::Extended { ttl_ms, reduced: false };
    scene.then(50, 10, extended(Some(1000)));
    assert_eq!(due(&scene), Some(Time(1_050_000)));
    scene.then(500, 10, What::Renewal(Renewal::Extended));
    assert_eq!(due(&scene), Some(Time(1_500_000)));
    scene.then(600, 11, extended(None));
    assert_eq!(due(&scene), None);
    // Late by its first TTL, but not by its last.
    scene.then(9000, 10, release(ReleaseOutcome::Released, 9000));
    assert_eq!(scene.timeline(9000), ["10 0..9000 released"]);
}

#[test]
fn every_way_to_end_has_its_word() {
    let ends = |what: What, who: u64| {
        let mut scene = Scene::default();
        scene.then(0, 10, granted(1000)).then(100, who, what);
        scene.timeline(100)
    };
    assert_eq!(ends(release(ReleaseOutcome::Released, 100), 10), ["10 0..100 released"]);
    assert_eq!(ends(release(ReleaseOutcome::Pooled, 100), 11), ["10 0..100 released"]);
    assert_eq!(
        ends(release(ReleaseOutcome::SelfChecked, 100), 20),
        ["10 0..100 released"]
    );
    assert_eq!(
        ends(release(ReleaseOutcome::Unmanaged, None), 10),
        ["10 0..100 released"]
    );
    assert_eq!(ends(release(ReleaseOutcome::Forced, 100), 0), ["10 0..100 forced"]);
    assert_eq!(
        ends(release(ReleaseOutcome::Disconnect, 100), 10),
        ["10 0..100 disconnect"]
    );
    assert_eq!(ends(What::TakenOver, 20), ["10 0..100 taken_over"]);
    assert_eq!(ends(What::Ended, 10), ["10 0..100 ended"]);
    // These end nothing.
    for (what, who) in [
        (What::Contended { shielded: false }, 20),
        (What::AcquireFailed, 20),
        (release(ReleaseOutcome::Foreign, None), 20),
        (refused(Operation::Release, RefusalReason::Foreign, Action::Refused), 20),
        (refused(Operation::Extend, RefusalReason::Foreign, Action::Observed), 20),
        (What::Ended, 20),
        (What::Renewal(Renewal::Lost), 10),
        (release(ReleaseOutcome::Unmanaged, None), 20),
    ] {
        assert_eq!(ends(what.clone(), who), ["10 0.."], "{what:?}");
    }
    assert_eq!(
        ends(
            refused(Operation::Overwrite, RefusalReason::Foreign, Action::Observed),
            20
        ),
        ["10 0..100 removed owed"]
    );
}

#[test]
fn only_what_holders_did_counts_as_work() {
    let mut scene = Scene::default();
    for (start, what) in [
        (0, release(ReleaseOutcome::Forced, 100)),
        (200, release(ReleaseOutcome::Disconnect, 100)),
        (400, What::Ended),
        (600, What::TakenOver),
    ] {
        scene.then(start, 10, granted(1000)).then(start + 100, 10, what);
    }
    scene.then(800, 10, granted(100)).then(950, 10, expired(100));
    assert_eq!(scene.figures().hold.count(), 0);
}

#[test]
fn two_sessions_events_may_change_places() {
    let mut scene = Scene::default();
    // B is granted what A has given up, and is heard first.
    scene.then(0, 10, granted(30_000)).then(500, 20, granted(30_000)).then(
        501,
        10,
        release(ReleaseOutcome::Released, 499),
    );
    assert_eq!(scene.timeline(501), ["10 0..500 released", "20 500.."]);
    // C's was given up elsewhere; the keeper finds out.
    scene
        .then(900, 20, release(ReleaseOutcome::Released, 400))
        .then(1000, 30, granted(30_000))
        .then(2000, 40, granted(30_000))
        .then(2100, 30, What::Ended);
    assert_eq!(scene.timeline(2100)[2..], ["30 1000..2000 ended", "40 2000.."]);
}

#[test]
fn a_lease_granted_through_another_proxy_is_known_by_its_end() {
    let mut scene = Scene::default();
    scene.then(5000, 10, release(ReleaseOutcome::Pooled, 2000));
    assert_eq!(scene.timeline(5000), ["10 3000..5000 released"]);
    scene
        .then(6000, 10, granted(100))
        .then(9000, 11, release(ReleaseOutcome::Pooled, 8900));
    assert_eq!(
        scene.timeline(9000),
        ["11 100..9000 released", "10 3000..5000 released", "10 6000.."]
    );
}

#[test]
fn what_nobody_waits_for_is_not_owed() {
    let mut scene = Scene::default();
    scene.then(0, 10, granted(100)).then(150, 10, expired(100));
    assert_eq!(scene.timeline(1000), ["10 0..100 expired owed"]);
    assert_eq!(scene.timeline(120_100), ["10 0..100 expired"]);
    let dropped = |reason| What::DebtsDropped { reason, count: 1 };
    scene.then(200, 20, dropped(DropReason::Window));
    assert_eq!(scene.timeline(1000), ["10 0..100 expired owed"]);
    scene.then(200, 20, dropped(DropReason::Cap));
    assert_eq!(scene.timeline(1000), ["10 0..100 expired"]);
}

#[test]
fn events_alike_in_a_row_are_one_entry() {
    let mut scene = Scene::default();
    scene.then(0, 10, granted(100_000));
    for at in 1..=1000 {
        scene.then(at, 20 + at % 2, What::Contended { shielded: false });
    }
    let extended = |ttl_ms| What::Extended {
        ttl_ms: Some(ttl_ms),
        reduced: false,
    };
    scene
        .then(2000, 10, extended(1000))
        .then(2100, 10, extended(2000))
        .then(2200, 30, release(ReleaseOutcome::Absent, None))
        .then(2300, 30, release(ReleaseOutcome::Absent, None))
        .then(2400, 30, What::Contended { shielded: false })
        .then(2500, 40, What::Contended { shielded: false });
    let view = scene.chronicle.lock(0, KEY.as_bytes()).unwrap();
    let shown: Vec<_> = view.entries().map(|entry| (entry.count, entry.several)).collect();
    assert_eq!(shown, [(1, false), (1000, false), (2, false), (2, false), (2, true)]);
    assert_eq!(scene.history()[2], Happening::Extended(Some(2000), false));
}

#[test]
fn a_refusal_finds_its_release_among_other_sessions_events() {
    let mut scene = Scene::default();
    scene
        .then(0, 10, granted(100_000))
        .then(1, 20, release(ReleaseOutcome::Foreign, None))
        .then(1, 30, release(ReleaseOutcome::Foreign, None))
        .then(1, 40, What::Contended { shielded: false });
    let refusal = || refused(Operation::Release, RefusalReason::Foreign, Action::Refused);
    assert_eq!(scene.on(KEY, 1, 20, refusal()), None);
    assert_eq!(scene.on(KEY, 1, 30, refusal()), None);
    // One without a release to be found is shown as it is.
    assert_eq!(scene.on(KEY, 1, 50, refusal()), Some(5));
    let actions: Vec<_> = scene
        .history()
        .into_iter()
        .filter(|what| matches!(what, Happening::Release(_, Some(Action::Refused))))
        .collect();
    assert_eq!((actions.len(), scene.figures().totals.refused), (2, 3));
}

#[test]
fn old_entries_and_spans_make_room() {
    let mut scene = Scene::default();
    for at in 0..200 {
        scene
            .then(at * 10, 10, granted(1000))
            .then(at * 10 + 5, 10, release(ReleaseOutcome::Released, 5));
    }
    let view = scene.chronicle.lock(0, KEY.as_bytes()).unwrap();
    assert_eq!(
        (view.entries().count(), view.dropped(), view.spans().count()),
        (64, 336, 32)
    );
    assert_eq!(view.entries().last().unwrap().id, 400);
}

#[test]
fn the_last_minutes_stand_in_steps() {
    let mut scene = Scene::default();
    scene
        .then(5_000, 10, granted(100))
        .then(15_000, 20, What::Contended { shielded: false })
        .then(15_000, 20, What::Contended { shielded: false });
    let (steps, last) = scene.chronicle.recent(RuleIndex(0), Time(25_000_000)).unwrap();
    assert_eq!((steps.len(), last), (STEPS, Time(20_000_000)));
    assert_eq!(
        (steps[57].granted, steps[58].contended, steps[59]),
        (1, 2, Step::default())
    );
    // Ten minutes later the first is out; one that comes late is counted in its step.
    scene
        .then(609_000, 20, What::Contended { shielded: false })
        .then(14_999, 20, What::Contended { shielded: false })
        .then(1, 20, What::Contended { shielded: false });
    let (steps, _) = scene.chronicle.recent(RuleIndex(0), Time(609_000_000)).unwrap();
    assert_eq!((steps[0].contended, steps[59].contended), (3, 1));
    assert!(steps.iter().all(|step| step.granted == 0));
    // After a long silence all of them are.
    scene.then(5_000_000, 20, What::Contended { shielded: false });
    let (steps, _) = scene.chronicle.recent(RuleIndex(0), Time(5_000_000_000)).unwrap();
    assert_eq!(steps.iter().map(|step| step.contended).sum::<u32>(), 1);
}

#[test]
fn what_is_usual_takes_twenty_holds() {
    let mut scene = Scene::default();
    for at in 0..20 {
        assert_eq!(scene.chronicle.usual_hold_ms(RuleIndex(0)), None);
        scene
            .then(at * 10, 10, granted(1000))
            .then(at * 10 + 5, 10, release(ReleaseOutcome::Released, 5));
    }
    assert_eq!(scene.chronicle.usual_hold_ms(RuleIndex(0)), Some(5));
    assert_eq!(scene.chronicle.usual_hold_ms(RuleIndex(1)), None);
}

#[test]
fn rules_keep_their_figures_by_name() {
    let mut scene = Scene::default();
    scene.then(0, 10, granted(100));
    scene.chronicle.reload(&[Rule::new("new:*"), Rule::new("lock:*")]);
    let granted = |index| {
        scene
            .chronicle
            .figures(RuleIndex(index))
            .map(|figures| figures.totals.granted)
    };
    assert_eq!([granted(0), granted(1), granted(2)], [Some(0), Some(1), None]);
    assert!(scene.chronicle.lock(0, KEY.as_bytes()).is_some());
}

/// `number` locks held for `held_ms` each, one after the other, given up by client `by`.
fn holds(scene: &mut Scene, number: u64, ttl_ms: u64, held_ms: u64, outcome: ReleaseOutcome, by: u64) {
    for _ in 0..number {
        scene
            .then(0, 10, granted(ttl_ms))
            .then(held_ms, by, release(outcome, held_ms));
    }
}

fn overruns(scene: &mut Scene, number: u64, ttl_ms: u64, overrun_ms: u64) {
    for _ in 0..number {
        scene
            .then(0, 10, granted(ttl_ms))
            .then(ttl_ms + overrun_ms, 10, late(overrun_ms))
            .then(ttl_ms + overrun_ms, 10, expired(ttl_ms));
    }
}

#[test]
fn a_short_ttl_is_told_with_one_that_would_do() {
    let mut scene = Scene::default();
    holds(&mut scene, 10, 30_000, 4000, ReleaseOutcome::Released, 10);
    overruns(&mut scene, 2, 30_000, 11_000);
    // Too few to say anything.
    assert_eq!(scene.advice(), []);
    holds(&mut scene, 185, 30_000, 4000, ReleaseOutcome::Released, 10);
    overruns(&mut scene, 4, 30_000, 11_000);
    let advice = scene.advice();
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert_eq!(
        (advice[0].0, advice[0].2.as_deref()),
        (Kind::TtlTooShort, Some("renew = true"))
    );
    let text = "The TTL is too short for 2.9 % of the holds: 6 of 201 were released after it had run out. \
                45 s would have covered all of them; the usual TTL is 30 s.";
    assert!(advice[0].1.starts_with(text), "{}", advice[0].1);
    // One in ten thousand is not worth a word.
    holds(&mut scene, 10_000, 30_000, 4000, ReleaseOutcome::Released, 10);
    assert_eq!(scene.advice(), []);
}

#[test]
fn a_ttl_set_by_a_second_command_counts() {
    let mut scene = Scene::default();
    for at in (0..20).map(|number| number * 10_000) {
        let extended = What::Extended {
            ttl_ms: Some(5000),
            reduced: false,
        };
        scene.then(at, 10, granted(None)).then(at + 1, 10, extended);
        scene.then(at + 6001, 10, late(1000)).then(at + 6001, 10, expired(5001));
    }
    let advice = scene.advice();
    let text = "The TTL is too short for 100 % of the holds: 20 of 20 were released after it had run out. \
                10 s would have covered all of them; the usual TTL is 5 s.";
    assert!(
        matches!(advice.as_slice(), [(Kind::TtlTooShort, said, _), (Kind::NoTtl, ..)] if said.starts_with(text)),
        "{advice:?}"
    );
}

#[test]
fn locks_without_ttl_are_told() {
    let mut scene = Scene::default();
    scene
        .then(0, 10, granted(None))
        .then(
            1,
            10,
            What::Extended {
                ttl_ms: Some(5000),
                reduced: false,
            },
        )
        .then(50, 10, release(ReleaseOutcome::Released, 50));
    scene
        .then(100, 10, granted(None))
        .then(150, 10, release(ReleaseOutcome::Released, 50));
    let advice = scene.advice();
    assert!(
        matches!(advice.as_slice(), [(Kind::NoTtl, text, None)]
        if text.starts_with("2 of 2 locks were taken without a TTL, and 1 were given one by a second command")),
        "{advice:?}"
    );
    holds(&mut scene, 20, 30_000, 40_000, ReleaseOutcome::Released, 10);
    let advice = scene.advice();
    assert!(
        matches!(advice.as_slice(), [(Kind::NoTtl, _, Some(line))] if line == "default_ttl = \"90s\""),
        "{advice:?}"
    );
}

#[test]
fn markers_are_no_locks() {
    let mut scene = Scene::default();
    for at in 0..20 {
        scene
            .then(at * 1000, 10, granted(100))
            .then(at * 1000 + 50, 20, What::Contended { shielded: false })
            .then(at * 1000 + 150, 10, expired(100));
    }
    let advice = scene.advice();
    let text = "Of 20 leases that ended, 20 ran out and none was ever released: these look like markers, not locks.";
    assert_eq!(
        advice,
        [(Kind::NotALock, text.to_owned(), Some("mode = \"off\"".to_owned()))]
    );
    // A release in vain was meant as one: these are given up, only too late.
    scene.then(30_000, 10, release(ReleaseOutcome::Absent, None));
    assert_eq!(scene.advice(), []);
}

#[test]
fn a_pool_needs_an_owner_that_is_more_than_a_connection() {
    let rule = Rule {
        owner: vec![OwnerPart::Connection],
        ..Rule::new("lock:*")
    };
    let mut scene = Scene::under(rule.clone());
    let foreign = || release(ReleaseOutcome::Foreign, None);
    for at in (0..20).map(|number| number * 1000) {
        scene
            .then(at, 10, granted(100))
            .then(at + 50, 11, foreign())
            .then(at + 150, 10, expired(100));
    }
    let advice = scene.advice();
    assert!(
        matches!(advice.as_slice(), [(Kind::ChooseOwner, _, Some(line))] if line == "owner = \"address\""),
        "{advice:?}"
    );
    // Losers that delete the holder's lock: the holders' own releases come as well.
    let mut scene = Scene::under(rule);
    for at in (0..20).map(|number| number * 1000) {
        scene
            .then(at, 10, granted(100))
            .then(at + 50, 11, foreign())
            .then(at + 51, 12, foreign());
        scene.then(at + 60, 10, release(ReleaseOutcome::Released, 60));
    }
    assert_eq!(scene.advice(), []);
}

#[test]
fn clients_behind_one_address_can_be_told_apart() {
    let mut scene = Scene::default();
    holds(&mut scene, 99, 1000, 50, ReleaseOutcome::Released, 10);
    scene
        .then(0, 11, granted(1000))
        .then(1, 12, What::Contended { shielded: false })
        .then(50, 11, release(ReleaseOutcome::Released, 50));
    let advice = scene.advice();
    assert!(
        matches!(advice.as_slice(), [(Kind::ChooseOwner, text, Some(line))]
        if line == "owner = \"connection\"" && text.contains("100 of 100 releases")),
        "{advice:?}"
    );
    holds(&mut scene, 50, 1000, 50, ReleaseOutcome::Pooled, 12);
    let advice = scene.advice();
    assert!(
        matches!(advice.as_slice(), [(Kind::ChooseOwner, _, Some(line))] if line == "owner = \"client-name\""),
        "{advice:?}"
    );
    scene.then(0, 20, granted(1000));
    assert_eq!(scene.advice(), []);
}

#[test]
fn what_enforcing_would_have_refused_is_told() {
    let rule = Rule {
        mode: Mode::Observe,
        ..Rule::new("lock:*")
    };
    let mut scene = Scene::under(rule);
    holds(&mut scene, 499, 1000, 50, ReleaseOutcome::Released, 10);
    assert_eq!(scene.advice(), []);
    holds(&mut scene, 1, 1000, 50, ReleaseOutcome::Released, 10);
    let text = "Of 1000 lock operations, none would have been refused: it can be enforced.";
    let line = Some("mode = \"enforce\"".to_owned());
    assert_eq!(scene.advice(), [(Kind::Enforce, text.to_owned(), line.clone())]);
    scene.then(60, 20, late(10)).then(
        60,
        20,
        refused(Operation::Release, RefusalReason::Late, Action::Observed),
    );
    let advice = scene.advice();
    assert!(
        advice[0]
            .1
            .starts_with("Of 1001 lock operations, 1 (less than 0.1 %) would have been refused, all of them by"),
        "{advice:?}"
    );
    assert_eq!(advice[0].2, line);
    scene.then(
        70,
        20,
        refused(Operation::Extend, RefusalReason::Foreign, Action::Observed),
    );
    let advice = scene.advice();
    assert!(
        advice[0].1.contains("2 (0.1 %) would have been refused: 1 by clients") && advice[0].2.is_none(),
        "{advice:?}"
    );
}

#[test]
fn a_million_names_stay_within_the_bounds() {
    let mut scene = Scene::default();
    let owner = format!("client-name={}", "n".repeat(200));
    for number in 0..1_000_000u64 {
        let key = format!("lock:{number}");
        let mut event = event(number, &key, number, granted(30_000));
        event.owner = owner.as_str().into();
        scene.chronicle.event(&event, None);
    }
    assert_eq!(
        (scene.chronicle.locks(), scene.chronicle.histories_dropped()),
        (4096, 1_000_000 - 4096)
    );
    assert!(scene.chronicle.bytes() < 8 * 1024 * 1024, "{}", scene.chronicle.bytes());
}

#[test]
fn busy_locks_with_long_names_stay_within_the_bounds() {
    let mut scene = Scene::default();
    let limits = Limits::default();
    let key = |number: u64| format!("lock:{number:02000}");
    for round in 0..40 {
        for number in 0..4096 {
            let who = round * 10;
            scene.on(&key(number), round * 1000, who, granted(300));
            scene.on(
                &key(number),
                round * 1000 + 100,
                who,
                release(ReleaseOutcome::Released, 100),
            );
        }
    }
    let bytes = scene.chronicle.bytes();
    assert!(bytes < limits.bytes + 2 * 1024 * 1024, "{bytes}");
    assert!(scene.chronicle.locks() > 1000, "{}", scene.chronicle.locks());
    // And a key that is longer than any has none.
    let known = scene.chronicle.locks();
    scene.on(&key(1).repeat(3), 0, 10, granted(300));
    assert_eq!(scene.chronicle.locks(), known);
}

#[test]
fn a_rule_and_a_lock_cost_what_the_documentation_says() {
    assert!(size_of::<Entry>() <= 136, "{}", size_of::<Entry>());
    assert!(size_of::<Span>() <= 128, "{}", size_of::<Span>());
    let mut scene = Scene::default();
    scene.chronicle.event(&event(0, KEY, 10, granted(100)), Some(5));
    scene.then(50, 10, release(ReleaseOutcome::Released, 50));
    let figures = scene.figures();
    assert!(size_of::<Ruled>() + figures.bytes() <= 67 * 1024, "{}", figures.bytes());
    for number in 1..200 {
        scene.then(number * 1000, 10, granted(100));
        scene.then(number * 1000 + 50, 10, release(ReleaseOutcome::Released, 50));
    }
    let view = scene.chronicle.lock(0, KEY.as_bytes()).unwrap();
    assert_eq!((view.entries().count(), view.spans().count()), (64, 32));
    let bytes = view.history.bytes();
    assert!((12_000..=15 * 1024).contains(&bytes), "{bytes}");
}

fn any_what() -> impl Strategy<Value = What> {
    let ms = prop_oneof![Just(None), (0u64..400).prop_map(Some), Just(Some(u64::MAX))];
    let outcome = prop::sample::select(ReleaseOutcome::ALL.to_vec());
    let refusal = (0..3usize, 0..3usize, 0..2usize).prop_map(|(operation, reason, action)| {
        refused(
            Operation::ALL[operation],
            RefusalReason::ALL[reason],
            Action::ALL[action],
        )
    });
    let grant = (ms.clone(), any::<bool>()).prop_map(|(ttl_ms, overlap)| match granted(ttl_ms) {
        What::Granted(grant) => What::Granted(Grant { overlap, ..grant }),
        other => other,
    });
    prop_oneof![
        4 => grant,
        2 => Just(What::Contended { shielded: false }),
        1 => Just(What::AcquireFailed),
        4 => (outcome, ms.clone(), ms.clone()).prop_map(|(outcome, held_ms, overrun_ms)| {
            What::Release(Release { outcome, held_ms, overrun_ms })
        }),
        2 => refusal,
        1 => ms.clone().prop_map(|ttl_ms| What::Extended { ttl_ms, reduced: false }),
        1 => ms.clone().prop_map(|ttl_ms| What::Overwritten { ttl_ms, reduced: true }),
        1 => Just(What::TakenOver),
        2 => ms.prop_map(|held_ms| What::Expired { held_ms }),
        1 => Just(What::Ended),
        1 => prop::sample::select(Renewal::ALL.to_vec()).prop_map(What::Renewal),
        1 => (prop::sample::select(DropReason::ALL.to_vec()), 0..3u32)
            .prop_map(|(reason, count)| What::DebtsDropped { reason, count }),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_views_make_sense(
        events in prop::collection::vec((0u64..2000, 0..4u8, 0..60u64, any_what()), 1..300),
    ) {
        let limits = Limits { locks: 3, bytes: 20_000, entries: 8, spans: 4 };
        let mut chronicle = Chronicle::new(&[Rule::new("lock:*")], limits);
        let mut last = 0;
        for (at, key, who, what) in events {
            let event = event(at, ["a", "b", "c", "d"][usize::from(key)], who, what);
            if let Some(number) = chronicle.event(&event, None) {
                prop_assert_eq!(number, last + 1);
                last = number;
            }
            prop_assert!(chronicle.locks() <= 3);
            let view = chronicle.lock(0, &event.key).unwrap();
            prop_assert!(view.entries().count() <= 8);
            prop_assert!(view.spans().count() <= 4);
            for span in view.spans() {
                let end = span.end.map_or(span.start, |(end, _)| end);
                prop_assert!(span.start <= end, "{:?}", span);
                prop_assert!(span.late.is_none_or(|late| end <= late), "{:?}", span);
                prop_assert!(!span.is_owed(event.at) || span.late.is_none());
            }
            prop_assert!(view.entries().all(|entry| entry.at <= entry.until && entry.count > 0));
        }
        chronicle.advice(RuleIndex(0), &Rule::new("lock:*"));
        chronicle.recent(RuleIndex(0), Time(3_000_000));
    }
}
