//! What the shield knows, when that ends, and which acquires it may answer at all.

use bytes::Bytes;

use super::place::WAYS;
use super::*;
use crate::command::Idiom;
use crate::event::{ConnectionId, Release, RuleIndex};
use crate::lock::rule::Rule;
use crate::resp::{Args, Span};

const WINDOW: u64 = 5_000;

fn rule(shield: Option<u64>) -> Rule {
    Rule {
        contention_shield_ms: shield,
        ..Rule::new("lock:*")
    }
}

fn shield() -> Arc<Shield> {
    Arc::new(Shield::new(&[rule(Some(5))]))
}

fn asker(key: &str) -> Asker<'_> {
    Asker {
        database: 0,
        key: key.as_bytes(),
        user: b"default",
        spelling: Spelling::Set,
    }
}

fn held(shield: &Shield, key: &str, now: u64) {
    let asked = shield.asks(&asker(key), Time(now));
    shield.answered(&asker(key), asked, Held::Contended, Time(now));
}

fn refuses(shield: &Shield, key: &str, now: u64) -> bool {
    judge(shield, key, now) == Verdict::Refuse
}

fn judge(shield: &Shield, key: &str, now: u64) -> Verdict {
    shield.judge(&asker(key), WINDOW, Time(now), Time(now))
}

fn bar(shield: &Arc<Shield>, key: &str) -> Bar {
    shield.bars(std::iter::once(key.as_bytes()))
}

fn event(key: &str, what: What) -> Event {
    Event {
        at: Time(0),
        database: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
        rule: RuleIndex(0),
        owner: "any".into(),
        connection: ConnectionId {
            instance: "a".into(),
            number: 1,
        },
        what,
    }
}

#[test]
fn what_was_found_held_is_refused_until_the_time_is_over() {
    let shield = shield();
    assert!(!refuses(&shield, "lock:a", 100));
    held(&shield, "lock:a", 100);
    assert!(refuses(&shield, "lock:a", 100));
    assert!(refuses(&shield, "lock:a", 2_599));
    assert!(!refuses(&shield, "lock:b", 101));
    assert!(!refuses(&shield, "lock:a", 5_100));
    assert!(!refuses(&shield, "lock:a", u64::MAX));
}

#[test]
fn once_half_of_the_time_is_over_one_asks_and_the_others_are_refused_on() {
    let shield = shield();
    held(&shield, "lock:a", 0);
    assert_eq!(judge(&shield, "lock:a", 2_499), Verdict::Refuse);
    assert_eq!(judge(&shield, "lock:a", 2_500), Verdict::Ask);
    shield.asks(&asker("lock:a"), Time(2_500));
    assert_eq!(judge(&shield, "lock:a", 2_501), Verdict::Refuse);
    assert_eq!(judge(&shield, "lock:a", 4_999), Verdict::Refuse);
    // With an answer in time there are never two who ask.
    let mut asked = 0;
    held(&shield, "lock:a", 10_000);
    for now in 10_000..110_000 {
        match judge(&shield, "lock:a", now) {
            Verdict::Ask => {
                asked += 1;
                held(&shield, "lock:a", now);
            }
            verdict => assert_eq!(verdict, Verdict::Refuse),
        }
    }
    assert_eq!(asked, 39);
}

#[test]
fn where_nothing_is_known_one_asks_and_the_others_wait_for_that_not_for_long() {
    let shield = shield();
    let first = shield.asks(&asker("lock:a"), Time(0));
    assert_eq!(judge(&shield, "lock:a", 1), Verdict::Wait);
    assert_eq!(judge(&shield, "lock:b", 1), Verdict::Ask);
    // It has waited for others before.
    let waited = shield.judge(&asker("lock:a"), WINDOW, Time(1), Time(5_001));
    assert_eq!(waited, Verdict::Ask);
    assert_eq!(
        judge(&shield, "lock:a", 5_000),
        Verdict::Ask,
        "that answer may never come"
    );
    shield.asks(&asker("lock:a"), Time(5_000));
    assert_eq!(judge(&shield, "lock:a", 5_001), Verdict::Wait);
    shield.answered(&asker("lock:a"), first, Held::Failed, Time(5_002));
    assert_eq!(judge(&shield, "lock:a", 5_002), Verdict::Ask);
    // One that is asked behind a release, and the release is answered first: its answer says nothing, and is one.
    let release = bar(&shield, "lock:a");
    let asked = shield.asks(&asker("lock:a"), Time(6_000));
    drop(release);
    assert_eq!(judge(&shield, "lock:a", 6_001), Verdict::Wait);
    shield.answered(&asker("lock:a"), asked, Held::Granted(None), Time(6_002));
    assert_eq!(judge(&shield, "lock:a", 6_002), Verdict::Ask);
}

