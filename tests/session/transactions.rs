//! MULTI, EXEC, DISCARD, WATCH: the session follows what the server has said, however a transaction ends.

use lockward::session::{Next, Notice};

use crate::rig::Rig;

#[test]
fn exec_is_one_answer() {
    let mut rig = Rig::plain();
    rig.sends(&["MULTI", "INCR a", "INCR b", "EXEC", "PING"]);
    rig.server("+OK|+QUEUED|+QUEUED|*2|:1|-ERR b|+PONG|");
    rig.heard("+OK|+QUEUED|+QUEUED|*2|:1|-ERR b|+PONG|");
    let names: Vec<_> = rig.settled();
    assert_eq!(
        names,
        [
            ("multi", false),
            ("incr", false),
            ("incr", false),
            ("exec", false),
            ("ping", false)
        ]
    );
}

#[test]
fn every_end_of_a_transaction_leaves_it_in_step() {
    for (end, reply) in [
        ("EXEC", "*-1|"),
        ("EXEC", "_|"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.|"),
        (
            "EXEC foo",
            "-EXECABORT Transaction discarded because of: wrong number of arguments|",
        ),
        ("DISCARD", "+OK|"),
        ("RESET", "+RESET|"),
    ] {
        for special in ["KEYS *", "INCR a"] {
            let mut rig = Rig::enforce();
            rig.passes("MULTI", "+OK|");
            rig.passes(special, "+QUEUED|");
            rig.passes(end, reply);
            rig.session.leave();
            assert_eq!(rig.session.next(), Next::Close, "{end} ends the transaction");
        }
    }
}

#[test]
fn after_exec_with_arguments_a_command_blocks_again() {
    let mut rig = Rig::plain();
    rig.passes("MULTI", "+OK|");
    rig.passes(
        "EXEC foo",
        "-EXECABORT Transaction discarded because of: wrong number of arguments|",
    );
    rig.sends(&["BLPOP l 0"]);
    let now = rig.now();
    rig.session.downstream_ended(now);
    assert_eq!(rig.session.next(), Next::Abort);
}

#[test]
fn nested_multi_leaves_the_transaction_open_however_the_server_says_it() {
    for error in [
        "-ERR MULTI calls can not be nested|",
        "-ERR Command 'multi' not allowed inside a transaction|",
    ] {
        let mut rig = Rig::enforce();
        rig.passes("MULTI", "+OK|");
        rig.passes("MULTI", error);
        rig.passes("KEYS *", "+QUEUED|");
        // As inside a transaction: the server is made to fail.
        rig.sends(&["GET lockward:{a}"]);
        rig.server_got(&["LOCKWARD.REFUSED"]);
    }
}

#[test]
fn after_a_refused_multi_nothing_is_queued() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "SET a 1", "EXEC"]);
    rig.server("-NOAUTH Authentication required.|-NOAUTH Authentication required.|-ERR EXEC without MULTI|");
    rig.is_in_step();
}

#[test]
fn a_refused_multi_does_not_end_the_one_behind_it() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "EXEC", "MULTI", "KEYS a*"]);
    rig.server("-LOADING|-EXECABORT no|");
    rig.server("+OK|+QUEUED|");
    rig.take_upstream();
    rig.take_downstream();
    rig.sends(&["EXEC"]);
    rig.server("*1|*2|$1|a|$12|lockward:{a}|");
    rig.heard("*1|*1|$1|a|");
}

#[test]
fn what_blocks_behind_a_refused_multi_does_block() {
    let mut rig = Rig::plain();
    rig.sends(&["MULTI", "BLPOP l 0"]);
    rig.server("-NOPERM no|");
    assert!(rig.session.is_blocked());
    let mut rig = Rig::plain();
    rig.sends(&["MULTI", "BLPOP l 0", "EXEC"]);
    rig.server("+OK|");
    assert!(!rig.session.is_blocked());
    rig.server("+QUEUED|*1|*-1|");
    assert!(!rig.session.is_blocked());
}

#[test]
fn watch_inside_multi_is_refused_and_changes_nothing() {
    let mut rig = Rig::enforce();
    rig.passes("MULTI", "+OK|");
    rig.passes("WATCH lock:a", "-ERR WATCH inside MULTI is not allowed|");
    rig.passes("KEYS *", "+QUEUED|");
    rig.passes("EXEC", "*1|*1|$1|a|");
    rig.is_in_step();
    assert!(rig.notices().is_empty());
}

fn watching(key: &'static str, on: bool) -> Notice {
    let database = 0;
    Notice::Watching {
        database,
        key: key.into(),
        on,
    }
}

#[test]
fn the_keeper_hears_which_locks_are_watched() {
    for (end, reply) in [
        ("EXEC", "*0|"),
        ("EXEC", "*-1|"),
        ("DISCARD", "+OK|"),
        ("UNWATCH", "+OK|"),
        ("RESET", "+RESET|"),
    ] {
        let mut rig = Rig::enforce();
        rig.passes("WATCH a lock:x b", "+OK|");
        rig.passes("WATCH lock:x", "+OK|");
        assert_eq!(rig.notices(), [watching("lock:x", true)], "once, however often");
        if end == "EXEC" || end == "DISCARD" {
            rig.passes("MULTI", "+OK|");
        }
        rig.passes(end, reply);
        assert_eq!(rig.notices(), [watching("lock:x", false)], "{end}");
    }
}

#[test]
fn exec_without_multi_goes_on_watching() {
    let mut rig = Rig::enforce();
    rig.passes("WATCH lock:x", "+OK|");
    rig.notices();
    rig.passes("EXEC", "-ERR EXEC without MULTI|");
    assert!(rig.notices().is_empty());
}

#[test]
fn a_refused_watch_is_none() {
    let mut rig = Rig::enforce();
    rig.passes("WATCH lock:x", "-NOPERM no|");
    assert!(rig.notices().is_empty());
}

#[test]
fn an_array_of_another_size_than_was_queued_ends_the_connection() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "KEYS *", "EXEC"]);
    rig.server("+OK|+QUEUED|*2|*0|*0|");
    rig.is_over();
}
