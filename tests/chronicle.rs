//! The founding bug, played by two clients through a real proxy on both servers, enforced and observed: history, timeline,
//! totals and spreads on the admin side say what the clients themselves measured, and the event stream tells it in order.

mod real_server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use lockward::admin::api::{Event, Known, LockDetail, RuleView, Span};
use lockward::config::Config;
use lockward::proxy::Proxy;
use real_server::RealServer;
use redis::{Connection, Value, cmd};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

const LIMIT: Duration = Duration::from_secs(10);
/// Long enough that B surely tries once before it has run out.
const TTL_MS: u64 = 400;
/// Between the two clocks of server and proxy.
const SLACK_MS: u64 = 80;

/// A server, a proxy in front of it, and who watches its events.
struct Scene {
    _server: RealServer,
    runtime: Option<Runtime>,
    port: u16,
    admin: u16,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Scene {
    /// Each connection is an owner of its own: all of them come from one address.
    fn new(program: &str, mode: &str) -> Scene {
        let server = RealServer::start(program);
        let text = format!(
            "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
             [upstream]\nurl = \"redis://127.0.0.1:{}\"\n\
             [[locks]]\nname = \"jobs\"\npattern = \"lock:*\"\nowner = \"connection\"\nmode = \"{mode}\"\n",
            server.port()
        );
        let config = Config::parse(&text, Path::new("test"), std::iter::empty())
            .unwrap()
            .config;
        let runtime = Runtime::new().unwrap();
        let proxy = runtime.block_on(Proxy::bind(&config)).unwrap();
        let (port, admin) = (proxy.port().unwrap(), proxy.admin_port().unwrap());
        runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });
        Scene {
            _server: server,
            runtime: Some(runtime),
            port,
            admin,
        }
    }

    fn client(&self) -> Connection {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap();
        client.get_connection().unwrap()
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.admin);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let mut answer = String::new();
        self.ask(path).read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn known(&self) -> Known {
        self.get::<LockDetail>("/api/v1/locks/lock:a").known
    }

    fn rule(&self) -> RuleView {
        self.get::<Vec<RuleView>>("/api/v1/rules").remove(0)
    }

    /// Everything that the stream tells from now on.
    fn events(&self) -> Receiver<Event> {
        let (tell, told) = channel();
        let lines = BufReader::new(self.ask("/api/v1/events")).lines();
        let (begun, beginning) = channel();
        spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The comment at the start: from here on nothing is missed.
                if line.starts_with(':') {
                    let _ = begun.send(());
                }
                if let Some(data) = line.strip_prefix("data: ") {
                    let _ = tell.send(serde_json::from_str(data).unwrap());
                }
            }
        });
        beginning.recv_timeout(LIMIT).unwrap();
        told
    }
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "{what} did not come");
        sleep(Duration::from_millis(10));
    }
}

fn acquire(client: &mut Connection, ttl_ms: u64) -> bool {
    let mut set = cmd("SET");
    set.arg("lock:a").arg("1").arg("NX").arg("PX").arg(ttl_ms);
    set.query::<Value>(client).unwrap() == Value::Okay
}

fn release(client: &mut Connection) -> u64 {
    cmd("DEL").arg("lock:a").query(client).unwrap()
}

/// When something was asked, and when it was answered: what lockward takes as its moment lies in between.
#[derive(Clone, Copy)]
struct Moment {
    asked: Instant,
    answered: Instant,
}

/// Does something, and says when.
fn timed<T>(does: impl FnOnce() -> T) -> (T, Moment) {
    let asked = Instant::now();
    let result = does();
    let answered = Instant::now();
    (result, Moment { asked, answered })
}

/// How long something took at lockward: at least and at most so many milliseconds, whatever else the machine does.
#[derive(Clone, Copy, Debug)]
struct Took {
    least: u64,
    most: u64,
}

impl Took {
    fn between(from: Moment, to: Moment) -> Took {
        let ms = |from: Instant, to: Instant| u64::try_from(to.saturating_duration_since(from).as_millis()).unwrap();
        Took {
            least: ms(from.answered, to.asked),
            most: ms(from.asked, to.answered),
        }
    }

