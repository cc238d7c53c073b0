//! Half-closed, reset, drained, cut off: what is due is delivered, nothing is swallowed, nothing hangs.

use lockward::session::Next;

use crate::rig::{Rig, command};

fn ended(rig: &mut Rig) -> Next {
    let now = rig.now();
    rig.session.downstream_ended(now);
    rig.session.next()
}

#[test]
fn half_closed_with_answers_due() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a", "GET b"]);
    ended(&mut rig);
    assert_eq!(rig.reads(), (false, true));
    rig.server_got(&["GET a", "GET b"]);
    rig.server(":1|");
    rig.goes_on();
    rig.server(":2|");
    rig.heard(":1|:2|");
    rig.is_over();
    assert!(rig.session.was_ended_by_client());
}

#[test]
fn half_closed_with_requests_held_behind_a_gate() {
    let mut rig = Rig::plain();
    rig.sends(&["SELECT 1", "GET a", "SELECT 2", "GET b"]);
    ended(&mut rig);
    rig.server_got(&["SELECT 1"]);
    rig.server("+OK|");
    rig.server_got(&["GET a", "SELECT 2"]);
    rig.server(":1|+OK|");
    rig.server_got(&["GET b"]);
    rig.goes_on();
    rig.server(":2|");
    rig.heard("+OK|:1|+OK|:2|");
    rig.is_over();
}

#[test]
fn a_partial_request_is_nothing() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.sends_bytes(b"*2\r\n$3\r\nGET\r\n$1\r\n");
    ended(&mut rig);
    rig.server_got(&["GET a"]);
    rig.server(":1|");
    rig.heard(":1|");
    rig.is_over();
}

#[test]
fn a_blocked_client_that_leaves_takes_its_upstream_with_it() {
    for line in ["BLPOP l 0", "XREAD BLOCK 0 STREAMS s $", "WAIT 1 0", "BZPOPMIN z 0"] {
        let mut rig = Rig::plain();
        rig.sends(&["GET a", line]);
        assert!(rig.session.is_blocked());
        assert_eq!(ended(&mut rig), Next::Abort, "{line}");
    }
}

#[test]
fn what_does_not_block_is_answered() {
    for line in ["XREAD COUNT 1 STREAMS s 0", "LPOP l"] {
        let mut rig = Rig::plain();
        rig.sends(&[line]);
        assert!(!rig.session.is_blocked());
        assert_eq!(
            ended(&mut rig),
            Next::Wait {
                read_downstream: false,
                read_upstream: true
            },
            "{line}"
        );
    }
}

#[test]
fn once_it_was_answered_nothing_blocks_any_more() {
    let mut rig = Rig::plain();
    rig.passes("BLPOP l 1", "*-1|");
    assert_eq!(ended(&mut rig), Next::Close);
}

#[test]
fn a_command_that_begins_to_block_after_the_client_ended() {
    let mut rig = Rig::plain();
    rig.sends(&["SELECT 1", "BLPOP l 0"]);
    ended(&mut rig);
    rig.server("+OK|");
    assert_eq!(rig.session.next(), Next::Abort);
}

#[test]
fn the_end_is_noticed_even_behind_quit() {
    let mut rig = Rig::plain();
    rig.sends(&["BLPOP l 0", "QUIT"]);
    assert_eq!(
        rig.reads(),
        (true, true),
        "it is listened to, though nothing counts any more"
    );
    rig.sends(&["SET a 1"]);
    rig.server_got(&["BLPOP l 0", "QUIT"]);
    assert_eq!(ended(&mut rig), Next::Abort);
}

#[test]
fn the_end_is_noticed_even_behind_a_broken_protocol() {
    let mut rig = Rig::plain();
    rig.sends(&["BLPOP l 0"]);
    rig.sends_bytes(b"*x\r\n");
    rig.heard("");
    assert_eq!(rig.reads(), (true, true));
    assert_eq!(ended(&mut rig), Next::Abort);
}

#[test]
fn a_reset_ends_everything_at_once() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.session.downstream_lost();
    assert_eq!(rig.session.next(), Next::Abort);
}

#[test]
fn a_server_cut_off_in_the_middle_shows_what_came() {
    for came in ["$10|half", "*3|:1|$", "+O", "*2|"] {
        let mut rig = Rig::plain();
        rig.sends(&["GET a", "GET b"]);
        rig.server(&[":1|", came].concat());
        rig.session.upstream_ended();
        rig.heard(&[":1|", came].concat());
        rig.is_over();
        assert!(!rig.session.was_ended_by_client());
    }
}

#[test]
fn a_cut_off_acknowledgement_is_shown_and_a_cut_off_list_of_keys_is_not() {
    let mut rig = Rig::enforce();
    rig.sends(&["SUBSCRIBE a"]);
    rig.server("*3|$9|subscribe|$1|");
    rig.session.upstream_ended();
    rig.heard("*3|$9|subscribe|$1|");

    let mut rig = Rig::enforce();
    rig.sends(&["KEYS *"]);
    rig.server("*2|$12|lockward:{a}|$1|");
    rig.session.upstream_ended();
    rig.heard("");
}

