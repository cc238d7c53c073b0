//! Lease records over HTTP, from both real servers: the locks of all proxies, page by page, and no more of them at a time
//! than the server can bear. And what else can only be seen with a real server behind: a release by force that finds an
//! unreadable record, a server that is away.

#[path = "admin_backend/mod.rs"]
mod admin_backend;
mod real_server;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use admin_backend::{Reply, ask, get, send};
use lockward::config::Config;
use lockward::lock::record::record_name;
use lockward::proxy::Proxy;
use real_server::{RealServer, redis, valkey};
use redis::{Cmd, Connection, cmd};
use serde_json::{Value, json};
use tokio::time::sleep;

const TOKEN: &str = "marked-secret-admin-token";
/// An awkward one: every letter of it means something in a pattern.
const PREFIX: &str = "[l]*?w\\:";

/// A lockward before a server, with a connection through it and one past it.
struct Scene {
    server: RealServer,
    admin: SocketAddr,
    through: Connection,
    past: Connection,
}

async fn scene(program: &str) -> Scene {
    let server = RealServer::start(program);
    let prefix = PREFIX.replace('\\', "\\\\");
    let text = format!(
        "listen.address = \"127.0.0.1:0\"\nadmin = {{ address = \"127.0.0.1:0\", hosts = \"locks.example.org\", token = \"{TOKEN}\" }}\n\
         upstream.url = \"redis://127.0.0.1:{}\"\nrecords.prefix = \"{prefix}\"\n\
         [[locks]]\nname = \"jobs\"\npattern = \"lock:*\"\n",
        server.port()
    );
    let config = Config::parse(&text, Path::new("test"), std::iter::empty())
        .unwrap()
        .config;
    let proxy = Proxy::bind(&config).await.unwrap();
    let (port, admin) = (proxy.port().unwrap(), proxy.admin_port().unwrap());
    tokio::spawn(async move { proxy.serve(&config, std::future::pending()).await });
    let scene = Scene {
        admin: SocketAddr::from(([127, 0, 0, 1], admin)),
        through: connect(port).await,
        past: connect(server.port()).await,
        server,
    };
    ready(scene.admin).await;
    scene
}

/// Beside the proxy's own thread, since it blocks.
async fn connect(port: u16) -> Connection {
    let open = move || {
        redis::Client::open(format!("redis://127.0.0.1:{port}"))
            .unwrap()
            .get_connection()
            .unwrap()
    };
    tokio::task::spawn_blocking(open).await.unwrap()
}

async fn ready(admin: SocketAddr) {
    let begun = Instant::now();
    while get(admin, "/readyz").await.status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(10));
        sleep(Duration::from_millis(20)).await;
    }
}

fn run(connection: &mut Connection, command: &Cmd) -> redis::Value {
    tokio::task::block_in_place(|| command.query(connection).unwrap())
}

