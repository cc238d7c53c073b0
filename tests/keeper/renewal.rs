//! Renewal: when it comes, when it pauses and when it ends.

use bytes::Bytes;
use lockward::event::ReleaseOutcome;
use lockward::lock::chore::{Done, Task};
use lockward::lock::keeper::{Closing, Failed};
use lockward::lock::rule::Rule;

use super::rig::*;

#[test]
fn a_lease_is_renewed_at_a_third_of_its_ttl_until_max_hold() {
    let mut rig = Rig::new(&[Rule {
        max_hold_ms: 1000,
        ..renewing()
    }]);
    rig.grant("lock:a", "o", 1, 900);
    rig.run(5000);
    let expected = [
        "300 renew lock:a 900",
        "300 extended lock:a",
        "600 renew lock:a 900",
        "600 extended lock:a",
        "900 renew lock:a 900",
        "900 extended lock:a",
        "1200 capped lock:a",
        "1850 check lock:a",
        "1850 expired lock:a 1800",
    ];
    assert_eq!(rig.take(), expected);
}

#[test]
fn no_renewal_while_the_owner_has_no_connection_here_and_again_when_it_is_back() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.close(1, Closing::ByProxyOrServer);
    rig.run(2000);
    assert_eq!(rig.take(), [""; 0]);
    rig.keeper.bound(2, R, &"o".into());
    rig.run(500);
    assert_eq!(rig.take(), ["2000 renew lock:a 3000", "2000 extended lock:a"]);
}

#[test]
fn a_sibling_connection_keeps_a_lease_renewed() {
    let mut rig = Rig::new(&[renewing()]);
    rig.keeper.bound(2, R, &"o".into());
    rig.grant("lock:a", "o", 1, 3000);
    rig.close(1, Closing::ByClient);
    rig.run(1000);
    assert_eq!(
        rig.take(),
        ["0 gone lock:a 1", "1000 renew lock:a 3000", "1000 extended lock:a"]
    );
}

#[test]
fn the_acquiring_connection_counts_for_its_owner_whatever_name_it_takes_later() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "user=a", 1, 3000);
    rig.keeper.bound(1, R, &"user=b".into());
    rig.run(1000);
    assert_eq!(rig.count("renew"), 1);
}

#[test]
fn a_watched_lock_is_not_renewed_meanwhile() {
    let mut rig = Rig::new(&[renewing()]);
    let key = Bytes::from_static(b"lock:a");
    rig.grant("lock:a", "o", 1, 3000);
    rig.keeper.watching(1, 0, &key, true);
    rig.keeper.watching(2, 0, &key, true);
    rig.run(1500);
    rig.keeper.watching(1, 0, &key, false);
    rig.run(500);
    assert_eq!(rig.take(), [""; 0]);
    rig.close(2, Closing::ByProxyOrServer);
    rig.run(100);
    assert_eq!(rig.take(), ["2000 renew lock:a 3000", "2000 extended lock:a"]);
}

#[test]
fn a_lost_lease_is_said_once_the_server_confirms_it() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.run_with(5000, |chore| match chore.task {
        Task::Renew { .. } => Ok(Done::Lost),
        _ => Ok(Done::Ended),
    });
    assert_eq!(
        rig.take(),
        [
            "1000 renew lock:a 3000",
            "1100 check lock:a",
            "1100 lost lock:a",
            "1100 ended lock:a"
        ]
    );
    assert!(rig.keeper.is_empty());
}

#[test]
fn a_release_on_its_way_explains_a_lost_renewal() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.run_with(1050, |_| Ok(Done::Lost));
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    rig.run(5000);
    assert_eq!(rig.take(), ["1000 renew lock:a 3000"]);
}

#[test]
fn a_doubtful_lease_is_not_renewed_and_nothing_is_said() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.run_with(2900, |_| Ok(Done::Doubtful));
    assert_eq!(rig.take(), ["1000 renew lock:a 3000"]);
}

#[test]
fn a_failed_renewal_is_tried_again_before_the_expiry() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 3000);
    rig.run_with(2999, |_| Err(Failed));
    let tries = rig.count("renew");
    assert!((4..=20).contains(&tries), "{tries} tries");
}

#[test]
fn a_release_ends_renewal() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 900);
    rig.run(350);
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    rig.take();
    rig.run(5000);
    assert_eq!(rig.take(), [""; 0]);
    assert!(rig.keeper.is_empty());
    assert_eq!(rig.keeper.deadline(), None);
}

#[test]
fn a_ttl_set_by_the_client_is_the_full_one_from_then_on() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 900);
    rig.run(100);
    rig.extend("lock:a", "o", 2, 6000);
    rig.run(2100);
    assert_eq!(rig.take(), ["2100 renew lock:a 6000", "2100 extended lock:a"]);
    rig.extend("lock:a", "o", 1, None);
    rig.run(50_000);
    assert_eq!(rig.take(), [""; 0]);
    assert_eq!(rig.keeper.summary(rig.now())[0].without_ttl, 1);
}

#[test]
fn an_extend_that_crosses_a_renewal_wins() {
    let mut rig = Rig::new(&[renewing()]);
    rig.grant("lock:a", "o", 1, 900);
    rig.now_ms = 300;
    let chores = rig.tick();
    rig.extend("lock:a", "o", 1, 60_000);
    rig.now_ms = 301;
    rig.keeper
        .done(rig.now(), &chores[0], Ok(&Done::Renewed { ttl_ms: 900 }));
    rig.run(10);
    let lines = rig.take();
    assert_eq!(lines[0], "300 renew lock:a 900");
    assert!(lines.contains(&"301 renew lock:a 60000".to_owned()), "{lines:?}");
}
