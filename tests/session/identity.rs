//! AUTH, HELLO, SELECT, RESET, CLIENT SETNAME: what follows is not sent before the answer is there, and only the
//! server's yes changes who the client is.

use std::sync::Arc;

use lockward::event::Owner;
use lockward::lock::rule::{Mode, OwnerPart, Rule};
use lockward::session::{Databases, Notice, Policy};

use crate::rig::{Rig, policy, policy_of, wire};

/// A rule whose owner is the given part, and that asks who is connected, so that owners are told.
fn owned_by(part: OwnerPart) -> Arc<Policy> {
    let rule = Rule {
        owner: vec![part],
        renew: true,
        ..Rule::new("lock:*")
    };
    policy_of(rule)
}

fn told(part: OwnerPart) -> Rig {
    Rig::with(owned_by(part))
}

/// The owner that was told last; `None`: none since the last look.
fn owner(rig: &mut Rig) -> Option<Owner> {
    let told = |notice| match notice {
        Notice::Owner { owner, .. } => Some(owner),
        _ => None,
    };
    rig.notices().into_iter().filter_map(told).last()
}

#[test]
fn what_follows_waits_for_the_answer() {
    for line in [
        "AUTH secret",
        "AUTH user secret",
        "HELLO 3",
        "SELECT 3",
        "RESET",
        "CLIENT SETNAME me",
    ] {
        let mut rig = Rig::plain();
        rig.sends(&["GET a", line, "GET b", "GET c"]);
        rig.server_got(&["GET a", line]);
        rig.server(":1|");
        rig.server_got(&[]);
        rig.server("+OK|");
        rig.server_got(&["GET b", "GET c"]);
        rig.server(":2|:3|");
        rig.heard(":1|+OK|:2|:3|");
    }
}

#[test]
fn what_follows_goes_on_after_a_refusal_too() {
    let mut rig = Rig::plain();
    rig.sends(&["AUTH user wrong", "GET b"]);
    rig.server_got(&["AUTH user wrong"]);
    rig.server("-WRONGPASS invalid username-password pair|");
    rig.server_got(&["GET b"]);
}

#[test]
fn the_server_decides_which_user_it_is() {
    let mut rig = told(OwnerPart::User);
    assert_eq!(owner(&mut rig).as_deref(), Some("user=default"));
    rig.passes("AUTH alice wrong", "-WRONGPASS invalid|");
    assert_eq!(owner(&mut rig), None);
    rig.passes("AUTH alice right", "+OK|");
    assert_eq!(owner(&mut rig).as_deref(), Some("user=alice"));
    rig.passes("HELLO 3 AUTH bob wrong", "-WRONGPASS invalid|");
    rig.passes("HELLO 4 AUTH bob right", "-NOPROTO unsupported protocol version|");
    assert_eq!(owner(&mut rig), None);
    rig.passes("HELLO 3 AUTH bob right", "%0|");
    assert_eq!(owner(&mut rig).as_deref(), Some("user=bob"));
    rig.passes("RESET", "+RESET|");
    assert_eq!(owner(&mut rig).as_deref(), Some("user=default"));
}

#[test]
fn a_hello_that_fails_half_way_leaves_nobody_sure() {
    // Redis 7.0 has logged in alice by then, Valkey 9.1 has not: the client must be taken for neither.
    for (line, error) in [
        (
            "HELLO 3 AUTH alice right SETNAME a\tb",
            "-ERR Client names cannot contain spaces|",
        ),
        (
            "HELLO 3 AUTH alice right FOO",
            "-ERR Syntax error in HELLO option 'FOO'|",
        ),
        ("HELLO 3 AUTH alice right AUTH bob wrong", "-WRONGPASS invalid|"),
    ] {
        let mut rig = told(OwnerPart::User);
        rig.passes(line, error);
        let owner = owner(&mut rig).expect("a new owner");
        assert!(!owner.contains("alice") && !owner.contains("default"), "{owner}");
        rig.passes("AUTH alice right", "+OK|");
    }
}

#[test]
fn the_name_is_the_one_that_the_server_confirmed() {
    let mut rig = Rig::plain();
    rig.passes("CLIENT SETNAME one", "+OK|");
    rig.passes("CLIENT SETNAME two", "-ERR no|");
    assert_eq!(rig.session.client_name(), b"one");
    rig.passes("HELLO 3 SETNAME three", "%0|");
    assert_eq!(rig.session.client_name(), b"three");
    rig.passes("RESET", "+RESET|");
    assert_eq!(rig.session.client_name(), b"");
}

