//! The lock table: what its rows say, which rows a query gives and in which order, what is warned of.

use std::collections::BTreeMap;

use bytes::Bytes;
use lockward::event::{
    Action, Event, Grant, Operation, Owner, Refusal, RefusalReason, Release, ReleaseOutcome, RuleIndex, Time, Token,
    What,
};
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::keeper::{Closing, Failed, Keeper, Limits, Reading, Row, SortBy, Table, TableQuery, Warning};
use lockward::lock::owner::Bound;
use lockward::lock::rule::Rule;
use lockward::lock::search::Search;
use proptest::prelude::*;
use uuid::Uuid;

use super::rig::*;

fn all() -> TableQuery {
    TableQuery {
        descending: true,
        limit: 1000,
        ..TableQuery::default()
    }
}

fn rows(rig: &Rig) -> Vec<Row> {
    rig.keeper.table(rig.now(), &all(), &[]).rows
}

fn only(rig: &Rig) -> Row {
    let mut rows = rows(rig);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

fn keys(table: &Table) -> Vec<String> {
    let text = |row: &Row| String::from_utf8_lossy(&row.key).into_owned();
    table.rows.iter().map(text).collect()
}

fn observed(rig: &mut Rig, key: &str, owner: &str, number: u64, ttl_ms: u64) {
    let nil = Token(Uuid::nil());
    rig.grant_token(key, owner, number, Some(ttl_ms), Bound::Free, nil);
}

fn live(chore: &Chore) -> Result<Done, Failed> {
    match chore.task {
        Task::Check { .. } => Ok(Done::Live { ttl_ms: Some(9000) }),
        _ => obliging(chore),
    }
}

#[test]
fn a_row_says_what_is_known_of_a_lease() {
    let mut rig = Rig::new(&[rule()]);
    rig.now_ms = 5000;
    let grant = Grant {
        token: rig.next_token(),
        fence: Some(77),
        ttl_ms: Some(30_000),
        ttl_injected: false,
        ttl_reduced: false,
        overlap: false,
    };
    rig.event("lock:a", "o", 3, Bound::Free, What::Granted(grant));
    rig.now_ms = 6000;
    rig.event("lock:a", "p", 4, Bound::Free, What::Contended { shielded: false });
    rig.now_ms = 7000;
    rig.event("lock:a", "q", 5, Bound::Free, What::Contended { shielded: false });
    rig.event("lock:a", "p", 6, Bound::Free, What::Contended { shielded: false });
    let row = only(&rig);
    assert_eq!(
        (&*row.key, row.database, &*row.rule, &*row.owner),
        (&b"lock:a"[..], 0, "locks", "o")
    );
    assert_eq!(
        (row.connection, row.connected, row.observed),
        (connection(3), true, false)
    );
    assert_eq!((row.granted, row.due), (Time(5_000_000), Some(Time(35_000_000))));
    assert_eq!((row.ttl_ms, row.fence, row.owed), (Some(30_000), Some(77), 0));
    assert_eq!((row.renewals, row.extensions, row.waiting), (0, 0, 2));
    let first = &row.waiters[0];
    assert_eq!(
        (&*first.owner, &first.connection, first.tries),
        ("p", &connection(6), 2)
    );
    assert_eq!((first.first, first.last), (Time(6_000_000), Time(7_000_000)));
    assert_eq!((&*row.waiters[1].owner, row.waiters[1].tries), ("q", 1));
    assert_eq!(row.warnings, []);
    rig.close(3, Closing::ByClient);
    assert!(!only(&rig).connected);
    let (found, count, waiters) = rig.keeper.lookup(rig.now(), 0, &Bytes::from_static(b"lock:a"), None);
    assert_eq!(found, Some(only(&rig)));
    assert_eq!((count, waiters.len()), (2, 2));
    assert_eq!(
        rig.keeper.holder(0, &Bytes::from_static(b"lock:a")).as_deref(),
        Some("o")
    );
    assert_eq!(rig.keeper.holder(1, &Bytes::from_static(b"lock:a")), None);
}

#[test]
fn the_longest_waiters_are_shown_and_more_of_them_for_one_lock() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    for number in (0..300).rev() {
        rig.now_ms += 10;
        rig.event(
            "lock:a",
            &format!("w{number:03}"),
            2,
            Bound::Free,
            What::Contended { shielded: false },
        );
    }
    let row = only(&rig);
    assert_eq!((row.waiting, row.waiters.len()), (300, 16));
    assert_eq!((&*row.waiters[0].owner, &*row.waiters[15].owner), ("w299", "w284"));
    let (found, count, waiters) = rig.keeper.lookup(rig.now(), 0, &row.key, None);
    assert_eq!((count, waiters.len()), (300, 256));
    assert_eq!((&*waiters[0].owner, &*waiters[255].owner), ("w299", "w044"));
    assert_eq!(found, Some(row));
    rig.now_ms += 10_000;
    assert_eq!(only(&rig).waiting, 0, "nobody has tried for ten seconds");
}

