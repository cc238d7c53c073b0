//! A load generator for `scripts/bench` and `tests/checks/instructions.py`: clients that each keep one pipeline under way
//! (a closed loop) on a single thread, and compare every byte that comes back with what must come.
//!
//! `load port=P operation=get|set|cycle|refused|fill [clients=50] [pipeline=1] [size=64] [keys=1000] [seed=N]
//! [requests=N | seconds=S]`, on the loopback. When all are connected it says `ready` and waits for a line on its input,
//! so that whoever reads the CPU clocks of the others reads them without the connecting; then it measures, prints one line
//! of JSON, and holds the connections until its input ends. It chooses no rate and hides no fault: the first answer that is
//! not as expected ends it.
//!
//! - `get`, `set`: a random one of `keys` keys; `fill` writes each of them once.
//! - `cycle`: each client its own lock: `SET k token NX PX 30000`, `DEL k`. Two requests.
//! - `refused`: all clients the same lock, which somebody else holds: `SET k token NX PX 30000`.

use std::error::Error;
use std::io::BufRead;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Fault = Box<dyn Error + Send + Sync>;

const TOKEN: &[u8] = b"f47ac10b-58cc-4372-a567-0e02b2c3d479";
const HELD: &[u8] = b"lock:held";
/// Of latencies, in nanoseconds: three digits.
const DIGITS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Set,
    Cycle,
    Refused,
    Fill,
}

#[derive(Clone)]
struct Plan {
    port: u16,
    operation: Operation,
    clients: u64,
    pipeline: u64,
    size: usize,
    keys: u64,
    /// All clients together; `None`: as many as fit into `time`.
    requests: Option<u64>,
    time: Duration,
    seed: u64,
}

impl Plan {
    fn parse(arguments: &[String]) -> Result<Self, Fault> {
        let mut plan = Self {
            port: 0,
            operation: Operation::Get,
            clients: 50,
            pipeline: 1,
            size: 64,
            keys: 1000,
            requests: None,
            time: Duration::from_secs(1),
            seed: 1,
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("arguments are NAME=VALUE")?;
            match name {
                "port" => plan.port = value.parse()?,
                "operation" => plan.operation = operation(value)?,
                "clients" => plan.clients = value.parse()?,
                "pipeline" => plan.pipeline = value.parse()?,
                "size" => plan.size = value.parse()?,
                "keys" => plan.keys = value.parse()?,
                "requests" => plan.requests = Some(value.parse()?),
                "seconds" => plan.time = Duration::from_secs_f64(value.parse()?),
                "seed" => plan.seed = value.parse()?,
                _ => return Err(format!("there is no argument {name}").into()),
            }
        }
        if plan.operation == Operation::Fill {
            (plan.clients, plan.requests) = (1, Some(plan.keys));
        }
        Ok(plan)
    }
}

fn operation(name: &str) -> Result<Operation, Fault> {
    Ok(match name {
        "get" => Operation::Get,
        "set" => Operation::Set,
        "cycle" => Operation::Cycle,
        "refused" => Operation::Refused,
        "fill" => Operation::Fill,
        _ => return Err(format!("there is no operation {name}").into()),
    })
}

fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// One client: what it sends next, and what must come back.
struct Client {
    plan: Arc<Plan>,
    number: u64,
    random: u64,
    /// Requests made so far.
    made: u64,
    value: Vec<u8>,
    packet: Vec<u8>,
    expected: Vec<u8>,
}

