//! `LOCKWARD …`: answered by the proxy, in its turn, after the server has let the client in.

use crate::rig::Rig;

const USAGE: &str = "-LOCKWARD unknown subcommand or wrong number of arguments. Try LOCKWARD HELP.|";

fn heard(rig: &mut Rig) -> String {
    String::from_utf8(rig.take_downstream()).expect("text")
}

#[test]
fn it_is_answered_in_its_turn() {
    let mut rig = Rig::enforce();
    rig.sends(&["GET a", "LOCKWARD WHOAMI", "lockward help", "GET b"]);
    rig.server_got(&["GET a", "PING", "PING", "GET b"]);
    rig.server(":1|+PONG|+PONG|:2|");
    let heard = heard(&mut rig);
    assert!(heard.starts_with(":1\r\n*4\r\n$10\r\nconnection\r\n"), "{heard}");
    assert!(heard.contains("address=10.0.0.7"), "{heard}");
    assert!(heard.contains("LOCKWARD <subcommand>"), "{heard}");
    assert!(heard.ends_with(":2\r\n"), "{heard}");
    let lockward = ("lockward", false);
    assert_eq!(rig.settled(), [("get", false), lockward, lockward, ("get", false)]);
}

#[test]
fn nonsense_is_refused() {
    for line in ["LOCKWARD NONSENSE", "LOCKWARD WHOAMI x", "LOCKWARD FENCE"] {
        let mut rig = Rig::enforce();
        rig.sends(&[line]);
        rig.server_got(&["PING"]);
        rig.server("+PONG|");
        rig.heard(USAGE);
        assert_eq!(rig.settled(), [("lockward", true)]);
        rig.is_in_step();
    }
}

#[test]
fn inside_a_transaction_it_is_queued() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "LOCKWARD HELP", "GET a", "EXEC"]);
    rig.server_got(&["MULTI", "PING", "GET a", "EXEC"]);
    rig.server("+OK|+QUEUED|+QUEUED|");
    rig.heard("+OK|+QUEUED|+QUEUED|");
    rig.server("*2|+PONG|$1|1|");
    let heard = heard(&mut rig);
    assert!(heard.starts_with("*2\r\n*7\r\n+LOCKWARD"), "{heard}");
    assert!(heard.ends_with("$1\r\n1\r\n"), "{heard}");
    rig.is_in_step();
}

#[test]
fn nonsense_inside_a_transaction_spoils_it() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "LOCKWARD NONSENSE", "EXEC"]);
    rig.server_got(&["MULTI", "LOCKWARD.REFUSED", "EXEC"]);
    rig.server("+OK|-ERR unknown command|-EXECABORT Transaction discarded|");
    rig.heard(&["+OK|", USAGE, "-EXECABORT Transaction discarded|"].concat());
    rig.is_in_step();
}

#[test]
fn who_has_not_logged_in_learns_nothing() {
    const NOAUTH: &str = "-NOAUTH Authentication required.|";
    for line in [
        "LOCKWARD HELP",
        "LOCKWARD WHOAMI",
        "LOCKWARD NONSENSE",
        "LOCKWARD FENCE lock:a",
    ] {
        let mut rig = Rig::enforce();
        rig.sends(&[line]);
        rig.server(NOAUTH);
        rig.heard(NOAUTH);
        rig.is_in_step();
    }
}

#[test]
fn a_subscribed_client_of_resp2_is_answered_too() {
    let mut rig = Rig::enforce();
    rig.passes("SUBSCRIBE a", "*3|$9|subscribe|$1|a|:1|");
    rig.sends(&["LOCKWARD HELP"]);
    rig.server("*2|$4|pong|$0||");
    assert!(heard(&mut rig).starts_with("*7\r\n+LOCKWARD"));
}