#[test]
fn who_waits_is_known_also_where_nobody_known_here_holds_the_lock() {
    let mut rig = Rig::new(&[rule()]);
    rig.event(
        "lock:elsewhere",
        "w",
        2,
        Bound::Free,
        What::Contended { shielded: false },
    );
    let (found, count, waiters) = rig
        .keeper
        .lookup(rig.now(), 0, &Bytes::from_static(b"lock:elsewhere"), None);
    assert_eq!((found, count, waiters.len()), (None, 1, 1));
    assert_eq!(rows(&rig), []);
}

#[test]
fn a_lease_whose_time_has_run_out_is_held_until_the_server_says_otherwise() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run_with(1200, |_| Err(Failed));
    let row = only(&rig);
    assert!(row.due.unwrap() < rig.now());
    assert_eq!(
        row.warnings,
        [Warning::NearExpiry {
            left_ms: 0,
            ttl_ms: 1000
        }]
    );
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 1);
    rig.run_with(1000, live);
    let row = only(&rig);
    assert!(row.due.unwrap() > rig.now(), "somebody extended it elsewhere");
    assert_eq!((row.extensions, row.warnings), (1, vec![]));
    rig.run(20_000);
    assert_eq!(rows(&rig), []);
    assert_eq!(rig.keeper.summary(rig.now())[0].held, 0);
}

#[test]
fn a_lease_that_gave_way_to_a_newer_one_is_not_shown() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    rig.grant("lock:a", "p", 2, 60_000);
    assert_eq!(&*only(&rig).owner, "p");
    assert_eq!(rig.keeper.table(rig.now(), &all(), &[]).total, 1);
}

#[test]
fn renewals_and_extensions_are_counted() {
    let mut rig = Rig::new(&[renewing()]);
    rig.keeper.bound(1, R, &"o".into());
    rig.grant("lock:a", "o", 1, 3000);
    rig.run(3500);
    assert_eq!((only(&rig).renewals, only(&rig).extensions), (3, 0));
    rig.extend("lock:a", "o", 1, 5000);
    assert_eq!((only(&rig).extensions, only(&rig).ttl_ms), (1, Some(5000)));
    rig.grant("lock:b", "o", 1, None);
    rig.extend("lock:b", "o", 1, 5000);
    let first_ttl = rows(&rig).into_iter().find(|row| row.key == "lock:b").unwrap();
    assert_eq!(first_ttl.extensions, 0, "the first TTL of a lease extends nothing");
}

#[test]
fn no_ttl_is_warned_of() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, None);
    assert_eq!(only(&rig).warnings, [Warning::NoTtl]);
    rig.extend("lock:a", "o", 1, 5000);
    assert_eq!(only(&rig).warnings, []);
}

