//! The lock table of a running proxy, on both servers: two clients with names, one holds what the other waits for, and
//! the admin side shows who is who, in enforce and in observe mode.

mod real_server;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lockward::admin::Backend;
use lockward::admin::api::{Known, Lock, LocksQuery, Order, Sort, WarningKind};
use lockward::config::Config;
use lockward::proxy::Proxy;
use real_server::RealServer;
use redis::{Connection, Value, cmd};
use tokio::runtime::Runtime;

/// Each connection is an owner of its own: all of them come from one address.
fn settings(server: u16) -> String {
    format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [upstream]\nurl = \"redis://127.0.0.1:{server}\"\n\
         [[locks]]\nname = \"jobs\"\npattern = \"lock:*\"\nowner = \"connection\"\nfencing = true\n\
         [[locks]]\nname = \"seen\"\npattern = \"seen:*\"\nowner = \"connection\"\nmode = \"observe\"\n"
    )
}

struct Scene {
    server: RealServer,
    runtime: Runtime,
    backend: Arc<dyn Backend>,
    client: redis::Client,
}

impl Scene {
    fn start(program: &str) -> Result<Scene, Box<dyn Error>> {
        let server = RealServer::start(program);
        let config = Config::parse(&settings(server.port()), Path::new("test"), std::iter::empty())?.config;
        let runtime = Runtime::new()?;
        let proxy = runtime.block_on(Proxy::bind(&config))?;
        let (port, backend) = (proxy.port().ok_or("no port")?, proxy.backend());
        runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
        Ok(Scene {
            server,
            runtime,
            backend,
            client,
        })
    }

    fn connect(&self, name: &str) -> redis::RedisResult<Connection> {
        let mut connection = self.client.get_connection()?;
        cmd("CLIENT").arg("SETNAME").arg(name).exec(&mut connection)?;
        Ok(connection)
    }

    fn rows(&self, query: &LocksQuery) -> Vec<Lock> {
        self.backend.locks(query).expect("a query that makes sense").locks
    }

    fn all(&self) -> Vec<Lock> {
        self.rows(&LocksQuery::default())
    }

    fn known(&self, key: &str) -> Known {
        self.backend.known(0, key.as_bytes())
    }

