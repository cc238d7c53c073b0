//! The contention shield: two clients of one proxy, one of which finds out that a lock is held. What is answered without
//! asking the server, in what order, and what ends it. What is known in between is tested beside the code.

use std::sync::Arc;

use lockward::event::{ConnectionId, Event, Owner, Release, ReleaseOutcome, RuleIndex, Time, Token, What};
use lockward::lock::rule::{Mode, Rule};
use lockward::session::{Peer, Policy, Session};
use uuid::Uuid;

use crate::rig::{pipeline, readable, wire};

const GRANTED: &str = "*2|$17|granted ttl=30000|+OK|";
const RELEASED: &str = "*2|$8|released|:1|";
const TAKE: &str = "SET lock:a 1 NX PX 30000";

fn policy() -> Arc<Policy> {
    let rule = Rule {
        contention_shield_ms: Some(5),
        ..Rule::new("lock:*")
    };
    Arc::new(Policy::new(vec![rule], "lockward:", || Token(Uuid::from_u128(7))))
}

/// Clients of one proxy with one clock, in microseconds.
struct Rig {
    policy: Arc<Policy>,
    sessions: Vec<Session>,
    now: u64,
}

impl Rig {
    fn new(clients: u64) -> Rig {
        Rig::under(policy(), clients)
    }

    fn under(policy: Arc<Policy>, clients: u64) -> Rig {
        let session = |number| {
            let connection = ConnectionId {
                instance: "0123456789abcdef".into(),
                number,
            };
            Session::new(Arc::clone(&policy), connection, Peer::default())
        };
        let sessions = (1..=clients).map(session).collect();
        Rig {
            policy,
            sessions,
            now: 1_000_000,
        }
    }

    /// Both have found `lock:a` held, the second just now.
    fn contended() -> Rig {
        let mut rig = Rig::new(2);
        for client in [0, 1] {
            rig.asks(client, &[TAKE]);
            rig.server(client, "$-1|");
            rig.heard(client, "$-1|");
        }
        rig.sessions.iter_mut().for_each(|session| session.events.clear());
        rig
    }

    fn sends(&mut self, client: usize, lines: &[&str]) {
        self.now += 1;
        self.sessions[client].receive_downstream(&pipeline(lines), Time(self.now));
    }

    /// The client sends these, and every one of them goes to the server, or a script in its place.
    #[track_caller]
    fn asks(&mut self, client: usize, lines: &[&str]) {
        self.sends(client, lines);
        let sent = readable(&self.take_upstream(client));
        assert_eq!(requests(&sent), lines.len(), "{sent}");
    }

    fn take_upstream(&mut self, client: usize) -> Vec<u8> {
        self.sessions[client].to_upstream.split().to_vec()
    }

    /// The server answers.
    fn server(&mut self, client: usize, reply: &str) {
        self.now += 1;
        self.sessions[client].receive_upstream(&wire(reply), Time(self.now));
    }

    #[track_caller]
    fn heard(&mut self, client: usize, expected: &str) {
        let heard = self.sessions[client].to_downstream.split();
        assert_eq!(readable(&heard), expected);
    }

    /// The client's acquire is refused without the server.
    #[track_caller]
    fn is_shielded(&mut self, client: usize) {
        self.sessions[client].to_downstream.clear();
        self.sends(client, &[TAKE]);
        assert_eq!(readable(&self.take_upstream(client)), "");
        self.heard(client, "$-1|");
    }

    /// The client's acquire waits for what another one is told.
    #[track_caller]
    fn waits(&mut self, client: usize) {
        self.sessions[client].to_downstream.clear();
        self.sends(client, &[TAKE]);
        assert_eq!(readable(&self.take_upstream(client)), "");
        self.heard(client, "");
        assert!(self.sessions[client].waits());
    }

    /// A while later it tries again.
    fn advance(&mut self, client: usize, micros: u64) {
        self.now += micros;
        self.sessions[client].advance(Time(self.now));
    }