#[test]
fn an_unusually_long_hold_is_warned_of() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 600_000);
    let warnings = |rig: &Rig, usual: &[Option<u64>]| {
        let row = rig.keeper.table(rig.now(), &all(), usual).rows.remove(0);
        row.warnings
    };
    rig.now_ms = 900;
    assert_eq!(warnings(&rig, &[Some(10)]), [], "less than a second is long to nobody");
    rig.now_ms = 5000;
    assert_eq!(warnings(&rig, &[Some(5000)]), []);
    assert_eq!(warnings(&rig, &[None]), []);
    assert_eq!(warnings(&rig, &[]), []);
    assert_eq!(warnings(&rig, &[Some(4999)]), [Warning::LongHeld { usual_ms: 4999 }]);
}

#[test]
fn a_near_expiry_is_warned_of_where_nobody_looks_after_the_lease() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 10_000);
    rig.now_ms = 8000;
    assert_eq!(only(&rig).warnings, [], "a fifth is left");
    rig.now_ms = 8001;
    let near = Warning::NearExpiry {
        left_ms: 1999,
        ttl_ms: 10_000,
    };
    assert_eq!(only(&rig).warnings, [near]);
    rig.extend("lock:a", "o", 1, 10_000);
    rig.now_ms = 17_000;
    assert_eq!(only(&rig).warnings, [], "somebody looks after it");
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    rig.grant("lock:short", "o", 1, 999);
    rig.now_ms += 900;
    assert_eq!(only(&rig).warnings, [], "a short TTL is always near its end");
    rig.release("lock:short", "o", 1, ReleaseOutcome::Released);
    rig.grant("lock:long", "o", 1, 3_600_000);
    rig.now_ms += 3_539_999;
    assert_eq!(only(&rig).warnings, [], "more than a minute is left");
    rig.now_ms += 1;
    assert_eq!(only(&rig).warnings.len(), 1);
}

#[test]
fn foreign_tries_are_warned_of() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    rig.release("lock:a", "p", 2, ReleaseOutcome::Foreign);
    rig.release("lock:a", "q", 3, ReleaseOutcome::Foreign);
    assert_eq!(only(&rig).warnings, [Warning::ForeignRelease { tries: 2 }]);
    rig.release("lock:a", "o", 1, ReleaseOutcome::Released);
    rig.grant("lock:a", "p", 2, 60_000);
    assert_eq!(only(&rig).warnings, [], "they were after another lease");
}

#[test]
fn an_overrun_is_warned_of_until_its_release_comes() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run(1500);
    assert_eq!(rows(&rig), []);
    rig.grant("lock:a", "p", 2, 60_000);
    assert_eq!(
        (only(&rig).owed, only(&rig).warnings),
        (1, vec![Warning::Overrun { owed: 1 }])
    );
    rig.release("lock:a", "o", 1, ReleaseOutcome::Late);
    assert_eq!((only(&rig).owed, only(&rig).warnings), (0, vec![]));
}

#[test]
fn a_late_release_by_a_sibling_pays_as_well() {
    let mut rig = Rig::new(&[rule()]);
    for _ in 0..2 {
        rig.grant("lock:a", "o", 1, 1000);
        rig.run(1500);
    }
    rig.grant("lock:a", "o", 2, 60_000);
    assert_eq!(only(&rig).owed, 2);
    rig.release("lock:a", "o", 3, ReleaseOutcome::Late);
    assert_eq!(only(&rig).owed, 1);
    rig.release("lock:a", "o", 3, ReleaseOutcome::Late);
    assert_eq!(only(&rig).owed, 0);
    rig.release("lock:a", "o", 2, ReleaseOutcome::Released);
    assert_eq!(rows(&rig), []);
}

