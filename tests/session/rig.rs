//! A client and a server made of a test's own lines, with one session between them. Commands are written as words,
//! replies as bytes in which `|` stands for the line end. No sockets, no clock.

use std::sync::Arc;

use lockward::event::{ConnectionId, Time, Token};
use lockward::lock::rule::{Mode, Rule};
use lockward::session::{Next, Notice, Peer, Policy, Session};
use uuid::Uuid;

/// What goes over the wire in the tests' notation.
pub fn wire(text: &str) -> Vec<u8> {
    text.replace('|', "\r\n").into_bytes()
}

/// The same backwards, for failures that can be read.
pub fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "|")
}

/// A request of these words.
pub fn command(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// One request for each line.
pub fn pipeline(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| command(line)).collect()
}

pub fn policy(mode: Mode) -> Arc<Policy> {
    policy_of(Rule {
        mode,
        ..Rule::new("lock:*")
    })
}

pub fn policy_of(rule: Rule) -> Arc<Policy> {
    Arc::new(Policy::new(vec![rule], "lockward:", || Token(Uuid::from_u128(7))))
}

pub fn session(policy: Arc<Policy>) -> Session {
    let connection = ConnectionId {
        instance: "0123456789abcdef".into(),
        number: 1,
    };
    let peer = Peer {
        address: Some("10.0.0.7".parse().expect("an address")),
        process: None,
    };
    Session::new(policy, connection, peer)
}

/// The session, and the clock of its driver.
pub struct Rig {
    pub session: Session,
    now: u64,
    /// What the server says comes in packets of so many bytes.
    pieces: usize,
}

impl Rig {
    /// No lock rule is in force.
    pub fn plain() -> Rig {
        Rig::new(Mode::Off)
    }

    /// `lock:*` are locks.
    pub fn enforce() -> Rig {
        Rig::new(Mode::Enforce)
    }

    pub fn new(mode: Mode) -> Rig {
        Rig::with(policy(mode))
    }

    pub fn with(policy: Arc<Policy>) -> Rig {
        Rig {
            session: session(policy),
            now: 0,
            pieces: usize::MAX,
        }
    }

    pub fn in_pieces_of(mut self, bytes: usize) -> Rig {
        self.pieces = bytes;
        self
    }

    pub fn now(&mut self) -> Time {
        self.now += 1;
        Time(self.now)
    }

    /// Bytes of the client.
    pub fn sends_bytes(&mut self, bytes: &[u8]) {
        let now = self.now();
        self.session.receive_downstream(bytes, now);
    }

    /// The client sends these commands in one packet.
    pub fn sends(&mut self, lines: &[&str]) {
        self.sends_bytes(&pipeline(lines));
    }

    pub fn server_bytes(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.pieces) {
            let now = self.now();
            self.session.receive_upstream(piece, now);
        }
    }

    /// The server answers.
    pub fn server(&mut self, reply: &str) {
        self.server_bytes(&wire(reply));
    }

    /// Whether bytes from the client and from the server are welcome.
    pub fn reads(&self) -> (bool, bool) {
        match self.session.next() {
            Next::Wait {
                read_downstream,
                read_upstream,
            } => (read_downstream, read_upstream),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_upstream(&mut self) -> Vec<u8> {
        let bytes = self.session.to_upstream.split().to_vec();
        let now = self.now();
        self.session.advance(now);
        bytes
    }

    pub fn take_downstream(&mut self) -> Vec<u8> {
        let bytes = self.session.to_downstream.split().to_vec();
        let now = self.now();
        self.session.advance(now);
        bytes
    }

    /// The server has got exactly these commands since it was looked at last.
    #[track_caller]
    pub fn server_got(&mut self, lines: &[&str]) {
        let got = self.take_upstream();
        assert_eq!(readable(&got), readable(&pipeline(lines)));
    }

    /// The client has heard exactly this since it was looked at last.
    #[track_caller]
    pub fn heard(&mut self, expected: &str) {
        let heard = self.take_downstream();
        assert_eq!(readable(&heard), expected);
    }

    /// The client sends one command, the server gets it as it is, the client hears the server's answer as it is.
    #[track_caller]
    pub fn passes(&mut self, line: &str, reply: &str) {
        self.sends(&[line]);
        self.server_got(&[line]);
        self.server(reply);
        self.heard(reply);
    }

    /// Nothing that matters is under way, and nobody looks at what was said so far: the next command and its answer belong
    /// together.
    #[track_caller]
    pub fn is_in_step(&mut self) {
        self.take_upstream();
        self.take_downstream();
        self.session.settled.clear();
        self.passes("ECHO in-step", "$7|in-step|");
        assert_eq!(self.session.settled.len(), 1, "one command is settled by one answer");
        assert_eq!(self.session.to_downstream.len() + self.session.to_upstream.len(), 0);
    }

    #[track_caller]
    pub fn is_over(&self) {
        assert_eq!(self.session.next(), Next::Close);
    }

    #[track_caller]
    pub fn goes_on(&self) {
        assert!(
            matches!(self.session.next(), Next::Wait { .. }),
            "{:?}",
            self.session.next()
        );
    }

    /// The name and the error flag of every command settled since the last look.
    pub fn settled(&mut self) -> Vec<(&'static str, bool)> {
        let name = lockward::command::name;
        self.session
            .settled
            .drain(..)
            .flat_map(|done| vec![(name(done.command), done.error); done.count as usize])
            .collect()
    }

    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.session.notices)
    }
}
