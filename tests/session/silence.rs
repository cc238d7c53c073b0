//! `CLIENT REPLY OFF`, `SKIP`, `ON`: what the client hears is what a direct connection would let it hear (measured on
//! Redis 7.0.15 and Valkey 9.1.2), though the server is never told to be silent.

use lockward::lock::rule::Mode;
use lockward::session::Next;

use crate::rig::{Rig, command, policy, wire};

/// What the server gets for `CLIENT REPLY OFF` and `SKIP`.
const ASKED: &str = "CLIENT REPLY ON";

#[test]
fn off_and_on() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF", "SET a 1", "GET a", "CLIENT REPLY ON", "PING"]);
    rig.server_got(&[ASKED, "SET a 1", "GET a", ASKED, "PING"]);
    rig.server("+OK|+OK|$1|1|+OK|+PONG|");
    rig.heard("+OK|+PONG|");
    assert_eq!(rig.settled().len(), 5, "unheard commands are counted too");
    rig.is_in_step();
}

#[test]
fn skip_leaves_out_one_answer() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP", "ECHO a", "ECHO b"]);
    rig.server_got(&[ASKED, "ECHO a", "ECHO b"]);
    rig.server("+OK|$1|a|$1|b|");
    rig.heard("$1|b|");
}

#[test]
fn skip_twice_is_skip_once() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "ECHO a", "ECHO b"]);
    rig.server("+OK|+OK|$1|a|$1|b|");
    rig.heard("$1|b|");
}

#[test]
fn skip_while_off_means_nothing() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "CLIENT REPLY OFF",
        "CLIENT REPLY SKIP",
        "CLIENT REPLY ON",
        "PING",
        "PING",
    ]);
    rig.server("+OK|+OK|+OK|+PONG|+PONG|");
    rig.heard("+OK|+PONG|+PONG|");
}

#[test]
fn an_empty_line_is_what_skip_speaks_of() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP"]);
    rig.sends_bytes(b"\r\n");
    rig.sends(&["PING"]);
    rig.server("+OK|+PONG|");
    rig.heard("+PONG|");

    rig.sends(&["CLIENT REPLY SKIP"]);
    rig.server("+OK|");
    rig.sends_bytes(&[wire("*0|"), command("PING")].concat());
    rig.server("+PONG|");
    rig.heard("+PONG|");
}

#[test]
fn a_refusal_changes_nothing() {
    for error in [
        "-NOPERM User u has no permissions|",
        "-NOAUTH Authentication required.|",
    ] {
        for line in ["CLIENT REPLY OFF", "CLIENT REPLY SKIP"] {
            let mut rig = Rig::enforce();
            rig.sends(&[line, "PING"]);
            rig.server(error);
            rig.server("+PONG|");
            rig.heard(&format!("{error}+PONG|"));
            rig.is_in_step();
        }
    }
}

#[test]
fn a_refused_on_leaves_answers_off() {
    // A subscribed client of RESP2 may not say CLIENT REPLY ON.
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF", "SUBSCRIBE a", "CLIENT REPLY ON", "PING"]);
    rig.server("+OK|*3|$9|subscribe|$1|a|:1|-ERR Can't execute 'client'|*2|$4|pong|$0||");
    rig.heard("*3|$9|subscribe|$1|a|:1|");
}

#[test]
fn inside_multi_off_takes_hold_when_exec_comes_to_it() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "MULTI",
        "ECHO a",
        "CLIENT REPLY OFF",
        "ECHO b",
        "EXEC",
        "PING",
        "CLIENT REPLY ON",
    ]);
    rig.server_got(&["MULTI", "ECHO a", ASKED, "ECHO b", "EXEC", "PING", ASKED]);
    rig.server("+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|a|+OK|$1|b|+PONG|+OK|");
    rig.heard("+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|a|+OK|");
    rig.is_in_step();
}

#[test]
fn inside_multi_skip_means_itself_and_the_command_behind_exec() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "ECHO a", "CLIENT REPLY SKIP", "ECHO b", "EXEC", "PING", "PING"]);
    rig.server("+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|a|+OK|$1|b|+PONG|+PONG|");
    rig.heard("+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|a|$1|b|+PONG|");
}

