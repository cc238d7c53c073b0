//! Commands on lock keys, as far as the order of things goes: what a script means is tested elsewhere.

use crate::rig::{Rig, readable};

fn sent(rig: &mut Rig) -> String {
    readable(&rig.take_upstream())
}

/// What a script answers: its report, and the client's own reply.
fn reported(report: &str, reply: &str) -> String {
    format!("*2|${}|{report}|{reply}", report.len())
}

#[test]
fn a_lone_command_goes_by_hash_and_holds_back_what_follows() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    assert!(sent(&mut rig).contains("$7|EVALSHA|"));
    rig.sends(&["GET a"]);
    rig.server_got(&[]);
    rig.server(&reported("granted ttl=30000", "+OK|"));
    rig.heard("+OK|");
    rig.server_got(&["GET a"]);
}

#[test]
fn an_unknown_script_is_sent_again_with_its_text_and_nobody_notices() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    let first = sent(&mut rig);
    rig.sends(&["GET a"]);
    rig.server("-NOSCRIPT No matching script.|");
    rig.heard("");
    let second = sent(&mut rig);
    assert!(
        second.contains("$4|EVAL|") && !second.contains("$3|GET|$1|a|"),
        "{second}"
    );
    assert!(second.ends_with(&first[first.len() - 40..]), "the same arguments");
    rig.server(&reported("granted ttl=30000", "+OK|"));
    rig.heard("+OK|");
    rig.server_got(&["GET a"]);
    assert_eq!(rig.settled().len(), 1);
}

#[test]
fn in_a_pipeline_scripts_go_with_their_text() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX EX 30", "DEL lock:a", "GET a"]);
    let all = sent(&mut rig);
    assert_eq!(all.matches("$4|EVAL|").count(), 2, "{all}");
    assert!(all.ends_with("*2|$3|GET|$1|a|"));
    rig.server(
        &[
            &reported("granted ttl=30000", "+OK|"),
            &reported("released", ":1|"),
            "$-1|",
        ]
        .concat(),
    );
    rig.heard("+OK|:1|$-1|");
    assert_eq!(rig.settled().len(), 3);
}

#[test]
fn answers_in_any_pieces() {
    for pieces in 1..14 {
        let mut rig = Rig::enforce().in_pieces_of(pieces);
        rig.sends(&["SET lock:a 1 NX EX 30", "DEL lock:a", "EVAL script 1 lock:a", "GET a"]);
        let all = [
            &reported("granted ttl=30000", "+OK|"),
            &reported("foreign refused=foreign", ":0|"),
            ":7|",
            &reported("", ":0|"),
            "$-1|",
        ]
        .concat();
        rig.server(&all);
        rig.heard("+OK|:0|:7|$-1|");
        assert_eq!(rig.settled().len(), 4, "the reconcile is nobody's command");
    }
}

#[test]
fn an_error_within_an_answer_is_counted_as_one() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1"]);
    rig.take_upstream();
    rig.server(&reported(
        "refused=foreign",
        "-LOCKHELD lock 'lock:a' is held by another client|",
    ));
    assert_eq!(rig.settled(), [("set", true)]);
}

#[test]
fn inside_a_transaction_each_element_is_the_clients_own() {
    let mut rig = Rig::enforce();
    rig.sends(&[
        "MULTI",
        "SET lock:a 1 NX EX 30",
        "EVAL script 1 lock:a",
        "GET a",
        "EXEC",
    ]);
    let all = sent(&mut rig);
    assert!(!all.contains("EVALSHA"), "{all}");
    rig.server("+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|");
    rig.heard("+OK|+QUEUED|+QUEUED|+QUEUED|");
    rig.server(
        &[
            "*4|",
            &reported("granted ttl=30000", "+OK|"),
            ":7|",
            &reported("", ":0|"),
            "$-1|",
        ]
        .concat(),
    );
    rig.heard("*3|+OK|:7|$-1|");
    rig.is_in_step();
}

#[test]
fn a_client_that_hears_nothing_leaves_nothing_out_of_step() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY SKIP", "EVAL script 1 lock:a", "SET lock:a 1 NX", "GET a"]);
    rig.server("+OK|:7|");
    rig.server(&[&reported("", ":0|"), "$-1|", "$1|1|"].concat());
    rig.heard("$-1|$1|1|");
    rig.is_in_step();
}

#[test]
fn a_command_that_no_script_can_take_is_refused_before_it_is_sent() {
    let mut rig = Rig::enforce();
    let keys = " set".repeat(8_000);
    rig.sends(&[&format!("SUNIONSTORE lock:a{keys}")]);
    rig.server_got(&["PING"]);
    rig.server("+PONG|");
    rig.heard("-LOCKWARD too many arguments for a command that writes or removes a lock|");
    rig.sends(&[&format!("DEL lock:a{keys}")]);
    assert!(rig.take_upstream().starts_with(b"*800"));
    rig.server("*2|$6|absent|:0|");
    rig.heard(":0|");
}
