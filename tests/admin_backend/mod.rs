//! An admin side on a loopback socket with a backend in memory. Keys that begin with `lock:`, and the empty key, are
//! locks; `lock:absent`, `lock:broken` and `lock:slow` are what they say. Records of the pattern `busy` or `away` fail so.

// Each test program uses its part of this.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lockward::admin::api::{
    Event, Known, LockList, LocksQuery, Pause, Process, RecordPage, RecordsQuery, Reloaded, RuleView, Suggestions,
    Upgraded,
};
use lockward::admin::{Answer, Backend, RecordsError, serve};
use lockward::lock::chore::{Done, Seen};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The admin token.
pub const SECRET: &str = "marked-secret-admin-token";

/// One release by force, as the backend saw it.
#[derive(Clone, Debug)]
pub struct ForcedRelease {
    pub database: u32,
    pub key: Bytes,
}

/// The backend.
pub struct Memory {
    /// What watchers are told.
    pub events: broadcast::Sender<Arc<Event>>,
    /// That something has changed.
    pub changes: watch::Sender<()>,
    /// The lock table.
    pub table: Mutex<LockList>,
    /// What is known of every lock.
    pub known: Mutex<Known>,
    /// The rules.
    pub rules: Mutex<Vec<RuleView>>,
    /// Every page of records.
    pub page: Mutex<RecordPage>,
    /// The advice.
    pub advice: Mutex<Suggestions>,
    /// The records asked for.
    pub asked: Mutex<Vec<RecordsQuery>>,
    /// What comes of a reload.
    pub reloaded: Mutex<Result<Reloaded, String>>,
    /// What comes of an upgrade.
    pub upgraded: Mutex<Result<Upgraded, String>>,
    unready: Mutex<Option<String>>,
    inspected: Mutex<Bytes>,
    released: Mutex<Vec<ForcedRelease>>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            events: broadcast::Sender::new(16),
            changes: watch::Sender::new(()),
            table: Mutex::default(),
            known: Mutex::default(),
            rules: Mutex::new(vec![RuleView {
                name: "jobs".to_owned(),
                ..RuleView::default()
            }]),
            page: Mutex::default(),
            advice: Mutex::default(),
            asked: Mutex::default(),
            unready: Mutex::default(),
            inspected: Mutex::default(),
            released: Mutex::default(),
            reloaded: Mutex::new(Ok(Reloaded::default())),
            upgraded: Mutex::new(Ok(Upgraded::default())),
        }
    }
}

impl Memory {
    pub fn unready(&self, reason: &str) {
        *self.unready.lock().unwrap() = Some(reason.to_owned());
    }

    pub fn last_key(&self) -> Bytes {
        self.inspected.lock().unwrap().clone()
    }

    pub fn releases(&self) -> Vec<ForcedRelease> {
        self.released.lock().unwrap().clone()
    }
}