    /// The client's acquire goes to the server. It is not answered.
    #[track_caller]
    fn is_not_shielded(&mut self, client: usize) {
        self.sessions[client].to_downstream.clear();
        self.asks(client, &[TAKE]);
        self.heard(client, "");
    }

    fn event(&self, what: What) -> Event {
        Event {
            at: Time(self.now),
            database: 0,
            key: bytes::Bytes::from_static(b"lock:a"),
            rule: RuleIndex(0),
            owner: Owner::from("any"),
            connection: self.sessions[0].connection().clone(),
            what,
        }
    }
}

/// How many arrays begin in it.
fn requests(sent: &str) -> usize {
    sent.split('|').filter(|line| line.starts_with('*')).count()
}

#[test]
fn an_acquire_of_a_lock_that_was_just_found_held_is_refused_at_once() {
    let mut rig = Rig::contended();
    for client in [0, 1, 0] {
        rig.is_shielded(client);
    }
    let events: Vec<&What> = rig.sessions[0].events.iter().map(|seen| &seen.event.what).collect();
    assert_eq!(events, [&What::Contended { shielded: true }; 2]);
    let settled = &rig.sessions[0].settled;
    assert_eq!(settled.len(), 3, "the one that was asked, and the two that were not");
    assert!(settled.iter().all(|done| done.lock && !done.error));
    assert_eq!(settled[2].upstream_us, 0);
    rig.now += 5_000;
    rig.is_not_shielded(0);
}

#[test]
fn a_grant_shields_against_all_others_and_its_release_ends_that_at_once() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.server(0, GRANTED);
    rig.is_shielded(1);
    rig.asks(0, &["DEL lock:a"]);
    rig.is_not_shielded(1);
    rig.server(0, RELEASED);
    rig.server(1, GRANTED);
    rig.heard(1, "+OK|");
}

#[test]
fn an_answer_from_before_the_release_puts_no_shield_up_again() {
    let mut rig = Rig::new(3);
    for client in [0, 1, 2] {
        rig.asks(client, &[TAKE]);
        rig.server(client, if client == 0 { GRANTED } else { "$-1|" });
    }
    rig.now += 5_000;
    // Sent before the release, while it is under way, and answered behind it.
    rig.asks(1, &[TAKE]);
    rig.asks(0, &["DEL lock:a"]);
    rig.waits(2);
    rig.advance(2, 5_000);
    assert_eq!(requests(&readable(&rig.take_upstream(2))), 1);
    rig.server(0, RELEASED);
    rig.server(1, "$-1|");
    rig.is_not_shielded(0);
    rig.server(2, "$-1|");
    rig.is_not_shielded(1);
}

#[test]
fn while_one_asks_the_others_wait_and_its_answer_is_theirs() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.waits(1);
    rig.sends(1, &["GET a"]);
    rig.advance(1, 1_000);
    assert!(rig.sessions[1].waits());
    assert_eq!(rig.take_upstream(1), b"", "what follows waits too");
    rig.server(0, "$-1|");
    rig.advance(1, 1_000);
    rig.heard(1, "$-1|");
    assert_eq!(rig.take_upstream(1), pipeline(&["GET a"]));
    assert!(!rig.sessions[1].waits());
}

#[test]
fn who_is_held_back_meanwhile_tries_again_when_that_is_over() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.waits(1);
    rig.sessions[1].hold(true);
    assert!(!rig.sessions[1].waits(), "no clock runs for it");
    rig.server(0, "$-1|");
    rig.advance(1, 1_000);
    rig.heard(1, "");
    rig.sessions[1].hold(false);
    rig.advance(1, 1_000);
    rig.heard(1, "$-1|");
}

#[test]
fn behind_a_release_one_takes_the_lock_and_the_others_wait() {
    let mut rig = Rig::new(3);
    for client in [0, 1, 2] {
        rig.asks(client, &[TAKE]);
        rig.server(client, if client == 0 { GRANTED } else { "$-1|" });
    }
    rig.asks(0, &["DEL lock:a"]);
    rig.server(0, RELEASED);
    rig.asks(1, &[TAKE]);
    rig.waits(2);
    rig.waits(0);
    rig.server(1, GRANTED);
    for client in [2, 0] {
        rig.advance(client, 500);
        rig.heard(client, "$-1|");
    }
}

