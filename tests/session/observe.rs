//! Rules in observe mode: whatever a client does with locks, the bytes in both directions are those of a direct
//! connection.

use lockward::lock::rule::Mode;

use crate::rig::{Rig, pipeline};

const LOCKS: [&str; 14] = [
    "SET lock:a 1 NX EX 30",
    "SETNX lock:a 1",
    "EXPIRE lock:a 60",
    "DEL lock:a lock:b plain",
    "SET lock:a 2",
    "GETSET lock:a 3",
    "MSET lock:a 1 plain 2",
    "GETDEL lock:a",
    "RENAME lock:a lock:b",
    "EVAL return(1) 1 lock:a",
    "EVALSHA 0000000000000000000000000000000000000000 1 lock:a",
    "DELEX lock:a IFEQ 1",
    "KEYS *",
    "GET lockward:{lock:a}",
];

#[test]
fn no_byte_of_a_lock_command_differs() {
    let mut rig = Rig::new(Mode::Observe);
    for line in LOCKS {
        rig.passes(line, "$5|value|");
    }
    rig.is_in_step();
}

#[test]
fn nor_in_a_pipeline_or_a_transaction() {
    let mut rig = Rig::new(Mode::Observe);
    let lines = [
        "MULTI",
        "SETNX lock:a 1",
        "DEL lock:a",
        "EVAL return(1) 1 lock:a",
        "EXEC",
        "SETNX lock:a 1",
    ];
    rig.sends(&lines);
    assert_eq!(rig.take_upstream(), pipeline(&lines));
    let replies = "+OK|+QUEUED|+QUEUED|+QUEUED|*3|:1|:1|:1|:1|";
    rig.server(replies);
    rig.heard(replies);
    rig.is_in_step();
}

#[test]
fn nor_when_replies_are_switched_off() {
    let mut rig = Rig::new(Mode::Observe);
    rig.sends(&["GET a", "CLIENT REPLY OFF", "SETNX lock:a 1"]);
    rig.server_got(&["GET a"]);
    rig.server("$1|x|");
    rig.heard("$1|x|");
    let rest = ["CLIENT REPLY OFF", "SETNX lock:a 1"];
    assert_eq!(rig.take_upstream(), pipeline(&rest));
    rig.sends(&["CLIENT REPLY ON"]);
    rig.server_got(&["CLIENT REPLY ON"]);
    rig.server("+OK|");
    rig.heard("+OK|");
}

#[test]
fn a_release_is_told_before_it_is_sent_unless_it_is_queued() {
    let mut rig = Rig::new(Mode::Observe);
    rig.sends(&["SETNX lock:a 1", "GET lock:a", "DEL lock:a", "UNLINK lock:b plain"]);
    assert_eq!(rig.session.releasing.len(), 2);
    assert!(rig.session.releasing.iter().all(|release| release.gives_up()));
    rig.session.releasing.clear();
    rig.server(":1|$1|1|:1|:0|");
    rig.sends(&["MULTI", "DEL lock:a"]);
    assert!(rig.session.releasing.is_empty(), "EXEC carries it out, if it does");
}