#[test]
fn each_user_command_and_database_has_to_ask_for_itself() {
    let shield = shield();
    held(&shield, "lock:a", 0);
    let own = asker("lock:a");
    for other in [
        Asker { database: 1, ..own },
        Asker { user: b"bob", ..own },
        Asker {
            spelling: Spelling::SetNx,
            ..own
        },
    ] {
        assert!(
            shield.judge(&other, WINDOW, Time(1), Time(1)) == Verdict::Ask,
            "{other:?}"
        );
    }
    assert!(refuses(&shield, "lock:a", 1));
}

#[test]
fn nothing_is_known_while_a_release_is_under_way_nor_behind_it() {
    let shield = shield();
    held(&shield, "lock:a", 0);
    held(&shield, "lock:b", 0);
    let release = bar(&shield, "lock:a");
    assert!(!refuses(&shield, "lock:a", 1));
    held(&shield, "lock:a", 2);
    assert!(!refuses(&shield, "lock:a", 2), "it may have been before the release");
    let before = shield.asks(&asker("lock:a"), Time(0));
    drop(release);
    shield.answered(&asker("lock:a"), before, Held::Contended, Time(3));
    assert!(
        !refuses(&shield, "lock:a", 3),
        "it was sent before the release was answered"
    );
    held(&shield, "lock:a", 4);
    assert!(refuses(&shield, "lock:a", 4));
    assert!(refuses(&shield, "lock:b", 4), "another lock");
}

#[test]
fn two_releases_under_way_count_as_two() {
    let shield = shield();
    let (one, other) = (bar(&shield, "lock:a"), bar(&shield, "lock:a"));
    drop(one);
    held(&shield, "lock:a", 0);
    assert!(!refuses(&shield, "lock:a", 0));
    drop(other);
    held(&shield, "lock:a", 1);
    assert!(refuses(&shield, "lock:a", 1));
}

#[test]
fn a_flush_ends_every_shield() {
    let shield = shield();
    held(&shield, "lock:a", 0);
    let before = shield.asks(&asker("lock:a"), Time(0));
    let flush = shield.bars_all();
    assert!(!refuses(&shield, "lock:a", 1));
    held(&shield, "lock:a", 2);
    let meanwhile = shield.asks(&asker("lock:a"), Time(0));
    drop(flush);
    for asked in [before, meanwhile] {
        shield.answered(&asker("lock:a"), asked, Held::Contended, Time(3));
        assert!(!refuses(&shield, "lock:a", 3));
    }
    held(&shield, "lock:a", 4);
    assert!(refuses(&shield, "lock:a", 4));
}

#[test]
fn a_command_on_very_many_keys_counts_as_a_flush() {
    let shield = shield();
    held(&shield, "lock:a", 0);
    let keys: Vec<String> = (0..100).map(|number| format!("lock:{number}")).collect();
    drop(shield.bars(keys.iter().map(String::as_bytes)));
    assert!(!refuses(&shield, "lock:a", 1));
}

#[test]
fn a_key_that_is_named_twice_is_free_again_after_the_command() {
    let shield = shield();
    drop(shield.bars([b"lock:a".as_slice(), b"lock:a"].into_iter()));
    held(&shield, "lock:a", 1);
    assert!(refuses(&shield, "lock:a", 1));
}

#[test]
fn a_grant_shields_for_as_long_as_its_ttl_at_most() {
    let shield = shield();
    let grant = |ttl, now| {
        let asked = shield.asks(&asker("lock:a"), Time(0));
        shield.answered(&asker("lock:a"), asked, Held::Granted(ttl), Time(now));
    };
    grant(Some(2), 0);
    assert!(refuses(&shield, "lock:a", 1_999));
    assert!(!refuses(&shield, "lock:a", 2_000));
    grant(Some(3), 10_000);
    held(&shield, "lock:a", 12_000);
    assert!(!refuses(&shield, "lock:a", 13_000), "the same lease");
    held(&shield, "lock:a", 13_001);
    assert!(refuses(&shield, "lock:a", 14_000), "another one");
    grant(None, 20_000);
    assert!(refuses(&shield, "lock:a", 22_000));
}