#[test]
fn everything_that_came_is_delivered_however_much_waits() {
    let mut rig = Rig::enforce();
    rig.sends(&["GET a", "KEYS *", "PING"]);
    let big = format!("$400000|{}|", "x".repeat(400_000));
    rig.server(&[&big, "*2|$12|lockward:{a}|$1|b|", "+PONG|"].concat());
    rig.session.upstream_ended();
    rig.heard(&[&big, "*1|$1|b|", "+PONG|"].concat());
    rig.is_over();
}

#[test]
fn answers_to_questions_of_ours_are_not_shown_when_cut_off() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX"]);
    rig.server("*2|$40|granted tok");
    rig.session.upstream_ended();
    rig.heard("");
    rig.is_over();
}

#[test]
fn a_drain_ends_an_idle_client_at_once() {
    let mut rig = Rig::plain();
    rig.session.leave();
    rig.is_over();
}

#[test]
fn a_drain_waits_for_answers_and_reads_no_new_request() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.take_upstream();
    rig.session.leave();
    assert_eq!(rig.reads(), (false, true));
    rig.server(":1|");
    rig.heard(":1|");
    rig.is_over();
}

#[test]
fn what_was_read_of_a_client_is_served_before_it_leaves() {
    let leaving: [fn(&mut Rig); 2] = [|rig| rig.session.leave_soon(), |rig| rig.session.leave()];
    for leave in leaving {
        let mut rig = Rig::plain();
        // The second waits behind the first.
        rig.sends(&["SELECT 1", "GET a"]);
        rig.server_got(&["SELECT 1"]);
        leave(&mut rig);
        rig.server("+OK|");
        rig.server_got(&["GET a"]);
        rig.goes_on();
        rig.server(":1|");
        rig.heard("+OK|:1|");
        rig.is_over();
    }
}

#[test]
fn who_leaves_soon_is_heard_until_nothing_is_under_way() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.session.leave_soon();
    assert_eq!(rig.reads(), (true, true));
    rig.sends(&["GET b"]);
    let request = command("SET a 1");
    rig.sends_bytes(&request[..10]);
    rig.server_got(&["GET a", "GET b"]);
    rig.server(":1|:2|");
    rig.heard(":1|:2|");
    assert_eq!(rig.reads(), (true, true), "the rest of that request is on its way");
    rig.sends_bytes(&request[10..]);
    rig.server_got(&["SET a 1"]);
    rig.server("+OK|");
    rig.heard("+OK|");
    rig.is_over();
}

#[test]
fn a_drain_waits_for_the_end_of_a_transaction() {
    let mut rig = Rig::plain();
    rig.passes("MULTI", "+OK|");
    rig.session.leave();
    assert_eq!(rig.reads(), (true, true));
    rig.sends(&["SET a 1", "EXEC", "GET a"]);
    rig.server_got(&["SET a 1", "EXEC", "GET a"]);
    assert_eq!(rig.reads(), (false, true));
    rig.server("+QUEUED|*1|+OK|:1|");
    rig.heard("+QUEUED|*1|+OK|:1|");
    rig.is_over();
}

#[test]
fn a_drain_does_not_wait_for_a_transaction_that_the_server_refused() {
    let mut rig = Rig::plain();
    rig.passes("MULTI", "-NOPERM no|");
    rig.session.leave();
    rig.is_over();
}

#[test]
fn a_drain_ends_blocked_and_subscribed_clients_at_once() {
    let mut rig = Rig::plain();
    rig.sends(&["BLPOP l 0"]);
    rig.session.leave();
    assert_eq!(rig.session.next(), Next::Abort);

    let mut rig = Rig::plain();
    rig.sends(&["BLPOP l 0", "QUIT"]);
    rig.session.leave();
    assert_eq!(rig.session.next(), Next::Abort);

    let mut rig = Rig::plain();
    rig.passes("SUBSCRIBE a", "*3|$9|subscribe|$1|a|:1|");
    rig.server("*3|$7|message|$1|a|$5|he");
    rig.session.leave();
    rig.goes_on();
    rig.server("llo|");
    rig.heard("*3|$7|message|$1|a|$5|hello|");
    rig.is_over();
}

#[test]
fn a_drain_does_not_wait_for_a_partial_request() {
    let mut rig = Rig::plain();
    let request = command("SET a 1");
    rig.sends_bytes(&request[..10]);
    rig.session.leave();
    rig.is_over();
    rig.server_got(&[]);
}

#[test]
fn who_waits_for_something_is_not_idle_and_a_part_of_a_request_is_nothing() {
    let mut rig = Rig::enforce();
    assert!(rig.session.waits_for_nothing());
    rig.sends_bytes(b"*2\r\n$4\r\nECHO\r\n$1");
    assert!(rig.session.waits_for_nothing(), "its rest does not come");
    rig.sends_bytes(b"\r\na\r\n");
    assert!(!rig.session.waits_for_nothing());
    rig.server_got(&["ECHO a"]);
    rig.server("$1|a|");
    rig.heard("$1|a|");
    assert!(rig.session.waits_for_nothing());
    rig.passes("MULTI", "+OK|");
    rig.session.idle_for_too_long();
    assert_eq!(rig.session.next(), Next::Abort, "a transaction is given up");
}