#[test]
fn inside_a_transaction_it_changes_when_exec_comes() {
    let mut rig = told(OwnerPart::User);
    owner(&mut rig);
    rig.sends(&["MULTI", "AUTH alice right", "EXEC", "GET a"]);
    rig.server("+OK|+QUEUED|");
    assert_eq!(owner(&mut rig), None);
    rig.server_got(&["MULTI", "AUTH alice right", "EXEC"]);
    rig.server("*1|+OK|");
    assert_eq!(owner(&mut rig).as_deref(), Some("user=alice"));
    rig.server_got(&["GET a"]);
}

#[test]
fn a_transaction_that_came_to_nothing_changes_nobody() {
    for (end, reply) in [("EXEC", "*-1|"), ("EXEC", "-EXECABORT no|"), ("DISCARD", "+OK|")] {
        let mut rig = told(OwnerPart::User);
        owner(&mut rig);
        rig.sends(&["MULTI", "AUTH alice right"]);
        rig.server("+OK|+QUEUED|");
        rig.sends(&[end, "GET a"]);
        rig.server(reply);
        assert_eq!(owner(&mut rig), None);
        rig.server("$-1|");
        rig.is_in_step();
    }
}

#[test]
fn queued_is_not_yes_even_if_we_believed_the_transaction_over() {
    // DISCARD is refused by ACL: the server goes on queueing.
    let mut rig = told(OwnerPart::User);
    owner(&mut rig);
    rig.passes("MULTI", "+OK|");
    rig.passes("DISCARD", "-NOPERM no|");
    rig.passes("AUTH admin wrong", "+QUEUED|");
    assert_eq!(owner(&mut rig), None);
    rig.passes("EXEC", "-EXECABORT Transaction discarded|");
    assert_eq!(owner(&mut rig), None);
    rig.is_in_step();
}

#[test]
fn an_unasked_error_does_not_take_the_place_of_an_answer() {
    // REPLCONF ACK is answered only if it is refused; that must not be taken for the answer to AUTH.
    let mut rig = told(OwnerPart::User);
    owner(&mut rig);
    rig.sends(&["REPLCONF ACK 1", "AUTH alice right"]);
    rig.server("-NOAUTH Authentication required.|+OK|");
    assert_eq!(owner(&mut rig).as_deref(), Some("user=alice"));
}

#[test]
fn new_rules_make_new_owners() {
    let mut rig = told(OwnerPart::User);
    assert_eq!(owner(&mut rig).as_deref(), Some("user=default"));
    rig.session.adopt(&owned_by(OwnerPart::Any));
    assert_eq!(owner(&mut rig).as_deref(), Some("any"));
}

/// A server that lets nobody in without a login.
fn asked() -> Rig {
    let mut policy = Arc::into_inner(policy(Mode::Enforce)).expect("the only one");
    policy.features.login = true;
    Rig::with(Arc::new(policy))
}

#[test]
fn before_login_the_servers_small_limits_hold() {
    let mut rig = asked();
    rig.passes("AUTH secret", "+OK|");
    rig.sends_bytes(&wire("*11|"));
    rig.goes_on();

    let mut rig = asked();
    rig.sends_bytes(&wire("*11|"));
    rig.heard("-ERR Protocol error: unauthenticated multibulk length|");
    rig.is_over();
}

#[test]
fn before_login_a_lock_command_waits_for_a_question_of_ours() {
    let mut rig = asked();
    rig.sends(&["SET lock:a 1", "PING"]);
    rig.server_got(&["PING"]);
    rig.server("-NOAUTH Authentication required.|");
    rig.heard("-NOAUTH Authentication required.|");
    assert_eq!(rig.settled(), [("set", true)]);
    rig.server_got(&["PING"]);
    rig.server("-NOAUTH Authentication required.|");
    rig.is_in_step();
}

