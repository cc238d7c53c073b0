//! What a look at the lock table costs with 100,000 leases and 10,000 waiters in it, and a piece of it: for so long the
//! keeper is locked at once, and lock commands of clients wait.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use lockward::event::{ConnectionId, Event, Grant, RuleIndex, Time, Token, What};
use lockward::lock::keeper::{Keeper, Limits, Reading, SortBy, TableQuery};
use lockward::lock::owner::Bound;
use lockward::lock::rule::Rule;
use lockward::lock::search::Search;
use uuid::Uuid;

const LEASES: u64 = 100_000;
const WAITERS: u64 = 10_000;

fn event(at: Time, number: u64, owner: String, what: What) -> Event {
    // Keys arrive in no order.
    let shuffled = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    Event {
        at,
        database: 0,
        key: Bytes::from(format!("lock:orders:{shuffled:08}:{number}")),
        rule: RuleIndex((number % 3) as u16),
        owner: owner.as_str().into(),
        connection: ConnectionId {
            instance: "0123456789abcdef".into(),
            number: number % 500,
        },
        what,
    }
}

/// Leases of three rules, a quarter of them without TTL.
fn full() -> (Keeper, Time) {
    let rules = ["a", "b", "c"].map(Rule::new);
    let mut keeper = Keeper::new(&rules, Limits::default());
    let (mut chores, mut events) = (Vec::new(), Vec::new());
    for number in 0..LEASES {
        let at = Time(number * 100);
        let grant = Grant {
            token: Token(Uuid::from_u128(u128::from(number) + 1)),
            fence: None,
            ttl_ms: (number % 4 > 0).then_some(60_000 + number),
            ttl_injected: false,
            ttl_reduced: false,
            overlap: false,
        };
        let owner = format!("address=10.0.{}.{}", number % 200, number % 7);
        keeper.event(&event(at, number, owner, What::Granted(grant)), Bound::Free);
    }
    let now = Time(LEASES * 100);
    for number in 0..WAITERS {
        let owner = format!("address=10.1.{}.{}", number % 250, number / 250);
        keeper.event(
            &event(now, number / 5, owner, What::Contended { shielded: false }),
            Bound::Free,
        );
    }
    keeper.tick(now, &mut chores, &mut events);
    (keeper, now)
}

/// What the thread has had of the processor so far, if Linux says so. Other than the clock's, this time is not that of
/// the neighbours.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// How much of the processor a reading takes, and a piece of it, on average.
fn cost(keeper: &Keeper, now: Time, query: &TableQuery) -> (Duration, Duration) {
    const READINGS: u32 = 50;
    let (begun, mut pieces) = (processor(), 0);
    for _ in 0..READINGS {
        let mut reading = Reading::new(now, query.clone(), Vec::new());
        pieces += 1;
        while keeper.read_on(&mut reading) {
            reading.digest();
            pieces += 1;
        }
        black_box(reading.into_table());
    }
    let spent = processor() - begun;
    (spent / READINGS, spent / pieces)
}

fn table(criterion: &mut Criterion) {
    let (keeper, now) = full();
    let query = |sort| TableQuery {
        sort,
        descending: matches!(sort, SortBy::Age | SortBy::Waiters),
        limit: 100,
        ..TableQuery::default()
    };
    let queries = [
        ("oldest", query(SortBy::Age)),
        (
            "oldest_from_90000",
            TableQuery {
                offset: 90_000,
                ..query(SortBy::Age)
            },
        ),
        (
            "older_than",
            TableQuery {
                older_than_ms: Some(1),
                ..query(SortBy::Age)
            },
        ),
        ("most_waiters", query(SortBy::Waiters)),
        ("least_ttl", query(SortBy::Ttl)),
        ("by_key", query(SortBy::Key)),
        (
            "by_key_from_50000",
            TableQuery {
                offset: 50_000,
                ..query(SortBy::Key)
            },
        ),
        (
            "word",
            TableQuery {
                search: Search::new("999").ok(),
                ..query(SortBy::Age)
            },
        ),
        (
            "owner",
            TableQuery {
                owner: Some("10.0.7.".to_owned()),
                ..query(SortBy::Age)
            },
        ),
        (
            "warned",
            TableQuery {
                warned: true,
                ..query(SortBy::Age)
            },
        ),
    ];
    let mut group = criterion.benchmark_group("table");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500));
    for (name, query) in queries {
        let (reading, piece) = cost(&keeper, now, &query);
        println!("{name}: {reading:?} of the processor, {piece:?} for each piece");
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(keeper.table(now, &query, &[])))
        });
    }
    group.finish();
}

criterion_group!(benches, table);
criterion_main!(benches);
