//! Ends of leases that nobody announced: each is looked at, and counted once.

use bytes::Bytes;
use lockward::event::{Release, ReleaseOutcome, Token, What};
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::keeper::{Closing, Failed};
use lockward::lock::owner::Bound;
use lockward::lock::rule::{Mode, Rule};
use uuid::Uuid;

use super::rig::*;

#[test]
fn a_lease_that_ran_out_is_counted_once() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run(200_000);
    assert_eq!(rig.take(), ["1050 check lock:a", "1050 expired lock:a 1000"]);
    assert!(rig.keeper.is_empty());
}

#[test]
fn a_lease_extended_past_this_proxy_is_looked_at_again_later() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run_with(3000, |_| Ok(Done::Live { ttl_ms: Some(5000) }));
    assert_eq!(rig.take(), ["1050 check lock:a"]);
    rig.run_with(10_000, |_| Ok(Done::Ended));
    assert_eq!(
        rig.take(),
        ["6100 check lock:a", "6200 check lock:a", "6200 ended lock:a"]
    );
    assert!(rig.keeper.is_empty());
}

#[test]
fn a_lease_without_ttl_that_ended_elsewhere_is_found_out() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, None);
    rig.run_with(300_000, |_| Ok(Done::Live { ttl_ms: None }));
    assert_eq!(
        rig.take(),
        ["60000 check lock:a", "120000 check lock:a", "240000 check lock:a"]
    );
    assert_eq!(rig.keeper.summary(rig.now())[0].without_ttl, 1);
    rig.run_with(1_000_000, |_| Ok(Done::Ended));
    assert_eq!(rig.take(), ["480000 check lock:a", "480000 ended lock:a"]);
    assert!(rig.keeper.is_empty());
}

#[test]
fn a_late_release_before_the_look_says_that_the_lease_expired() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run(1020);
    rig.release("lock:a", "o", 1, ReleaseOutcome::Late);
    rig.run(5000);
    assert_eq!(rig.take(), ["1020 expired lock:a 1000"]);
    assert!(rig.keeper.is_empty());
}

#[test]
fn a_look_that_fails_comes_again() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run_with(10_000, |_| Err(Failed));
    let failed = rig.count("check");
    assert!((3..10).contains(&failed), "{failed} looks");
    rig.run(60_000);
    assert_eq!(rig.count("expired"), 1);
}

#[test]
fn a_new_grant_shows_that_the_old_lease_has_ended() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    rig.run(500);
    rig.grant("lock:a", "p", 2, 60_000);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
    rig.run_with(1000, |_| Ok(Done::Ended));
    assert_eq!(rig.take(), ["600 check lock:a", "600 ended lock:a"]);
}

/// Two grants whose events changed places: the one of connection 1 lasts, the other had ended before it.
fn changed_places(rule: Rule) -> Rig {
    let mut rig = Rig::new(&[rule]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.grant("lock:a", "p", 2, 20);
    rig
}

/// What the server says of them.
fn the_first_lives(chore: &Chore) -> Result<Done, Failed> {
    match &chore.task {
        Task::Check { token } if *token == Token(Uuid::from_u128(1)) => Ok(Done::Live { ttl_ms: Some(29_900) }),
        _ => obliging(chore),
    }
}

#[test]
fn of_two_grants_that_changed_places_the_server_says_which_one_lasts() {
    let mut rig = changed_places(rule());
    rig.run_with(500, the_first_lives);
    assert_eq!(
        rig.take(),
        ["70 check lock:a", "70 expired lock:a 20", "100 check lock:a"]
    );
    assert_eq!(rig.keeper.holder(0, &Bytes::from_static(b"lock:a")), Some("o".into()));
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), ["500 gone lock:a 1"]);
}

#[test]
fn a_lease_that_lasts_behind_a_younger_grant_is_extended_and_released_as_any() {
    let mut rig = changed_places(rule());
    rig.run_with(500, the_first_lives);
    rig.take();
    rig.extend("lock:a", "o", 1, 1000);
    rig.run(600);
    assert_eq!(rig.count("check"), 0);
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 0);
    rig.run(2000);
    assert_eq!(rig.take(), [""; 0]);
}

#[test]
fn whose_owner_leaves_before_the_server_has_said_so_is_released_all_the_same() {
    let mut rig = changed_places(leaving());
    rig.close(1, Closing::ByClient);
    rig.run_with(1000, the_first_lives);
    rig.run_with(5000, |chore| match &chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(25_000) }),
        _ => obliging(chore),
    });
    assert_eq!(rig.count("free"), 1);
}

