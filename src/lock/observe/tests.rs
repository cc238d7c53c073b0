//! Scenes of observe mode, from the client's own words.

use uuid::Uuid;

use std::sync::Arc;

use super::*;
use crate::command::{self, Role};
use crate::event::{Action, Operation, RefusalReason, ReleaseOutcome, Token, What};
use crate::lock::call::Features;
use crate::lock::rule::Mode;
use crate::resp::{Args, Span};

fn rule() -> Rule {
    Rule {
        name: "r".into(),
        mode: Mode::Observe,
        ..Rule::new("")
    }
}

#[derive(Default)]
struct Scene {
    observatory: Observatory,
    now_ms: u64,
}

impl Scene {
    /// Connection `who` of host `who / 10` sends this, and the server answers so. What is said of it.
    fn does(&mut self, who: u64, text: &str, reply: Reply) -> Vec<What> {
        let observation = self.sends(who, text);
        self.hears(&observation, reply)
    }

    /// The server's answer to what was sent. What is said of it.
    fn hears(&mut self, observation: &Arc<Observation>, reply: Reply) -> Vec<What> {
        let mut sink = Vec::new();
        let at = Time(self.now_ms * 1000);
        self.observatory.answered(observation, reply, &[rule()], at, &mut sink);
        sink.into_iter().map(|event| event.what).collect()
    }

    fn sends(&mut self, who: u64, text: &str) -> Arc<Observation> {
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for word in text.split(' ') {
            spans.push(Span {
                start: bytes.len(),
                end: bytes.len() + word.len(),
            });
            bytes.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&bytes, &spans);
        let (_, row) = command::lookup(args.get(0).unwrap_or_default());
        let row = row.expect("a known command");
        let Role::Lock(idiom) = row.role else {
            panic!("no lock command: {text}")
        };
        let keys: Vec<usize> = command::keys(row, args).collect();
        let request = Request {
            idiom,
            args,
            keys: &keys,
            target: command::target(row, args),
        };
        let subjects = keys
            .iter()
            .map(|&argument| Subject {
                argument,
                key: Bytes::copy_from_slice(args.get(argument).unwrap_or_default()),
                rule: RuleIndex(0),
                owner: format!("address=10.0.0.{}", who / 10).into(),
                token: Token(Uuid::nil()),
            })
            .collect();
        let rules = [rule()];
        let connection = connection(who);
        let features = Features::default();
        let context = Context {
            rules: &rules,
            connection: &connection,
            features,
            prefix: "lockward:",
            database: 0,
        };
        let observation = observe(&request, subjects, &context).expect("an operation on a lease");
        if observation.gives_up() {
            self.observatory.sent(&observation);
        }
        observation
    }
}

fn connection(number: u64) -> ConnectionId {
    ConnectionId {
        instance: "aaaaaaaaaaaaaaaa".into(),
        number,
    }
}

fn refused(said: &[What], operation: Operation, reason: RefusalReason) -> bool {
    said.iter().any(|what| {
        matches!(what, What::Refused(refusal)
            if (refusal.operation, refusal.reason, refusal.action) == (operation, reason, Action::Observed))
    })
}

fn outcome(said: &[What]) -> Option<ReleaseOutcome> {
    said.iter().find_map(|what| {
        if let What::Release(release) = what {
            Some(release.outcome)
        } else {
            None
        }
    })
}

#[test]
fn the_founding_bug_is_seen() {
    let mut scene = Scene::default();
    assert!(matches!(
        scene.does(10, "SET lock:a 1 NX PX 150", Reply::Status).as_slice(),
        [What::Granted(_)]
    ));
    scene.now_ms = 220;
    let said = scene.does(20, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Expired { .. }, What::Granted(grant)] if grant.overlap),
        "{said:?}"
    );
    let said = scene.does(10, "DEL lock:a", Reply::Integer(1));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Late));
    assert!(refused(&said, Operation::Release, RefusalReason::Late), "{said:?}");
    // The server did remove it: the next one is granted, beside the one who was robbed of it.
    let said = scene.does(30, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Granted(grant)] if grant.overlap),
        "{said:?}"
    );
    let said = scene.does(20, "EXPIRE lock:a 600", Reply::Integer(1));
    assert!(refused(&said, Operation::Extend, RefusalReason::Foreign), "{said:?}");
    let said = scene.does(20, "SET lock:a 2", Reply::Status);
    assert!(refused(&said, Operation::Overwrite, RefusalReason::Foreign), "{said:?}");
}

#[test]
fn a_release_through_the_pool_is_none_to_refuse() {
    let mut scene = Scene::default();
    scene.does(11, "SETNX lock:a 1", Reply::Integer(1));
    assert!(matches!(
        scene.does(20, "SETNX lock:a 1", Reply::Integer(0)).as_slice(),
        [What::Contended { shielded: false }]
    ));
    assert!(matches!(
        scene.does(12, "EXPIRE lock:a 10", Reply::Integer(1)).as_slice(),
        [What::Extended { .. }]
    ));
    let said = scene.does(13, "DEL lock:a data:x", Reply::Integer(1));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Pooled));
    assert!(said.iter().all(|what| !matches!(what, What::Refused(_))), "{said:?}");
}

