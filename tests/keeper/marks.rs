//! Marks for closed connections: where, for whom, how often.

use lockward::event::ReleaseOutcome;
use lockward::lock::keeper::{Closing, Failed};
use lockward::lock::owner::Bound;
use lockward::lock::rule::Rule;

use super::rig::*;

#[test]
fn a_closed_connection_is_marked_where_it_holds_or_owes() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:live", "o", 1, 30_000);
    rig.grant("lock:owed", "o", 1, 100);
    rig.grant("lock:released", "o", 1, 30_000);
    rig.release("lock:released", "o", 1, ReleaseOutcome::Released);
    rig.grant("lock:paid", "o", 1, 100);
    rig.run(500);
    rig.release("lock:paid", "o", 1, ReleaseOutcome::Late);
    rig.take();
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), ["500 gone lock:live 1", "500 gone lock:owed 1"]);
}

#[test]
fn a_debt_out_of_the_window_needs_no_mark() {
    let mut rig = Rig::new(&[Rule {
        late_release_window_ms: 1000,
        ..rule()
    }]);
    rig.grant("lock:a", "o", 1, 100);
    rig.run(1200);
    assert!(rig.keeper.is_empty());
    rig.take();
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), [""; 0]);
}

#[test]
fn several_debts_of_one_connection_on_one_lock_are_one_mark() {
    let mut rig = Rig::new(&[rule()]);
    for _ in 0..3 {
        rig.grant("lock:a", "o", 1, 100);
        rig.run(200);
    }
    rig.grant("lock:a", "o", 1, 10_000);
    rig.take();
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), ["600 gone lock:a 1"]);
}

#[test]
fn an_owner_that_is_its_connection_ends_with_it() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant_as("lock:a", "connection=1", 1, 30_000, Bound::Connection);
    rig.grant_as("lock:b", "connection=1", 1, 100, Bound::Connection);
    rig.run(500);
    rig.take();
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(
        rig.take(),
        ["500 drop lock:a connection=1", "500 drop lock:b connection=1"]
    );
}

#[test]
fn a_process_ends_with_its_last_connection() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant_as("lock:a", "process=7", 1, 30_000, Bound::Process);
    rig.grant_as("lock:b", "process=7", 2, 30_000, Bound::Process);
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), ["0 gone lock:a 1"]);
    rig.close(2, Closing::ByClient);
    rig.run(10);
    let mut lines = rig.take();
    lines.sort();
    assert_eq!(lines, ["10 drop lock:a process=7", "10 drop lock:b process=7"]);
}

#[test]
fn without_a_window_there_is_nothing_to_mark() {
    let mut rig = Rig::new(&[Rule {
        late_release_window_ms: 0,
        ..rule()
    }]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(rig.take(), [""; 0]);
}

#[test]
fn a_mark_that_fails_is_tried_again_for_a_while() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 600_000);
    rig.close(1, Closing::ByClient);
    rig.run_with(500_000, |_| Err(Failed));
    assert_eq!(rig.count("gone"), 11);
    assert_eq!(rig.keeper.dropped().marks, 1);
}

#[test]
fn a_lease_released_before_its_mark_went_out_gets_none() {
    let mut rig = Rig::new(&[rule()]);
    rig.keeper.bound(2, R, &"o".into());
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.release("lock:a", "o", 2, ReleaseOutcome::Pooled);
    rig.run(10);
    assert_eq!(rig.take(), [""; 0]);
}