    fn less(self, ms: u64) -> Took {
        Took {
            least: self.least.saturating_sub(ms),
            most: self.most.saturating_sub(ms),
        }
    }

    /// Clocks are read in whole milliseconds on both sides, and a spread keeps two or three digits.
    #[track_caller]
    fn is_told(self, told: u64) {
        let slack = 3 + self.most / 50;
        assert!(
            told + slack >= self.least && told <= self.most + slack,
            "{told} ms told, {self:?} measured"
        );
    }
}

/// What the clients measured, and what was answered to their releases.
struct Played {
    tries: u64,
    a_worked: Took,
    b_waited: Took,
    b_worked: Took,
    answers: [u64; 2],
}

/// A overruns its TTL; B, who waited, takes the lock; A's release comes while B is at work; then B's.
fn play(scene: &Scene) -> Played {
    let (mut a, mut b) = (scene.client(), scene.client());
    let (taken, a_taken) = timed(|| acquire(&mut a, TTL_MS));
    assert!(taken);
    let (taken, b_first) = timed(|| acquire(&mut b, 30_000));
    assert!(!taken, "A overran before B could try: this machine stood still");
    let mut tries = 1;
    let b_taken = loop {
        let (taken, moment) = timed(|| acquire(&mut b, 30_000));
        if taken {
            break moment;
        }
        tries += 1;
        sleep(Duration::from_millis(15));
    };
    sleep(Duration::from_millis(100));
    let (first, a_gave) = timed(|| release(&mut a));
    sleep(Duration::from_millis(100));
    let (second, b_gave) = timed(|| release(&mut b));
    Played {
        tries,
        a_worked: Took::between(a_taken, a_gave),
        b_waited: Took::between(b_first, b_taken),
        b_worked: Took::between(b_taken, b_gave),
        answers: [first, second],
    }
}

/// Read off one clock by lockward, so that the machine's load does not show.
#[track_caller]
fn near(told: u64, expected: u64) {
    assert!(
        told.abs_diff(expected) <= SLACK_MS,
        "{told} ms told, {expected} expected"
    );
}

/// A's span and B's, as far as both modes agree.
fn the_timeline(known: &Known, played: &Played) -> (Span, Span) {
    let [a, b] = known.spans.as_slice() else {
        panic!("two spans: {:#?}", known.spans)
    };
    let late = a.late_release_ms.unwrap();
    assert_eq!(
        (a.ended.as_deref(), a.owed, a.overlapped),
        (Some("expired"), false, true),
        "{a:?}"
    );
    let end = a.end_ms.unwrap();
    near(end, a.start_ms + TTL_MS);
    played.a_worked.is_told(late - a.start_ms);
    // The overrun and the overlap are to be seen.
    assert!(end <= b.start_ms && b.start_ms < late, "{a:?} {b:?}");
    // The server says what is left of it a moment after it was set.
    let ttl = b.due_ms.unwrap() - b.start_ms;
    assert!((29_990..=30_000).contains(&ttl), "{b:?}");
    (a.clone(), b.clone())
}

fn the_figures(rule: &RuleView, played: &Played) {
    assert_eq!((rule.name.as_str(), rule.matched, rule.held), ("jobs", true, 0));
    assert_eq!(rule.owner, ["connection"]);
    let totals = &rule.totals;
    assert_eq!(
        (totals.granted, totals.contended, totals.late),
        (2, played.tries, 1),
        "{totals:?}"
    );
    assert_eq!(
        (totals.foreign, totals.expired, totals.overlaps),
        (0, 1, 1),
        "{totals:?}"
    );
    assert_eq!(rule.hold.count, 2);
    // A worked through its TTL and through half of B's work.
    played.a_worked.is_told(rule.hold.max_ms);
    played.b_worked.is_told(rule.hold.p50_ms);
    assert_eq!(rule.wait.count, 1);
    played.b_waited.is_told(rule.wait.max_ms);
    let recent = &rule.recent;
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    assert_eq!((recent.step_ms, recent.granted.len()), (10_000, 60));
    assert_eq!((sum(&recent.granted), sum(&recent.contended)), (2, played.tries));
    assert_eq!((sum(&recent.expired), sum(&recent.overlaps)), (1, 1));
}