#[test]
fn a_debt_outside_its_window_or_of_a_closed_connection_is_no_overrun() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run(1500);
    rig.grant("lock:a", "p", 2, 600_000);
    rig.run(119_000);
    assert_eq!(only(&rig).owed, 1);
    rig.run(1000);
    assert_eq!(only(&rig).owed, 0);
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 1000);
    rig.run(1500);
    rig.grant("lock:a", "p", 2, 600_000);
    rig.close(1, Closing::ByClient);
    rig.run(10);
    assert_eq!(only(&rig).owed, 0);
}

#[test]
fn overruns_are_seen_in_observe_mode_too() {
    let mut rig = Rig::new(&[rule()]);
    observed(&mut rig, "lock:a", "o", 1, 1000);
    assert!(only(&rig).observed);
    rig.run(1500);
    observed(&mut rig, "lock:a", "p", 2, 60_000);
    assert_eq!(only(&rig).owed, 1);
    // The model tells of the expiry at the next command; the keeper has done so already.
    let expired = What::Expired { held_ms: Some(1000) };
    rig.event("lock:a", "o", 1, Bound::Free, expired);
    rig.run(10);
    assert_eq!(rig.count("expired"), 1);
    rig.release("lock:a", "o", 1, ReleaseOutcome::Late);
    assert_eq!(only(&rig).owed, 0);
    rig.run(200);
    assert_eq!(
        rows(&rig),
        [],
        "the server did as it was told: the late release took the other's lock away"
    );
    assert_eq!(rig.count("ended lock:a"), 1);
}

#[test]
fn in_observe_mode_a_foreign_release_or_overwrite_ends_the_lease() {
    let refused = Refusal {
        operation: Operation::Overwrite,
        reason: RefusalReason::Foreign,
        action: Action::Observed,
        without_ttl: false,
    };
    let foreign = Release {
        outcome: ReleaseOutcome::Foreign,
        held_ms: None,
        overrun_ms: None,
    };
    for what in [What::Refused(refused), What::Release(foreign)] {
        let mut rig = Rig::new(&[rule()]);
        observed(&mut rig, "lock:a", "o", 1, 60_000);
        rig.run(500);
        rig.event("lock:a", "p", 2, Bound::Free, what.clone());
        rig.run(200);
        assert_eq!(rows(&rig), [], "{what:?}");
        // In enforce mode nothing was done.
        rig.grant("lock:a", "o", 1, 60_000);
        rig.event("lock:a", "p", 2, Bound::Free, what.clone());
        rig.run(200);
        assert_eq!(rows(&rig).len(), 1, "{what:?}");
    }
}

#[test]
fn a_reading_beyond_all_bounds_is_an_empty_one() {
    let mut rig = Rig::new(&[rule()]);
    rig.grant("lock:a", "o", 1, 60_000);
    rig.now_ms = 10;
    for query in [
        TableQuery {
            offset: usize::MAX,
            ..all()
        },
        TableQuery { limit: 0, ..all() },
        TableQuery {
            offset: usize::MAX,
            limit: usize::MAX,
            sort: SortBy::Key,
            ..all()
        },
        TableQuery {
            older_than_ms: Some(u64::MAX),
            ..all()
        },
    ] {
        let table = rig.keeper.table(rig.now(), &query, &[]);
        assert_eq!((table.total, table.rows.len()), (1, 0), "{query:?}");
    }
    let everything = TableQuery {
        limit: usize::MAX,
        ..all()
    };
    assert_eq!(keys(&rig.keeper.table(rig.now(), &everything, &[])), ["lock:a"]);
}

/// So many leases, with keys in no order, and every tenth lock has a waiter.
fn long_table(leases: usize) -> Rig {
    let mut rig = Rig::new(&[rule()]);
    for number in 0..leases {
        let key = format!("lock:{:04}", number * 7919 % leases);
        rig.grant(&key, "o", 1, 600_000);
        if number % 10 == 0 {
            rig.event(&key, "w", 2, Bound::Free, What::Contended { shielded: false });
        }
    }
    rig
}

