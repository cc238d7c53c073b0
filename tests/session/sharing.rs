//! Shared connections, seen from one client: what may go out on one, when it needs its own, when it may do without again,
//! and that the answers due are counted right.

use lockward::event::Time;
use lockward::lock::rule::Mode;
use lockward::session::{Line, SHARED_PENDING_LIMIT};

use crate::rig::{Rig, command, pipeline, readable, wire};

/// Longer than a client has to be quiet, in microseconds.
const LATER: Time = Time(10_000_000);

fn on(line: Line) -> Rig {
    let mut rig = Rig::new(Mode::Enforce);
    rig.session.share();
    rig.session.moved(line);
    rig
}

/// What is sent, and how many answers are due for it.
fn sent(rig: &mut Rig) -> (String, u32) {
    let asked = rig.session.take_asked();
    (readable(&rig.take_upstream()), asked)
}

fn packet(lines: &[&str]) -> String {
    readable(&pipeline(lines))
}

#[test]
fn a_client_has_no_connection_before_it_asks_for_something() {
    let mut rig = on(Line::None);
    assert_eq!(rig.session.wants(), None);
    rig.sends(&["GET a"]);
    assert_eq!(rig.session.wants(), Some(Line::Shared));
    assert_eq!(sent(&mut rig), (String::new(), 0));
    rig.session.moved(Line::Shared);
    rig.session.advance(Time(9));
    assert_eq!(sent(&mut rig), (packet(&["GET a"]), 1));
}

#[test]
fn what_makes_no_state_goes_out_on_a_shared_connection() {
    for line in [
        "GET a",
        "SET a b",
        "MGET a b",
        "PING",
        "XREAD STREAMS a 0",
        "EVAL s 0",
        "KEYS *",
        "PUBLISH a b",
        "DEL lock:a",
    ] {
        let mut rig = on(Line::Shared);
        rig.sends(&[line]);
        let (bytes, asked) = sent(&mut rig);
        assert!(!bytes.is_empty() && asked == 1, "{line}: {bytes} {asked}");
        assert_eq!(rig.session.wants(), None, "{line}");
    }
}

#[test]
fn what_makes_state_waits_for_a_connection_of_its_own_behind_the_answers_due() {
    for line in [
        "MULTI",
        "WATCH a",
        "SUBSCRIBE a",
        "BLPOP a 0",
        "MONITOR",
        "AUTH a",
        "HELLO 3",
        "SELECT 1",
        "NOSUCH a",
        "CLIENT ID",
    ] {
        let mut rig = on(Line::Shared);
        rig.sends(&["GET a", line, "GET b"]);
        assert_eq!(sent(&mut rig), (packet(&["GET a"]), 1), "{line}");
        assert_eq!(rig.session.wants(), None, "{line}: an answer is due");
        rig.server("$1|x|");
        assert_eq!(rig.session.wants(), Some(Line::Own), "{line}");
        assert_eq!(sent(&mut rig).0, "", "{line}");
        rig.session.moved(Line::Own);
        rig.session.advance(Time(9));
        assert!(sent(&mut rig).0.starts_with(&packet(&[line])), "{line}");
    }
}

