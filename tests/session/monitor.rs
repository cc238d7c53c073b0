//! MONITOR: `+OK`, then lines that answer nobody.

use crate::rig::Rig;

const LINE: &str = "+1700000000.123456 [0 127.0.0.1:4000] \"GET\" \"a\"|";

fn monitoring() -> Rig {
    let mut rig = Rig::enforce();
    rig.passes("MONITOR", "+OK|");
    rig.settled();
    rig
}

#[test]
fn lines_are_told_from_answers() {
    let mut rig = monitoring();
    rig.sends(&["PING", "GET a"]);
    rig.server_got(&["PING", "GET a"]);
    let all = [
        LINE,
        "+PONG|",
        LINE,
        LINE,
        "-ERR Replica can't interact with the keyspace|",
        LINE,
    ]
    .concat();
    rig.server(&all);
    rig.heard(&all);
    assert_eq!(rig.settled(), [("ping", false), ("get", true)]);
}

#[test]
fn a_refused_monitor_changes_nothing() {
    let mut rig = Rig::plain();
    rig.passes("MONITOR", "-NOPERM no|");
    // Not a monitor line.
    rig.passes("EVAL script 0", "+1700000000|");
    assert_eq!(rig.settled().len(), 2);
    rig.is_in_step();
}

#[test]
fn what_follows_waits_for_the_answer() {
    let mut rig = Rig::plain();
    rig.sends(&["MONITOR", "PING"]);
    rig.server_got(&["MONITOR"]);
    rig.server("+OK|");
    rig.server_got(&["PING"]);
}

#[test]
fn a_second_monitor_and_sync_are_ignored_without_a_word() {
    let mut rig = monitoring();
    rig.sends(&["MONITOR", "SYNC", "PSYNC ? -1", "PING"]);
    rig.server_got(&["PING"]);
    rig.server("+PONG|");
    rig.heard("+PONG|");
    rig.is_in_step();
}

#[test]
fn reset_ends_it() {
    let mut rig = monitoring();
    rig.sends(&["RESET"]);
    rig.server(LINE);
    rig.server("+RESET|");
    rig.heard(&[LINE, "+RESET|"].concat());
    rig.take_upstream();
    rig.settled();
    rig.passes("EVAL script 0", "+1700000000|");
    assert_eq!(rig.settled().len(), 1, "this is an answer again");
    rig.passes("MONITOR", "+OK|");
}

#[test]
fn inside_multi_it_is_refused_when_exec_comes() {
    let mut rig = Rig::plain();
    rig.sends(&["MULTI"]);
    rig.server("+OK|");
    rig.sends(&["MONITOR"]);
    rig.server("+QUEUED|");
    rig.sends(&["EXEC"]);
    rig.server("*1|-ERR MONITOR isn't allowed for DENY BLOCKING client|");
    rig.take_upstream();
    rig.take_downstream();
    rig.settled();
    rig.passes("EVAL script 0", "+1700000000|");
    assert_eq!(rig.settled().len(), 1);
}

#[test]
fn no_lines_while_answers_are_off() {
    let mut rig = monitoring();
    rig.sends(&["CLIENT REPLY OFF"]);
    rig.server(&["+OK|", LINE, LINE].concat());
    rig.heard("");
    rig.sends(&["CLIENT REPLY ON"]);
    rig.server(&["+OK|", LINE].concat());
    rig.heard(&["+OK|", LINE].concat());
}

#[test]
fn a_monitoring_client_leaves_at_once() {
    let mut rig = monitoring();
    rig.session.leave();
    rig.is_over();
}
