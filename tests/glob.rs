//! The glob against real servers: thousands of patterns, each against some hundred keys, must find what `KEYS` finds.
//!
//! `LOCKWARD_TEST_ROUNDS=N` plays N rounds, each with other keys, instead of one.

mod real_server;

use std::collections::BTreeSet;

use lockward::lock::glob::Glob;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use real_server::RealServer;

const PATTERNS: usize = 6000;
const KEYS: usize = 400;

/// Few different bytes, most with a meaning in a pattern, so that many pairs match.
fn byte() -> impl Strategy<Value = u8> {
    prop::sample::select(b"aaabbc:[]^-*?\\\x7f\x80\xff".to_vec())
}

fn patterns() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => byte().prop_map(|b| vec![b]),
        3 => Just(b"*".to_vec()),
        1 => Just(b"?".to_vec()),
        2 => (any::<bool>(), prop::collection::vec(byte(), 0..4)).prop_map(|(negated, bytes)| {
            let begin: &[u8] = if negated { b"[^" } else { b"[" };
            [begin, &bytes, b"]"].concat()
        }),
        1 => (byte(), byte()).prop_map(|(low, high)| vec![b'[', low, b'-', high, b']']),
    ];
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

fn generate<T>(runner: &mut TestRunner, strategy: &impl Strategy<Value = T>) -> T {
    strategy.new_tree(runner).expect("a value").current()
}

fn finds_what_the_server_finds(program: &str, name: &str) {
    let server = RealServer::start(program);
    let client = redis::Client::open(format!("redis+unix://{}", server.socket().display())).expect("a valid address");
    let mut connection = client.get_connection().expect("the server listens");
    let rounds = std::env::var("LOCKWARD_TEST_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number of rounds"));
    let mut runner = TestRunner::default();
    for _ in 0..rounds {
        round(&mut connection, &mut runner, name);
    }
    println!("{name}: {} pairs", rounds * PATTERNS * KEYS);
}

fn round(connection: &mut redis::Connection, runner: &mut TestRunner, name: &str) {
    let () = redis::cmd("FLUSHALL").query(connection).expect("FLUSHALL");
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::from([Vec::new(), b"lock:a".to_vec()]);
    let key = prop::collection::vec(byte(), 1..7);
    while keys.len() < KEYS {
        keys.insert(generate(runner, &key));
    }
    for key in &keys {
        let () = redis::cmd("SET").arg(key).arg(1).query(connection).expect("SET");
    }

    let patterns = patterns();
    let mut matches = 0;
    for _ in 0..PATTERNS {
        let pattern = generate(runner, &patterns);
        let theirs: BTreeSet<Vec<u8>> = redis::cmd("KEYS").arg(&pattern).query(connection).expect("KEYS");
        let glob = Glob::new(&pattern);
        let ours: BTreeSet<Vec<u8>> = keys.iter().filter(|key| glob.matches(key)).cloned().collect();
        matches += ours.len();
        if let Some(key) = ours.symmetric_difference(&theirs).next() {
            let who = if theirs.contains(key) { name } else { "only lockward" };
            panic!(
                "pattern {}: {who} matches {}",
                pattern.escape_ascii(),
                key.escape_ascii()
            );
        }
    }
    assert!(
        matches > 10 * PATTERNS,
        "too few pairs match to prove anything: {matches}"
    );
}

#[test]
fn redis_finds_the_same_keys() {
    finds_what_the_server_finds(&real_server::redis(), "redis");
}

#[test]
fn valkey_finds_the_same_keys() {
    finds_what_the_server_finds(&real_server::valkey(), "valkey");
}