#[test]
fn a_whole_cycle_in_one_packet_waits_for_nobody() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE, "DEL lock:a", TAKE, "DEL lock:a"]);
    rig.asks(1, &["GET a", TAKE]);
    rig.server(0, &format!("{GRANTED}{RELEASED}{GRANTED}{RELEASED}"));
    rig.heard(0, "+OK|:1|+OK|:1|");
}

#[test]
fn nobody_waits_for_long_nor_for_an_error() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.waits(1);
    rig.advance(1, 4_000);
    assert!(rig.sessions[1].waits());
    rig.advance(1, 1_000);
    assert_eq!(requests(&readable(&rig.take_upstream(1))), 1);
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.waits(1);
    rig.server(0, "-OOM no|");
    rig.advance(1, 1_000);
    assert_eq!(requests(&readable(&rig.take_upstream(1))), 1);
}

#[test]
fn a_client_that_half_closes_while_it_waits_is_answered() {
    let mut rig = Rig::contended();
    rig.now += 5_000;
    rig.asks(0, &[TAKE]);
    rig.waits(1);
    rig.sessions[1].downstream_ended(Time(rig.now));
    assert_eq!(requests(&readable(&rig.take_upstream(1))), 1);
    rig.server(1, "$-1|");
    rig.heard(1, "$-1|");
}

#[test]
fn whatever_may_free_a_lock_ends_its_shield_when_it_is_sent_and_until_it_is_answered() {
    for (line, answer) in [
        ("DEL b lock:a", ":1|"),
        ("UNLINK lock:a", ":1|"),
        ("GETDEL lock:a", "$-1|"),
        ("EXPIRE lock:a 0", ":1|"),
        ("PEXPIRE lock:a 10", ":1|"),
        ("SET lock:a 2 PX 1", "+OK|"),
        ("SET lock:a 2 NX GET", "$1|1|"),
        ("GETSET lock:a 2", "$1|1|"),
        ("MSET lock:a 2 b 3", "+OK|"),
        ("RENAME lock:a b", "+OK|"),
        ("RENAME b lock:a", "+OK|"),
        ("MOVE lock:a 1", ":1|"),
        ("MIGRATE host 6379 lock:a 0 1000", "+OK|"),
        ("MIGRATE host 6379  0 1000 KEYS b lock:a", "+OK|"),
        ("SUNIONSTORE lock:a b", ":0|"),
    ] {
        let mut rig = Rig::contended();
        rig.asks(0, &[line]);
        if line.contains("NX") {
            // It takes or does nothing.
            rig.is_shielded(1);
            continue;
        }
        rig.is_not_shielded(1);
        rig.server(1, "$-1|");
        rig.heard(1, "$-1|");
        rig.is_not_shielded(1);
        rig.server(1, "$-1|");
        rig.server(0, answer);
        rig.heard(0, answer);
        rig.heard(1, "$-1|");
        rig.is_not_shielded(1);
        rig.server(1, "$-1|");
        rig.heard(1, "$-1|");
        rig.is_shielded(1);
    }
}

#[test]
fn a_script_on_the_lock_ends_its_shield_until_its_reconcile_is_answered() {
    let mut rig = Rig::contended();
    rig.sends(0, &["EVAL script 1 lock:a"]);
    rig.server(0, ":1|");
    rig.heard(0, ":1|");
    rig.is_not_shielded(1);
    rig.server(1, "$-1|");
    rig.heard(1, "$-1|");
    rig.is_not_shielded(1);
    rig.server(0, "*2|$12|self_checked|:0|");
    rig.server(1, "$-1|");
    rig.heard(1, "$-1|");
    rig.is_not_shielded(1);
}

#[test]
fn flushes_end_every_shield() {
    for line in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        let mut rig = Rig::contended();
        rig.asks(0, &[line]);
        rig.is_not_shielded(1);
        rig.server(0, "+OK|");
        rig.server(1, "$-1|");
        rig.heard(1, "$-1|");
        rig.is_not_shielded(1);
    }
}

