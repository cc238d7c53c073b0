//! The `redis` crate as a client through lockward, on both servers: a lock taken and given up in plain commands, in a
//! pipeline, in a transaction and by a script of the client's, and a release that comes too late.

mod real_server;

use std::error::Error;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use lockward::config::Config;
use lockward::proxy::Proxy;
use real_server::RealServer;
use redis::{Connection, Script, Value, cmd, pipe};

const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// Each connection is an owner of its own: all of them come from one address.
fn settings(server: u16) -> String {
    format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [upstream]\nurl = \"redis://127.0.0.1:{server}\"\n[[locks]]\npattern = \"lock:*\"\nowner = \"connection\"\n"
    )
}

fn locks_work_on(program: &str) -> Result<(), Box<dyn Error>> {
    let server = RealServer::start(program);
    let config = Config::parse(&settings(server.port()), Path::new("test"), std::iter::empty())?.config;
    let runtime = tokio::runtime::Runtime::new()?;
    let proxy = runtime.block_on(Proxy::bind(&config))?;
    let port = proxy.port().ok_or("no port")?;
    runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let (mut a, mut b) = (client.get_connection()?, client.get_connection()?);
    cycles(&mut a, &mut b)?;
    too_late(&mut a, &mut b)?;
    runtime.shutdown_background();
    Ok(())
}

fn cycles(a: &mut Connection, b: &mut Connection) -> redis::RedisResult<()> {
    let set = |value: &str| {
        cmd("SET")
            .arg("lock:a")
            .arg(value)
            .arg("NX")
            .arg("EX")
            .arg(30)
            .to_owned()
    };
    assert_eq!(set("a").query::<Value>(a)?, Value::Okay);
    assert_eq!(set("b").query::<Value>(b)?, Value::Nil);
    assert_eq!(cmd("DEL").arg("lock:a").query::<u32>(b)?, 0);
    assert_eq!(cmd("DEL").arg("lock:a").query::<u32>(a)?, 1);
    let (taken, left, given): (bool, u32, u32) = pipe()
        .cmd("SETNX")
        .arg("lock:a")
        .arg(1)
        .cmd("TTL")
        .arg("plain")
        .ignore()
        .cmd("EXPIRE")
        .arg("lock:a")
        .arg(30)
        .cmd("DEL")
        .arg("lock:a")
        .query(a)?;
    assert_eq!((taken, left, given), (true, 1, 1));
    let (taken, given): (bool, u32) = pipe()
        .atomic()
        .cmd("SETNX")
        .arg("lock:a")
        .arg(1)
        .cmd("DEL")
        .arg("lock:a")
        .query(b)?;
    assert_eq!((taken, given), (true, 1));
    assert_eq!(set("token").query::<Value>(a)?, Value::Okay);
    assert_eq!(Script::new(RELEASE).key("lock:a").arg("other").invoke::<u32>(b)?, 0);
    assert_eq!(Script::new(RELEASE).key("lock:a").arg("token").invoke::<u32>(a)?, 1);
    Ok(())
}

fn too_late(a: &mut Connection, b: &mut Connection) -> redis::RedisResult<()> {
    let set = |ttl: u32| {
        cmd("SET")
            .arg("lock:late")
            .arg(1)
            .arg("NX")
            .arg("PX")
            .arg(ttl)
            .to_owned()
    };
    assert_eq!(set(50).query::<Value>(a)?, Value::Okay);
    while cmd("EXISTS").arg("lock:late").query::<bool>(a)? {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(set(30_000).query::<Value>(b)?, Value::Okay);
    assert_eq!(cmd("DEL").arg("lock:late").query::<u32>(a)?, 0);
    assert_eq!(cmd("DEL").arg("lock:late").query::<u32>(b)?, 1);
    Ok(())
}

#[test]
fn locks_work_on_redis() -> Result<(), Box<dyn Error>> {
    locks_work_on(&real_server::redis())
}

#[test]
fn locks_work_on_valkey() -> Result<(), Box<dyn Error>> {
    locks_work_on(&real_server::valkey())
}