impl Client {
    fn new(plan: Arc<Plan>, number: u64) -> Self {
        Self {
            random: (plan.seed << 20 | number | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            number,
            made: 0,
            value: vec![b'x'; plan.size],
            packet: Vec::new(),
            expected: Vec::new(),
            plan,
        }
    }

    /// The next packet, of `count` requests.
    fn fill(&mut self, count: u64) {
        self.packet.clear();
        self.expected.clear();
        for _ in 0..count {
            match self.plan.operation {
                Operation::Get => {
                    let key = self.any_key();
                    command(&mut self.packet, &[b"GET", &key]);
                    let head = format!("${}\r\n", self.plan.size);
                    self.expected.extend_from_slice(head.as_bytes());
                    self.expected.extend_from_slice(&self.value);
                    self.expected.extend_from_slice(b"\r\n");
                }
                Operation::Set | Operation::Fill => {
                    let key = match self.plan.operation {
                        Operation::Fill => self.key(self.made),
                        _ => self.any_key(),
                    };
                    command(&mut self.packet, &[b"SET", &key, &self.value]);
                    self.expected.extend_from_slice(b"+OK\r\n");
                }
                Operation::Cycle => self.half_cycle(),
                Operation::Refused => {
                    acquire(&mut self.packet, HELD);
                    self.expected.extend_from_slice(b"$-1\r\n");
                }
            }
            self.made += 1;
        }
    }

    fn half_cycle(&mut self) {
        let key = format!("lock:cycle:{}", self.number);
        if self.made.is_multiple_of(2) {
            acquire(&mut self.packet, key.as_bytes());
            self.expected.extend_from_slice(b"+OK\r\n");
        } else {
            command(&mut self.packet, &[b"DEL", key.as_bytes()]);
            self.expected.extend_from_slice(b":1\r\n");
        }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        format!("data:{}:{number:06}", self.plan.size).into_bytes()
    }

    fn any_key(&mut self) -> Vec<u8> {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.key(self.random % self.plan.keys)
    }

    /// Whether it may stop here: not with a lock in its hand.
    fn between_cycles(&self) -> bool {
        self.plan.operation != Operation::Cycle || self.made.is_multiple_of(2)
    }
}

fn acquire(out: &mut Vec<u8>, key: &[u8]) {
    command(out, &[b"SET", key, TOKEN, b"NX", b"PX", b"30000"]);
}

/// Reads what is expected, and nothing else.
async fn read(stream: &mut TcpStream, expected: &[u8], buffer: &mut [u8]) -> Result<(), Fault> {
    let mut left = expected;
    while !left.is_empty() {
        let size = stream.read(buffer).await?;
        let got = buffer.get(..size).unwrap_or_default();
        if got.is_empty() {
            return Err("a connection was closed".into());
        }
        if !left.starts_with(got) {
            let shown = String::from_utf8_lossy(got.get(..80).unwrap_or(got));
            return Err(format!("an unexpected answer: {shown:?}").into());
        }
        left = left.get(size..).unwrap_or_default();
    }
    Ok(())
}

/// What one client measured: the times of its pipelines in nanoseconds, and its connection, which is still open.
struct Measured {
    times: Histogram<u64>,
    requests: u64,
    _stream: TcpStream,
}

async fn run(mut client: Client, mut stream: TcpStream, left: Arc<AtomicU64>, end: Instant) -> Result<Measured, Fault> {
    let mut buffer = vec![0; 1 << 16];
    let mut times = Histogram::new(DIGITS)?;
    let mut begun = Instant::now();
    loop {
        let count = match client.plan.requests {
            None if begun >= end && client.between_cycles() => 0,
            None => client.plan.pipeline,
            Some(_) => taken(&left, client.plan.pipeline, client.between_cycles()),
        };
        if count == 0 {
            break;
        }
        client.fill(count);
        stream.write_all(&client.packet).await?;
        read(&mut stream, &client.expected, &mut buffer).await?;
        let now = Instant::now();
        times.record(u64::try_from((now - begun).as_nanos())?)?;
        begun = now;
    }
    Ok(Measured {
        times,
        requests: client.made,
        _stream: stream,
    })
}

/// Takes up to `wanted` from what is left to be done; the end of a cycle is always allowed.
fn taken(left: &AtomicU64, wanted: u64, between_cycles: bool) -> u64 {
    let before = left.load(Ordering::Relaxed);
    let count = before.min(wanted);
    left.store(before - count, Ordering::Relaxed);
    if between_cycles { count } else { count.max(1) }
}

/// The lock that all are refused, taken through the same address as all else.
async fn hold(plan: &Plan) -> Result<TcpStream, Fault> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, plan.port)).await?;
    let mut packet = Vec::new();
    command(&mut packet, &[b"SET", HELD, TOKEN, b"NX", b"PX", b"600000"]);
    stream.write_all(&packet).await?;
    read(&mut stream, b"+OK\r\n", &mut [0; 1024]).await?;
    Ok(stream)
}

async fn give_up(mut stream: TcpStream) -> Result<(), Fault> {
    let mut packet = Vec::new();
    command(&mut packet, &[b"DEL", HELD]);
    stream.write_all(&packet).await?;
    read(&mut stream, b":1\r\n", &mut [0; 1024]).await
}

/// Waits for a line from whoever started this; an end of the input counts.
fn wait_for_line() -> Result<(), Fault> {
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

async fn load(plan: Plan) -> Result<(), Fault> {
    let holder = match plan.operation {
        Operation::Refused => Some(hold(&plan).await?),
        _ => None,
    };
    let plan = Arc::new(plan);
    let mut streams = Vec::new();
    for number in 0..plan.clients {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, plan.port)).await?;
        stream.set_nodelay(true)?;
        streams.push((Client::new(plan.clone(), number), stream));
    }
    println!("ready");
    wait_for_line()?;
    let begun = Instant::now();
    let left = Arc::new(AtomicU64::new(plan.requests.unwrap_or_default()));
    let mut tasks = JoinSet::new();
    for (client, stream) in streams {
        tasks.spawn(run(client, stream, left.clone(), begun + plan.time));
    }
    let mut times = Histogram::<u64>::new(DIGITS)?;
    let mut done = Vec::new();
    while let Some(measured) = tasks.join_next().await {
        let measured = measured??;
        times.add(&measured.times)?;
        done.push(measured);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let requests: u64 = done.iter().map(|one| one.requests).sum();
    let at = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
    println!(
        "{{\"requests\": {requests}, \"seconds\": {seconds:.6}, \"p50_us\": {:.1}, \"p99_us\": {:.1}}}",
        at(0.5),
        at(0.99)
    );
    wait_for_line()?;
    match holder {
        Some(stream) => give_up(stream).await,
        None => Ok(()),
    }
}

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument.starts_with("port=")) {
        println!(
            "load: a load generator to measure lockward with (load port=P operation=get ...); scripts/bench runs it"
        );
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(load(Plan::parse(&arguments)?))
}