#[test]
fn what_was_given_up_unseen_owes_nothing() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 30000", Reply::Status);
    let said = scene.does(20, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Ended, What::Granted(grant)] if !grant.overlap),
        "{said:?}"
    );
    let said = scene.does(20, "DEL lock:a", Reply::Integer(1));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Released));
}

#[test]
fn an_answer_that_comes_late_takes_no_lease_away() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 30000", Reply::Status);
    let stray = scene.sends(20, "DEL lock:a");
    let release = scene.sends(10, "DEL lock:a");
    scene.now_ms = 40;
    // The server has carried out the holder's release; the answer to the next acquire is here before that to it.
    let said = scene.does(30, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Release(release), What::Granted(grant)]
            if (release.outcome, release.held_ms) == (ReleaseOutcome::Released, Some(40)) && !grant.overlap),
        "{said:?}"
    );
    assert_eq!(scene.hears(&release, Reply::Integer(1)), [], "all was said");
    let said = scene.does(30, "DEL lock:a", Reply::Integer(1));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Released));
    let said = scene.hears(&stray, Reply::Integer(0));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Absent));
}

#[test]
fn what_was_under_way_when_its_client_went_ends_no_lease() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 30000", Reply::Status);
    drop(scene.sends(10, "DEL lock:a"));
    let said = scene.does(30, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(matches!(said.as_slice(), [What::Ended, What::Granted(_)]), "{said:?}");
}

#[test]
fn a_theft_is_seen_though_its_answer_comes_late() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 30000", Reply::Status);
    let theft = scene.sends(20, "DEL lock:a");
    let said = scene.does(30, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(refused(&said, Operation::Release, RefusalReason::Foreign), "{said:?}");
    assert_eq!(scene.hears(&theft, Reply::Integer(1)), []);
    let said = scene.does(30, "EXPIRE lock:a 60", Reply::Integer(1));
    assert!(matches!(said.as_slice(), [What::Extended { .. }]), "{said:?}");
}

#[test]
fn releases_under_way_are_bounded() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 30000", Reply::Status);
    let sent: Vec<_> = (0..100).map(|_| scene.sends(20, "DEL lock:a")).collect();
    assert!(
        sent.iter()
            .filter(|observation| Arc::strong_count(observation) > 1)
            .count()
            <= 16
    );
    for observation in &sent {
        scene.hears(observation, Reply::Integer(0));
    }
    assert!(sent.iter().all(|observation| Arc::strong_count(observation) == 1));
}

#[test]
fn an_end_with_the_connection_drops_the_debts() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 150", Reply::Status);
    scene.now_ms = 100;
    scene.observatory.gone(&connection(10), &["address=10.0.0.1".into()]);
    scene.now_ms = 220;
    let said = scene.does(20, "SET lock:a 1 NX PX 30000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Ended, What::Granted(grant)] if !grant.overlap),
        "{said:?}"
    );
}

#[test]
fn the_number_of_locks_is_bounded() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:old 1 NX PX 100000", Reply::Status);
    for number in 0..3 * MOST_LOCKS {
        let said = scene.does(10, &format!("SET lock:{number} 1 NX PX 100000"), Reply::Status);
        assert!(matches!(said.as_slice(), [What::Granted(_)]), "each is counted");
        assert!(scene.observatory.len() <= MOST_LOCKS);
        // Looked at often, so it is not the one to go.
        if number.is_multiple_of(PLACES / 2) {
            scene.does(20, "SET lock:old 1 NX PX 100000", Reply::Nil);
        }
    }
    assert!(scene.observatory.len() > MOST_LOCKS - PLACES);
    let said = scene.does(10, "DEL lock:old", Reply::Integer(1));
    assert_eq!(outcome(&said), Some(ReleaseOutcome::Released));
    scene.now_ms = 400_000;
    for number in 0..PLACES {
        scene.does(10, &format!("SET lock:more:{number} 1 NX PX 100000"), Reply::Status);
    }
    assert!(scene.observatory.len() <= MOST_LOCKS);
}

#[test]
fn connections_whose_end_nobody_tells_do_not_pile_up() {
    let mut scene = Scene::default();
    for who in 0..2 * MOST_LOCKS as u64 + 10 {
        scene.does(who, "SET lock:a 1 NX EX 30", Reply::Status);
        scene.does(who, "DEL lock:a", Reply::Integer(1));
    }
    assert!(
        scene.observatory.holders.len() < 20,
        "{}",
        scene.observatory.holders.len()
    );
}

/// What is said once the keeper has seen the TTL of connection 10's lease run out.
fn ran_out(scene: &mut Scene) -> What {
    let event = Event {
        at: Time(scene.now_ms * 1000),
        database: 0,
        key: Bytes::from_static(b"lock:a"),
        rule: RuleIndex(0),
        owner: "address=10.0.0.1".into(),
        connection: connection(10),
        what: What::Expired { held_ms: Some(150) },
    };
    scene.observatory.ran_out(event).what
}

