//! The glob against real servers: thousands of patterns, each against some hundred keys, must find what `KEYS` finds.
//!
//! The Redis is `LOCKWARD_TEST_REDIS` or `redis-server` on PATH; the Valkey is `LOCKWARD_TEST_VALKEY`, which must be
//! set. Without a server the test fails; it does not skip.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lockward::lock::glob::Glob;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const PATTERNS: usize = 6000;
const KEYS: usize = 400;

/// A server of this test's own on a unix socket; it ends with this value.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    fn start(program: &str, name: &str) -> (Server, redis::Connection) {
        let folder = std::env::temp_dir().join(format!("lockward-glob-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the server's socket");
        let socket = folder.join("s");
        let child = Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .stdout(Stdio::null())
            .current_dir(&folder)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start the {name} server {program}: {error}"));
        let mut server = Server { child, folder };
        let connection = server.connect(&socket, name);
        (server, connection)
    }

    fn connect(&mut self, socket: &Path, name: &str) -> redis::Connection {
        let client = redis::Client::open(format!("redis+unix://{}", socket.display())).expect("a valid address");
        let start = Instant::now();
        loop {
            match client.get_connection() {
                Ok(connection) => return connection,
                Err(error) if start.elapsed() > Duration::from_secs(20) => panic!("{name} does not answer: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("{name} ended at once: {status}");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

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
    let (_server, mut connection) = Server::start(program, name);
    let mut runner = TestRunner::default();
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::from([Vec::new(), b"lock:a".to_vec()]);
    let key = prop::collection::vec(byte(), 1..7);
    while keys.len() < KEYS {
        keys.insert(generate(&mut runner, &key));
    }
    for key in &keys {
        let () = redis::cmd("SET").arg(key).arg(1).query(&mut connection).expect("SET");
    }

    let patterns = patterns();
    let mut matches = 0;
    for _ in 0..PATTERNS {
        let pattern = generate(&mut runner, &patterns);
        let theirs: BTreeSet<Vec<u8>> = redis::cmd("KEYS").arg(&pattern).query(&mut connection).expect("KEYS");
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
    let program = std::env::var("LOCKWARD_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned());
    finds_what_the_server_finds(&program, "redis");
}

#[test]
fn valkey_finds_the_same_keys() {
    let program = std::env::var("LOCKWARD_TEST_VALKEY").expect("LOCKWARD_TEST_VALKEY must name a valkey-server");
    finds_what_the_server_finds(&program, "valkey");
}