#[test]
fn a_release_that_arrives_behind_the_next_grant_ends_the_older_lease() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.run(500);
    rig.grant("lock:a", "o", 3, 3000);
    rig.release("lock:a", "o", 2, ReleaseOutcome::Pooled);
    rig.run(1000);
    assert_eq!(rig.take(), ["1500 renew lock:a 3000", "1500 extended lock:a"]);
    assert_eq!(rig.keeper.len(), 1);
}

#[test]
fn what_a_connection_held_itself_is_known_without_the_server() {
    let mut rig = Rig::new(&[rule()]);
    let asked = |rig: &Rig, number, outcome| {
        let what = What::Release(Release {
            outcome,
            held_ms: None,
            overrun_ms: None,
        });
        let mut event = rig.told("lock:a", "o", number, what);
        rig.keeper.complete(&mut event);
        let What::Release(release) = event.what else {
            panic!("{event:?}")
        };
        release.held_ms
    };
    assert_eq!(asked(&rig, 1, ReleaseOutcome::Released), None, "no lease is known");
    // The first was given up by a script that nobody understood.
    rig.grant("lock:a", "o", 1, 60_000);
    rig.now_ms = 300;
    rig.grant("lock:a", "o", 1, 60_000);
    rig.now_ms = 1000;
    assert_eq!(asked(&rig, 1, ReleaseOutcome::Released), Some(700));
    assert_eq!(asked(&rig, 2, ReleaseOutcome::Released), None, "another's");
    assert_eq!(asked(&rig, 1, ReleaseOutcome::Pooled), None, "the server says it");
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 0, "the youngest has ended");
}

#[test]
fn a_script_that_found_the_lease_expired_spares_the_look() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.now_ms = 1010;
    rig.grant("lock:a", "o", 2, 60_000);
    for _ in 0..2 {
        rig.event("lock:a", "o", 1, Bound::Free, What::Expired { held_ms: Some(1000) });
    }
    rig.run(5000);
    assert_eq!(rig.take(), ["1010 expired lock:a 1000"]);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
}

#[test]
fn a_takeover_ends_what_is_known_of_the_lease() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.event("lock:a", "p", 2, Bound::Free, What::TakenOver);
    rig.run(10_000);
    assert_eq!(rig.take(), [""; 0]);
    assert!(rig.keeper.is_empty());
}

#[test]
fn after_a_flush_every_lease_of_the_database_is_looked_at() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, None);
    assert_eq!(
        (
            rig.keeper.known(Some(0)),
            rig.keeper.known(Some(1)),
            rig.keeper.known(None)
        ),
        (1, 0, 1)
    );
    rig.keeper.look_again(rig.now(), Some(0));
    rig.run_with(10, |_| Ok(Done::Ended));
    assert_eq!(rig.take(), ["0 check lock:a", "0 ended lock:a"]);
}

#[test]
fn observed_leases_end_by_their_ttl_without_any_chore() {
    let mut rig = Rig::new(&[Rule {
        mode: Mode::Observe,
        renew: true,
        release_on_disconnect: true,
        ..rule()
    }]);
    rig.grant_token("lock:a", "o", 1, Some(1000), Bound::Free, Token(Uuid::nil()));
    rig.grant_token("lock:b", "o", 1, Some(60_000), Bound::Free, Token(Uuid::nil()));
    rig.close(1, Closing::ByClient);
    rig.run(20_000);
    assert_eq!(rig.take(), ["1050 expired lock:a 1000"]);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
}

#[test]
fn an_end_that_a_grant_explains_is_an_expiry() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    // The next grant has replaced the lease in the record already; its own word is still on the way.
    rig.run_with(1100, |_| Ok(Done::Ended));
    assert_eq!(rig.take(), ["1050 check lock:a"]);
    rig.event("lock:a", "o", 1, Bound::Free, What::Expired { held_ms: None });
    rig.grant("lock:a", "p", 2, 60_000);
    rig.run(5000);
    assert_eq!(rig.count("expired"), 1);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
}

#[test]
fn what_others_saw_of_a_lock_is_a_reason_to_look() {
    for doubt in [
        "its owner is a stranger",
        "an operator saw no lock",
        "the server was away",
    ] {
        let mut rig = Rig::new(&[rule()]);
        rig.grant("lock:a", "o", 1, None);
        rig.run(1000);
        match doubt {
            "its owner is a stranger" => rig.release("lock:a", "o", 2, ReleaseOutcome::Foreign),
            "an operator saw no lock" => rig.keeper.doubt(rig.now(), 0, &b"lock:a"[..].into()),
            _ => rig.keeper.reconnected(rig.now()),
        }
        rig.run_with(2000, |_| Ok(Done::Ended));
        assert!(rig.keeper.is_empty(), "{doubt}");
        assert_eq!(rig.count("ended"), 1, "{doubt}");
    }
}
