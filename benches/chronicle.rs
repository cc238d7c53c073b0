//! What the chronicle costs for each event: a refused acquire on a contended lock, which is by far the commonest event, a
//! whole lease, and the word to those who wait for changes. Times are only good for comparing within one run.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use lockward::event::{ConnectionId, Event, Grant, Release, ReleaseOutcome, RuleIndex, Time, Token, What};
use lockward::lock::chronicle::{Chronicle, Limits};
use lockward::lock::rule::Rule;
use tokio::sync::watch;
use uuid::Uuid;

fn event(key: &str, what: What) -> Event {
    Event {
        at: Time(1_000_000),
        database: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
        rule: RuleIndex(0),
        owner: "address=10.0.0.7".into(),
        connection: ConnectionId {
            instance: "0123456789abcdef".into(),
            number: 1,
        },
        what,
    }
}

fn granted() -> What {
    What::Granted(Grant {
        token: Token(Uuid::nil()),
        fence: None,
        ttl_ms: Some(30_000),
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    })
}

/// A chronicle with as many histories as it can hold.
fn chronicle() -> Chronicle {
    let mut chronicle = Chronicle::new(&[Rule::new("lock:*")], Limits::default());
    for number in 0..4096 {
        chronicle.event(&event(&format!("lock:{number}"), granted()), None);
    }
    chronicle
}

fn contended(c: &mut Criterion) {
    let mut chronicle = chronicle();
    let mut times = 0;
    let mut one = event("lock:17", What::Contended { shielded: false });
    c.bench_function("contended, one lock", |b| {
        b.iter(|| {
            times += 50;
            one.at = Time(times);
            chronicle.event(black_box(&one), None)
        })
    });
    let mut many: Vec<Event> = (0..64)
        .map(|number| event(&format!("lock:{number}"), What::Contended { shielded: false }))
        .collect();
    let mut turn = 0;
    c.bench_function("contended, 64 locks in turn", |b| {
        b.iter(|| {
            turn = (turn + 1) % many.len();
            times += 50;
            many[turn].at = Time(times);
            chronicle.event(black_box(&many[turn]), None)
        })
    });
}

fn lease(c: &mut Criterion) {
    let mut chronicle = chronicle();
    let release = What::Release(Release {
        outcome: ReleaseOutcome::Released,
        held_ms: Some(0),
        overrun_ms: None,
    });
    let (grant, release) = (event("lock:17", granted()), event("lock:17", release));
    c.bench_function("a lease granted and released", |b| {
        b.iter(|| {
            chronicle.event(black_box(&grant), Some(5));
            chronicle.event(black_box(&release), None)
        })
    });
    let mut number = 0;
    c.bench_function("a lease on a lock that is not known", |b| {
        b.iter(|| {
            number += 1;
            chronicle.event(&event(&format!("new:{number}"), granted()), None)
        })
    });
}

fn changes(c: &mut Criterion) {
    let changes = watch::Sender::new(());
    c.bench_function("a change that nobody waits for", |b| {
        b.iter(|| changes.send_replace(()))
    });
    let _receiver = changes.subscribe();
    c.bench_function("a change with a reader who sleeps", |b| {
        b.iter(|| changes.send_replace(()))
    });
}

criterion_group!(benches, contended, lease, changes);
criterion_main!(benches);
