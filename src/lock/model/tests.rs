//! The accounting in small scenes, line by line, without a server.

use uuid::Uuid;

use super::*;
use crate::event::ReleaseOutcome::{Absent, Foreign, Late, Pooled, Released, Unmanaged};
use crate::lock::chore::Done;

/// Connections by number; owner A has 1 to 9, owner B the others.
fn caller(number: u64) -> Caller {
    Caller {
        owner: if number < 10 { "A" } else { "B" }.into(),
        connection: ConnectionId {
            instance: "i".into(),
            number,
        },
        token: Token(Uuid::from_u64_pair(1, number)),
        allow: true,
        window_ms: 1000,
        default_ms: None,
        max_ms: None,
    }
}

#[derive(Default)]
struct Scene {
    model: Model,
    now: i64,
}

impl Scene {
    fn acquire(&mut self, number: u64, ttl: i64) -> Outcome {
        let expiry = NewExpiry::At(self.now + ttl);
        self.model.write(Kind::Acquire, &caller(number), expiry, self.now)
    }

    fn granted(&mut self, number: u64, ttl: i64) -> Granted {
        match self.acquire(number, ttl) {
            Outcome::Granted(granted) => granted,
            other => panic!("not granted: {other:?}"),
        }
    }

    fn release(&mut self, number: u64) -> ReleaseOutcome {
        match self.model.release(&caller(number), self.now) {
            Outcome::Release { outcome, .. } => outcome,
            other => panic!("no release: {other:?}"),
        }
    }

    fn wait(&mut self, ms: i64) {
        self.now += ms;
    }
}

#[test]
fn a_late_release_keeps_the_next_holder() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    let granted = scene.granted(10, 30_000);
    assert!(granted.overlap && granted.expired.is_some());
    assert_eq!(scene.release(1), Late);
    assert_eq!(scene.acquire(2, 30_000), Outcome::Contended);
    assert_eq!(scene.release(10), Released);
}

#[test]
fn the_oldest_debt_is_paid_whichever_connection_comes() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    scene.granted(2, 30_000);
    assert_eq!([scene.release(3), scene.release(3)], [Late, Pooled]);
}

#[test]
fn a_closed_connections_debt_does_not_hold_up_the_holders_own_connection() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.model.gone(&caller(1).connection, scene.now);
    scene.wait(220);
    scene.granted(2, 30_000);
    assert_eq!(scene.release(2), Released);
    scene.granted(2, 30_000);
    assert_eq!([scene.release(3), scene.release(3)], [Late, Pooled]);
}

#[test]
fn a_doubtful_payment_comes_back_in_place_of_the_leases_own_debt() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    scene.granted(2, 400);
    assert_eq!(scene.release(3), Late);
    assert_eq!(scene.model.renew(caller(2).token, 400, scene.now), Done::Doubtful);
    scene.wait(450);
    scene.granted(2, 30_000);
    assert_eq!(scene.model.debts.len(), 1);
    assert_eq!(scene.model.debts[0].due, 150);
    assert_eq!([scene.release(3), scene.release(3)], [Late, Pooled]);
    scene.granted(2, 30_000);
    assert_eq!(scene.release(3), Pooled);
}

#[test]
fn a_doubt_outside_the_window_brings_nothing_back() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    scene.granted(2, 1100);
    assert_eq!(scene.release(3), Late);
    scene.wait(1150);
    scene.granted(4, 30_000);
    assert_eq!(scene.release(3), Pooled);
}

#[test]
fn an_own_debt_paid_while_another_connection_holds_the_lease_is_no_doubt() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    scene.granted(2, 300);
    assert_eq!(scene.release(1), Late);
    scene.wait(320);
    scene.granted(3, 30_000);
    assert_eq!(scene.model.debts.iter().map(|debt| debt.due).collect::<Vec<_>>(), [520]);
}

#[test]
fn a_last_lease_past_its_expiry_is_a_debt_at_once() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(151);
    assert_eq!(scene.release(10), Absent);
    assert_eq!([scene.release(2), scene.release(2)], [Late, Absent]);
}

#[test]
fn adrift_is_the_owners_and_nobody_elses() {
    let mut scene = Scene::default();
    scene.granted(1, 100_000);
    scene.model.lock = Some(Lock { expiry: Some(500_000) });
    assert_eq!(scene.model.standing(), Standing::Adrift);
    assert_eq!(scene.release(10), Foreign);
    let strict = Caller {
        allow: false,
        ..caller(2)
    };
    assert!(matches!(
        scene.model.extend(&strict, NewExpiry::At(200_000), true, scene.now),
        Outcome::Extended(false)
    ));
    assert_eq!(scene.release(2), Pooled);
}

#[test]
fn a_takeover_opens_the_lock_and_nothing_is_owed() {
    let mut scene = Scene::default();
    scene.granted(1, 200);
    let taken = scene
        .model
        .write(Kind::Takeover, &caller(10), NewExpiry::At(200), scene.now);
    assert_eq!(taken, Outcome::TakenOver);
    assert_eq!(scene.model.standing(), Standing::Open);
    scene.wait(300);
    assert!(!scene.granted(1, 1000).overlap);
    scene
        .model
        .write(Kind::Takeover, &caller(10), NewExpiry::Never, scene.now);
    assert_eq!(scene.release(2), Unmanaged);
}

#[test]
fn an_owner_that_ended_owes_nothing_also_for_a_lease_that_expires_later() {
    let mut scene = Scene::default();
    scene.granted(1, 150);
    scene.wait(220);
    scene.granted(2, 300);
    scene.model.drop_debts(&"A".into(), scene.now);
    scene.wait(400);
    assert!(!scene.granted(10, 1000).overlap);
    assert_eq!(scene.release(1), Foreign);
}

#[test]
fn a_stranger_may_give_a_ttl_to_a_lease_without_one_once() {
    let mut scene = Scene::default();
    scene.model.write(Kind::Acquire, &caller(1), NewExpiry::Never, 0);
    let mut extend = |ms| scene.model.extend(&caller(10), NewExpiry::At(ms), true, 0);
    assert!(matches!(extend(9999), Outcome::Refused(..)));
    assert_eq!(extend(10_000), Outcome::Extended(false));
    assert!(matches!(extend(60_000), Outcome::Refused(..)));
}

#[test]
fn no_window_no_debts() {
    let mut scene = Scene::default();
    let nothing_owed = Caller {
        window_ms: 0,
        ..caller(1)
    };
    scene.model.write(Kind::Acquire, &nothing_owed, NewExpiry::At(100), 0);
    scene.wait(150);
    assert!(!scene.granted(10, 1000).overlap);
    assert_eq!(scene.release(1), Foreign);
}
