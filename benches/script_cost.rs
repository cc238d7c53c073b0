//! What lock operations cost the server: CPU microseconds of the whole server process for each, beside the plain
//! commands, many in one packet so that system calls hardly count. Prints a table and judges nothing. `make script-cost`.

#[path = "../tests/real_server/mod.rs"]
mod real_server;
#[allow(
    dead_code,
    reason = "shared with the tests of the scripts, which read more of the replies"
)]
#[path = "../tests/lease/server.rs"]
mod server;

use bytes::{Bytes, BytesMut};
use lockward::command;
use lockward::event::{ConnectionId, RuleIndex, Token};
use lockward::lock::call::{self, Context, Features, How, Plan, Subject};
use lockward::lock::rule::Rule;
use lockward::lock::script::Script;
use lockward::resp::{Args, Span, encode};
use server::{Connection, Server};
use uuid::Uuid;

/// Locks that are operated on in one packet.
const LOCKS: u64 = 200;
/// The best of so many rounds counts: what else runs on the machine only adds.
const ROUNDS: usize = 60;

/// One row: commands in words, `@` standing for the lock's name; the first word says who, `-` being past the scripts.
struct Row {
    name: &'static str,
    /// Before the rounds of this row, not measured.
    before: &'static [&'static str],
    plain: &'static [&'static str],
    locked: &'static [&'static str],
}

const ROWS: [Row; 7] = [
    Row {
        name: "SET NX PX, DEL by the same connection",
        before: &[],
        plain: &["- SET @ token NX PX 30000", "- DEL @"],
        locked: &["1 SET @ token NX PX 30000", "1 DEL @"],
    },
    Row {
        name: "SETNX, DEL by the same connection",
        before: &[],
        plain: &["- SETNX @ token", "- DEL @"],
        locked: &["1 SETNX @ token", "1 DEL @"],
    },
    Row {
        name: "SET NX PX, DEL by another connection",
        before: &[],
        plain: &["- SET @ token NX PX 30000", "- DEL @"],
        locked: &["1 SET @ token NX PX 30000", "2 DEL @"],
    },
    Row {
        name: "SET NX PX refused",
        before: &["2 SET @ token NX PX 3000000"],
        plain: &["- SET @ token NX PX 30000"],
        locked: &["1 SET @ token NX PX 30000"],
    },
    Row {
        name: "PEXPIRE by the holder",
        before: &["1 SET @ token NX PX 3000000"],
        plain: &[],
        locked: &["1 PEXPIRE @ 3000000"],
    },
    Row {
        name: "PEXPIRE of a plain key",
        before: &["- SET @ token PX 3000000"],
        plain: &["- PEXPIRE @ 3000000"],
        locked: &[],
    },
    Row {
        name: "DEL refused",
        before: &["2 SET @ token NX PX 3000000"],
        plain: &[],
        locked: &["3 DEL @"],
    },
];

/// Appends one command, as a session would send it for a client of one of two owners.
fn put(command: &str, lock: u64, out: &mut BytesMut) {
    let (who, command) = command.split_once(' ').expect("who and what");
    let key = format!("lock:{lock}");
    let words: Vec<&str> = command
        .split(' ')
        .map(|word| if word == "@" { &*key } else { word })
        .collect();
    let Ok(number) = who.parse::<u64>() else {
        return encode::command(out, words.iter().map(|word| word.as_bytes()));
    };
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in &words {
        let start = bytes.len();
        bytes.extend_from_slice(word.as_bytes());
        let end = bytes.len();
        spans.push(Span { start, end });
    }
    let args = Args::new(&bytes, &spans);
    let (_, row) = command::lookup(words[0].as_bytes());
    let row = row.expect("a known command");
    let command::Role::Lock(idiom) = row.role else {
        panic!("no lock command: {command}")
    };
    let keys: Vec<usize> = command::keys(row, args).collect();
    let subject = Subject {
        argument: 1,
        key: Bytes::from(key.clone()),
        rule: RuleIndex(0),
        owner: if number < 3 {
            "address=10.0.0.1"
        } else {
            "address=10.0.0.2"
        }
        .into(),
        token: Token(Uuid::from_u64_pair(lock, number)),
    };
    let connection = ConnectionId {
        instance: "0123456789abcdef".into(),
        number: number + 1000 * lock,
    };
    let rules = [Rule::new("lock:*")];
    let context = Context {
        rules: &rules,
        connection: &connection,
        features: Features::default(),
        prefix: "lockward:",
        database: 0,
    };
    let request = call::Request {
        idiom,
        args,
        keys: &keys,
        target: command::target(row, args),
    };
    let Plan::Call(call) = call::plan(&request, vec![subject], &context) else {
        panic!("no script for {command}")
    };
    call.encode(args, How::EvalSha, out);
}

/// CPU time of the whole process in nanoseconds.
fn cpu(process: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process of ours");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

fn send(commands: &[&str], connection: &mut Connection) {
    for lock in 0..LOCKS {
        for command in commands {
            put(command, lock, &mut connection.out);
        }
    }
    connection.send();
    for _ in 0..LOCKS * commands.len() as u64 {
        connection.read();
    }
}

/// Microseconds for one round of these commands on one lock.
fn measured(row: &Row, commands: &[&str], process: &str, connection: &mut Connection) -> Option<f64> {
    if commands.is_empty() {
        return None;
    }
    connection.ask(&["FLUSHALL"]);
    send(row.before, connection);
    let best = (0..ROUNDS).map(|_| {
        let before = cpu(process);
        send(commands, connection);
        cpu(process) - before
    });
    best.min().map(|ns| ns as f64 / 1000.0 / LOCKS as f64)
}

fn main() {
    for kind in ["redis", "valkey"] {
        let server = Server::start(kind);
        let mut connection = server.connect();
        for script in Script::ALL {
            connection.ask(&["SCRIPT", "LOAD", script.text()]);
        }
        let info = connection.ask(&["INFO", "server"]).text();
        let process = info.lines().find_map(|line| line.strip_prefix("process_id:"));
        let process = process.expect("the server's number").trim().to_owned();
        println!("\n{kind}, CPU us of the server\n\n| operation | plain | lock |\n|---|---:|---:|");
        for row in &ROWS {
            let shown = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.1}"));
            let plain = shown(measured(row, row.plain, &process, &mut connection));
            let locked = shown(measured(row, row.locked, &process, &mut connection));
            println!("| {} | {plain} | {locked} |", row.name);
        }
    }
}
