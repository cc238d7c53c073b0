//! Waits, gauges, and what happens at the bounds and at a change of the rules.

use bytes::Bytes;
use lockward::event::{Event, Grant, ReleaseOutcome, RuleIndex, What};
use lockward::lock::chore::Done;
use lockward::lock::keeper::{Closing, Keeper, Limits, Waited};
use lockward::lock::owner::Bound;
use lockward::lock::rule::Rule;

use super::rig::*;

#[test]
fn a_grant_tells_how_long_its_owner_waited() {
    let mut rig = Rig::new(&[rule()]);
    rig.event("lock:a", "o", 1, Bound::Free, What::Contended { shielded: false });
    rig.now_ms = 700;
    rig.event("lock:a", "o", 2, Bound::Free, What::Contended { shielded: false });
    assert_eq!(rig.keeper.summary(rig.now())[0].waiters, 1);
    rig.now_ms = 900;
    let token = rig.next_token();
    let grant = Grant {
        token,
        fence: None,
        ttl_ms: None,
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    };
    let waited = rig.event("lock:a", "o", 2, Bound::Free, What::Granted(grant));
    assert_eq!(
        waited,
        Some(Waited {
            rule: R,
            micros: 900_000
        })
    );
}

#[test]
fn the_gauges_follow_the_leases() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    rig.now_ms = 100;
    rig.grant("lock:b", "o", 1, None);
    rig.now_ms = 1000;
    let summary = rig.keeper.summary(rig.now())[0];
    assert_eq!(
        (summary.held, summary.without_ttl, summary.oldest_age_micros),
        (2, 1, 1_000_000)
    );
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    let summary = rig.keeper.summary(rig.now())[0];
    assert_eq!(
        (summary.held, summary.without_ttl, summary.oldest_age_micros),
        (1, 1, 900_000)
    );
}

#[test]
fn a_flood_of_marks_delays_no_renewal() {
    let mut rig = Rig::new(&[renewing()]);
    rig.keeper.bound(1, R, &"o".into());
    for number in 2..1002 {
        rig.grant(&format!("lock:{number}"), "o", number, None);
    }
    rig.grant("lock:renewed", "o", 1, 300);
    for number in 2..1002 {
        rig.close(number, Closing::ByClient);
    }
    rig.now_ms = 100;
    let first = rig.tick();
    assert_eq!(first.len(), 64);
    assert!(first.iter().any(|chore| word(chore) == "renew lock:renewed 300"));
    for _ in 0..3 {
        rig.now_ms += 1;
        assert_eq!(rig.tick().len(), 64);
    }
    assert_eq!(rig.keeper.under_way(), 256);
    rig.now_ms += 1;
    assert_eq!(rig.tick().len(), 0);
    assert!(
        rig.keeper
            .deadline()
            .is_none_or(|deadline| deadline > rig.now().plus_ms(50))
    );
    for chore in &first {
        rig.keeper.done(rig.now(), chore, Ok(&Done::Marked));
    }
    assert_eq!(rig.tick().len(), 64);
}

#[test]
fn a_full_book_gives_up_markers_before_leases_that_need_care() {
    let limits = Limits {
        leases: 3,
        ..Limits::default()
    };
    let mut rig = Rig::new(&[]);
    rig.keeper = Keeper::new(
        &[
            Rule {
                name: "renewed".into(),
                ..renewing()
            },
            rule(),
        ],
        limits,
    );
    let grant = |rig: &mut Rig, key: &str, index: u16| {
        let token = rig.next_token();
        let grant = Grant {
            token,
            fence: None,
            ttl_ms: Some(60_000),
            ttl_injected: false,
            ttl_reduced: false,
            overlap: false,
        };
        let event = Event {
            at: rig.now(),
            database: 0,
            key: Bytes::copy_from_slice(key.as_bytes()),
            rule: RuleIndex(index),
            owner: "o".into(),
            connection: connection(1),
            what: What::Granted(grant),
        };
        rig.keeper.event(&event, Bound::Free);
    };
    for key in ["a", "b", "c"] {
        grant(&mut rig, key, 1);
    }
    for key in ["d", "e", "f"] {
        grant(&mut rig, key, 0);
    }
    let held = |rig: &Rig| {
        rig.keeper
            .summary(rig.now())
            .iter()
            .map(|summary| summary.held)
            .collect::<Vec<_>>()
    };
    assert_eq!(held(&rig), [3, 0]);
    grant(&mut rig, "g", 0);
    grant(&mut rig, "h", 1);
    assert_eq!(held(&rig), [3, 0]);
    assert_eq!(rig.keeper.dropped().leases, 5);
}

