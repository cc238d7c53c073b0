//! Every buffer has an end: where one is full nobody is read, and it goes on when there is room again.

use lockward::session::{BUFFER_LIMIT, PENDING_LIMIT, SPECIAL_LIMIT};

use crate::rig::{Rig, command, pipeline};

#[test]
fn a_server_that_does_not_read_stops_the_client() {
    let mut rig = Rig::plain();
    let request = command(&format!("APPEND a {}", "x".repeat(1000)));
    let many = request.repeat(1000);
    rig.sends_bytes(&many);
    assert_eq!(rig.reads(), (false, true));
    assert!(rig.session.to_upstream.len() < BUFFER_LIMIT + request.len());
    let mut got = 0;
    while !rig.session.to_upstream.is_empty() {
        got += rig.take_upstream().len();
    }
    assert_eq!(got, many.len(), "advance takes what was held");
    assert_eq!(rig.reads(), (true, true));
}

#[test]
fn a_client_that_does_not_read_stops_the_server() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a", "GET b", "GET c"]);
    rig.take_upstream();
    let big = [b"$300000\r\n".to_vec(), vec![b'x'; 300_000], b"\r\n".to_vec()].concat();
    rig.server_bytes(&big.repeat(3));
    assert_eq!(rig.reads(), (true, false));
    let mut heard = 0;
    while !rig.session.to_downstream.is_empty() {
        heard += rig.take_downstream().len();
    }
    assert_eq!(heard, 3 * big.len());
    assert_eq!(rig.settled().len(), 3);
}

#[test]
fn so_many_requests_without_an_answer() {
    let mut rig = Rig::plain();
    let ping = command("PING").repeat(1024);
    let mut sent = 0;
    while rig.reads().0 {
        rig.sends_bytes(&ping);
        rig.take_upstream();
        sent += 1024;
    }
    assert_eq!(sent, PENDING_LIMIT);
    rig.server("+PONG|");
    assert_eq!(rig.reads(), (true, true));
}

#[test]
fn so_many_requests_whose_answers_are_read_specially() {
    let mut rig = Rig::enforce();
    rig.sends(&["BLPOP l 0"]);
    let scan = command("GET lockward:{a}").repeat(1024);
    let mut sent = 0;
    while rig.reads().0 {
        rig.sends_bytes(&scan);
        rig.take_upstream();
        sent += 1024;
    }
    assert_eq!(sent, SPECIAL_LIMIT);
    rig.server("*-1|+PONG|");
    assert_eq!(rig.reads(), (true, true));
}

#[test]
fn what_waits_behind_a_gate_is_bounded() {
    let mut rig = Rig::plain();
    rig.sends(&["SELECT 1"]);
    let gets = pipeline(&["GET a"]).repeat(1000);
    let mut sent = 0;
    while rig.reads().0 {
        rig.sends_bytes(&gets);
        sent += gets.len();
    }
    assert!(sent < 128 * 1024, "{sent}");
    rig.take_upstream();
    rig.server("+OK|");
    let mut got = 0;
    while !rig.session.to_upstream.is_empty() {
        got += rig.take_upstream().len();
    }
    assert_eq!(got, sent);
}

#[test]
fn watching_the_same_lock_again_and_again_is_told_once() {
    let mut rig = Rig::enforce();
    for _ in 0..100 {
        rig.passes("WATCH lock:a", "+OK|");
    }
    assert_eq!(rig.notices().len(), 1);
}

#[test]
fn a_long_queue_is_not_walked_for_each_command_that_joins_it() {
    let mut rig = Rig::enforce();
    rig.sends(&["BLPOP l 0"]);
    let started = std::time::Instant::now();
    let many = command("SET lock:a 1").repeat(1000);
    for _ in 0..60 {
        rig.sends_bytes(&many);
        while !rig.take_upstream().is_empty() {}
    }
    // Walking it took 40 s here, this 0.3 s.
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
}

#[test]
fn commands_on_many_locks_whose_answers_are_due_are_read_up_to_a_bound() {
    let mut rig = Rig::enforce();
    rig.sends(&["BLPOP nothing 0"]);
    let keys: Vec<String> = (0..3000).map(|n| format!("lock:{n:04}")).collect();
    let many = format!("DEL {}", keys.join(" "));
    let mut sent = 0;
    while rig.reads().0 && sent < 100 {
        rig.sends(&[&many]);
        rig.take_upstream();
        sent += 1;
    }
    assert!((2..30).contains(&sent), "{sent} were read");
    assert!(rig.session.held() > 4 << 20, "{} bytes are counted", rig.session.held());
}
