//! Wrong addresses, tokens and filters, and others than lockward at the other end: one clear line, and an exit code that
//! says whose fault it is.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::rig::{Lockward, free_port, run};

const ASKING: [&[&str]; 6] = [
    &["locks"],
    &["tap"],
    &["top", "--once"],
    &["suggest"],
    &["health"],
    &["release", "lock:a", "--token", "t"],
];

/// Answers every connection with this.
fn answering(answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let answer = answer.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn nobody_listens() {
    let address = format!("127.0.0.1:{}", free_port());
    for command in ASKING {
        let ran = run(&[command, &["--admin", &address]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command:?}");
        assert!(
            ran.err.contains(&address) && ran.err.lines().count() == 1,
            "{command:?}: {}",
            ran.err
        );
    }
    let ran = run(&["locks", "--admin", "[::1]:1"]);
    assert!(ran.err.contains("[::1]:1"), "{}", ran.err);
    let ran = run(&["locks", "--admin", "no port"]);
    assert!(ran.code == Some(1) && ran.err.contains("no port"), "{}", ran.err);
}

#[test]
fn somebody_else_listens() {
    for answer in [
        "-ERR unknown command\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "",
    ] {
        let address = answering(answer);
        for command in ASKING {
            let ran = run(&[command, &["--admin", &address]].concat());
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command:?}: {answer}");
            assert!(ran.err.contains(&address), "{command:?}: {}", ran.err);
        }
    }
}

/// A release goes on in lockward whether or not its answer comes through.
#[test]
fn a_release_says_not_only_where_that_is_sure() {
    let answers = |status: u16| {
        let body = "{\"error\": \"the words\"}";
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let said = |address: &str| {
        let ran = run(&["release", "lock:a", "--token", "t", "--admin", address]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        ran.err
    };
    for status in [400, 401, 403, 404] {
        let err = said(&answering(&answers(status)));
        assert!(
            err.contains("lock:a was not released") && err.contains("the words"),
            "{err}"
        );
    }
    let err = said(&format!("127.0.0.1:{}", free_port()));
    assert!(err.contains("lock:a was not released"), "{err}");
    for answer in [answers(500), answers(502), answers(504), String::new()] {
        let err = said(&answering(&answer));
        assert!(err.contains("it is not known whether lock:a was released"), "{err}");
    }
}

#[test]
fn a_stream_that_says_strange_things() {
    let address = answering(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nevent: lock\ndata: {\"event\":\"acquired\",\n\
         data: \"key_encoded\":\"a%1B[2J\",\"owner\":\"\\u001b[2J\u{9b}\"}\n\nevent: missed\ndata: {\"missed\": 7}\n\nevent: \
         lock\ndata: nonsense\n\nevent: new\ndata: {}\n\nevent: end\ndata: {\"reason\": \"lockward ends\"}\n\n",
    );
    let ran = run(&["tap", "--admin", &address, "--summary"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("acquired        a\\u{1b}[2J  \\u{1b}[2J\\u{9b}"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("1 events, and 7 missed"), "{}", ran.out);
    assert!(
        ran.err.contains("7 events were missed") && ran.err.contains("has gone away: lockward ends"),
        "{}",
        ran.err
    );
    let ran = run(&["tap", "--admin", &address, "--json"]);
    assert!(
        ran.out.contains("{\"missed\":7}\n") && !ran.out.contains(['\u{1b}', '\u{9b}']),
        "{}",
        ran.out
    );
}

/// Not more than 16 MiB is held of what somebody else says.
#[test]
fn somebody_who_does_not_stop() {
    let flood = "x".repeat(17 << 20);
    let answer = answering(&format!("HTTP/1.1 200 OK\r\n\r\n{flood}"));
    let stream = answering(&format!("HTTP/1.1 200 OK\r\n\r\ndata: {flood}"));
    let lines = answering(&format!(
        "HTTP/1.1 200 OK\r\n\r\n{}",
        format!("data: {}\n", "x".repeat(4096)).repeat(4200)
    ));
    for (command, address) in [("locks", &answer), ("tap", &stream), ("tap", &lines), ("top", &stream)] {
        let ran = run(&[command, "--admin", address]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command}");
        assert!(
            ran.err.contains(address)
                && (ran.err.contains("length limit exceeded") || ran.err.contains("16777216 bytes")),
            "{command}: {}",
            ran.err
        );
    }
}

#[test]
fn what_lockward_refuses_is_said_in_its_words() {
    let lockward = Lockward::start("[[locks]]\npattern = \"lock:*\"\n");
    let ran = lockward.run(&["release", "lock:a", "--token", "wrong"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("(401)") && ran.err.contains(&lockward.admin),
        "{}",
        ran.err
    );
    let ran = lockward.run(&["release", "plain"]);
    assert!(
        ran.err.contains("(404)") && ran.err.contains("no lock rule"),
        "{}",
        ran.err
    );
    let ran = run(&["release", "lock:a", "--admin", &lockward.admin]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--token-file"), "{}", ran.err);
}

#[test]
fn wrong_usage_is_exit_code_two() {
    for args in [
        &["locks", "--older-than", "5"][..],
        &["locks", "--limit", "0"],
        &["tap", "--for", "soon"],
        &["tap", "--event", "acquired,aquired"],
        &["explain", "SET a"],
        &["explain", "SET 'a"],
        &["explain"],
        &["release", "k", "--token-file", "/nonexistent/token"],
        &["release", "k", "--token-file", "/dev/null"],
        &["release", "k", "--token-file", "/dev/zero"],
        &["locks", "--config", "/nonexistent/file"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
}