#[test]
fn a_full_book_gives_up_debts_first() {
    let mut rig = Rig::new(&[]);
    rig.keeper = Keeper::new(
        &[renewing()],
        Limits {
            leases: 3,
            ..Limits::default()
        },
    );
    rig.keeper.watching(1, 0, &Bytes::from_static(b"lock:a"), true);
    rig.grant("lock:a", "o", 1, 100);
    rig.grant("lock:b", "o", 1, 60_000);
    rig.grant("lock:c", "o", 1, 60_000);
    rig.run(200);
    assert_eq!(rig.keeper.len(), 3);
    rig.grant("lock:d", "o", 1, 60_000);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 3);
    rig.grant("lock:e", "o", 1, 60_000);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 3);
    assert_eq!(rig.keeper.dropped().leases, 2);
}

#[test]
fn keys_of_any_length_take_no_more_than_their_share() {
    let limits = Limits {
        longest_key: 100,
        key_bytes: 1000,
        watches: 10,
        ..Limits::default()
    };
    let mut rig = Rig::new(&[]);
    rig.keeper = Keeper::new(&[rule()], limits);
    let long = format!("lock:{}", "k".repeat(96));
    rig.grant(&long, "o", 1, 60_000);
    rig.event(&long, "w", 1, Bound::Free, What::Contended { shielded: false });
    rig.keeper.watching(1, 0, &Bytes::from(long), true);
    let dropped = rig.keeper.dropped();
    assert_eq!(
        (rig.keeper.len(), dropped.leases, dropped.waiters, dropped.watches),
        (0, 1, 1, 1)
    );
    for number in 0..50 {
        rig.grant(&format!("lock:{number:095}"), "o", 1, 60_000);
        assert!(rig.keeper.len() <= 10);
    }
    assert_eq!((rig.keeper.len(), rig.keeper.dropped().leases), (10, 41));
    for number in 0..100 {
        rig.grant(&format!("{number}"), "o", 1, 60_000);
    }
    assert!(
        rig.keeper.len() > 100,
        "short keys find room in place of long ones: {}",
        rig.keeper.len()
    );
    rig.run(300_000);
    assert!(rig.keeper.len() <= 1, "all but debts are gone");
}

#[test]
fn new_rules_take_over_the_leases_of_their_names() {
    let mut rig = Rig::new(&[
        Rule {
            name: "gone".into(),
            ..rule()
        },
        rule(),
    ]);
    rig.grant("lock:gone", "o", 1, 30_000);
    rig.keeper.reload(rig.now(), &[rule()]);
    assert!(rig.keeper.is_empty());
    rig.grant("lock:kept", "o", 1, 30_000);
    rig.keeper.reload(
        rig.now(),
        &[
            Rule {
                name: "new".into(),
                ..rule()
            },
            renewing(),
        ],
    );
    rig.run(100);
    assert_eq!(rig.take(), ["0 renew lock:kept 30000", "0 extended lock:kept"]);
    let held: Vec<usize> = rig
        .keeper
        .summary(rig.now())
        .iter()
        .map(|summary| summary.held)
        .collect();
    assert_eq!(held, [0, 1]);
}
