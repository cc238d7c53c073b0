//! Random histories of locks, through the Lua scripts on a real server and through the Rust model: every reply, every
//! reported outcome, every expiry and every record must be the same. Many histories run side by side, so that real
//! expiries cost little time. It drives the scripts as a session does, from the client's own words.

#[path = "lease/history.rs"]
mod history;
#[path = "lease/log.rs"]
mod log;
#[path = "lease/random.rs"]
mod random;
mod real_server;
#[allow(dead_code, reason = "shared with the test of single commands, which names the port")]
#[path = "lease/server.rs"]
mod server;
#[path = "lease/step.rs"]
mod step;
#[path = "lease/view.rs"]
mod view;
#[path = "lease/world.rs"]
mod world;

use history::{History, Verdict};
use server::Server;

/// Histories that run side by side. A round of them takes some tens of milliseconds, about as long as the leases.
const SIDE_BY_SIDE: usize = 400;
const STEPS: usize = 40;

fn run(kind: &str) {
    let histories = std::env::var("LOCKWARD_TEST_HISTORIES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000);
    let seed: u64 = std::env::var("LOCKWARD_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let server = Server::start(kind);
    let mut connection = server.connect();
    for script in lockward::lock::script::Script::ALL {
        assert_eq!(connection.ask(&["SCRIPT", "LOAD", script.text()]).text(), script.sha1());
    }
    let (mut done, mut given_up) = (0, 0);
    let mut reached = std::collections::BTreeMap::<&'static str, usize>::new();
    while done < histories {
        let mut batch: Vec<History> = (0..SIDE_BY_SIDE)
            .map(|place| History::new(seed.wrapping_mul(1 << 32) + (done + place) as u64))
            .collect();
        for _ in 0..STEPS {
            for history in &mut batch {
                history.ask(&mut connection);
            }
            connection.send();
            for history in &mut batch {
                match history.check(&mut connection) {
                    Verdict::Same => {}
                    Verdict::GivenUp => given_up += 1,
                    Verdict::Different(report) => panic!("{kind}: model and scripts differ\n{report}"),
                }
            }
        }
        for history in &batch {
            for word in &history.reached {
                *reached.entry(word).or_default() += 1;
            }
        }
        done += SIDE_BY_SIDE;
        connection.ask(&["FLUSHALL"]);
    }
    println!("{kind}: {done} histories of {STEPS} steps, {given_up} given up at the edge of an expiry");
    println!("{reached:#?}");
    assert!(
        given_up * 20 < done,
        "too many histories met the edge of an expiry: {given_up}"
    );
}

#[test]
fn model_and_scripts_agree_on_redis() {
    run("redis");
}

#[test]
fn model_and_scripts_agree_on_valkey() {
    run("valkey");
}
