//! Lock-shaped commands on keys that no rule matches: noted for the scout, and sent on as they came.

use std::sync::Arc;

use lockward::lock::rule::{Mode, Rule};
use lockward::lock::scout::{SIGHTINGS_LIMIT, Sight};
use lockward::session::{Policy, Session};

use crate::rig::{Rig, command, pipeline, policy, session};

const WITH_TTL: Sight = Sight::Acquire { ttl: true };
const WITHOUT_TTL: Sight = Sight::Acquire { ttl: false };

fn seen(session: &mut Session) -> Vec<(Sight, String)> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let seen = session
        .sightings
        .iter()
        .map(|(sight, key)| (sight, text(key)))
        .collect();
    session.sightings.clear();
    seen
}

fn expect(rig: &mut Rig, lines: &[&str], expected: &[(Sight, &str)]) {
    rig.sends(lines);
    assert_eq!(
        String::from_utf8_lossy(&rig.take_upstream()),
        String::from_utf8_lossy(&pipeline(lines))
    );
    let expected: Vec<(Sight, String)> = expected
        .iter()
        .map(|(sight, key)| (*sight, (*key).to_owned()))
        .collect();
    assert_eq!(seen(&mut rig.session), expected, "{lines:?}");
}

#[test]
fn what_was_acquired_is_followed() {
    let mut rig = Rig::enforce();
    expect(&mut rig, &["SET app:a t NX PX 30000"], &[(WITH_TTL, "app:a")]);
    expect(
        &mut rig,
        &["setnx app:b 1", "EXPIRE app:b 30"],
        &[(WITHOUT_TTL, "app:b"), (Sight::Extend, "app:b")],
    );
    expect(&mut rig, &["EVAL text 1 app:a t"], &[(Sight::Script, "app:a")]);
    expect(&mut rig, &["FCALL f 2 other app:a"], &[(Sight::Script, "app:a")]);
    expect(&mut rig, &["DELIFEQ app:a t"], &[(Sight::Script, "app:a")]);
    expect(&mut rig, &["SET app:a u IFEQ t"], &[(Sight::Script, "app:a")]);
    expect(
        &mut rig,
        &["UNLINK x app:b y app:a"],
        &[(Sight::Release, "app:b"), (Sight::Release, "app:a")],
    );
}

#[test]
fn what_was_not_acquired_is_not() {
    let mut rig = Rig::enforce();
    let plain = [
        "GET k",
        "SET k v",
        "SET k v EX 30",
        "SET k v XX",
        "DEL k",
        "EXPIRE k 30",
        "EVAL text 1 k",
        "GETDEL k",
        "DELEX k",
    ];
    expect(&mut rig, &plain, &[]);
    expect(&mut rig, &["SET app:a t NX"], &[(WITHOUT_TTL, "app:a")]);
    expect(
        &mut rig,
        &[
            "GET app:a",
            "SET app:a v",
            "SETEX app:a 5 v",
            "EVAL text 0 app:a",
            "DEL app:b",
        ],
        &[],
    );
}

#[test]
fn another_session_is_known_to_have_acquired() {
    let policy = policy(Mode::Enforce);
    let (mut one, mut other) = (
        Rig::with(Arc::clone(&policy)),
        Rig::with(Arc::new(policy.with(policy.features))),
    );
    expect(&mut one, &["SET app:a t NX EX 5"], &[(WITH_TTL, "app:a")]);
    expect(&mut other, &["DEL app:a"], &[(Sight::Release, "app:a")]);
}

#[test]
fn keys_that_a_rule_decides_about_are_left_alone() {
    for mode in [Mode::Enforce, Mode::Observe, Mode::Off] {
        let mut rig = Rig::new(mode);
        rig.sends(&[
            "SET lock:a t NX EX 5",
            "DEL lock:a",
            "SETNX lock:b 1",
            "EVAL text 1 lock:a",
        ]);
        assert_eq!(seen(&mut rig.session), []);
    }
    let mut rig = Rig::plain();
    rig.sends(&["SET lockward:{lock:a} t NX"]);
    assert_eq!(seen(&mut rig.session), []);
}

#[test]
fn transactions_count_and_bytes_in_pieces_too() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "SET app:a t NX", "EXPIRE app:a 30", "EXEC"]);
    assert_eq!(
        seen(&mut rig.session),
        [(WITHOUT_TTL, "app:a".to_owned()), (Sight::Extend, "app:a".to_owned())]
    );
    for byte in command("DEL app:a") {
        rig.sends_bytes(&[byte]);
    }
    assert_eq!(seen(&mut rig.session), [(Sight::Release, "app:a".to_owned())]);
}

#[test]
fn a_wake_up_brings_only_so_many_and_long_keys_none() {
    let mut rig = Rig::enforce();
    let lines: Vec<String> = (0..100).map(|n| format!("SET app:{n} t NX")).collect();
    rig.sends(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(rig.session.sightings.missed(), 36);
    assert_eq!(seen(&mut rig.session).len(), SIGHTINGS_LIMIT);
    let long = "k".repeat(513);
    rig.sends(&[&format!("SET {long} t NX"), &format!("DEL {long}")]);
    assert_eq!(rig.session.sightings.missed(), 1);
    assert_eq!(seen(&mut rig.session), []);
    // A value so long that it is streamed: its options come when the key has gone on already.
    let big = command(&format!("SET app:big {} NX", "v".repeat(200_000)));
    big.chunks(100_000).for_each(|piece| rig.sends_bytes(piece));
    rig.sends(&["DEL app:big"]);
    assert_eq!(seen(&mut rig.session), []);
}

#[test]
fn strangers_and_watchers_are_not_followed() {
    let policy = policy(Mode::Enforce);
    let mut features = policy.features;
    features.login = true;
    let mut rig = Rig::with(Arc::new(policy.with(features)));
    rig.sends(&["SET app:a t NX"]);
    assert_eq!(seen(&mut rig.session), []);
    rig.server("-NOAUTH Authentication required.|");
    rig.sends(&["AUTH secret"]);
    rig.server("+OK|");
    rig.sends(&["SET app:a t NX"]);
    assert_eq!(seen(&mut rig.session).len(), 1);
    rig.server("+OK|");

    let mut rig = Rig::enforce();
    rig.sends(&["MONITOR"]);
    rig.server("+OK|");
    rig.sends(&["SET app:a t NX"]);
    assert_eq!(seen(&mut rig.session), []);
}

#[test]
fn a_rule_knows_whether_it_has_got_a_key() {
    let off = Rule {
        mode: Mode::Off,
        ..Rule::new("off:*")
    };
    let rules = vec![Rule::new("lock:*"), Rule::new("other:*"), off];
    let policy = Arc::new(Policy::new(rules, "lockward:", || {
        unreachable!("no owner token is needed")
    }));
    let mut session = session(Arc::new(policy.with(policy.features)));
    session.receive_downstream(
        &pipeline(&["GET lock:a", "DEL x", "SET off:a 1 NX"]),
        Default::default(),
    );
    let met = |index| policy.rules.has_met(lockward::event::RuleIndex(index));
    assert_eq!([met(0), met(1), met(2)], [false, false, true]);
}
