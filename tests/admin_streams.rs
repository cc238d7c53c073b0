//! Streams of the admin side on real sockets: what is told and when, and that neither slow nor vanished readers cost
//! more than they may.

mod admin_backend;

use std::sync::Arc;
use std::time::{Duration, Instant};

use admin_backend::{Admin, Reader, SECRET, ask, get, until};
use lockward::admin::api::{Event, Lock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For what comes soon, on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// The most streams at once.
const MOST: usize = 32;

fn event(id: u64, key: &str) -> Arc<Event> {
    Arc::new(Event {
        id,
        event: "acquired".to_owned(),
        key: key.to_owned(),
        key_encoded: key.to_owned(),
        rule: "jobs".to_owned(),
        ..Event::default()
    })
}

#[tokio::test]
async fn events_are_told_as_they_happen() {
    let admin = Admin::start(SECRET).await;
    let mut reader = Reader::open(admin.address, "/api/v1/events").await;
    let head = reader.head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.0 200"), "{head}");
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert_eq!(
        reader.block().await.as_deref(),
        Some(": lockward"),
        "first bytes at once"
    );
    for id in [7, 8] {
        admin.backend.events.send(event(id, "lock:a")).unwrap();
        let told = timeout(SOON, reader.next()).await.unwrap().unwrap();
        assert_eq!((told.id, told.event.as_str()), (Some(id), "lock"));
        assert_eq!((&told.data["key"], &told.data["id"]), (&"lock:a".into(), &id.into()));
    }
}

#[tokio::test]
async fn only_events_that_every_filter_admits_are_told() {
    let admin = Admin::start(SECRET).await;
    // A pattern is text: bytes that are none are met by a wildcard.
    let path = "/api/v1/events?pattern=lock:%3f%01&rule=jobs&db=2&event=released,acquired";
    let mut reader = Reader::open(admin.address, path).await;
    let right = Event {
        id: 1,
        event: "released".to_owned(),
        key_encoded: "lock:%EF%01".to_owned(),
        database: 2,
        rule: "jobs".to_owned(),
        ..Event::default()
    };
    let wrong = [
        Event {
            key_encoded: "lock:b".to_owned(),
            ..right.clone()
        },
        Event {
            rule: "other".to_owned(),
            ..right.clone()
        },
        Event {
            database: 0,
            ..right.clone()
        },
        Event {
            event: "refused".to_owned(),
            ..right.clone()
        },
    ];
    for event in wrong {
        admin.backend.events.send(Arc::new(Event { id: 9, ..event })).unwrap();
    }
    admin.backend.events.send(Arc::new(right)).unwrap();
    let told = timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert_eq!((told.id, &told.data["key_encoded"]), (Some(1), &"lock:%EF%01".into()));
}

#[tokio::test]
async fn who_reads_too_slowly_is_told_how_much_he_missed() {
    let admin = Admin::start(SECRET).await;
    let mut reader = Reader::open(admin.address, "/api/v1/events").await;
    // The receiver holds 16, and on this one thread nothing takes them out meanwhile.
    for id in 1..=100 {
        admin.backend.events.send(event(id, "lock:a")).unwrap();
    }
    let told = timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert_eq!((told.id, told.event.as_str()), (None, "missed"));
    assert_eq!(told.data, serde_json::json!({ "missed": 84 }));
    for id in 85..=100 {
        assert_eq!(timeout(SOON, reader.next()).await.unwrap().unwrap().id, Some(id));
    }
}

#[tokio::test]
async fn a_snapshot_comes_at_once_and_after_changes_and_not_too_often() {
    let admin = Admin::start(SECRET).await;
    admin.backend.table.lock().unwrap().total = 1;
    let mut reader = Reader::open(admin.address, "/api/v1/live?sort=ttl").await;
    let first = timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert_eq!((first.id, first.event.as_str()), (None, "snapshot"));
    assert_eq!(
        (&first.data["table"]["total"], &first.data["rules"][0]["name"]),
        (&1.into(), &"jobs".into())
    );
    assert_eq!(first.data["not_ready"], serde_json::Value::Null);

    let begun = Instant::now();
    admin.backend.unready("draining");
    admin.backend.table.lock().unwrap().total = 2;
    admin.backend.changes.send(()).unwrap();
    let second = timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert_eq!(
        (&second.data["table"]["total"], &second.data["not_ready"]),
        (&2.into(), &"draining".into())
    );
    assert!(
        begun.elapsed() < SOON,
        "for a change nobody waits as long as for the passing of time"
    );

    let changing = {
        let backend = Arc::clone(&admin.backend);
        tokio::spawn(async move {
            loop {
                backend.table.lock().unwrap().total += 1;
                backend.changes.send_replace(());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    let begun = Instant::now();
    let mut last = 2;
    for _ in 0..8 {
        let told = timeout(SOON, reader.next()).await.unwrap().unwrap();
        let total = told.data["table"]["total"].as_u64().unwrap();
        assert!(total > last, "each tells something new");
        last = total;
    }
    assert!(
        begun.elapsed() > Duration::from_millis(7 * 250),
        "{:?}",
        begun.elapsed()
    );
    changing.abort();
}

#[tokio::test]
async fn a_snapshot_comes_though_nothing_changes() {
    let admin = Admin::start(SECRET).await;
    let mut reader = Reader::open(admin.address, "/api/v1/live").await;
    let begun = Instant::now();
    for _ in 0..2 {
        assert_eq!(reader.next().await.unwrap().event, "snapshot");
    }
    let waited = begun.elapsed();
    assert!(
        waited > Duration::from_secs(4) && waited < Duration::from_secs(9),
        "{waited:?}"
    );
}

#[tokio::test]
async fn a_healthy_stream_outlives_the_limit_of_other_answers() {
    let admin = Admin::start(SECRET).await;
    let mut reader = Reader::open(admin.address, "/api/v1/events").await;
    let begun = Instant::now();
    assert_eq!(reader.block().await.as_deref(), Some(": lockward"));
    while begun.elapsed() < Duration::from_secs(31) {
        assert_eq!(
            reader.block().await.as_deref(),
            Some(":"),
            "a sign of life every ten seconds"
        );
    }
    admin.backend.events.send(event(1, "lock:a")).unwrap();
    assert_eq!(timeout(SOON, reader.next()).await.unwrap().unwrap().id, Some(1));
}

#[tokio::test]
async fn a_reader_that_is_stuck_is_given_up() {
    let admin = Admin::start(SECRET).await;
    let lock = Lock {
        key: "k".repeat(10_000),
        ..Lock::default()
    };
    admin.backend.table.lock().unwrap().locks = vec![lock; 1000];
    let mut stuck = TcpStream::connect(admin.address).await.unwrap();
    let request = format!("GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n", admin.address);
    stuck.write_all(request.as_bytes()).await.unwrap();
    let readers = || admin.backend.changes.receiver_count();
    until("the stream begins", SOON, || readers() == 1).await;
    until("the stream ends", Duration::from_secs(25), || readers() == 0).await;
    // What is left in the buffers of the system, and then the end.
    let rest = timeout(SOON, stuck.read_to_end(&mut Vec::new())).await;
    assert!(rest.is_ok(), "the connection is closed too");
    assert_eq!(get(admin.address, "/livez").await.status, 200);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_noticed_at_once() {
    let admin = Admin::start(SECRET).await;
    for path in ["/api/v1/events", "/api/v1/live"] {
        let readers = || admin.backend.changes.receiver_count() + admin.backend.events.receiver_count();
        let reader = Reader::open(admin.address, path).await;
        assert_eq!(readers(), 1);
        drop(reader);
        until("the stream of one who closed has ended", SOON, || readers() == 0).await;
        let mut reader = Reader::open(admin.address, path).await;
        reader.half_close().await;
        until("the stream of one who closed his side has ended", SOON, || {
            readers() == 0
        })
        .await;
    }
}

#[tokio::test]
async fn one_stream_more_than_there_may_be_is_refused_and_takes_nobodys_place() {
    let admin = Admin::start(SECRET).await;
    let mut readers = Vec::new();
    for number in 0..MOST {
        let path = ["/api/v1/events", "/api/v1/live"][number % 2];
        readers.push(Reader::open(admin.address, path).await);
    }
    for path in ["/api/v1/events", "/api/v1/live"] {
        let refused = get(admin.address, path).await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(refused.head.contains("retry-after: 5"), "{}", refused.head);
        assert!(
            refused.json()["error"].as_str().unwrap().contains("32 streams"),
            "{}",
            refused.body
        );
    }
    assert_eq!(get(admin.address, "/metrics").await.status, 200, "others are served");
    readers.pop();
    let changes = &admin.backend.changes;
    until("a place is free", SOON, || changes.receiver_count() == MOST / 2 - 1).await;
    readers.push(Reader::open(admin.address, "/api/v1/live").await);
    for reader in &mut readers {
        admin.backend.changes.send_replace(());
        admin.backend.events.send(event(1, "lock:a")).unwrap();
        assert!(timeout(SOON, reader.next()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_query_that_makes_no_sense_opens_no_stream() {
    let admin = Admin::start(SECRET).await;
    let answer = get(admin.address, "/api/v1/live?limit=0").await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.json()["error"].as_str().unwrap().contains("limit"),
        "{}",
        answer.body
    );
    assert_eq!(admin.backend.changes.receiver_count(), 0);
}

#[tokio::test]
async fn head_tells_the_headers_of_a_stream_and_opens_none() {
    let admin = Admin::start(SECRET).await;
    for path in ["/api/v1/events", "/api/v1/live"] {
        let answer = ask(admin.address, "HEAD", path, "").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{path}");
        assert!(answer.head.contains("text/event-stream"), "{}", answer.head);
    }
    assert_eq!(
        admin.backend.changes.receiver_count() + admin.backend.events.receiver_count(),
        0
    );
}

#[tokio::test]
async fn streams_say_that_lockward_ends_and_hold_up_its_end_for_nobody() {
    let admin = Admin::start(SECRET).await;
    let mut readers = [
        Reader::open(admin.address, "/api/v1/events").await,
        Reader::open(admin.address, "/api/v1/live").await,
    ];
    let begun = Instant::now();
    let (_, ()) = tokio::join!(admin.stop(), async {
        for reader in &mut readers {
            let mut last = None;
            while let Some(told) = timeout(SOON, reader.next()).await.unwrap() {
                last = Some(told);
            }
            let last = last.unwrap();
            assert_eq!(
                (last.event.as_str(), &last.data["reason"]),
                ("end", &"lockward ends".into())
            );
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