#[test]
fn a_queued_release_ends_the_shield_until_exec_is_answered() {
    let mut rig = Rig::contended();
    rig.asks(0, &["MULTI", "DEL lock:a"]);
    rig.server(0, "+OK|+QUEUED|");
    rig.is_not_shielded(1);
    rig.server(1, "$-1|");
    rig.asks(0, &["EXEC"]);
    rig.asks(1, &[TAKE]);
    rig.server(0, &format!("*1|{RELEASED}"));
    rig.heard(0, "+OK|+QUEUED|*1|:1|");
    rig.server(1, "$-1|");
    rig.heard(1, "$-1|$-1|");
    rig.is_not_shielded(1);
}

#[test]
fn a_release_of_lockwards_own_ends_it() {
    for outcome in [ReleaseOutcome::Forced, ReleaseOutcome::Disconnect] {
        let mut rig = Rig::contended();
        let release = What::Release(Release {
            outcome,
            held_ms: None,
            overrun_ms: None,
        });
        rig.policy.shield.heard(&rig.event(release));
        rig.is_not_shielded(1);
    }
}

#[test]
fn a_session_that_is_lost_takes_its_bar_with_it() {
    let mut rig = Rig::contended();
    rig.asks(0, &["DEL lock:a"]);
    rig.sessions.remove(0);
    rig.is_not_shielded(0);
    rig.server(0, "$-1|");
    rig.heard(0, "$-1|");
    rig.is_shielded(0);
}

#[test]
fn a_shielded_answer_waits_for_its_turn() {
    let mut rig = Rig::contended();
    rig.sends(0, &["GET a", TAKE, "SETNX lock:b 1", "GET b"]);
    let sent = readable(&rig.take_upstream(0));
    assert_eq!(requests(&sent), 3, "{sent}");
    rig.heard(0, "");
    rig.server(0, "$1|x|");
    rig.heard(0, "$1|x|$-1|");
    rig.server(0, &format!("{}$1|y|", GRANTED.replace("+OK", ":1")));
    rig.heard(0, ":1|$1|y|");
    let lock: Vec<bool> = rig.sessions[0].settled.iter().map(|done| done.lock).collect();
    assert_eq!(lock, [true, false, true, true, false]);
}

#[test]
fn behind_what_may_block_or_free_anything_the_server_is_asked() {
    for line in [
        "BLPOP list 0",
        "EVAL script 0",
        "EVAL script 1 b",
        "FCALL function 0",
        "NO.SUCH.COMMAND",
        "DEL lock:a",
        "MULTI",
    ] {
        let mut rig = Rig::contended();
        rig.sends(0, &[line, TAKE]);
        let sent = readable(&rig.take_upstream(0));
        assert_eq!(requests(&sent), 2, "{sent}");
        rig.heard(0, "");
    }
}

#[test]
fn inside_a_transaction_the_server_is_asked() {
    let mut rig = Rig::contended();
    rig.asks(0, &["MULTI", TAKE]);
    rig.server(0, "+OK|+QUEUED|");
    rig.asks(0, &["EXEC", TAKE]);
    rig.server(0, "*1|$-1|$-1|");
    rig.heard(0, "+OK|+QUEUED|*1|$-1|$-1|");
    rig.is_shielded(0);
}

#[test]
fn the_refusal_is_of_the_type_that_the_client_expects() {
    let mut rig = Rig::contended();
    rig.asks(0, &["SETNX lock:a 1"]);
    rig.server(0, ":0|");
    rig.heard(0, ":0|");
    rig.sends(0, &["SETNX lock:a 1", TAKE]);
    rig.heard(0, ":0|$-1|");
    rig.asks(0, &["HELLO 3"]);
    rig.server(0, "%1|+proto|:3|");
    rig.heard(0, "%1|+proto|:3|");
    rig.sends(0, &["SETNX lock:a 1", TAKE]);
    rig.heard(0, ":0|_|");
    assert_eq!(rig.take_upstream(0), b"");
}