impl Backend for Memory {
    fn ready(&self) -> Result<(), String> {
        self.unready.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn metrics_text(&self) -> String {
        "metrics_here 1\n".to_owned()
    }

    fn rule_of(&self, key: &[u8]) -> Option<Arc<str>> {
        (key.is_empty() || key.starts_with(b"lock:")).then(|| "jobs".into())
    }

    fn inspect(&self, _database: u32, key: Bytes) -> Answer<Seen> {
        *self.inspected.lock().unwrap() = key.clone();
        Box::pin(async move {
            match &key[..] {
                b"lock:broken" => Err("the server is away".to_owned()),
                b"lock:slow" => std::future::pending().await,
                _ => Ok(held()),
            }
        })
    }

    fn force_release(&self, database: u32, key: Bytes) -> Answer<Done> {
        self.released.lock().unwrap().push(ForcedRelease {
            database,
            key: key.clone(),
        });
        Box::pin(async move {
            match &key[..] {
                b"lock:broken" => Err("the server is away".to_owned()),
                b"lock:absent" => Ok(Done::Absent),
                _ => Ok(Done::Freed { held_ms: Some(5000) }),
            }
        })
    }

    fn reload(&self) -> Result<Reloaded, String> {
        self.reloaded.lock().unwrap().clone()
    }

    fn process(&self) -> Process {
        Process::default()
    }

    fn pause(&self, length: Duration, _wait: Duration) -> Answer<Pause> {
        let draining = self.unready.lock().unwrap().is_some();
        let pause = Pause {
            left_ms: Some(length.as_millis() as u64),
            ..Pause::default()
        };
        Box::pin(async move {
            match draining {
                true => Err("draining".to_owned()),
                false => Ok(pause),
            }
        })
    }

    fn resume(&self) -> Answer<Pause> {
        self.paused()
    }

    fn paused(&self) -> Answer<Pause> {
        Box::pin(async { Ok(Pause::default()) })
    }

    fn upgrade(&self) -> Result<Upgraded, String> {
        self.upgraded.lock().unwrap().clone()
    }

    fn rules(&self) -> Vec<RuleView> {
        self.rules.lock().unwrap().clone()
    }

    fn has_rule(&self, name: &str) -> bool {
        self.rules.lock().unwrap().iter().any(|rule| rule.name == name)
    }

    fn locks(&self, query: &LocksQuery) -> Result<LockList, String> {
        match query.limit {
            Some(0) => Err("limit: must be from 1 to 1000".to_owned()),
            _ => Ok(self.table.lock().unwrap().clone()),
        }
    }

    fn known(&self, _database: u32, _key: &[u8]) -> Known {
        self.known.lock().unwrap().clone()
    }

    fn records(&self, query: &RecordsQuery) -> Answer<RecordPage, RecordsError> {
        self.asked.lock().unwrap().push(query.clone());
        let answer = match query.pattern.as_deref() {
            Some("busy") => Err(RecordsError::Busy),
            Some("away") => Err(RecordsError::Upstream("the server is away".to_owned())),
            Some("wrong") => Err(RecordsError::Query("cursor: must be a number".to_owned())),
            _ => Ok(self.page.lock().unwrap().clone()),
        };
        Box::pin(async { answer })
    }

    fn suggestions(&self) -> Suggestions {
        self.advice.lock().unwrap().clone()
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

fn held() -> Seen {
    Seen {
        exists: true,
        state: "held".to_owned(),
        ttl_ms: Some(1200),
        owner: Some("address=10.0.0.7".to_owned()),
        connection: Some("0123456789abcdef-7".to_owned()),
        connection_open: true,
        fence: Some(41),
        acquired_at_ms: Some(1_700_000_000_000),
        debts: vec![("address=10.0.0.8".to_owned(), 1_700_000_000_500)],
    }
}

/// A running admin side.
pub struct Admin {
    pub address: SocketAddr,
    pub backend: Arc<Memory>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Admin {
    pub async fn start(token: &str) -> Admin {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let backend = Arc::new(Memory::default());
        let (stop, stopped) = oneshot::channel();
        let hosts = vec!["locks.example.org:9180".to_owned()];
        let shutdown = async { drop(stopped.await) };
        let shared: Arc<dyn Backend> = backend.clone();
        let server = tokio::spawn(serve(listener, shared, token.to_owned(), hosts, shutdown));
        Admin {
            address,
            backend,
            stop,
            server,
        }
    }

    /// Stops it and waits for its end; returns where it was.
    pub async fn stop(self) -> SocketAddr {
        self.stop.send(()).unwrap();
        self.server.await.unwrap();
        self.address
    }
}

/// An HTTP answer: status, head and body.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}\n{}", self.head, self.body))
    }
}

pub async fn send(address: SocketAddr, request: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes))
        .await
        .expect("no end of the answer")
        .unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Reply {
        status,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

pub async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Reply {
    send(
        address,
        &format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n"),
    )
    .await
}

pub async fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, "GET", path, "").await
}

/// One event of a stream, as it was told.
#[derive(Debug)]
pub struct Told {
    pub id: Option<u64>,
    pub event: String,
    pub data: Value,
}

/// Reads a stream. Asks as HTTP/1.0, so that the body comes as it is, without chunks.
pub struct Reader {
    stream: TcpStream,
    pub head: String,
    text: String,
}

impl Reader {
    /// Asks, and reads the head and the first bytes behind it.
    pub async fn open(address: SocketAddr, path: &str) -> Reader {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = Reader {
            stream,
            head: String::new(),
            text: String::new(),
        };
        loop {
            let split = reader.text.split_once("\r\n\r\n");
            let split = split
                .filter(|(_, body)| !body.is_empty())
                .map(|(head, body)| (head.to_owned(), body.to_owned()));
            if let Some((head, body)) = split {
                (reader.head, reader.text) = (head, body);
                return reader;
            }
            assert!(reader.more().await, "no stream: {:?}", reader.text);
        }
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = timeout(Duration::from_secs(20), self.stream.read(&mut bytes)).await;
        let read = read.expect("nothing is told for too long").unwrap_or(0);
        self.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        read > 0
    }

    /// The next block up to its empty line, comments too; `None` at the end of the stream.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            if !self.more().await {
                assert!(self.text.is_empty(), "an unfinished block: {:?}", self.text);
                return None;
            }
        }
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            let block = self.block().await?;
            if block.starts_with(':') {
                continue;
            }
            let field = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            return Some(Told {
                id: field("id").map(|id| id.parse().unwrap()),
                event: field("event").unwrap().to_owned(),
                data: serde_json::from_str(field("data").unwrap()).unwrap(),
            });
        }
    }

    /// Closes the sending side.
    pub async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

/// Waits until it is so.
pub async fn until(what: &str, limit: Duration, mut so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !so() {
        assert!(begun.elapsed() < limit, "not in {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
