//! The network of one run: one-way pipes that split bytes, delay them, and carry ends of stream and resets. Order within
//! a pipe is kept; between pipes it is whatever the delays make of it.

use std::collections::VecDeque;

use crate::rng::Rng;

/// Where a pipe ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A client's connection, by number.
    Client(usize),
    /// The client's side of a session: proxy and session.
    Downstream(usize, u64),
    /// The server's side of a session.
    Upstream(usize, u64),
    /// A proxy's own connection, and which of those that it had.
    Own(usize, u64),
    /// A connection of the server.
    Server(u64),
}

#[derive(Clone, Debug)]
pub enum Packet {
    Data(Vec<u8>),
    /// End of stream: no more comes, answers may still go back.
    Fin,
    /// Both directions are over.
    Reset,
}

pub struct Pipe {
    pub to: End,
    packets: VecDeque<(u64, Packet)>,
    /// Nothing arrives before what was sent before it.
    last: u64,
    /// The far end does not read for now.
    pub held: bool,
    over: bool,
}

/// How the network behaves, from run to run and from time to time.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Longest usual delay in microseconds.
    pub delay_us: u64,
    /// Bytes are split into pieces in so many cases of a hundred.
    pub split_percent: u64,
    /// One packet in so many is late by up to a second.
    pub stall_one_in: u64,
}

impl Pipe {
    pub fn new(to: End) -> Pipe {
        Pipe {
            to,
            packets: VecDeque::new(),
            last: 0,
            held: false,
            over: false,
        }
    }

    /// Sends bytes; returns when each piece arrives.
    pub fn send(&mut self, bytes: &[u8], now: u64, weather: &Weather, rng: &mut Rng) -> Vec<u64> {
        let mut times = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() && !self.over {
            let mut len = rest.len();
            if len > 1 && rng.percent(weather.split_percent) {
                let most = if rng.percent(50) { 4 } else { usize::MAX };
                len = rng.between(1, (len - 1).min(most) as u64) as usize;
            }
            let (piece, behind) = rest.split_at(len);
            times.push(self.push(Packet::Data(piece.to_vec()), now, weather, rng));
            rest = behind;
        }
        times
    }

    /// Ends the stream, in order behind what was sent.
    pub fn finish(&mut self, now: u64, weather: &Weather, rng: &mut Rng) -> Option<u64> {
        if self.over {
            return None;
        }
        let at = self.push(Packet::Fin, now, weather, rng);
        self.over = true;
        Some(at)
    }

    /// Breaks the stream; what is under way is lost or not.
    pub fn reset(&mut self, now: u64, weather: &Weather, rng: &mut Rng) -> Option<u64> {
        if rng.percent(50) {
            self.packets.clear();
        }
        self.over = false;
        let at = self.push(Packet::Reset, now, weather, rng);
        self.over = true;
        Some(at)
    }

    fn push(&mut self, packet: Packet, now: u64, weather: &Weather, rng: &mut Rng) -> u64 {
        let mut delay = rng.between(20, weather.delay_us);
        if rng.one_in(weather.stall_one_in) {
            delay += rng.below(1_000_000);
        }
        self.last = self.last.max(now + delay);
        self.packets.push_back((self.last, packet));
        self.last
    }

    /// The next packet, if it has arrived.
    pub fn receive(&mut self, now: u64) -> Option<Packet> {
        let arrived = self.packets.front().is_some_and(|(at, _)| *at <= now);
        if arrived {
            self.packets.pop_front().map(|(_, packet)| packet)
        } else {
            None
        }
    }

    /// When the packets under way arrive.
    pub fn times(&self) -> Vec<u64> {
        self.packets.iter().map(|(at, _)| *at).collect()
    }
}
