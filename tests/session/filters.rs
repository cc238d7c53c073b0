//! Record keys are not shown where keys are listed, and not touched where they are named.

use crate::rig::Rig;

const HELLO: &str = "%1|$5|proto|:3|";
const HELD: &str = "*3|$1|a|$17|lockward:{lock:a}|$6|lock:a|";
const REFUSED: &str = "-LOCKWARD this key belongs to lockward: lease records are neither read nor written by clients|";

#[test]
fn keys_and_scan_leave_record_keys_out() {
    for hello in [false, true] {
        let mut rig = Rig::enforce();
        if hello {
            rig.passes("HELLO 3", HELLO);
        }
        rig.sends(&["KEYS *", "SCAN 0", "PING"]);
        rig.server(HELD);
        rig.server(&["*2|$2|17|", HELD, "+PONG|"].concat());
        rig.heard("*2|$1|a|$6|lock:a|*2|$2|17|*2|$1|a|$6|lock:a|+PONG|");
        rig.is_in_step();
    }
}

#[test]
fn in_any_pieces() {
    for pieces in 1..12 {
        let mut rig = Rig::enforce().in_pieces_of(pieces);
        rig.sends(&["SCAN 0 MATCH * COUNT 100", "PING"]);
        rig.server(&["*2|$2|17|", HELD, "+PONG|"].concat());
        rig.heard("*2|$2|17|*2|$1|a|$6|lock:a|+PONG|");
    }
}

#[test]
fn inside_exec_too() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "GET a", "KEYS *", "SCAN 0", "INCR n", "EXEC"]);
    rig.server("+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|*4|$1|1|");
    rig.server(HELD);
    rig.server(&["*2|$1|0|", HELD, ":5|"].concat());
    rig.heard("+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|*4|$1|1|*2|$1|a|$6|lock:a|*2|$1|0|*2|$1|a|$6|lock:a|:5|");
    rig.is_in_step();
}

#[test]
fn an_error_in_place_of_a_list_is_passed_on() {
    let mut rig = Rig::enforce();
    rig.passes("SCAN x", "-ERR invalid cursor|");
    rig.passes("KEYS *", "-NOPERM no|");
    rig.is_in_step();
}

#[test]
fn nothing_is_left_out_without_a_rule_in_force() {
    let mut rig = Rig::plain();
    rig.passes("KEYS *", HELD);
    rig.passes("GET lockward:{lock:a}", "$-1|");
}

#[test]
fn invalidations_leave_record_keys_out() {
    let mut rig = Rig::enforce();
    rig.passes("HELLO 3", HELLO);
    rig.server(">2|$10|invalidate|*2|$1|a|$17|lockward:{lock:a}|");
    rig.heard(">2|$10|invalidate|*1|$1|a|");
    // Only records: nothing.
    rig.server(">2|$10|invalidate|*1|$17|lockward:{lock:a}|");
    rig.heard("");
    rig.server(">2|$10|invalidate|_|");
    rig.heard(">2|$10|invalidate|_|");
    rig.is_in_step();
}

#[test]
fn redirected_invalidations_too() {
    for pieces in [1, 7, usize::MAX] {
        let mut rig = Rig::enforce().in_pieces_of(pieces);
        rig.passes(
            "SUBSCRIBE __redis__:invalidate",
            "*3|$9|subscribe|$20|__redis__:invalidate|:1|",
        );
        rig.server("*3|$7|message|$20|__redis__:invalidate|*2|$17|lockward:{lock:a}|$1|a|");
        rig.heard("*3|$7|message|$20|__redis__:invalidate|*1|$1|a|");
        rig.server("*3|$7|message|$20|__redis__:invalidate|*1|$17|lockward:{lock:a}|");
        rig.heard("");
        rig.server("*3|$7|message|$20|__redis__:invalidate|*-1|");
        rig.heard("*3|$7|message|$20|__redis__:invalidate|*-1|");
        // Another channel's payload is not looked at.
        rig.server("*3|$7|message|$2|ch|$17|lockward:{lock:a}|");
        rig.heard("*3|$7|message|$2|ch|$17|lockward:{lock:a}|");
    }
}

#[test]
fn record_keys_are_refused_wherever_they_are_named() {
    for line in [
        "GET lockward:{lock:a}",
        "DEL x lockward:{lock:a}",
        "HGETALL lockward:{lock:a}",
        "SET lockward:{lock:a} 1",
        "EVAL script 1 lockward:{lock:a}",
        "WATCH lockward:{lock:a}",
        "RENAME a lockward:{lock:a}",
        "BLPOP lockward:{lock:a} 0",
        "OBJECT ENCODING lockward:{lock:a}",
    ] {
        let mut rig = Rig::enforce();
        rig.sends(&["GET a", line, "GET b"]);
        rig.server_got(&["GET a", "PING", "GET b"]);
        rig.server(":1|+PONG|:2|");
        rig.heard(&[":1|", REFUSED, ":2|"].concat());
        let settled = rig.settled();
        assert_eq!(settled.len(), 3);
        assert!(settled[1].1, "the refused command is counted as an error: {line}");
        rig.is_in_step();
    }
}

#[test]
fn inside_a_transaction_the_server_is_made_to_fail() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "GET lockward:{lock:a}", "GET b", "EXEC"]);
    rig.server_got(&["MULTI", "LOCKWARD.REFUSED", "GET b", "EXEC"]);
    rig.server("+OK|-ERR unknown command 'LOCKWARD.REFUSED'|+QUEUED|-EXECABORT Transaction discarded|");
    rig.heard(&["+OK|", REFUSED, "+QUEUED|-EXECABORT Transaction discarded|"].concat());
    rig.is_in_step();
}

#[test]
fn who_has_not_logged_in_hears_that_first() {
    let mut rig = Rig::enforce();
    rig.sends(&["GET lockward:{lock:a}"]);
    rig.server("-NOAUTH Authentication required.|");
    rig.heard("-NOAUTH Authentication required.|");
    rig.is_in_step();
}

#[test]
fn clients_are_not_led_around_the_proxy() {
    const UNKNOWN: &str = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.|";
    let mut rig = Rig::plain();
    rig.sends(&["CLIENT MAINT_NOTIFICATIONS ON", "PING"]);
    rig.server_got(&["PING", "PING"]);
    rig.server("+PONG|+PONG|");
    rig.heard(&[UNKNOWN, "+PONG|"].concat());

    rig.sends(&[
        "MULTI",
        "CLIENT maint_notifications ON moving-endpoint-type none",
        "EXEC",
    ]);
    rig.server("+OK|-ERR unknown command|-EXECABORT Transaction discarded|");
    rig.heard(&["+OK|", UNKNOWN, "-EXECABORT Transaction discarded|"].concat());
}