    /// Waits until the table is as it should be; says what it is if it does not become so.
    fn until(&self, what: &str, is_so: impl Fn(&[Lock]) -> bool) {
        let begun = Instant::now();
        loop {
            let rows = self.all();
            if is_so(&rows) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{what}: {rows:#?}");
            sleep(Duration::from_millis(10));
        }
    }
}

fn acquire(connection: &mut Connection, key: &str, ttl_ms: u64) -> redis::RedisResult<bool> {
    let mut set = cmd("SET");
    set.arg(key).arg("value-1").arg("NX").arg("PX").arg(ttl_ms);
    Ok(set.query::<Value>(connection)? == Value::Okay)
}

fn release(connection: &mut Connection, key: &str) -> redis::RedisResult<bool> {
    cmd("DEL").arg(key).query(connection)
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("not that late")
}

/// Lock libraries release by a script of their own. No answer tells observe mode what it did, so lockward looks.
fn given_up_by_a_script(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let mut client = scene.connect("library")?;
    for key in ["seen:script", "lock:script"] {
        assert!(acquire(&mut client, key, 60_000)?);
        scene.until("the lease", |rows| rows.iter().any(|row| row.key == key));
        let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
        let done: u64 = cmd("EVAL")
            .arg(script)
            .arg(1)
            .arg(key)
            .arg("value-1")
            .query(&mut client)?;
        assert_eq!(done, 1);
        scene.until("its end", |rows| rows.iter().all(|row| row.key != key));
        // The timeline hears of it a moment after the table.
        scene.until("the timeline", |_| {
            scene.known(key).spans.last().is_some_and(|last| last.end_ms.is_some())
        });
        let known = scene.known(key);
        let last = known.spans.last().expect("a lease");
        assert_eq!(
            (last.ended.as_deref(), last.owed),
            (Some("released"), false),
            "{last:?}"
        );
    }
    Ok(())
}

/// A lock without TTL that was deleted past lockward: whoever looks at it has the table put right.
fn gone_past_the_proxy(scene: &Scene, server: u16) -> Result<(), Box<dyn Error>> {
    let mut client = scene.connect("ghost")?;
    assert!(cmd("SETNX").arg("lock:ghost").arg("1").query::<bool>(&mut client)?);
    scene.until("the lease", |rows| rows.iter().any(|row| row.key == "lock:ghost"));
    let mut direct = redis::Client::open(format!("redis://127.0.0.1:{server}"))?.get_connection()?;
    assert!(release(&mut direct, "lock:ghost")?);
    let looked = scene.backend.inspect(0, "lock:ghost".into());
    assert!(!scene.runtime.block_on(looked)?.exists);
    scene.until("its end", |rows| rows.iter().all(|row| row.key != "lock:ghost"));
    Ok(())
}

fn the_table_tells_on(program: &str) -> Result<(), Box<dyn Error>> {
    let scene = Scene::start(program)?;
    let server = scene.server.port();
    holder_and_waiter(&scene)?;
    queries(&scene)?;
    a_flush_empties_one_database(&scene)?;
    observed(&scene)?;
    given_up_by_a_script(&scene)?;
    gone_past_the_proxy(&scene, server)?;
    scene.runtime.shutdown_background();
    Ok(())
}

fn holder_and_waiter(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let (mut holder, mut waiter) = (scene.connect("worker-7")?, scene.connect("worker-8")?);
    let before = unix_ms();
    assert!(acquire(&mut holder, "lock:a", 60_000)?);
    assert!(!acquire(&mut waiter, "lock:a", 60_000)?);
    assert!(!acquire(&mut waiter, "lock:a", 60_000)?);
    let list = scene.backend.locks(&LocksQuery::default())?;
    assert_eq!((list.total, list.matched, list.offset), (1, 1, 0));
    let [row] = &list.locks[..] else { panic!("{list:?}") };
    assert_eq!((&*row.key, &*row.key_encoded, row.database), ("lock:a", "lock:a", 0));
    assert_eq!((&*row.rule, &*row.mode), ("jobs", "enforce"));
    assert_eq!(row.owner, format!("connection={}", row.connection));
    assert_eq!((row.client_name.as_deref(), row.connected), (Some("worker-7"), true));
    assert!(
        row.client_address.as_deref().unwrap().starts_with("127.0.0.1:"),
        "{row:?}"
    );
    assert!(
        row.since_ms.abs_diff(before) < 5000 && list.now_ms >= row.since_ms,
        "{row:?}"
    );
    assert!(row.held_ms.abs_diff(list.now_ms - row.since_ms) <= 1, "{row:?}");
    // The server's clock may have gone on by a millisecond before it was asked for the TTL.
    let (ttl_ms, expires_at_ms) = (row.ttl_ms.unwrap(), row.expires_at_ms.unwrap());
    assert!((59_900..=60_000).contains(&ttl_ms), "{row:?}");
    assert!(expires_at_ms.abs_diff(row.since_ms + ttl_ms) <= 1, "{row:?}");
    assert!(row.ttl_left_ms.unwrap() + row.held_ms <= 60_000 && row.ttl_left_ms.unwrap() > 50_000);
    assert!(row.fence.is_some() && row.warnings.is_empty(), "{row:?}");
    assert_eq!((row.waiting, row.waiters.len()), (1, 1));
    let waits = &row.waiters[0];
    assert_eq!((waits.client_name.as_deref(), waits.tries), (Some("worker-8"), 2));
    assert!(waits.first_ms >= row.since_ms && waits.last_ms >= waits.first_ms);
    assert_eq!(scene.known("lock:a").waiters.len(), 1);
    assert!(!release(&mut waiter, "lock:a")?, "not its own");
    let row = scene.known("lock:a").lease.expect("still held");
    assert_eq!(row.warnings[0].kind, WarningKind::ForeignRelease);
    drop(waiter);
    scene.until("the waiter has no name any more", |rows| {
        rows[0].waiters[0].client_name.is_none()
    });
    assert!(release(&mut holder, "lock:a")?);
    assert_eq!((scene.all(), scene.known("lock:a").lease), (vec![], None));
    assert!(acquire(&mut holder, "lock:late", 60)?);
    scene.until("it expires", <[Lock]>::is_empty);
    let mut next = scene.connect("worker-9")?;
    assert!(acquire(&mut next, "lock:late", 60_000)?);
    let rows = scene.all();
    assert_eq!((rows[0].owed, rows[0].warnings[0].kind), (1, WarningKind::Overrun));
    assert!(!release(&mut holder, "lock:late")?);
    assert_eq!((scene.all()[0].owed, scene.all()[0].warnings.len()), (0, 0));
    assert!(release(&mut next, "lock:late")?);
    Ok(())
}

fn queries(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let mut client = scene.connect("worker-7")?;
    for (key, ttl_ms) in [("lock:b", 50_000), ("lock:a\u{7}", 40_000), ("seen:c", 30_000)] {
        assert!(acquire(&mut client, key, ttl_ms)?);
        sleep(Duration::from_millis(2));
    }
    let keys = |query: &LocksQuery| {
        scene
            .rows(query)
            .into_iter()
            .map(|row| row.key_encoded)
            .collect::<Vec<_>>()
    };
    let by = |sort, order| LocksQuery {
        sort,
        order,
        ..LocksQuery::default()
    };
    assert_eq!(keys(&by(Sort::Age, None)), ["lock:b", "lock:a%07", "seen:c"]);
    assert_eq!(
        keys(&by(Sort::Age, Some(Order::Asc))),
        ["seen:c", "lock:a%07", "lock:b"]
    );
    assert_eq!(keys(&by(Sort::Ttl, None)), ["seen:c", "lock:a%07", "lock:b"]);
    assert_eq!(keys(&by(Sort::Key, None)), ["lock:a%07", "lock:b", "seen:c"]);
    let some = LocksQuery {
        rule: Some("jobs".to_owned()),
        pattern: Some("lock".to_owned()),
        owner: Some("connection=".to_owned()),
        db: Some(0),
        older_than: Some("1ms".to_owned()),
        offset: Some(1),
        limit: Some(1),
        ..LocksQuery::default()
    };
    let list = scene.backend.locks(&some)?;
    assert_eq!((list.total, list.matched, list.offset), (3, 2, 1));
    assert_eq!(list.locks[0].key_encoded, "lock:a%07");
    let wrong = |query: LocksQuery| scene.backend.locks(&query).expect_err("a query that makes no sense");
    let of_rule = |name: &str| LocksQuery {
        rule: Some(name.to_owned()),
        ..LocksQuery::default()
    };
    assert_eq!(
        wrong(of_rule("jops\n")),
        r#"there is no rule "jops\n"; the rules are: "jobs", "seen""#
    );
    for limit in [0, 1001] {
        let query = LocksQuery {
            limit: Some(limit),
            ..LocksQuery::default()
        };
        assert_eq!(wrong(query), format!("limit must be 1 to 1000, and is {limit}"));
    }
    let old = LocksQuery {
        older_than: Some("5".to_owned()),
        ..LocksQuery::default()
    };
    assert!(wrong(old).starts_with("older_than: \"5\" has no unit"));
    Ok(())
}

fn a_flush_empties_one_database(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let mut client = scene.connect("worker-7")?;
    cmd("SELECT").arg(3).exec(&mut client)?;
    assert!(acquire(&mut client, "lock:other", 60_000)?);
    assert_eq!(scene.all().len(), 4);
    cmd("FLUSHDB").exec(&mut client)?;
    scene.until("the lock of database 3 is gone", |rows| {
        rows.len() == 3 && rows.iter().all(|row| row.database == 0)
    });
    cmd("FLUSHALL").exec(&mut client)?;
    scene.until("all are gone", <[Lock]>::is_empty);
    Ok(())
}

fn observed(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let (mut one, mut other) = (scene.connect("worker-7")?, scene.connect("worker-8")?);
    assert!(acquire(&mut one, "seen:a", 60_000)?);
    assert_eq!(scene.all()[0].mode, "observe");
    assert!(release(&mut other, "seen:a")?, "nothing is refused in observe mode");
    scene.until("somebody else took it away", <[Lock]>::is_empty);
    assert!(acquire(&mut one, "seen:b", 50)?);
    scene.until("it expires", <[Lock]>::is_empty);
    assert!(acquire(&mut other, "seen:b", 60_000)?);
    assert_eq!(scene.all()[0].owed, 1);
    let text = scene.backend.metrics_text();
    assert!(
        text.contains("lockward_lock_expirations_total{rule=\"seen\"} 1\n"),
        "{text}"
    );
    Ok(())
}

#[test]
fn the_table_tells_on_redis() -> Result<(), Box<dyn Error>> {
    the_table_tells_on(&real_server::redis())
}

#[test]
fn the_table_tells_on_valkey() -> Result<(), Box<dyn Error>> {
    the_table_tells_on(&real_server::valkey())
}
