//! Long requests whose keys concern nobody are sent on while they come; all others are held until they are whole.

use lockward::session::Next;

use crate::rig::{Rig, command, pipeline, readable};

const LONG: usize = 300_000;

fn set(key: &str) -> Vec<u8> {
    command(&format!("SET {key} {}", "x".repeat(LONG)))
}

/// Sends all but the last bytes and tells how much went on.
fn all_but(rig: &mut Rig, request: &[u8], held_back: usize) -> usize {
    let (now, _) = request.split_at(request.len() - held_back);
    let mut gone = 0;
    for piece in now.chunks(16 * 1024) {
        rig.sends_bytes(piece);
        gone += rig.take_upstream().len();
    }
    gone
}

#[test]
fn a_long_value_is_sent_on_before_it_is_complete() {
    let mut rig = Rig::enforce();
    let request = set("plain");
    let gone = all_but(&mut rig, &request, 1000);
    assert_eq!(gone, request.len() - 1000);
    let rest = [&request[request.len() - 1000..], &command("PING")].concat();
    rig.sends_bytes(&rest);
    assert_eq!(rig.take_upstream(), rest);
    rig.server("+OK|+PONG|");
    rig.heard("+OK|+PONG|");
    assert_eq!(rig.settled(), [("set", false), ("ping", false)]);
}

#[test]
fn a_long_list_of_arguments_too() {
    let mut rig = Rig::enforce();
    let mut line = "RPUSH list".to_owned();
    (0..20_000).for_each(|number| line.push_str(&format!(" item{number}")));
    let request = command(&line);
    let gone = all_but(&mut rig, &request, 5);
    assert!(gone > request.len() - 100);
    rig.sends_bytes(&request[request.len() - 5..]);
    rig.take_upstream();
    rig.server(":20000|");
    assert_eq!(rig.settled(), [("rpush", false)]);
    rig.is_in_step();
}

#[test]
fn a_lock_or_a_record_is_held_until_it_is_complete() {
    for key in ["lock:a", "lockward:{lock:a}"] {
        let mut rig = Rig::enforce();
        let request = set(key);
        assert_eq!(all_but(&mut rig, &request, 1), 0);
        rig.sends_bytes(&request[request.len() - 1..]);
        let sent = readable(&rig.take_upstream());
        assert!(!sent.starts_with("*3|$3|SET|"), "{}", &sent[..60]);
    }
}

#[test]
fn a_stream_broken_in_the_middle_is_told_with_the_servers_words() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    let mut request = format!("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n${LONG}\r\n").into_bytes();
    request.resize(request.len() + LONG, b'x');
    request.extend_from_slice(b"\r\n");
    all_but(&mut rig, &request, 0);
    rig.sends_bytes(&[b":7\r\n".to_vec(), pipeline(&["FLUSHALL"])].concat());
    // Not what the client said, but nothing that a server could take kindly.
    assert_eq!(readable(&rig.take_upstream()), "!|");
    rig.server("$-1|-ERR Protocol error: expected '$', got '!'|");
    rig.heard("$-1|-ERR Protocol error: expected '$', got ':'|");
    rig.is_over();
}

#[test]
fn a_client_that_ends_in_the_middle_hears_what_was_due_before() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    all_but(&mut rig, &set("plain"), 1000);
    let now = rig.now();
    rig.session.downstream_ended(now);
    rig.goes_on();
    rig.server("$1|1|");
    rig.heard("$1|1|");
    rig.is_over();
}

#[test]
fn a_drain_waits_for_the_end_of_a_stream() {
    let mut rig = Rig::plain();
    let request = set("plain");
    all_but(&mut rig, &request, 1000);
    rig.session.leave();
    rig.goes_on();
    rig.sends_bytes(&request[request.len() - 1000..]);
    rig.take_upstream();
    rig.goes_on();
    rig.server("+OK|");
    rig.heard("+OK|");
    rig.is_over();
}

#[test]
fn a_server_that_refuses_early_is_heard() {
    let mut rig = Rig::plain();
    all_but(&mut rig, &set("plain"), 1000);
    rig.server("-ERR Protocol error: unauthenticated bulk length|");
    rig.session.upstream_ended();
    rig.heard("-ERR Protocol error: unauthenticated bulk length|");
    assert_eq!(rig.session.next(), Next::Close);
}