#[test]
fn a_long_table_is_sorted_as_a_short_one() {
    let rig = long_table(5000);
    let query = |sort, descending, offset| TableQuery {
        sort,
        descending,
        offset,
        ..all()
    };
    let by_key = rig.keeper.table(rig.now(), &query(SortBy::Key, false, 4500), &[]);
    let expected: Vec<String> = (4500..5000).map(|number| format!("lock:{number:04}")).collect();
    assert_eq!((keys(&by_key), by_key.matched), (expected, 5000));
    let down = rig.keeper.table(rig.now(), &query(SortBy::Key, true, 0), &[]);
    assert_eq!(
        (&*down.rows[0].key, &*down.rows[999].key),
        (&b"lock:4999"[..], &b"lock:4000"[..])
    );
    for descending in [true, false] {
        let by_waiters = rig.keeper.table(rig.now(), &query(SortBy::Waiters, descending, 0), &[]);
        let waiting: usize = by_waiters.rows.iter().map(|row| row.waiting).sum();
        assert_eq!(
            (by_waiters.rows.len(), waiting),
            (1000, if descending { 500 } else { 0 })
        );
        assert_eq!(by_waiters.rows[0].waiting, usize::from(descending));
    }
}

#[test]
fn a_deep_page_by_age_is_read_in_pieces_and_says_what_a_short_one_does() {
    let rig = long_table(10_000);
    let query = |descending, offset| TableQuery {
        descending,
        offset,
        ..all()
    };
    let read = |query: TableQuery| {
        let mut reading = Reading::new(rig.now(), query, Vec::new());
        let mut pieces = 1;
        while rig.keeper.read_on(&mut reading) {
            pieces += 1;
        }
        (reading.into_table(), pieces)
    };
    for descending in [true, false] {
        let (first, few) = read(query(descending, 0));
        let (deep, many) = read(query(descending, 9000));
        assert!(few <= 8 && many >= few + 4, "{few} and {many} pieces");
        assert_eq!((first.matched, deep.matched), (10_000, 10_000));
        // The one end of one order is the other end of the other.
        let mut others = keys(&read(query(!descending, 0)).0);
        others.reverse();
        assert_eq!(keys(&deep), others);
    }
    let old = TableQuery {
        older_than_ms: Some(0),
        ..query(true, 0)
    };
    assert!(read(old).1 > 8, "they have to be counted");
}

#[test]
fn the_keeper_goes_on_while_its_table_is_read() {
    let mut rig = long_table(5000);
    let query = TableQuery {
        sort: SortBy::Key,
        limit: 1000,
        ..TableQuery::default()
    };
    let mut reading = Reading::new(rig.now(), query, Vec::new());
    let mut pieces = 0;
    while rig.keeper.read_on(&mut reading) {
        for lock in [pieces, 100 + pieces, 990 + pieces] {
            rig.release(&format!("lock:{lock:04}"), "o", 1, ReleaseOutcome::Released);
        }
        rig.grant(&format!("lock:0050:{pieces}"), "o", 1, 600_000);
        pieces += 1;
    }
    assert!(pieces >= 5, "{pieces} pieces");
    let keys = keys(&reading.into_table());
    assert!(keys.is_sorted() && keys.len() > 900, "{} rows", keys.len());
    assert!(
        !keys.contains(&"lock:0990".to_owned()),
        "it was gone before the rows were written"
    );
}

/// What the keeper is told in the property test, and what a careless reader would remember of it.
#[derive(Clone, Debug)]
enum Step {
    Grant { lock: u8, owner: u8, ttl_ms: Option<u64> },
    Contend { lock: u8, owner: u8 },
    Foreign { lock: u8 },
    Extend { lock: u8, ttl_ms: u64 },
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let ttl_ms = prop_oneof![
        Just(None),
        (600_000u64..601_000).prop_map(Some),
        (100_000u64..110_000).prop_map(Some)
    ];
    prop_oneof![
        6 => (0u8..40, 0u8..6, ttl_ms).prop_map(|(lock, owner, ttl_ms)| Step::Grant { lock, owner, ttl_ms }),
        4 => (0u8..40, 0u8..6).prop_map(|(lock, owner)| Step::Contend { lock, owner }),
        1 => (0u8..40).prop_map(|lock| Step::Foreign { lock }),
        1 => (0u8..40, 200_000u64..201_000).prop_map(|(lock, ttl_ms)| Step::Extend { lock, ttl_ms }),
        3 => (0u64..2500).prop_map(|ms| Step::Wait { ms }),
    ]
}

