//! Leases that one process leaves to the next: known there, asked about at once, renewed as soon as their owner is there.

use lockward::event::ReleaseOutcome;
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::keeper::{Failed, Held};
use lockward::lock::rule::Rule;

use super::rig::*;

/// The lease lives, with so much left.
fn lives(chore: &Chore) -> Result<Done, Failed> {
    match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(2500) }),
        _ => obliging(chore),
    }
}

/// What a process with these rules knows half a second after a grant of three seconds.
fn left_behind(rules: &[Rule]) -> Vec<Held> {
    let mut old = Rig::new(rules);
    old.grant("lock:a", "o", 7, 3000);
    old.run(500);
    old.keeper.held(old.now())
}

#[test]
fn a_lease_is_taken_over_with_its_age_and_what_is_left_of_it() {
    let held = left_behind(&[renewing()]);
    assert_eq!(held.len(), 1);
    assert_eq!(
        (held[0].ttl_ms, held[0].left_ms, held[0].held_ms),
        (Some(3000), Some(2500), 500)
    );
    let mut new = Rig::new(&[
        rule(),
        Rule {
            name: "other".into(),
            ..renewing()
        },
    ]);
    new.now_ms = 10_000;
    new.keeper.inherit(new.now(), &held[0]);
    new.run_with(100, lives);
    assert_eq!(new.take(), ["10000 check lock:a"]);
    assert_eq!(
        new.keeper.held(new.now())[0],
        Held {
            left_ms: Some(2400),
            held_ms: 600,
            ..held[0].clone()
        }
    );
    // By its name it is another rule's here, which does not renew; and a second word of it is nothing new.
    new.keeper.inherit(new.now(), &held[0]);
    assert_eq!(new.keeper.len(), 1);
}

#[test]
fn it_is_renewed_as_soon_as_its_owner_is_here() {
    let held = left_behind(&[renewing()]);
    let mut new = Rig::new(&[renewing()]);
    new.now_ms = 10_000;
    new.keeper.inherit(new.now(), &held[0]);
    new.run_with(100, lives);
    new.keeper.bound(1, R, &"o".into());
    new.run_with(100, lives);
    assert_eq!(
        new.take(),
        ["10000 check lock:a", "10100 renew lock:a 3000", "10100 extended lock:a"]
    );
}

#[test]
fn what_this_process_knows_better_or_has_no_rule_for_stays_as_it_is() {
    let held = left_behind(&[renewing()]);
    let mut new = Rig::new(&[renewing()]);
    new.grant("lock:a", "p", 1, 9000);
    new.keeper.inherit(new.now(), &held[0]);
    assert_eq!(
        new.keeper
            .held(new.now())
            .iter()
            .map(|held| &*held.owner)
            .collect::<Vec<_>>(),
        ["p"]
    );
    let mut other = Rig::new(&[Rule {
        name: "other".into(),
        ..rule()
    }]);
    other.keeper.inherit(other.now(), &held[0]);
    assert!(other.keeper.is_empty());
}

#[test]
fn one_that_was_acquired_through_the_other_process_meanwhile_takes_the_place_of_an_older_one() {
    let mut old = Rig::new(&[renewing()]);
    old.grant("lock:a", "o", 7, 3000);
    let mut new = Rig::new(&[renewing()]);
    new.keeper.inherit(new.now(), &old.keeper.held(old.now())[0]);
    new.run_with(100, lives);
    old.run(500);
    old.release("lock:a", "o", 7, ReleaseOutcome::Released);
    old.grant("lock:a", "p", 8, 3000);
    old.run(200);
    new.now_ms = 700;
    new.take();
    new.keeper.inherit(new.now(), &old.keeper.held(old.now())[0]);
    let second = old.keeper.held(old.now())[0].token;
    new.run_with(100, |chore| match chore.task {
        Task::Check { token } if token != second => Ok(Done::Ended),
        _ => lives(chore),
    });
    assert_eq!(new.take(), ["700 check lock:a", "700 check lock:a", "700 ended lock:a"]);
    let held = new.keeper.held(new.now());
    assert_eq!(
        held.iter().map(|held| (&*held.owner, held.token)).collect::<Vec<_>>(),
        [("p", second)]
    );
}

#[test]
fn one_that_has_ended_meanwhile_is_found_out() {
    let held = left_behind(&[rule()]);
    let mut new = Rig::new(&[rule()]);
    new.now_ms = 1000;
    new.keeper.inherit(new.now(), &held[0]);
    new.run_with(1000, |chore| match chore.task {
        Task::Check { .. } => Ok(Done::Ended),
        _ => obliging(chore),
    });
    assert!(new.keeper.held(new.now()).is_empty());
    assert!(new.take().contains(&"1000 ended lock:a".to_owned()));
}