#[test]
fn a_client_that_wants_to_hear_nothing_hears_nothing() {
    let mut rig = Rig::contended();
    rig.asks(0, &["CLIENT REPLY SKIP"]);
    rig.server(0, "+OK|");
    rig.sends(0, &[TAKE, TAKE]);
    rig.heard(0, "$-1|");
    rig.asks(0, &["CLIENT REPLY OFF"]);
    rig.server(0, "+OK|");
    rig.sends(0, &[TAKE]);
    assert_eq!(rig.take_upstream(0), b"");
    rig.heard(0, "");
}

#[test]
fn what_the_server_would_refuse_it_refuses_itself() {
    for line in [
        "SET lock:a 1 NX EX 0",
        "SET lock:a 1 NX EX ten",
        "SET lock:a 1 NX XX",
        "SET lock:a 1 NX WHATEVER",
    ] {
        let mut rig = Rig::contended();
        rig.asks(0, &[line]);
        rig.server(0, "-ERR no|");
        rig.heard(0, "-ERR no|");
    }
    let mut rig = Rig::contended();
    rig.sends(0, &["SETNX lock:a"]);
    assert_eq!(rig.take_upstream(0), pipeline(&["SETNX lock:a"]));
}

#[test]
fn nobody_learns_by_it_what_the_server_would_not_tell_him() {
    let mut rig = Rig::contended();
    // Another user, who has to ask for himself.
    rig.asks(0, &["AUTH bob secret"]);
    rig.server(0, "+OK|");
    rig.heard(0, "+OK|");
    rig.is_not_shielded(0);
    rig.server(0, "-NOPERM no|");
    rig.is_shielded(1);
    // A right to one command is none to the other.
    rig.asks(1, &["SETNX lock:a 1"]);
    // A connection of which nobody knows whether the server would let it in.
    let mut rig = Rig::contended();
    rig.asks(0, &["RESET"]);
    rig.server(0, "+RESET|");
    rig.heard(0, "+RESET|");
    rig.is_not_shielded(0);
    // And another database.
    let mut rig = Rig::contended();
    rig.asks(0, &["SELECT 1"]);
    rig.server(0, "+OK|");
    rig.heard(0, "+OK|");
    rig.is_not_shielded(0);
}

#[test]
fn a_new_connection_asks_first() {
    let mut rig = Rig::new(2);
    rig.asks(0, &[TAKE]);
    rig.server(0, "$-1|");
    rig.is_not_shielded(1);
}

#[test]
fn a_connection_that_has_not_heard_from_the_server_for_long_asks() {
    let mut rig = Rig::contended();
    rig.now += 10_000_000;
    rig.asks(1, &[TAKE]);
    rig.server(1, "$-1|");
    rig.is_not_shielded(0);
}

#[test]
fn a_client_that_does_not_read_is_not_answered_without_end() {
    let mut rig = Rig::contended();
    let many = vec![TAKE; 1000];
    for _ in 0..100 {
        rig.sends(0, &many);
    }
    let waiting = rig.sessions[0].to_downstream.len();
    assert!(waiting <= lockward::session::BUFFER_LIMIT + 8, "{waiting}");
    assert!(!rig.take_upstream(0).is_empty());
}

#[test]
fn without_the_key_and_outside_enforce_every_acquire_is_asked() {
    let off = Rule::new("lock:*");
    let observe = Rule {
        mode: Mode::Observe,
        contention_shield_ms: Some(5),
        ..Rule::new("lock:*")
    };
    // Under enforce, from the second time on a look asks.
    for (rule, held) in [(off, ":1|"), (observe, "$-1|")] {
        let policy = Policy::new(vec![rule], "lockward:", || Token(Uuid::from_u128(7)));
        let mut rig = Rig::under(Arc::new(policy), 1);
        for answer in ["$-1|", held, held] {
            rig.asks(0, &[TAKE]);
            rig.server(0, answer);
            rig.heard(0, "$-1|");
        }
    }
}
