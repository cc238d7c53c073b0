//! `lockward tap` against a running lockward: events as they happen, and how it ends.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

use lockward::admin::api::Event;

use crate::rig::{Lockward, Running, eventually};

const RULES: &str = "[[locks]]\nname = \"jobs\"\npattern = \"lock:*\"\nowner = \"connection\"\n";

/// A tap, once it listens: locks are taken until it shows one.
fn listening(lockward: &Lockward, args: &[&str]) -> (Running, BufReader<ChildStdout>) {
    let mut tap = Running::start_unread(&mut lockward.command(args));
    let mut lines = tap.lines();
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("it is open");
        tell.send(()).expect("somebody waits");
        lines
    });
    let mut client = lockward.client();
    eventually("the tap shows an event", || {
        client.ask("SET lock:first 1 NX");
        client.ask("DEL lock:first");
        told.try_recv().ok()
    });
    (tap, reader.join().expect("it reads"))
}

#[test]
fn events_come_as_they_happen() {
    let lockward = Lockward::start(RULES);
    let (mut tap, lines) = listening(&lockward, &["tap", "--json"]);
    let (mut holder, mut other) = (lockward.client(), lockward.client());
    assert_eq!(holder.ask("SET lock:a 1 NX PX 60000"), "+OK");
    assert_eq!(other.ask("SET lock:a 1 NX"), "$-1");
    assert_eq!(other.ask("DEL lock:a"), ":0");
    assert_eq!(holder.ask("DEL lock:a"), ":1");
    let mut events = Vec::new();
    for line in lines.lines() {
        let event: Event = serde_json::from_str(&line.expect("it is open")).expect("the API's JSON");
        if event.key == "lock:a" {
            events.push(event.event);
        }
        if events.last().is_some_and(|event| event == "released") {
            break;
        }
    }
    assert_eq!(events, ["acquired", "contended", "foreign_release", "released"]);
    tap.signal("-TERM");
    assert_eq!(tap.ended().code, Some(0));
}

#[test]
fn it_ends_by_itself_with_a_summary() {
    let lockward = Lockward::start(RULES);
    let mut tap = Running::start(&mut lockward.command(&[
        "tap",
        "lock:*",
        "--event",
        "acquired,contended",
        "--count",
        "3",
        "--summary",
    ]));
    let (mut holder, mut other) = (lockward.client(), lockward.client());
    // Until it listens nothing is counted.
    let ran = std::thread::scope(|scope| {
        let ended = scope.spawn(|| tap.ended());
        while !ended.is_finished() {
            assert_eq!(holder.ask("SET lock:a 1 NX"), "+OK");
            assert_eq!(other.ask("SET lock:a 1 NX"), "$-1");
            assert_eq!(holder.ask("DEL lock:a"), ":1");
        }
        ended.join().expect("it ends")
    });
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(
        ran.out.contains("\n3 events\n") && ran.out.contains("MOST FOUGHT FOR"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);

    let ran = lockward.run(&["tap", "nothing", "--for", "100ms", "--summary", "--json"]);
    let counts: serde_json::Value = serde_json::from_str(&ran.out).expect("one line of JSON");
    assert_eq!((ran.code, counts["summary"]["missed"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn ctrl_c_ends_it_with_the_summary() {
    let lockward = Lockward::start(RULES);
    let (mut tap, lines) = listening(&lockward, &["tap", "--summary"]);
    tap.signal("-INT");
    let rest: Vec<String> = lines.lines().map_while(Result::ok).collect();
    let ran = tap.ended();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(rest.iter().any(|line| line.ends_with(" events")), "{rest:?}");
}

#[test]
fn it_ends_with_its_reader_before_another_event_comes() {
    let lockward = Lockward::start(RULES);
    let (mut tap, lines) = listening(&lockward, &["tap"]);
    drop(lines);
    let ran = tap.ended();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn it_says_so_when_lockward_goes_away() {
    let mut lockward = Lockward::start(RULES);
    let (mut tap, lines) = listening(&lockward, &["tap"]);
    lockward.stop();
    let _rest: Vec<_> = lines.lines().collect();
    let ran = tap.ended();
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains(&lockward.admin) && ran.err.contains("has gone away"),
        "{}",
        ran.err
    );
}
