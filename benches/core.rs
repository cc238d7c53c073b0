//! The core alone, to count its instructions (`tests/checks/instructions.py`, under callgrind): one session is handed
//! requests and answers without a socket between them, so that the count is the same each time, to the instruction.
//!
//! `core SERVER_PORT MODE SHAPE TURNS`, with a real server on the loopback: what it answers is recorded once and played
//! TURNS times. The difference between two numbers of turns is the price of a turn alone. It measures no time, and
//! leaves out what the shell does: sockets, metrics, the keeper.

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;

use lockward::event::{ConnectionId, Time, Token};
use lockward::lock::rule::Rule;
use lockward::session::{Line, Peer, Policy, Session};
use uuid::Uuid;

type Fault = Box<dyn Error>;

const GET: &str = "*2\r\n$3\r\nGET\r\n$9\r\ncore:data\r\n";
const PLAIN_SET: &str = "*3\r\n$3\r\nSET\r\n$9\r\ncore:data\r\n$64\r\n";
const SET: &str = "*6\r\n$3\r\nSET\r\n$9\r\nlock:core\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n";
const DEL: &str = "*2\r\n$3\r\nDEL\r\n$9\r\nlock:core\r\n";
const REFUSED: &str = "*6\r\n$3\r\nSET\r\n$9\r\nlock:held\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n";
const VALUE: &str = "0123456789012345678901234567890123456789012345678901234567890123";
/// The session's clock, in microseconds: it stands still, as nothing here depends on it.
const NOW: Time = Time(1_000_000);
/// Plays before the recording: the server gets to know the scripts in the first.
const WARM_UP: usize = 3;

/// What a client sends in one packet, and what it must get.
struct Packet {
    requests: Vec<u8>,
    answers: Vec<u8>,
}

impl Packet {
    fn new(pairs: &[(&str, &str)], times: usize) -> Self {
        let all = |side: fn(&(&str, &str)) -> String| pairs.iter().map(side).collect::<String>().repeat(times);
        Self {
            requests: all(|(request, _)| (*request).to_owned()).into_bytes(),
            answers: all(|(_, answer)| (*answer).to_owned()).into_bytes(),
        }
    }
}

/// A turn: the packets of a shape, which end as they began.
fn packets(shape: &str) -> Result<Vec<Packet>, Fault> {
    let value = format!("$64\r\n{VALUE}\r\n");
    let get = (GET, value.as_str());
    let plain_set = format!("{PLAIN_SET}{VALUE}\r\n");
    let (set, del) = ((SET, "+OK\r\n"), (DEL, ":1\r\n"));
    Ok(match shape {
        "get-1" => vec![Packet::new(&[get], 1)],
        "get-16" => vec![Packet::new(&[get], 16)],
        "set-16" => vec![Packet::new(&[(plain_set.as_str(), "+OK\r\n")], 16)],
        "cycle-1" => vec![Packet::new(&[set], 1), Packet::new(&[del], 1)],
        "cycle-16" => vec![Packet::new(&[set, del], 8)],
        "refused-1" => vec![Packet::new(&[(REFUSED, "$-1\r\n")], 1)],
        _ => return Err(format!("there is no shape {shape}").into()),
    })
}

/// A session whose connection to the server is of that kind.
fn session(mode: &str) -> Result<Session, Fault> {
    let policy = Policy::new(vec![Rule::new("lock:*")], "lockward:", || Token(Uuid::from_u128(1)));
    let connection = ConnectionId {
        instance: "0123456789abcdef".into(),
        number: 1,
    };
    let peer = Peer {
        address: "10.0.0.7".parse().ok(),
        process: None,
    };
    let mut session = Session::new(Arc::new(policy), connection, peer);
    match mode {
        "dedicated" => {}
        "shared" => {
            session.share();
            session.moved(Line::Shared);
        }
        _ => return Err(format!("there is no mode {mode}").into()),
    }
    Ok(session)
}

/// Takes out of the session what the shell takes.
fn drain(session: &mut Session) {
    session.to_upstream.clear();
    session.to_downstream.clear();
    session.settled.clear();
    session.events.clear();
    session.observed.clear();
    session.releasing.clear();
    session.sightings.clear();
    session.notices.clear();
    session.take_asked();
}

/// Plays a packet with the real server; returns what that said, in the pieces in which the session waited for it.
fn recorded(session: &mut Session, server: &mut TcpStream, packet: &Packet) -> Result<VecDeque<Vec<u8>>, Fault> {
    let mut pieces = VecDeque::new();
    let mut buffer = [0; 4096];
    session.receive_downstream(&packet.requests, NOW);
    while session.to_downstream.len() < packet.answers.len() {
        if !session.to_upstream.is_empty() {
            server.write_all(&session.to_upstream)?;
            session.to_upstream.clear();
            pieces.push_back(Vec::new());
        }
        let size = server.read(&mut buffer)?;
        let got = buffer.get(..size).unwrap_or_default();
        if got.is_empty() {
            return Err("the server closed the connection".into());
        }
        pieces.back_mut().ok_or("an answer to nothing")?.extend_from_slice(got);
        session.receive_upstream(got, NOW);
    }
    if session.to_downstream != packet.answers {
        let got = String::from_utf8_lossy(&session.to_downstream).into_owned();
        return Err(format!("an unexpected answer: {got:?}").into());
    }
    drain(session);
    Ok(pieces)
}

/// Plays a packet with what the server said before.
fn replayed(session: &mut Session, packet: &Packet, pieces: &VecDeque<Vec<u8>>) -> Result<(), Fault> {
    session.receive_downstream(black_box(&packet.requests), NOW);
    for piece in pieces {
        session.to_upstream.clear();
        session.receive_upstream(black_box(piece), NOW);
    }
    if session.to_downstream != packet.answers {
        return Err("the session answers otherwise than before".into());
    }
    drain(session);
    Ok(())
}

fn prepare(server: &mut TcpStream) -> Result<(), Fault> {
    let value = format!("*3\r\n$3\r\nSET\r\n$9\r\ncore:data\r\n$64\r\n{VALUE}\r\n");
    let held = "*3\r\n$3\r\nSET\r\n$9\r\nlock:held\r\n$1\r\n1\r\n";
    server.write_all((value + held).as_bytes())?;
    let mut answers = [0; 10];
    server.read_exact(&mut answers)?;
    match &answers {
        b"+OK\r\n+OK\r\n" => Ok(()),
        _ => Err("the server takes no keys".into()),
    }
}

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, mode, shape, turns] = arguments.as_slice() else {
        println!("core: one session without sockets, to count instructions (core SERVER_PORT MODE SHAPE TURNS)");
        return Ok(());
    };
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse()?))?;
    server.set_nodelay(true)?;
    prepare(&mut server)?;
    let (packets, mut session) = (packets(shape)?, session(mode)?);
    let mut script = Vec::new();
    for _ in 0..WARM_UP {
        script.clear();
        for packet in &packets {
            script.push(recorded(&mut session, &mut server, packet)?);
        }
    }
    for _ in 0..turns.parse::<u64>()? {
        for (packet, pieces) in packets.iter().zip(&script) {
            replayed(&mut session, packet, pieces)?;
        }
    }
    Ok(())
}