/// A page, as soon as it may be asked for.
async fn page(admin: SocketAddr, query: &str) -> Reply {
    let begun = Instant::now();
    loop {
        let answer = get(admin, &format!("/api/v1/records?{query}")).await;
        if answer.status != 429 {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", answer.body);
        sleep(Duration::from_millis(20)).await;
    }
}

/// All records, page by page, and how many pages they were.
async fn all(admin: SocketAddr, query: &str) -> (Vec<Value>, usize) {
    let (mut records, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let answer = page(admin, &format!("{query}{cursor}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let json = answer.json();
        let some = json["records"].as_array().unwrap();
        assert!(some.len() <= 120, "a page is no more than that: {}", some.len());
        records.extend(some.iter().cloned());
        pages += 1;
        match json["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (records, pages),
        }
    }
}

async fn records_are_found_on(program: &str) {
    let mut scene = scene(program).await;
    let select = |database: u32| cmd("SELECT").arg(database).to_owned();
    for connection in [&mut scene.through, &mut scene.past] {
        run(connection, &select(3));
    }
    let mut expected = BTreeSet::new();
    for number in 0..300 {
        let key = match number % 3 {
            0 => format!("lock:{number}"),
            1 => format!("lock:{{{number}}}:a"),
            _ => format!("lock:{{{number}"),
        };
        let set = cmd("SET").arg(&key).arg(1).arg("NX").arg("EX").arg(600).to_owned();
        assert_eq!(run(&mut scene.through, &set), redis::Value::Okay);
        expected.insert(key);
    }
    // Between them what is no record: other types of such a name, names of no lock, keys that the pattern could match.
    let [text, hash] = ["SET", "HSET"].map(|name| {
        move |key: &[u8]| {
            let mut command = cmd(name);
            if name == "HSET" {
                command.arg(key).arg("a").arg(1).to_owned()
            } else {
                command.arg(key).arg(1).to_owned()
            }
        }
    });
    for number in 0..500 {
        run(&mut scene.past, &text(format!("other:{number}").as_bytes()));
    }
    run(&mut scene.past, &text(&record_name(PREFIX, b"lock:text")));
    run(&mut scene.past, &hash(format!("{PREFIX}{{a}}b").as_bytes()));
    run(&mut scene.past, &hash(b"lXw:{lock:other}"));
    // One that somebody else's rule makes a lock, with bytes that are no text, and nobody holds.
    let strange = b"mutex:\xff\n";
    run(&mut scene.past, &hash(&record_name(PREFIX, strange)));
    run(&mut scene.past, &text(strange));

    let (records, pages) = all(scene.admin, "db=3").await;
    let found = |record: &Value| record["key"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = records
        .iter()
        .map(found)
        .filter(|key| key.starts_with("lock:"))
        .collect();
    assert_eq!(names, expected, "every record, and only records");
    assert!(pages > 2, "in pages: {pages}");
    let one = records.iter().find(|record| record["key"] == "lock:0").unwrap();
    assert_eq!(
        (
            &one["rule"],
            &one["state"],
            &one["exists"],
            &one["database"],
            &one["owner"]
        ),
        (
            &"jobs".into(),
            &"held".into(),
            &true.into(),
            &3.into(),
            &"address=127.0.0.1".into()
        )
    );
    assert!((1..=600_000).contains(&one["ttl_ms"].as_u64().unwrap()), "{one}");
    let one = records
        .iter()
        .find(|record| record["key_encoded"] == "mutex:%FF%0A")
        .unwrap();
    assert_eq!((&one["rule"], &one["state"]), (&Value::Null, &"unmanaged".into()));

    let (records, _) = all(scene.admin, "db=3&pattern=lock:1%3f").await;
    let names: BTreeSet<String> = records.iter().map(found).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["lock:12", "lock:15", "lock:18"]);
    assert_eq!(all(scene.admin, "db=4").await, (Vec::new(), 1));
    let nowhere = page(scene.admin, "db=4000").await;
    assert_eq!(nowhere.status, 400, "a database that the server does not have");
    assert!(
        nowhere.json()["error"].as_str().unwrap().starts_with("db: "),
        "{}",
        nowhere.body
    );
    let everything = page(scene.admin, "db=3").await.body;
    let token = cmd("HGET")
        .arg(&record_name(PREFIX, b"lock:0")[..])
        .arg("token")
        .to_owned();
    let token: String = tokio::task::block_in_place(|| token.query(&mut scene.past).unwrap());
    assert!(
        token.len() > 30 && !everything.contains(&token),
        "owner tokens stay where they are"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_all_proxies_are_found_on_redis() {
    records_are_found_on(&redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_all_proxies_are_found_on_valkey() {
    records_are_found_on(&valkey()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_page_at_a_time_and_pauses_between_them() {
    let scene = scene(&redis()).await;
    for round in 0..3 {
        let mut statuses = Vec::new();
        let begun = Instant::now();
        for _ in 0..10 {
            let answer = get(scene.admin, "/api/v1/records").await;
            if answer.status == 429 {
                assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
                assert!(answer.json()["error"].is_string());
            }
            statuses.push(answer.status);
        }
        let served = statuses.iter().filter(|status| **status == 200).count();
        let most = 1 + usize::try_from(begun.elapsed().as_millis() / 100).unwrap();
        assert!(
            served >= 1 && served <= most,
            "{round}: {statuses:?} in {:?}",
            begun.elapsed()
        );
        sleep(Duration::from_millis(120)).await;
    }
    // A page that fails, or is not even begun, is no way around it.
    let wrong = get(scene.admin, "/api/v1/records?cursor=1%20MATCH%20*").await;
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.json()["error"].as_str().unwrap().contains("cursor"),
        "{}",
        wrong.body
    );
    // While one is read, which takes as long as the server stands still, there is no other.
    scene.server.signal("-STOP");
    let slow = tokio::spawn(async move { page(scene.admin, "").await });
    sleep(Duration::from_millis(500)).await;
    assert_eq!(get(scene.admin, "/api/v1/records").await.status, 429);
    scene.server.signal("-CONT");
    let slow = slow.await.unwrap();
    assert!([200, 502].contains(&slow.status), "{}", slow.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_names_that_are_configured_are_answered() {
    let scene = scene(&redis()).await;
    for (host, status) in [("locks.example.org", 200), ("other.example.org", 421)] {
        let request = format!("GET /api/v1/rules HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(send(scene.admin, &request).await.status, status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_here_is_shown_though_the_server_is_away() {
    let mut scene = scene(&redis()).await;
    let set = cmd("SET").arg("lock:a").arg(1).arg("NX").arg("EX").arg(600).to_owned();
    assert_eq!(run(&mut scene.through, &set), redis::Value::Okay);
    let detail = get(scene.admin, "/api/v1/locks/lock:a").await.json();
    assert_eq!(
        (&detail["state"], &detail["server_error"]),
        (&json!("held"), &Value::Null)
    );
    scene.server.kill();
    let answer = get(scene.admin, "/api/v1/locks/lock:a").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let detail = answer.json();
    assert_eq!((&detail["state"], &detail["rule"]), (&json!("unknown"), &json!("jobs")));
    assert!(detail["server_error"].is_string(), "{detail}");
    assert_eq!(detail["known"]["lease"]["owner"], "address=127.0.0.1", "{detail}");
    let records = page(scene.admin, "").await;
    assert_eq!(records.status, 502, "{}", records.body);
    assert!(records.json()["error"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_by_force_is_counted_though_its_record_cannot_be_read() {
    let mut scene = scene(&redis()).await;
    let record = record_name(PREFIX, b"lock:a");
    run(&mut scene.past, cmd("SET").arg("lock:a").arg(1));
    run(
        &mut scene.past,
        cmd("HSET")
            .arg(&record[..])
            .arg("version")
            .arg(9)
            .arg("owner")
            .arg(&b"\xff"[..]),
    );
    let detail = get(scene.admin, "/api/v1/locks/lock:a").await.json();
    assert_eq!(detail["state"], "unknown", "{detail}");
    let header = format!("Authorization: Bearer {TOKEN}\r\n");
    let answer = ask(scene.admin, "DELETE", "/api/v1/locks/lock:a", &header).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "released": true, "held_ms": null }))
    );
    let metrics = get(scene.admin, "/metrics").await.body;
    let counted = metrics.lines().find(|line| line.contains("outcome=\"forced\""));
    assert_eq!(
        counted,
        Some("lockward_lock_releases_total{outcome=\"forced\",rule=\"jobs\"} 1")
    );
    let known = &get(scene.admin, "/api/v1/locks/lock:a").await.json()["known"];
    assert_eq!(known["history"][0]["owner"], "nobody", "{known}");
}
