//! Held back while the server is switched: what is under way is answered, what is new waits, nothing is lost.

use crate::rig::{Rig, command};

fn resume(rig: &mut Rig) {
    rig.session.hold(false);
    let now = rig.now();
    rig.session.advance(now);
}

#[test]
fn what_is_under_way_is_answered_and_what_is_new_waits() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.server_got(&["GET a"]);
    rig.session.hold(true);
    assert!(rig.session.is_under_way());
    assert_eq!(rig.reads(), (false, true));
    // It may have been read already.
    rig.sends(&["GET b", "INCR c"]);
    rig.server_got(&[]);
    rig.server(":1|");
    rig.heard(":1|");
    rig.server_got(&[]);
    assert!(!rig.session.is_under_way());
    rig.goes_on();
    resume(&mut rig);
    assert_eq!(rig.reads(), (true, true));
    rig.server_got(&["GET b", "INCR c"]);
    rig.server(":2|:3|");
    rig.heard(":2|:3|");
}

#[test]
fn a_transaction_and_a_long_request_are_finished() {
    let mut rig = Rig::plain();
    rig.passes("MULTI", "+OK|");
    rig.session.hold(true);
    assert!(rig.session.is_under_way());
    rig.sends(&["INCR a", "EXEC", "GET a"]);
    rig.server_got(&["INCR a", "EXEC"]);
    rig.server("+QUEUED|*1|:1|");
    rig.heard("+QUEUED|*1|:1|");
    assert!(!rig.session.is_under_way());
    resume(&mut rig);
    rig.server_got(&["GET a"]);
    rig.server(":1|");
    rig.heard(":1|");

    let request = command(&format!("SET a {}", "x".repeat(100_000)));
    rig.sends_bytes(&request[..90_000]);
    rig.session.hold(true);
    assert!(rig.reads().0, "the server has its beginning");
    rig.sends_bytes(&request[90_000..]);
    rig.take_upstream();
    rig.server("+OK|");
    rig.heard("+OK|");
    assert!(!rig.reads().0);
}

#[test]
fn locks_wait_like_everything_else() {
    let mut rig = Rig::enforce();
    rig.session.hold(true);
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    rig.server_got(&[]);
    resume(&mut rig);
    assert!(!rig.take_upstream().is_empty());
}

#[test]
fn who_blocks_or_listens_is_not_under_way() {
    let mut rig = Rig::plain();
    rig.sends(&["BLPOP l 0"]);
    rig.session.hold(true);
    assert!(!rig.session.is_under_way());
    rig.server("*2|$1|l|$1|x|");
    rig.heard("*2|$1|l|$1|x|");
    let mut rig = Rig::plain();
    rig.passes("SUBSCRIBE a", "*3|$9|subscribe|$1|a|:1|");
    rig.session.hold(true);
    assert!(!rig.session.is_under_way());
    rig.server("*3|$7|message|$1|a|$5|hello|");
    rig.heard("*3|$7|message|$1|a|$5|hello|");
}

#[test]
fn who_leaves_is_not_held() {
    let mut rig = Rig::plain();
    rig.session.hold(true);
    rig.sends(&["GET a"]);
    rig.session.leave();
    let now = rig.now();
    rig.session.advance(now);
    rig.server_got(&["GET a"]);
    rig.server(":1|");
    rig.heard(":1|");
    rig.is_over();
}

#[test]
fn who_has_no_state_on_the_connection_may_get_another() {
    type Said = &'static [(&'static str, &'static str)];
    let cases: [(Said, bool); 9] = [
        (&[("GET a", "$-1|")], true),
        (
            &[
                ("AUTH secret", "+OK|"),
                ("SELECT 3", "+OK|"),
                ("CLIENT SETNAME n", "+OK|"),
            ],
            true,
        ),
        (&[("MULTI", "+OK|"), ("INCR a", "+QUEUED|"), ("EXEC", "*1|:1|")], true),
        (&[("WATCH a", "+OK|")], false),
        (&[("WATCH a", "+OK|"), ("UNWATCH", "+OK|")], true),
        (&[("WATCH a", "+OK|"), ("MULTI", "+OK|"), ("EXEC", "*0|")], true),
        (&[("SUBSCRIBE a", "*3|$9|subscribe|$1|a|:1|")], false),
        (&[("CLIENT NO-EVICT on", "+OK|")], false),
        (&[("CLIENT ID", ":7|")], false),
    ];
    for (said, may) in cases {
        let mut rig = Rig::plain();
        for (line, reply) in said {
            rig.passes(line, reply);
        }
        assert!(!rig.session.may_lose_line(), "{said:?}: it is not held back");
        rig.session.hold(true);
        assert_eq!(rig.session.may_lose_line(), may, "{said:?}");
    }
}