#[test]
fn what_a_server_could_read_in_another_way_is_not_shared() {
    for bytes in [
        &b"PING\r\n"[..],
        b"*1\rX$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n$1\r\naXX",
        b"*1\r\n$000004\r\nPING\r\n",
    ] {
        let mut rig = on(Line::Shared);
        rig.sends_bytes(bytes);
        let refused = rig.session.wants().is_none();
        assert_eq!(sent(&mut rig), (String::new(), 0), "{}", bytes.escape_ascii());
        assert!(
            refused == bytes.ends_with(b"$000004\r\nPING\r\n"),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn empty_lines_are_not_sent_on_and_quit_is_answered_here() {
    let mut rig = on(Line::Shared);
    rig.sends_bytes(b"\r\n*0\r\n");
    rig.sends(&["GET a", "QUIT", "GET b"]);
    assert_eq!(sent(&mut rig), (packet(&["GET a"]), 1));
    rig.server("$1|x|");
    assert_eq!(readable(&rig.take_downstream()), "$1|x|+OK|");
}

#[test]
fn every_answer_is_counted_also_of_scripts_reconciles_and_refusals() {
    let mut rig = on(Line::Shared);
    rig.sends(&[
        "SET lock:a 1 NX",
        "DEL lock:a x",
        "EVAL s 1 lock:a",
        "GET lockward:{x}",
        "LOCKWARD WHOAMI",
        "GET a",
    ]);
    // The script of the first goes alone or with the rest; in any case one answer for each, and one for the reconcile.
    let mut asked = sent(&mut rig).1;
    for _ in 0..20 {
        rig.server("$-1|");
        asked += sent(&mut rig).1;
        if asked == 7 {
            break;
        }
    }
    assert_eq!(asked, 7);
}

#[test]
fn an_unknown_script_is_sent_again_and_counted_again() {
    let mut rig = on(Line::Shared);
    rig.sends(&["DEL lock:a"]);
    assert_eq!(sent(&mut rig).1, 1);
    rig.server("-NOSCRIPT No matching script.|");
    let (bytes, asked) = sent(&mut rig);
    assert!(bytes.contains("EVAL") && asked == 1, "{bytes}");
}

#[test]
fn few_answers_are_under_way_for_a_client_and_fewer_if_they_are_large() {
    let mut rig = on(Line::Shared);
    rig.sends_bytes(&command("GET a").repeat(500));
    let first = sent(&mut rig).1 as usize;
    assert!((1..=SHARED_PENDING_LIMIT).contains(&first), "{first}");
    let large = format!("$1048576|{}|", "v".repeat(1 << 20));
    let mut due = first;
    for _ in 0..6 {
        rig.server(&large);
        rig.take_downstream();
        due = due - 1 + sent(&mut rig).1 as usize;
    }
    assert!(due <= 4, "{due} of a MiB each");
}

#[test]
fn a_client_that_does_not_read_is_not_asked_for() {
    let mut rig = on(Line::Shared);
    rig.sends(&["GET a"]);
    sent(&mut rig);
    rig.server(&format!("$1048576|{}|", "v".repeat(1 << 20)));
    assert!(!rig.reads().0);
    rig.sends(&["GET b"]);
    assert_eq!(sent(&mut rig).1, 0);
}

#[test]
fn a_connection_of_its_own_is_given_up_when_nothing_is_left_on_it() {
    let cases: [(&[&str], &str, bool, bool); 9] = [
        // What is said, what is answered; may it share at once, and later?
        (&["GET a"], "$1|x|", true, true),
        (&["SELECT 1"], "+OK|", true, true),
        (&["CLIENT SETNAME a"], "+OK|", true, true),
        (&["MULTI", "GET a"], "+OK|+QUEUED|", false, false),
        (&["MULTI", "GET a", "EXEC"], "+OK|+QUEUED|*1|$1|x|", false, true),
        (&["WATCH a"], "+OK|", false, false),
        (&["WATCH a", "UNWATCH"], "+OK|+OK|", false, true),
        (&["SUBSCRIBE a"], "*3|$9|subscribe|$1|a|:1|", false, false),
        (&["CLIENT ID"], ":7|", false, false),
    ];
    for (lines, answers, at_once, later) in cases {
        let mut rig = on(Line::Own);
        for line in lines {
            rig.sends(&[line]);
            rig.take_upstream();
        }
        rig.server(answers);
        rig.take_downstream();
        let now = rig.now();
        assert_eq!(rig.session.may_share(now), at_once, "{lines:?} at once");
        assert_eq!(rig.session.may_share(LATER), later, "{lines:?} later");
    }
}

#[test]
fn a_watch_counts_though_what_ended_the_one_before_is_answered_behind_it() {
    let mut rig = on(Line::Own);
    rig.sends(&["MULTI", "EXEC", "WATCH a"]);
    rig.take_upstream();
    rig.server("+OK|*0|+OK|");
    rig.take_downstream();
    assert!(!rig.session.may_share(LATER));
}

#[test]
fn a_new_connection_is_told_who_the_client_is() {
    let mut rig = on(Line::Own);
    for line in ["AUTH alice secret", "SELECT 3", "CLIENT SETNAME bob"] {
        rig.sends(&[line]);
        rig.take_upstream();
        rig.server("+OK|");
    }
    let handshake = rig.session.handshake();
    let told = packet(&["AUTH alice secret", "SELECT 3", "CLIENT SETNAME bob"]);
    assert_eq!((readable(&handshake.bytes), handshake.commands), (told, 3));
    let pool = rig.session.pool();
    assert_eq!((pool.user.as_deref(), pool.database), (Some(&b"alice"[..]), 3));
    rig.sends(&["RESET"]);
    rig.take_upstream();
    rig.server("+RESET|");
    assert_eq!(rig.session.handshake().commands, 0);
    assert_eq!(rig.session.pool().user, None);
}

#[test]
fn a_refused_login_is_not_kept() {
    let mut rig = on(Line::Own);
    rig.sends(&["AUTH alice wrong"]);
    rig.take_upstream();
    rig.server("-WRONGPASS no|");
    assert_eq!(rig.session.handshake().commands, 0);
}

#[test]
fn wait_behind_writes_on_another_connection_gets_one_to_wait_for() {
    let mut rig = on(Line::Shared);
    rig.sends(&["SET a 1"]);
    sent(&mut rig);
    rig.server("+OK|");
    rig.sends(&["WAIT 1 0"]);
    assert_eq!(rig.session.wants(), Some(Line::Own));
    rig.session.moved(Line::Own);
    rig.session.advance(Time(9));
    let bytes = readable(&rig.take_upstream());
    assert!(bytes.contains("SET|$15|lockward:{wait}|"), "{bytes}");
    let behind = packet(&["DEL lockward:{wait}", "WAIT 1 0"]);
    assert!(bytes.ends_with(&behind), "{bytes}");
    rig.take_downstream();
    rig.server("+OK|:1|:1|");
    assert_eq!(readable(&rig.take_downstream()), ":1|");
    // From here on its writes are there.
    rig.sends(&["SET a 1", "WAIT 1 0"]);
    assert_eq!(readable(&rig.take_upstream()), packet(&["SET a 1", "WAIT 1 0"]));
}

#[test]
fn answers_that_never_came_can_be_given_as_errors() {
    let mut rig = on(Line::Shared);
    rig.sends(&["GET a", "SET lock:a 1 NX PX 100", "GET b"]);
    let mut asked = sent(&mut rig).1;
    let mut heard = String::new();
    while asked > 0 {
        rig.session.moved(Line::Shared);
        for _ in 0..asked {
            rig.server_bytes(&wire("-UPSTREAM broke|"));
        }
        heard += &readable(&rig.take_downstream());
        asked = sent(&mut rig).1;
    }
    assert_eq!(heard, "-UPSTREAM broke|".repeat(3));
}