#[test]
fn that_question_is_no_command_of_the_client() {
    let mut rig = asked();
    rig.passes("CLIENT SETNAME x", "+OK|");
    rig.sends(&["CLIENT REPLY SKIP", "SET lock:a 1 NX", "ECHO b"]);
    rig.server("+OK|+PONG|");
    rig.take_upstream();
    rig.settled();
    rig.server("*2|$17|granted ttl=30000|+OK|$1|b|");
    rig.heard("$1|b|");
    assert_eq!(rig.settled(), [("set", false), ("echo", false)]);
}

#[test]
fn that_the_server_asks_for_a_login_is_seen_however_its_answer_is_cut() {
    let mut rig = Rig::enforce().in_pieces_of(3);
    rig.passes("GET a", "-NOAUTH Authentication required.|");
    rig.sends(&["SET lock:a 1"]);
    rig.server_got(&["PING"]);
}

fn names(rig: &mut Rig) -> Vec<String> {
    let told = |notice| match notice {
        Notice::Name(name) => Some(String::from_utf8_lossy(&name).into_owned()),
        _ => None,
    };
    rig.notices().into_iter().filter_map(told).collect()
}

#[test]
fn a_new_name_is_told_once_the_server_has_confirmed_it() {
    let mut rig = Rig::plain();
    rig.sends(&["CLIENT SETNAME me"]);
    assert_eq!(names(&mut rig), [""; 0]);
    rig.server("+OK|");
    assert_eq!(names(&mut rig), ["me"]);
    rig.take_upstream();
    rig.take_downstream();
    rig.passes("CLIENT SETNAME me", "+OK|");
    rig.passes("SELECT 3", "+OK|");
    rig.passes("CLIENT SETNAME a/b", "-ERR Client names cannot contain spaces|");
    assert_eq!(names(&mut rig), [""; 0], "nothing has changed");
    rig.passes("HELLO 3 SETNAME you", "%0|");
    assert_eq!(names(&mut rig), ["you"]);
    rig.passes("RESET", "+RESET|");
    assert_eq!(names(&mut rig), [""]);
    rig.passes("RESET", "+RESET|");
    assert_eq!(names(&mut rig), [""; 0]);
    rig.passes(&format!("CLIENT SETNAME {}", "n".repeat(10_000)), "+OK|");
    assert_eq!(names(&mut rig), ["n".repeat(256)]);
}

#[test]
fn a_name_inside_a_transaction_is_told_when_it_is_carried_out() {
    let mut rig = Rig::plain();
    rig.passes("MULTI", "+OK|");
    rig.passes("CLIENT SETNAME me", "+QUEUED|");
    assert_eq!(names(&mut rig), [""; 0]);
    rig.passes("EXEC", "*1|+OK|");
    assert_eq!(names(&mut rig), ["me"]);
}

/// The databases that a command is said to have emptied.
fn flushed(rig: &mut Rig) -> Vec<Databases> {
    let told = |notice| match notice {
        Notice::DataFlushed { databases, .. } => Some(databases),
        _ => None,
    };
    rig.notices().into_iter().filter_map(told).collect()
}

#[test]
fn a_flush_says_which_databases_it_reached() {
    let mut rig = Rig::plain();
    rig.passes("FLUSHDB", "+OK|");
    rig.passes("SELECT 3", "+OK|");
    rig.passes("flushdb ASYNC", "+OK|");
    rig.passes("FLUSHDB", "-ERR no|");
    rig.passes("FLUSHALL", "+OK|");
    rig.passes("SWAPDB 4 9", "+OK|");
    rig.passes("SWAPDB 4 x", "+OK|");
    let expected = [
        Databases::One(0),
        Databases::One(3),
        Databases::All,
        Databases::Two(4, 9),
        Databases::All,
    ];
    assert_eq!(flushed(&mut rig), expected);
    rig.passes("MULTI", "+OK|");
    rig.passes("SELECT 5", "+QUEUED|");
    rig.passes("FLUSHDB", "+QUEUED|");
    rig.passes("EXEC", "*2|+OK|+OK|");
    assert_eq!(flushed(&mut rig), [Databases::One(5)]);
    let each = |databases: Databases| databases.each().collect::<Vec<_>>();
    assert_eq!(each(Databases::All), [None]);
    assert_eq!(each(Databases::One(2)), [Some(2)]);
    assert_eq!(each(Databases::Two(2, 1)), [Some(2), Some(1)]);
    assert_eq!(each(Databases::Two(2, 2)), [Some(2)]);
}
