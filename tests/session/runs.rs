//! Pipelines of one command: what is decided of a request does not depend on those that it comes behind, though they are
//! looked at together.

use crate::rig::{Rig, command, pipeline, readable};

/// Commands with a key in place of `K`, that write it or give it up.
const ON_LOCKS: &[&str] = &[
    "SET K v",
    "set K v",
    "SETEX K 9 v",
    "PSETEX K 9000 v",
    "GETSET K v",
    "SETNX K v",
    "SET K v NX",
    "SET K v EX 9",
    "GETDEL K",
    "EXPIRE K 9",
    "PERSIST K",
];

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn on(line: &str, key: &str) -> String {
    line.replace('K', key)
}

#[test]
fn a_lock_is_seen_behind_keys_that_are_none() {
    for line in ON_LOCKS {
        for before in 1..4 {
            let mut rig = Rig::enforce();
            let free: Vec<String> = (0..before).map(|n| on(line, &format!("free:{n}"))).collect();
            let lock = on(line, "lock:a");
            let mut requests: Vec<&str> = free.iter().map(String::as_str).collect();
            requests.push(&lock);
            rig.sends(&requests);
            let sent = rig.take_upstream();
            let plain = pipeline(&requests[..before]);
            assert!(sent.starts_with(&plain), "{line}: {}", readable(&sent));
            assert!(sent.len() > plain.len(), "{line}: nothing was sent for the lock");
            assert!(!holds(&sent, &command(&lock)), "{line}: {}", readable(&sent));
        }
    }
}

#[test]
fn a_record_is_seen_behind_keys_that_are_none() {
    for line in ["GET K", "SET K v", "INCR K", "HGETALL K"] {
        let mut rig = Rig::enforce();
        let (free, record) = (on(line, "free"), on(line, "lockward:{lock:a}"));
        rig.sends(&[&free, &record, &free]);
        let sent = rig.take_upstream();
        assert_eq!(readable(&sent), readable(&pipeline(&[&free, "PING", &free])), "{line}");
    }
}

#[test]
fn what_looks_like_a_lock_is_sighted_behind_what_does_not() {
    let mut rig = Rig::plain();
    rig.sends(&[
        "SET a v",
        "SET b v",
        "SET c v NX",
        "SET d v",
        "SETNX e v",
        "SETEX f 9 v",
    ]);
    let seen: Vec<String> = rig.session.sightings.iter().map(|(_, key)| readable(key)).collect();
    assert_eq!(seen, ["c", "e"]);
}

#[test]
fn another_spelling_or_another_number_of_arguments_is_looked_at_anew() {
    let lines = [
        "GET a",
        "get b",
        "GET",
        "GET c d",
        "PING",
        "PING x",
        "SET e v",
        "SET e v EX 9",
        "GET f",
    ];
    let mut rig = Rig::enforce();
    rig.sends(&lines);
    assert_eq!(readable(&rig.take_upstream()), readable(&pipeline(&lines)));
    let answers = "$1|a|$1|b|-ERR wrong number|-ERR wrong number|+PONG|$1|x|+OK|+OK|$1|f|";
    rig.server(answers);
    assert_eq!(readable(&rig.take_downstream()), answers);
    assert_eq!(rig.session.settled.iter().map(|one| one.count).sum::<u32>(), 9);
}