#[test]
fn on_inside_multi_lets_the_rest_of_the_array_be_heard() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "CLIENT REPLY OFF",
        "MULTI",
        "ECHO a",
        "CLIENT REPLY ON",
        "ECHO b",
        "EXEC",
        "PING",
    ]);
    rig.server("+OK|+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|a|+OK|$1|b|+PONG|");
    rig.heard("+OK|$1|b|+PONG|");
    rig.is_in_step();
}

#[test]
fn a_transaction_without_answers() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "CLIENT REPLY OFF",
        "MULTI",
        "SET a 1",
        "EXEC",
        "CLIENT REPLY ON",
        "GET a",
    ]);
    rig.server("+OK|+OK|+QUEUED|*1|+OK|+OK|$1|1|");
    rig.heard("+OK|$1|1|");
}

#[test]
fn skip_before_multi_leaves_out_its_ok_only() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP", "MULTI", "ECHO a", "EXEC"]);
    rig.server("+OK|+OK|+QUEUED|*1|$1|a|");
    rig.heard("+QUEUED|*1|$1|a|");
}

#[test]
fn reset_is_heard_after_off_and_not_after_skip() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF", "RESET", "PING"]);
    rig.server("+OK|+RESET|");
    rig.server("+PONG|");
    rig.heard("+RESET|+PONG|");

    rig.sends(&["CLIENT REPLY SKIP", "RESET", "PING"]);
    rig.server("+OK|+RESET|");
    rig.server("+PONG|");
    rig.heard("+PONG|");
}

#[test]
fn acknowledgements_and_messages_are_heard_all_the_same() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF", "SUBSCRIBE a b", "PING", "UNSUBSCRIBE"]);
    rig.server("+OK|*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|");
    rig.server("*3|$7|message|$1|a|$1|x|*2|$4|pong|$0||");
    rig.server("*3|$11|unsubscribe|$1|b|:1|*3|$11|unsubscribe|$1|a|:0|");
    rig.heard(
        "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|*3|$7|message|$1|a|$1|x|\
         *3|$11|unsubscribe|$1|b|:1|*3|$11|unsubscribe|$1|a|:0|",
    );
    rig.sends(&["CLIENT REPLY ON"]);
    rig.server("+OK|");
    rig.heard("+OK|");
    rig.is_in_step();
}

#[test]
fn a_refused_subscription_is_not_heard() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP", "SUBSCRIBE a", "PING"]);
    rig.server("+OK|-NOPERM no|+PONG|");
    rig.heard("+PONG|");
}

#[test]
fn refusals_of_our_own_are_not_heard_either() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "CLIENT REPLY OFF",
        "GET lockward:{a}",
        "LOCKWARD HELP",
        "KEYS *",
        "CLIENT REPLY ON",
    ]);
    rig.server_got(&[ASKED, "PING", "PING", "KEYS *", ASKED]);
    rig.server("+OK|+PONG|+PONG|*1|$12|lockward:{a}|+OK|");
    rig.heard("+OK|");
}

#[test]
fn a_broken_protocol_is_not_told_to_a_client_that_wants_no_answers() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF"]);
    rig.sends_bytes(b"*x\r\n");
    rig.server_got(&[ASKED]);
    rig.server("+OK|");
    rig.heard("");
    rig.is_over();
}

#[test]
fn who_the_client_is_is_known_even_if_it_hears_nothing() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF", "CLIENT SETNAME worker"]);
    rig.server("+OK|+OK|");
    assert_eq!(rig.session.client_name(), b"worker");
    rig.sends(&["CLIENT SETNAME"]);
    rig.server("-ERR wrong number of arguments|");
    assert_eq!(rig.session.client_name(), b"worker");
    rig.heard("");
}

#[test]
fn who_was_only_carried_ends_when_a_rule_enforces() {
    let mut rig = Rig::new(Mode::Observe);
    rig.sends(&["CLIENT REPLY SKIP", "DEL lock:a"]);
    rig.server_got(&["CLIENT REPLY SKIP", "DEL lock:a"]);
    rig.session.adopt(&policy(Mode::Observe));
    rig.goes_on();
    rig.session.adopt(&policy(Mode::Enforce));
    assert_eq!(rig.session.next(), Next::Abort);
}