#[test]
fn that_a_lease_ran_out_is_said_once() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 150", Reply::Status);
    scene.now_ms = 210;
    assert_eq!(ran_out(&mut scene), What::Expired { held_ms: Some(150) });
    let said = scene.does(20, "SET lock:a 1 NX PX 150", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Granted(grant)] if grant.overlap),
        "{said:?}"
    );
}

#[test]
fn what_a_script_may_have_given_up_does_not_expire_owed() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 150", Reply::Status);
    let script = Observation {
        database: 0,
        connection: connection(10),
        subjects: vec![Subject {
            argument: 3,
            key: Bytes::from_static(b"lock:a"),
            rule: RuleIndex(0),
            owner: "address=10.0.0.1".into(),
            token: Token(Uuid::nil()),
        }],
        ask: Ask::Unknown,
        alone: true,
    };
    let mut said = Vec::new();
    scene.observatory.answered(
        &Arc::new(script),
        Reply::Integer(1),
        &[rule()],
        Time(100_000),
        &mut said,
    );
    assert!(said.is_empty(), "{said:?}");
    scene.now_ms = 210;
    assert_eq!(ran_out(&mut scene), What::Ended);
}

/// The overlap flags of the grants among these.
fn overlaps(whats: &[What]) -> Vec<bool> {
    let granted = |what: &What| match what {
        What::Granted(grant) => Some(grant.overlap),
        _ => None,
    };
    whats.iter().filter_map(granted).collect()
}

#[test]
fn whoever_was_robbed_of_his_lock_is_still_at_work() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 100", Reply::Status);
    scene.now_ms = 150;
    // B's grant beside A, who overran.
    assert_eq!(
        overlaps(&scene.does(20, "SET lock:a 1 NX PX 5000", Reply::Status)),
        [true]
    );
    scene.now_ms = 200;
    // A's late release removes B's lock, and C walks in beside B; D, who comes after B is done, does not.
    scene.does(10, "DEL lock:a", Reply::Integer(1));
    assert_eq!(
        overlaps(&scene.does(30, "SET lock:a 1 NX PX 5000", Reply::Status)),
        [true]
    );
    scene.does(30, "DEL lock:a", Reply::Integer(1));
    assert_eq!(
        overlaps(&scene.does(40, "SET lock:a 1 NX PX 5000", Reply::Status)),
        [false],
        "said once"
    );
    scene.does(40, "DEL lock:a", Reply::Integer(1));
    scene.does(20, "DEL lock:a", Reply::Integer(0));
    assert_eq!(
        overlaps(&scene.does(50, "SET lock:a 1 NX PX 5000", Reply::Status)),
        [false]
    );
}

#[test]
fn what_the_server_does_for_a_stranger_is_told() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 700", Reply::Status);
    let said = scene.does(20, "EXPIRE lock:a 50", Reply::Integer(1));
    assert!(
        matches!(
            said.as_slice(),
            [
                What::Refused(_),
                What::Extended {
                    ttl_ms: Some(50_000),
                    ..
                }
            ]
        ),
        "{said:?}"
    );
    // Somebody else's value stands there now, and its writer holds the lock beside the holder before him.
    let said = scene.does(30, "SET lock:a x PX 3000", Reply::Status);
    assert!(
        matches!(said.as_slice(), [What::Refused(_), What::Granted(_)]),
        "{said:?}"
    );
    assert_eq!(overlaps(&said), [true]);
    let said = scene.does(30, "DEL lock:a", Reply::Integer(1));
    assert!(
        matches!(said.as_slice(), [What::Release(release)] if release.outcome == ReleaseOutcome::Released),
        "{said:?}"
    );
}

#[test]
fn a_lock_that_is_gone_behind_its_owners_script_was_given_up_by_it() {
    let mut scene = Scene::default();
    scene.does(10, "SET lock:a 1 NX PX 5000", Reply::Status);
    let script = Arc::new(Observation {
        database: 0,
        connection: connection(10),
        subjects: vec![Subject {
            argument: 3,
            key: Bytes::from_static(b"lock:a"),
            rule: RuleIndex(0),
            owner: "address=10.0.0.1".into(),
            token: Token(Uuid::nil()),
        }],
        ask: Ask::Unknown,
        alone: true,
    });
    scene.now_ms = 300;
    scene.hears(&script, Reply::Integer(1));
    let [doubt] = scene.observatory.take_doubts().try_into().expect("one lease in doubt");
    let event = scene
        .observatory
        .gone_since(doubt.clone(), Time(310_000))
        .expect("it is gone");
    let release = |what: &What| matches!(what, What::Release(release) if release.outcome == ReleaseOutcome::SelfChecked && release.held_ms == Some(310));
    assert!(release(&event.what), "{event:?}");
    assert!(scene.observatory.gone_since(doubt.clone(), Time(311_000)).is_none());
    // The next lease is not in doubt.
    scene.now_ms = 400;
    scene.does(10, "SET lock:a 1 NX PX 5000", Reply::Status);
    assert!(scene.observatory.gone_since(doubt, Time(410_000)).is_none());
}
