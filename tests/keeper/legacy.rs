//! Leases that one process leaves to the next: known there, asked about at once, renewed as soon as their owner is there.

use lockward::event::{ReleaseOutcome, Token};
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::keeper::{Closing, Failed, Held};
use lockward::lock::owner::Bound;
use lockward::lock::rule::{Mode, Rule};

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
    let other = Rule {
        name: "other".into(),
        ..rule()
    };
    let off = Rule {
        mode: Mode::Off,
        ..renewing()
    };
    for without in [other, off] {
        let mut new = Rig::new(&[without]);
        new.keeper.inherit(new.now(), &held[0]);
        assert!(new.keeper.is_empty());
    }
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

#[test]
fn each_lease_is_told_of_once() {
    let mut old = Rig::new(&[rule()]);
    old.grant("lock:a", "o", 7, 30_000);
    old.run(100);
    assert_eq!(old.keeper.bequeath(old.now()).len(), 1);
    old.grant("lock:b", "o", 7, 30_000);
    old.run(100);
    let keys = |held: Vec<Held>| held.into_iter().map(|held| held.key).collect::<Vec<_>>();
    assert_eq!(keys(old.keeper.bequeath(old.now())), ["lock:b"]);
    // The one after the next is told of what was inherited.
    let mut next = Rig::new(&[rule()]);
    for held in old.keeper.held(old.now()) {
        next.keeper.inherit(next.now(), &held);
    }
    assert_eq!(keys(next.keeper.bequeath(next.now())), ["lock:a", "lock:b"]);
}

/// Every renewal finds that the lease has ended.
fn ended(chore: &Chore) -> Result<Done, Failed> {
    match chore.task {
        Task::Renew { .. } => Ok(Done::Lost),
        Task::Check { .. } => Ok(Done::Ended),
        _ => obliging(chore),
    }
}

#[test]
fn what_was_released_through_the_other_process_was_not_lost() {
    let mut old = Rig::new(&[renewing()]);
    old.grant("lock:a", "o", 7, 3000);
    old.run(500);
    let held = old.keeper.bequeath(old.now());
    let mut new = Rig::new(&[renewing()]);
    new.keeper.accompanied();
    new.keeper.inherit(new.now(), &held[0]);
    new.keeper.bound(1, R, &"o".into());
    new.run_with(100, lives);
    assert_eq!(new.count("extended"), 1);
    for side in [&mut old, &mut new] {
        side.take();
        side.run_with(3000, ended);
        assert_eq!((side.count("lost"), side.count("ended")), (0, 1));
        assert!(side.keeper.is_empty());
    }
}

#[test]
fn what_is_there_once_the_other_process_has_ended_can_be_lost() {
    let mut new = Rig::new(&[renewing()]);
    new.keeper.accompanied();
    new.keeper.inherit(new.now(), &left_behind(&[renewing()])[0]);
    new.keeper.bound(1, R, &"o".into());
    new.run_with(100, lives);
    new.keeper.alone(new.now());
    new.take();
    new.run_with(100, lives);
    assert_eq!(new.take(), ["100 check lock:a"]);
    new.run_with(3000, ended);
    assert_eq!((new.count("lost"), new.count("ended")), (1, 1));
}

/// A lease without TTL lives.
fn stays(chore: &Chore) -> Result<Done, Failed> {
    match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: None }),
        _ => obliging(chore),
    }
}

#[test]
fn nothing_is_released_on_disconnect_while_the_owner_may_be_with_the_other_process() {
    let rules = [Rule {
        disconnect_grace_ms: 300,
        ..leaving()
    }];
    let mut old = Rig::new(&rules);
    old.grant_as("lock:a", "o", 7, None, Bound::Process);
    let mut new = Rig::new(&rules);
    new.keeper.accompanied();
    new.keeper.inherit(new.now(), &old.keeper.bequeath(old.now())[0]);
    new.run_with(100, stays);
    old.grant_as("lock:b", "o", 7, None, Bound::Process);
    new.grant_as("lock:c", "o", 8, None, Bound::Process);
    for (side, number) in [(&mut old, 7), (&mut new, 8)] {
        side.close(number, Closing::ByClient);
        side.run_with(1000, stays);
        assert_eq!((side.count("free"), side.count("drop")), (0, 0));
    }
    new.keeper.alone(new.now());
    new.keeper.bound(9, R, &"o".into());
    new.close(9, Closing::ByClient);
    new.run_with(1000, stays);
    assert_eq!(new.count("free"), 2);
}

#[test]
fn who_was_gone_before_is_released_by_the_next_unless_it_comes_back() {
    for comes_back in [false, true] {
        let rules = [Rule {
            disconnect_grace_ms: 300,
            ..leaving()
        }];
        let mut old = Rig::new(&rules);
        old.grant("lock:a", "o", 7, None);
        old.close(7, Closing::ByClient);
        old.run(100);
        let held = old.keeper.bequeath(old.now());
        assert_eq!(held[0].leave_ms, Some(200));
        let mut new = Rig::new(&rules);
        new.keeper.accompanied();
        if comes_back {
            new.keeper.bound(1, R, &"o".into());
        }
        new.keeper.inherit(new.now(), &held[0]);
        old.run_with(1000, stays);
        new.run_with(1000, stays);
        assert_eq!(old.count("free"), 0);
        assert_eq!(new.count("free"), usize::from(!comes_back));
    }
}

#[test]
fn what_was_acquired_while_there_were_two_and_released_through_the_other_was_not_lost() {
    let mut new = Rig::new(&[renewing()]);
    new.keeper.accompanied();
    new.grant("lock:a", "o", 1, 3000);
    let observed = Token(uuid::Uuid::nil());
    new.grant_token("lock:observed", "o", 1, None, Bound::Free, observed);
    new.run(500);
    new.keeper.alone(new.now());
    new.run_with(3000, ended);
    assert_eq!((new.count("lost"), new.count("ended")), (0, 1));
    assert_eq!(new.keeper.len(), 1);
    // A process between two others: the first one's end does not make it alone.
    new.keeper.accompanied();
    new.keeper.bequeath(new.now());
    new.keeper.alone(new.now());
    new.grant("lock:b", "o", 1, 3000);
    new.run_with(3000, ended);
    assert_eq!((new.count("lost"), new.count("ended")), (0, 2));
}
