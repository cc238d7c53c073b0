//! Release on disconnect: after the grace, and not if the owner is still about.

use lockward::event::What;
use lockward::lock::chore::{Done, Task};
use lockward::lock::keeper::{Closing, Failed};
use lockward::lock::owner::Bound;
use lockward::lock::rule::{Mode, Rule};

use super::rig::*;

#[test]
fn leases_go_when_the_last_connection_of_their_owner_was_closed() {
    let mut rig = Rig::new(&[Rule {
        disconnect_grace_ms: 300,
        ..leaving()
    }]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.grant("lock:b", "o", 2, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run(600);
    assert_eq!(rig.take(), ["0 gone lock:a 1"]);
    rig.close(2, Closing::ByClient);
    rig.run_with(600, |chore| match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(29_100) }),
        _ => obliging(chore),
    });
    let expected = [
        "600 gone lock:b 2",
        "900 check lock:a",
        "900 check lock:b",
        "900 free lock:a",
        "900 free lock:b",
        "900 disconnect lock:a 900",
        "900 disconnect lock:b 900",
    ];
    assert_eq!(rig.take(), expected);
    assert!(rig.keeper.is_empty());
}

#[test]
fn an_owner_who_comes_back_keeps_its_leases() {
    let mut rig = Rig::new(&[leaving()]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run(4000);
    rig.event("lock:z", "o", 2, Bound::Free, What::Contended { shielded: false });
    rig.run(20_000);
    assert_eq!(rig.take(), ["0 gone lock:a 1"]);
}

#[test]
fn an_owner_who_comes_back_at_the_last_moment_keeps_its_leases() {
    let mut rig = Rig::new(&[leaving()]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run(4999);
    rig.now_ms = 5000;
    let look = rig.tick();
    assert_eq!(word(&look[0]), "check lock:a");
    rig.keeper.bound(2, R, &"o".into());
    rig.keeper
        .done(rig.now(), &look[0], Ok(&Done::Live { ttl_ms: Some(25_000) }));
    rig.run(1000);
    assert_eq!(rig.count("free"), 0);
}

#[test]
fn a_lease_that_was_extended_through_another_proxy_stays() {
    let mut rig = Rig::new(&[leaving()]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run_with(20_000, |chore| match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(60_000) }),
        _ => obliging(chore),
    });
    assert_eq!(rig.take(), ["0 gone lock:a 1", "5000 check lock:a"]);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
}

#[test]
fn connections_that_proxy_or_server_ends_say_nothing() {
    let mut rig = Rig::new(&[leaving()]);
    rig.grant("lock:a", "o", 1, 100_000);
    rig.grant_as("lock:b", "connection=1", 1, 100_000, Bound::Connection);
    rig.close(1, Closing::ByProxyOrServer);
    rig.run(50_000);
    assert_eq!(rig.take(), [""; 0]);
}

#[test]
fn a_grant_that_arrives_after_its_connection_was_closed_is_treated_as_left() {
    let mut rig = Rig::new(&[leaving()]);
    rig.close(1, Closing::ByClient);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.run_with(6000, |chore| match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(25_000) }),
        _ => obliging(chore),
    });
    let lines = rig.take();
    assert_eq!(lines[..3], ["0 gone lock:a 1", "5000 check lock:a", "5000 free lock:a"]);
}

#[test]
fn a_failed_release_on_disconnect_is_tried_again() {
    let mut rig = Rig::new(&[leaving()]);
    rig.grant("lock:a", "o", 1, 30_000);
    rig.close(1, Closing::ByClient);
    rig.run_with(8000, |_| Err(Failed));
    rig.take();
    rig.run_with(20_000, |chore| match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(21_250) }),
        _ => obliging(chore),
    });
    assert_eq!(rig.count("disconnect lock:a"), 1);
}

#[test]
fn a_reload_that_switches_the_release_off_takes_back_the_one_that_was_to_come() {
    for other in [
        rule(),
        Rule {
            mode: Mode::Observe,
            ..leaving()
        },
    ] {
        let mut rig = Rig::new(&[leaving()]);
        rig.grant("lock:a", "o", 1, 30_000);
        rig.close(1, Closing::ByClient);
        rig.run(1000);
        rig.keeper.reload(rig.now(), &[other]);
        rig.run(20_000);
        assert_eq!(rig.take(), ["0 gone lock:a 1"]);
    }
}
