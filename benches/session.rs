//! What the session costs for each request, without sockets: a forwarded GET alone and in pipelines, writes on keys that
//! no rule matches, and a contended acquire. Times are only good for comparing within one run.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lockward::event::{ConnectionId, Time, Token};
use lockward::lock::rule::Rule;
use lockward::lock::scout::{Scout, Sight, Sightings};
use lockward::session::{Peer, Policy, Session};
use uuid::Uuid;

fn session() -> Session {
    let policy = Policy::new(vec![Rule::new("lock:*")], "lockward:", || Token(Uuid::from_u128(1)));
    let connection = ConnectionId {
        instance: "0123456789abcdef".into(),
        number: 1,
    };
    let peer = Peer {
        address: "10.0.0.7".parse().ok(),
        process: None,
    };
    Session::new(Arc::new(policy), connection, peer)
}

/// One turn as the shell does it: requests in and out, replies in and out.
fn turn(session: &mut Session, requests: &[u8], replies: &[u8]) {
    session.receive_downstream(black_box(requests), Time(1));
    assert!(!session.to_upstream.is_empty());
    session.to_upstream.clear();
    session.receive_upstream(black_box(replies), Time(2));
    assert!(!session.to_downstream.is_empty());
    session.to_downstream.clear();
    session.settled.clear();
    session.events.clear();
    session.sightings.clear();
}

fn forwarded(c: &mut Criterion) {
    let get = b"*2\r\n$3\r\nGET\r\n$8\r\nuser:123\r\n";
    let value = b"$64\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n";
    for depth in [1, 16] {
        let mut group = c.benchmark_group("forwarded GET");
        group.throughput(Throughput::Elements(depth as u64));
        let (requests, replies) = (get.repeat(depth), value.repeat(depth));
        let mut session = session();
        group.bench_function(format!("pipeline of {depth}"), |b| {
            b.iter(|| turn(&mut session, &requests, &replies))
        });
        group.finish();
    }
}

/// Commands that could be lock operations, on keys that no rule matches.
fn uncovered(c: &mut Criterion) {
    let cases: [(&str, &[&str], &[u8]); 6] = [
        ("SET", &["SET", "user:123", "1"], b"+OK\r\n"),
        ("SET EX", &["SET", "user:123", "1", "EX", "30"], b"+OK\r\n"),
        ("DEL", &["DEL", "user:123"], b":1\r\n"),
        ("EXPIRE", &["EXPIRE", "user:123", "30"], b":1\r\n"),
        (
            "EVALSHA",
            &["EVALSHA", "0123456789012345678901234567890123456789", "1", "user:123"],
            b":1\r\n",
        ),
        ("SET NX EX", &["SET", "mutex:123", "1", "NX", "EX", "30"], b"+OK\r\n"),
    ];
    for (name, words, reply) in cases {
        let mut group = c.benchmark_group("no rule matches");
        group.throughput(Throughput::Elements(16));
        let mut request = bytes::BytesMut::new();
        lockward::resp::encode::command(
            &mut request,
            words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(),
        );
        let (requests, replies) = (request.repeat(16), reply.repeat(16));
        let mut session = session();
        group.bench_function(format!("{name}, pipeline of 16"), |b| {
            b.iter(|| turn(&mut session, &requests, &replies))
        });
        group.finish();
    }
}

/// What the scout does with the sightings of one wake-up, while others wait for it.
fn scouted(c: &mut Criterion) {
    let mut group = c.benchmark_group("scout");
    group.throughput(Throughput::Elements(64));
    let (mut scout, mut n) = (Scout::default(), 0_u32);
    group.bench_function("64 sightings", |b| {
        b.iter(|| {
            let mut sightings = Sightings::default();
            for sight in [Sight::Acquire { ttl: true }, Sight::Release].repeat(32) {
                n += u32::from(sight == Sight::Release);
                sightings.push(sight, format!("app:mutex:{}", n % 20_000).as_bytes());
            }
            scout.sighted(1, black_box(&sightings));
        })
    });
    group.bench_function("snapshot", |b| b.iter(|| black_box(scout.snapshot())));
    group.finish();
}

fn contended(c: &mut Criterion) {
    let mut session = session();
    let acquire = b"*6\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nEX\r\n$2\r\n30\r\n";
    c.bench_function("contended acquire", |b| {
        b.iter(|| turn(&mut session, acquire, b"$-1\r\n"))
    });
}

criterion_group!(benches, forwarded, uncovered, scouted, contended);
criterion_main!(benches);