/// The stream tells the same as the history, one for one.
fn the_stream(told: &Receiver<Event>, known: &Known, played: &Played) {
    let count = played.tries + 5;
    let events: Vec<Event> = (0..count).map(|_| told.recv_timeout(LIMIT).unwrap()).collect();
    let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    assert!(
        events
            .iter()
            .all(|event| event.rule == "jobs" && event.key == "lock:a" && !event.text.is_empty())
    );
    let find = |name: &str| events.iter().find(|event| event.event == name).unwrap();
    near(find("expired").held_ms.unwrap(), TTL_MS);
    let second = events.iter().filter(|event| event.event == "acquired").nth(1).unwrap();
    assert!(second.overlap, "{second:?}");
    played.b_waited.is_told(second.waited_ms.unwrap());
    let late = find("late_release");
    played.a_worked.less(TTL_MS).is_told(late.overrun_ms.unwrap());
    assert!(
        events.iter().all(|event| event.event != "refused"),
        "it is told with its release: {events:?}"
    );
    // Of the tries in a row the history has one entry.
    let in_history: u64 = known.history.iter().map(|entry| entry.count.unwrap_or(1)).sum();
    assert_eq!((in_history, known.history_dropped), (count, 0));
    let mut others = events.iter().filter(|event| event.event != "contended");
    for entry in known.history.iter().filter(|entry| entry.event != "contended") {
        assert_eq!(others.next(), Some(entry));
    }
}

fn enforced_on(program: &str) {
    let scene = Scene::new(program, "enforce");
    let told = scene.events();
    let played = play(&scene);
    assert_eq!(played.answers, [0, 1]);
    eventually("the word that A's lease expired", || scene.rule().totals.expired > 0);
    let (known, rule) = (scene.known(), scene.rule());
    let (_, b) = the_timeline(&known, &played);
    assert_eq!(
        (b.ended.as_deref(), b.owed, b.overlapped),
        (Some("released"), false, false),
        "{b:?}"
    );
    played.b_worked.is_told(b.end_ms.unwrap() - b.start_ms);
    the_figures(&rule, &played);
    assert_eq!(
        (rule.totals.released, rule.totals.refused, rule.totals.would_refuse),
        (1, 1, 0)
    );
    the_stream(&told, &known, &played);
    let late = known
        .history
        .iter()
        .find(|entry| entry.event == "late_release")
        .unwrap();
    assert_eq!(late.action.as_deref(), Some("refused"));
}

fn observed_on(program: &str) {
    let scene = Scene::new(program, "observe");
    let told = scene.events();
    let played = play(&scene);
    // A's DEL removed B's lock, and B's found nothing.
    assert_eq!(played.answers, [1, 0]);
    eventually("the end of B's lease", || scene.known().lease.is_none());
    eventually("the word that A's lease expired", || scene.rule().totals.expired > 0);
    let (known, rule) = (scene.known(), scene.rule());
    let (a, b) = the_timeline(&known, &played);
    assert_eq!(
        (b.ended.as_deref(), b.owed, b.overlapped),
        (Some("removed"), false, false),
        "{b:?}"
    );
    near(b.end_ms.unwrap(), a.late_release_ms.unwrap());
    played.b_worked.is_told(b.late_release_ms.unwrap() - b.start_ms);
    the_figures(&rule, &played);
    assert_eq!(
        (rule.totals.released, rule.totals.refused, rule.totals.would_refuse),
        (0, 0, 1)
    );
    the_stream(&told, &known, &played);
    let late = known
        .history
        .iter()
        .find(|entry| entry.event == "late_release")
        .unwrap();
    assert_eq!(late.action.as_deref(), Some("observed"));
}

#[test]
fn the_founding_bug_enforced_on_redis() {
    enforced_on(&real_server::redis());
}

#[test]
fn the_founding_bug_enforced_on_valkey() {
    enforced_on(&real_server::valkey());
}

#[test]
fn the_founding_bug_observed_on_redis() {
    observed_on(&real_server::redis());
}

#[test]
fn the_founding_bug_observed_on_valkey() {
    observed_on(&real_server::valkey());
}