fn query() -> impl Strategy<Value = TableQuery> {
    let sort = prop_oneof![
        Just(SortBy::Age),
        Just(SortBy::Ttl),
        Just(SortBy::Waiters),
        Just(SortBy::Key)
    ];
    let some = prop::option::weighted(0.3, Just(()));
    let filters = (some.clone(), some.clone(), some.clone(), some.clone(), 0u8..4);
    let older_than = prop::option::weighted(0.3, 0u64..60_000);
    (sort, any::<bool>(), filters, older_than, 0usize..20, 0usize..20).prop_map(
        |(sort, descending, (search, rule, owner, database, warned), older_than_ms, offset, limit)| TableQuery {
            search: search.map(|()| Search::new("1").unwrap()),
            rule: rule.map(|()| "first".into()),
            owner: owner.map(|()| "ner=2".to_owned()),
            database: database.map(|()| 1),
            older_than_ms,
            warned: warned == 0,
            sort,
            descending,
            offset,
            limit,
        },
    )
}

#[derive(Clone, Debug)]
struct Remembered {
    key: String,
    database: u32,
    rule: u16,
    owner: String,
    granted_ms: u64,
    order: usize,
    ttl_ms: Option<u64>,
    due_ms: Option<u64>,
    extended: bool,
    foreign: bool,
}

#[derive(Default)]
struct Careless {
    leases: BTreeMap<u8, Remembered>,
    waiters: BTreeMap<u8, BTreeMap<u8, u64>>,
    grants: usize,
}

/// 99 of 100 leases of the second rule are held no longer.
const USUAL: [Option<u64>; 2] = [None, Some(30_000)];

fn id_of(lock: u8) -> (u32, String, u16) {
    (u32::from(lock % 3), format!("lock:{}", lock / 3), u16::from(lock % 2))
}

impl Careless {
    fn tell(&mut self, rig: &mut Rig, step: &Step) {
        let (lock, owner, what) = match *step {
            Step::Wait { ms } => return rig.now_ms += ms,
            Step::Grant { lock, owner, ttl_ms } => {
                let grant = Grant {
                    token: rig.next_token(),
                    fence: None,
                    ttl_ms,
                    ttl_injected: false,
                    ttl_reduced: false,
                    overlap: false,
                };
                (lock, format!("owner={owner}"), What::Granted(grant))
            }
            Step::Contend { lock, owner } => (lock, format!("owner={owner}"), What::Contended { shielded: false }),
            Step::Foreign { lock } => {
                let release = Release {
                    outcome: ReleaseOutcome::Foreign,
                    held_ms: None,
                    overrun_ms: None,
                };
                (lock, "owner=9".to_owned(), What::Release(release))
            }
            Step::Extend { lock, ttl_ms } => {
                let Some(holder) = self.leases.get(&lock) else { return };
                let what = What::Extended {
                    ttl_ms: Some(ttl_ms),
                    reduced: false,
                };
                (lock, holder.owner.clone(), what)
            }
        };
        let (database, key, rule) = id_of(lock);
        let event = Event {
            at: rig.now(),
            database,
            key: key.clone().into(),
            rule: RuleIndex(rule),
            owner: Owner::from(owner.as_str()),
            connection: connection(1),
            what,
        };
        rig.keeper.event(&event, Bound::Free);
        self.remember(rig.now_ms, step, &owner);
    }

