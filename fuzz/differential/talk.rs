//! Says a batch to both sides and hears what comes back, until the last answer is there, a side has closed, or the server
//! waits for more. Nothing here goes by time but for what must come and does not: that a server waits is known from an
//! answer to another connection, which it gives after it has read what came before.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::cases::Batch;
use crate::framing::Dice;
use crate::side::{Control, LIMIT, connect, is_silence};

/// So long a side may be silent before it is asked whether it waits.
const SILENCE: Duration = Duration::from_millis(2);
/// The same where a command in the batch waits by itself, for far shorter.
const SILENCE_WHEN_WAITING: Duration = Duration::from_millis(500);

/// A side that is said to be open is watched for so long, after it has been asked on other connections.
const AFTERWARDS: Duration = Duration::from_millis(10);
/// So long is waited for as many bytes as the other side said; there may be fewer, where answers differ by nature.
const SHORTER: Duration = Duration::from_secs(3);

/// How a side was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It has answered everything and is open.
    Open,
    /// It has closed by itself.
    Closed,
    /// It is open and waits for the rest of a request.
    Waiting,
    /// It neither answers nor closes.
    Silent,
}

/// What a side said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub bytes: Vec<u8>,
    pub left: Left,
}

/// A connection to each side, made anew when one of them has ended.
pub struct Pair {
    ports: [u16; 2],
    open: Option<[TcpStream; 2]>,
    /// Others, to see that a side had the time to read what was sent: one to the server of the direct side, one through
    /// lockward.
    beside: [Control; 2],
}

impl Pair {
    /// The direct side first.
    pub fn new(ports: [u16; 2], password: bool) -> Pair {
        Pair {
            ports,
            open: None,
            beside: ports.map(|port| Control::connect(port, password)),
        }
    }

    /// Says a batch.
    pub fn say(&mut self, batch: &Batch, dice: &mut Dice) -> [Said; 2] {
        if batch.fresh {
            self.open = None;
        }
        let [mut direct, mut proxied] = self.open.take().unwrap_or_else(|| self.ports.map(connect));
        send(&mut direct, &batch.bytes, batch.bytes.len());
        let most = [batch.bytes.len(), batch.bytes.len(), 1460, 200, 7][dice.below(5)];
        // No more than some hundred packets.
        send_split(&mut proxied, &batch.bytes, most.max(batch.bytes.len() / 300), dice);
        let [server, lockward] = &mut self.beside;
        let mut one = hear_direct(&mut direct, batch, server);
        let mut other = hear_proxied(&mut proxied, batch, &one, lockward);
        if one.left == Left::Waiting {
            for (stream, said) in [(&mut direct, &mut one), (&mut proxied, &mut other)] {
                let _ = stream.shutdown(Shutdown::Write);
                if hear(stream, &mut said.bytes, LIMIT, |_| false) == Left::Silent {
                    said.left = Left::Silent;
                }
            }
        } else if one.left == Left::Open && other.left == Left::Open {
            self.open = Some([direct, proxied]);
        }
        [one, other]
    }
}

fn send(stream: &mut TcpStream, bytes: &[u8], most: usize) {
    for piece in bytes.chunks(most.max(1)) {
        // A side may close before it has read everything.
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

/// Packets of up to `most` bytes, or all at once.
fn send_split(stream: &mut TcpStream, bytes: &[u8], most: usize, dice: &mut Dice) {
    if most >= bytes.len() {
        return send(stream, bytes, most);
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(rest.len().min(1 + dice.below(most)));
        if stream.write_all(piece).is_err() {
            return;
        }
        rest = left;
    }
}

/// Reads on until `done` says so, the other side closes, or nothing comes for so long.
fn hear(stream: &mut TcpStream, bytes: &mut Vec<u8>, silence: Duration, done: impl Fn(&[u8]) -> bool) -> Left {
    stream.set_read_timeout(Some(silence)).expect("a socket option");
    let mut part = [0; 1 << 16];
    loop {
        if done(bytes) {
            return Left::Open;
        }
        match stream.read(&mut part) {
            Ok(0) => return Left::Closed,
            Ok(size) => bytes.extend(&part[..size]),
            Err(error) if is_silence(&error) => return Left::Silent,
            // A side that closes with bytes unread resets the connection.
            Err(_) => return Left::Closed,
        }
    }
}

fn hear_direct(stream: &mut TcpStream, batch: &Batch, control: &mut Control) -> Said {
    let mut bytes = Vec::new();
    let silence = if batch.waits { SILENCE_WHEN_WAITING } else { SILENCE };
    let is_end = |bytes: &[u8]| bytes.ends_with(&batch.end);
    let mut left = hear(stream, &mut bytes, silence, is_end);
    if left == Left::Silent {
        // Twice: the first answer may be given in the round in which our bytes are read.
        control.ask(&["PING"]);
        control.ask(&["PING"]);
        left = hear(stream, &mut bytes, Duration::from_millis(1), is_end);
        if left == Left::Silent {
            left = Left::Waiting;
        }
    }
    Said { bytes, left }
}

/// The side with lockward must come to where the direct side is. A connection beside it says less than that of the server,
/// since lockward reads several at once: whether it waits takes a look at the clock.
fn hear_proxied(stream: &mut TcpStream, batch: &Batch, direct: &Said, beside: &mut Control) -> Said {
    let mut bytes = Vec::new();
    let left = match direct.left {
        Left::Open => hear(stream, &mut bytes, LIMIT, |bytes| bytes.ends_with(&batch.end)),
        Left::Closed => hear(stream, &mut bytes, LIMIT, |_| false),
        // Before the client closes its half it must have heard what is due: lockward ends a waiting command at once then.
        Left::Waiting | Left::Silent => {
            let heard = hear(stream, &mut bytes, SHORTER, |bytes| bytes.len() >= direct.bytes.len());
            if heard == Left::Open {
                // All that is due is there, and it may be nothing: does it close then, or say more?
                beside.ask(&["PING"]);
                beside.ask(&["PING"]);
            }
            match heard {
                Left::Closed => Left::Closed,
                _ => match hear(stream, &mut bytes, AFTERWARDS, |_| false) {
                    Left::Closed => Left::Closed,
                    _ => Left::Waiting,
                },
            }
        }
    };
    Said { bytes, left }
}

/// Asks again until both servers hold the same, for a while; what they hold.
pub fn digests(controls: &mut [Control; 2]) -> [Vec<u8>; 2] {
    let begun = Instant::now();
    loop {
        let [one, other] = controls;
        let both = [one.digest(), other.digest()];
        if both[0] == both[1] || begun.elapsed() > Duration::from_secs(3) {
            return both;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