#[test]
fn what_happens_beside_the_sessions_ends_a_shield() {
    let release = |outcome| {
        What::Release(Release {
            outcome,
            held_ms: None,
            overrun_ms: None,
        })
    };
    for what in [
        release(ReleaseOutcome::Forced),
        release(ReleaseOutcome::Disconnect),
        What::Expired { held_ms: None },
        What::Ended,
    ] {
        let shield = shield();
        held(&shield, "lock:a", 0);
        let before = shield.asks(&asker("lock:a"), Time(0));
        shield.heard(&event("lock:a", what.clone()));
        assert!(!refuses(&shield, "lock:a", 1), "{what:?}");
        shield.answered(&asker("lock:a"), before, Held::Contended, Time(2));
        assert!(!refuses(&shield, "lock:a", 2), "{what:?}");
    }
    let shield = shield();
    held(&shield, "lock:a", 0);
    shield.heard(&event("lock:a", What::Contended { shielded: true }));
    assert!(refuses(&shield, "lock:a", 1));
}

#[test]
fn memory_is_fixed_and_the_latest_stay() {
    let shield = shield();
    let key = |number: u64| format!("lock:{number}");
    for number in 0..100_000 {
        held(&shield, &key(number), number);
    }
    let known: usize = shield
        .places
        .iter()
        .map(|place| place.lock().unwrap().known.iter().flatten().count())
        .sum();
    assert_eq!(known, PLACES * WAYS);
    let late = (99_000..100_000).filter(|number| refuses(&shield, &key(*number), 100_000));
    assert!(late.count() > 900);
    let long = "k".repeat(LONGEST_KEY);
    held(&shield, &long, 100_000);
    assert!(!refuses(&shield, &long, 100_000));
}

#[test]
fn without_a_rule_that_wants_it_nothing_is_kept() {
    let observe = Rule {
        mode: Mode::Observe,
        ..rule(Some(5))
    };
    let shield = Arc::new(Shield::new(&[rule(None), observe]));
    assert!(!shield.is_on() && shield.places.is_empty());
    held(&shield, "lock:a", 0);
    drop((bar(&shield, "lock:a"), shield.bars_all()));
    shield.heard(&event("lock:a", What::Ended));
    assert!(!refuses(&shield, "lock:a", 0));
}

#[test]
fn only_what_the_server_is_sure_to_accept_is_an_acquire_for_the_shield() {
    let spelled = |idiom, line: &str| {
        let mut end = 0;
        let span = |word: &str| {
            let start = end;
            end = start + word.len() + 1;
            Span { start, end: end - 1 }
        };
        let spans: Vec<Span> = line.split(' ').map(span).collect();
        Spelling::of(idiom, Args::new(line.as_bytes(), &spans))
    };
    for good in [
        "SET k v NX",
        "set k v nx px 1",
        "SET k v EX 30 NX",
        "SET k v NX EX 1000000000000",
    ] {
        assert_eq!(spelled(Idiom::Set, good), Some(Spelling::Set), "{good}");
    }
    for other in [
        "SET k v",
        "SET k v XX",
        "SET k v NX GET",
        "SET k v NX NX",
        "SET k v NX XX",
        "SET k v NX EX",
        "SET k v NX EX 0",
        "SET k v NX EX -1",
        "SET k v NX EX 1.5",
        "SET k v NX EX 1000000000001",
        "SET k v NX EX 1 PX 1",
        "SET k v NX EXAT 4102444800",
        "SET k v NX KEEPTTL",
        "SET k v NX IFEQ v",
        "SET k v NX WHATEVER",
    ] {
        assert_eq!(spelled(Idiom::Set, other), None, "{other}");
    }
    assert_eq!(spelled(Idiom::SetNx, "SETNX k v"), Some(Spelling::SetNx));
    assert_eq!(spelled(Idiom::GetSet, "GETSET k v"), None);
    assert_eq!(spelled(Idiom::MSetNx, "MSETNX k v"), None);
}