    fn remember(&mut self, now_ms: u64, step: &Step, owner: &str) {
        match *step {
            Step::Grant {
                lock,
                owner: number,
                ttl_ms,
            } => {
                self.grants += 1;
                let (database, key, rule) = id_of(lock);
                let lease = Remembered {
                    key,
                    database,
                    rule,
                    owner: owner.to_owned(),
                    granted_ms: now_ms,
                    order: self.grants,
                    ttl_ms,
                    due_ms: ttl_ms.map(|ttl_ms| now_ms + ttl_ms),
                    extended: false,
                    foreign: false,
                };
                self.leases.insert(lock, lease);
                self.waiters.entry(lock).or_default().remove(&number);
            }
            Step::Contend { lock, owner } => {
                self.waiters.entry(lock).or_default().insert(owner, now_ms);
            }
            Step::Foreign { lock } => {
                if let Some(lease) = self.leases.get_mut(&lock) {
                    lease.foreign = true;
                }
            }
            Step::Extend { lock, ttl_ms } => {
                if let Some(lease) = self.leases.get_mut(&lock) {
                    lease.extended |= lease.ttl_ms.is_some();
                    lease.ttl_ms = Some(ttl_ms);
                    lease.due_ms = Some(now_ms + ttl_ms);
                }
            }
            Step::Wait { .. } => {}
        }
    }

    fn waiting(&self, lock: u8, now_ms: u64) -> usize {
        let tries = self.waiters.get(&lock).into_iter().flat_map(BTreeMap::values);
        tries.filter(|last| now_ms - **last < 10_000).count()
    }

    fn is_warned(&self, lease: &Remembered, now_ms: u64) -> bool {
        let held_ms = now_ms - lease.granted_ms;
        let near = match (lease.ttl_ms, lease.due_ms) {
            (Some(ttl_ms), Some(due_ms)) => {
                let left_ms = due_ms.saturating_sub(now_ms);
                !lease.extended && left_ms < ttl_ms / 5 && left_ms <= 60_000
            }
            _ => true,
        };
        let long = USUAL[usize::from(lease.rule)].is_some_and(|usual_ms| held_ms > usual_ms);
        near || long || lease.foreign
    }

    /// The same by filtering and sorting everything.
    fn answer(&self, query: &TableQuery, now_ms: u64) -> (usize, usize, Vec<(u32, String)>) {
        let shown = |lease: &Remembered| {
            query
                .search
                .as_ref()
                .is_none_or(|search| search.matches(lease.key.as_bytes()))
                && query.rule.is_none_or_first(lease.rule)
                && query
                    .owner
                    .as_ref()
                    .is_none_or(|part| lease.owner.contains(part.as_str()))
                && query.database.is_none_or(|database| lease.database == database)
                && query
                    .older_than_ms
                    .is_none_or(|least| now_ms - lease.granted_ms >= least)
                && (!query.warned || self.is_warned(lease, now_ms))
        };
        let mut found: Vec<(u8, &Remembered)> = self.leases.iter().map(|(lock, lease)| (*lock, lease)).collect();
        found.retain(|(_, lease)| shown(lease));
        found.sort_by(|(lock, lease), (other_lock, other)| {
            let by = match query.sort {
                SortBy::Age => (now_ms - lease.granted_ms).cmp(&(now_ms - other.granted_ms)),
                SortBy::Ttl => lease.due_ms.cmp(&other.due_ms),
                SortBy::Waiters => self.waiting(*lock, now_ms).cmp(&self.waiting(*other_lock, now_ms)),
                SortBy::Key => lease.key.cmp(&other.key),
            };
            let by = if query.descending { by.reverse() } else { by };
            let without_ttl = (query.sort == SortBy::Ttl).then(|| lease.due_ms.is_none().cmp(&other.due_ms.is_none()));
            let age = lease
                .granted_ms
                .cmp(&other.granted_ms)
                .then(lease.order.cmp(&other.order));
            let youngest_first = query.sort == SortBy::Age && !query.descending;
            let age = if youngest_first { age.reverse() } else { age };
            without_ttl.unwrap_or(std::cmp::Ordering::Equal).then(by).then(age)
        });
        let rows = found.iter().skip(query.offset).take(query.limit);
        let names = rows.map(|(_, lease)| (lease.database, lease.key.clone())).collect();
        (self.leases.len(), found.len(), names)
    }
}

trait FirstRule {
    fn is_none_or_first(&self, rule: u16) -> bool;
}

impl FirstRule for Option<std::sync::Arc<str>> {
    fn is_none_or_first(&self, rule: u16) -> bool {
        self.is_none() || rule == 0
    }
}

fn two_rules() -> Vec<Rule> {
    ["first", "second"]
        .map(|name| Rule {
            name: name.into(),
            ..rule()
        })
        .into()
}

proptest! {
    #[test]
    fn a_query_gives_what_filtering_sorting_and_cutting_gives(
        steps in prop::collection::vec(step(), 0..150),
        queries in prop::collection::vec(query(), 1..20),
    ) {
        let mut rig = Rig::new(&[]);
        rig.keeper = Keeper::new(&two_rules(), Limits::default());
        let mut careless = Careless::default();
        for step in &steps {
            careless.tell(&mut rig, step);
        }
        for query in &queries {
            let table = rig.keeper.table(rig.now(), query, &USUAL);
            let (total, matched, names) = careless.answer(query, rig.now_ms);
            let shown: Vec<_> = table.rows.iter().map(|row| row.database).zip(keys(&table)).collect();
            prop_assert_eq!((table.total, table.matched, shown), (total, matched, names), "{:?}", query);
            for row in &table.rows {
                let held = careless.leases.values().find(|lease| lease.database == row.database && lease.key.as_bytes() == row.key);
                let warned = held.is_some_and(|lease| careless.is_warned(lease, rig.now_ms));
                prop_assert_eq!(!row.warnings.is_empty(), warned, "{:?}", row);
            }
        }
    }
}

/// Far more than the bounds of the test; a million go through a whole proxy elsewhere (`tests/checks`).
const NAMES: u64 = 200_000;

#[test]
fn a_flood_of_names_keeps_the_table_within_its_bounds() {
    let limits = Limits {
        leases: 1000,
        waiters: 100,
        ..Limits::default()
    };
    let mut keeper = Keeper::new(&two_rules(), limits);
    let send = |keeper: &mut Keeper, at: u64, name: u64, owner: &str, what: What| {
        let event = Event {
            at: Time(at),
            database: 0,
            key: format!("lock:{name}").into(),
            rule: RuleIndex((name % 2) as u16),
            owner: owner.into(),
            connection: connection(1),
            what,
        };
        keeper.event(&event, Bound::Free);
    };
    for name in 0..NAMES {
        let grant = Grant {
            token: Token(Uuid::from_u128(u128::from(name) + 1)),
            fence: None,
            ttl_ms: Some(60_000),
            ttl_injected: false,
            ttl_reduced: false,
            overlap: false,
        };
        send(&mut keeper, name, name, "o", What::Granted(grant));
        if name % 10 == 0 {
            send(&mut keeper, name, name, "w", What::Contended { shielded: false });
        }
        assert!(keeper.len() <= 1000);
    }
    let at = Time(NAMES);
    let table = keeper.table(at, &all(), &[]);
    assert_eq!(
        (keeper.len(), table.total, table.matched, table.rows.len()),
        (1000, 1000, 1000, 1000)
    );
    let waiting: usize = keeper.summary(at).iter().map(|summary| summary.waiters).sum();
    assert_eq!(waiting, 100);
    let dropped = keeper.dropped();
    assert_eq!((dropped.leases, dropped.waiters), (NAMES - 1000, NAMES / 10 - 100));
}
