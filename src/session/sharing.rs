//! Shared upstream connections, seen from one client: whether its next request may go out on a connection that other
//! clients use too, when it needs one of its own, when it may give that up again, and what a new one has to be told
//! first. A client is the only one to wait for the moves: nothing of it is under way when it moves. Knows no socket.

use bytes::{Bytes, BytesMut};

use super::answers::Sink;
use super::identity::Login;
use super::pending::{Expect, Pending, Special};
use super::{BUFFER_LIMIT, Session, Stage};
use crate::command::{self, CommandId, Row, Stay};
use crate::event::Time;
use crate::resp::{Args, Resp, encode};

/// Answers due to one client on a shared connection, above which nothing more of it is sent: what it does not read has
/// to be kept for it, since the others' answers come behind.
pub const SHARED_PENDING_LIMIT: usize = 64;
/// Bytes of answers that a client may have under way, by the size of those that came before.
const ANSWERS_LIMIT: usize = 4 * 1024 * 1024;
/// The size of an answer of a client of whom nothing is known, in bytes.
const UNKNOWN_ANSWER: usize = 512 * 1024;
/// Plain requests taken in a row on a connection of the client's own, before the limits are looked at again.
const RUN_LIMIT: usize = super::PENDING_LIMIT;
/// So long a client is quiet, in microseconds, before it gives up a connection that it needed for a while.
const QUIET: u64 = 1_000_000;

/// Which connection to the server a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    /// One of its own.
    #[default]
    Own,
    /// One that it shares.
    Shared,
    /// None for now.
    None,
}

/// Which clients can share a connection: those for whom the server would do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Whom they have logged in as; `None`: they have not.
    pub user: Option<Bytes>,
    /// The database.
    pub database: u32,
    /// The protocol.
    pub resp: Resp,
}

/// What has to be said on a new connection before the client's next request, and how many answers come.
#[derive(Debug, Default)]
pub struct Handshake {
    /// The commands.
    pub bytes: BytesMut,
    /// How many they are.
    pub commands: usize,
}

/// Where this client stands.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// Whether it may share at all.
    allowed: bool,
    line: Line,
    /// The connection that its next request needs.
    wants: Option<Line>,
    /// It may have written through another connection than the one that it has.
    wrote_elsewhere: bool,
    /// How long it stays on its own, and when that was last found.
    stay: Option<(Stay, Time)>,
    /// It may be watching keys.
    watches: bool,
    /// Answers due for what was put into `to_upstream` since the shell last asked.
    asked: u32,
    /// The size of the client's answers of late, in bytes; the large ones count for more.
    answer: Option<usize>,
    /// Bytes of the answer that is coming.
    coming: usize,
}

impl Sharing {
    /// How many answers may be due.
    fn window(&self) -> usize {
        let answer = self.answer.unwrap_or(UNKNOWN_ANSWER);
        (ANSWERS_LIMIT / answer.max(1)).clamp(1, SHARED_PENDING_LIMIT)
    }
}

impl Session {
    pub(super) fn shares(&self) -> bool {
        self.sharing.allowed
    }

    /// From here on this client shares connections where it can. Until [`moved`](Self::moved) says otherwise it has none.
    pub fn share(&mut self) {
        self.sharing.allowed = true;
        self.sharing.line = Line::None;
    }

    /// Which connection it has.
    pub fn line(&self) -> Line {
        self.sharing.line
    }

    /// The connection that the client needs before anything else of it can be sent; `None`: it has what it needs, or has
    /// to wait for answers first.
    pub fn wants(&self) -> Option<Line> {
        let ready = self.pending.is_empty() && !matches!(self.stage, Stage::Ended { .. });
        self.sharing.wants.filter(|_| ready && !self.is_held())
    }

    /// The client has got another connection, or lost the one that it had. [`advance`](Self::advance) goes on with what
    /// waited for it.
    pub fn moved(&mut self, line: Line) {
        self.sharing.wrote_elsewhere |= self.sharing.line == Line::Shared;
        self.sharing.line = line;
        self.sharing.wants = None;
        // What was asked on a connection of its own needs no count.
        self.sharing.asked = 0;
    }

    /// Where it belongs while it shares.
    pub fn pool(&self) -> Pool {
        Pool {
            user: self.identity.login.as_ref().map(|login| login.user.clone()),
            database: self.identity.database,
            resp: self.identity.resp,
        }
    }

    /// How many answers are due for what was put into `to_upstream` since the last call. On a shared connection each
    /// request has exactly one.
    pub fn take_asked(&mut self) -> u32 {
        std::mem::take(&mut self.sharing.asked)
    }

    /// The server asks for a login that this client has not made.
    pub fn must_log_in(&mut self) {
        self.asks_login = true;
        self.limits();
    }

    /// Whether [`advance`](Self::advance) may have anything to do.
    pub fn goes_on(&self) -> bool {
        !self.requests.is_empty() || !self.answers.is_empty() || !self.to_upstream.is_empty()
    }

    /// Bytes that the client has not read yet.
    pub fn held_for_client(&self) -> usize {
        self.to_downstream.len() + self.answers.len() + self.kept.len()
    }

    /// Bytes of the client, and for it, that lie here: what it sent and is not passed on, what it has not read, and what
    /// its answers due are to be read by.
    pub fn held(&self) -> usize {
        let sent = self.requests.len() + self.to_upstream.len();
        sent + self.held_for_client() + self.pending.weight() + self.transaction.weight()
    }

    /// What a new connection has to be told so that the server sees this client there. An error to any of it means that
    /// the client is not who it was any more.
    pub fn handshake(&self) -> Handshake {
        let mut handshake = Handshake::default();
        let mut say = |words: &[&[u8]]| {
            encode::command(&mut handshake.bytes, words.iter().copied());
            handshake.commands += 1;
        };
        if let Some(Login { user, password }) = &self.identity.login {
            say(&[b"AUTH", user.as_ref(), password.as_ref()]);
        }
        if self.identity.resp == Resp::Three {
            say(&[b"HELLO", b"3"]);
        }
        if self.identity.database != 0 {
            say(&[b"SELECT", self.identity.database.to_string().as_bytes()]);
        }
        if !self.identity.name.is_empty() {
            say(&[b"CLIENT", b"SETNAME", &self.identity.name]);
        }
        handshake
    }

    /// Whether a client with a connection of its own can do without: nothing is under way, and no state is left behind.
    pub fn may_share(&self, now: Time) -> bool {
        let quiet = match self.sharing.stay {
            None | Some((Stay::Moment, _)) => true,
            Some((Stay::While, since)) => now.since(since) >= QUIET,
            Some((Stay::Always | Stay::BeyondReset, _)) => false,
        };
        quiet && self.sharing.allowed && self.sharing.line == Line::Own && self.is_stateless()
    }

    /// Whether another connection would do as well as this one of its own, for what has not been sent yet too.
    pub(super) fn leaves_no_state(&self) -> bool {
        let made = self.sharing.stay.map(|(stay, _)| stay);
        made.is_none_or(|stay| stay <= Stay::While) && self.is_without_state()
    }

    fn is_stateless(&self) -> bool {
        self.requests.is_empty() && self.is_without_state()
    }

    fn is_without_state(&self) -> bool {
        let idle = self.stage == Stage::Open && self.pending.is_empty() && self.sink == Sink::Idle && !self.streaming;
        let empty = self.to_upstream.is_empty() && self.answers.is_empty();
        let stranger = self.asks_login && !self.logged_in;
        let state = self.raw
            || self.monitoring
            || self.deaf
            || self.in_transaction
            || self.transaction.is_open()
            || self.sharing.watches
            || self.subscriptions.any()
            || !self.silence.is_off();
        idle && empty && !stranger && !state
    }

    /// Nothing more of the client is sent.
    pub(super) fn wants_nothing(&mut self) {
        self.sharing.wants = None;
    }

    pub(super) fn wants_line(&self) -> bool {
        self.sharing.wants.is_some()
    }

    pub(super) fn has_own_line(&self) -> bool {
        self.sharing.line == Line::Own
    }

    /// Whether one more request of this client may be sent on the connection that it has.
    pub(super) fn line_has_room(&self) -> bool {
        self.has_own_line()
            || (self.pending.len() < self.sharing.window()
                && self.to_downstream.len() + self.answers.len() < BUFFER_LIMIT)
    }

    /// Whether this request may go out on the connection that the client has; if not, which one it needs is noted.
    /// `canonical`: the request is whole, and no server can read it in another way.
    pub(super) fn fits_line(&mut self, row: Option<&Row>, args: Args<'_>, canonical: bool, now: Time) -> bool {
        if !self.sharing.allowed {
            // What it leaves behind there counts all the same, should that connection be lost.
            if let Some(stay) = command::stay(row, args) {
                self.stay(stay, now);
            }
            return true;
        }
        let stranger = self.asks_login && !self.logged_in;
        let stay = match command::stay(row, args) {
            None if !canonical || stranger => Some(Stay::While),
            stay => stay,
        };
        match (self.sharing.line, stay) {
            (Line::Shared | Line::Own, None) => return true,
            (Line::None, None) => self.sharing.wants = Some(Line::Shared),
            (Line::Shared | Line::None, Some(_)) => self.sharing.wants = Some(Line::Own),
            (Line::Own, Some(stay)) => {
                self.stay(stay, now);
                if command::asks_for_own_writes(row) {
                    self.write_here(now);
                }
                return true;
            }
        }
        false
    }

    /// `WAIT` waits for the writes of its own connection. Where the client wrote through another one, this one gets
    /// writes that come behind all of those, and leave nothing that the client could find. (Valkey 9.1 counts nothing
    /// less; measured.)
    fn write_here(&mut self, now: Time) {
        if self.in_transaction || !std::mem::take(&mut self.sharing.wrote_elsewhere) {
            return;
        }
        let key = format!("{}{{wait}}", self.policy.prefix);
        let write: [&[u8]; 5] = [b"SET", key.as_bytes(), b"", b"PX", b"1"];
        encode::command(&mut self.to_upstream, write);
        encode::command(&mut self.to_upstream, [b"DEL", key.as_bytes()]);
        for _ in 0..2 {
            self.push(Pending::new(
                CommandId::OTHER,
                Expect::Special(Box::new(Special::Ours)),
                now,
            ));
        }
    }

    fn stay(&mut self, stay: Stay, now: Time) {
        let longest = self.sharing.stay.map_or(stay, |(before, _)| before.max(stay));
        self.sharing.stay = Some((longest, now));
    }

    /// A command was answered: one that made state keeps the client here a while longer.
    pub(super) fn stayed(&mut self, done: &Pending, now: Time) {
        if let Some((_, since)) = &mut self.sharing.stay
            && !done.lock
            && (done.special || done.waits)
        {
            *since = now;
        }
    }

    /// What state the connection has nobody can say.
    pub(super) fn stay_for_ever(&mut self) {
        self.stay(Stay::Always, self.heard);
    }

    /// `RESET` was done.
    pub(super) fn state_is_gone(&mut self) {
        self.sharing.stay = self.sharing.stay.filter(|(stay, _)| *stay == Stay::BeyondReset);
    }

    pub(super) fn watches_something(&mut self) {
        self.sharing.watches = true;
    }

    pub(super) fn watches_no_more(&mut self) {
        self.sharing.watches = false;
    }

    /// Bytes came, and so many answers became whole by them.
    pub(super) fn measure(&mut self, bytes: usize, answers: usize) {
        let sharing = &mut self.sharing;
        sharing.coming += bytes;
        if let Some(size) = sharing.coming.checked_div(answers) {
            sharing.coming = 0;
            let before = sharing.answer.unwrap_or(UNKNOWN_ANSWER);
            sharing.answer = Some(size.max(before / 2));
        }
    }

    /// An answer will be due.
    pub(super) fn ask(&mut self, pending: &Pending) {
        let answered_here = matches!(&pending.expect, Expect::Special(special) if matches!(**special, Special::LastWords(_) | Special::Shielded(_) | Special::Blank));
        if !answered_here {
            self.asked(1);
        }
    }

    /// So many more answers will be due.
    pub(super) fn asked(&mut self, answers: usize) {
        // On a connection of its own nobody asks.
        if !self.has_own_line() {
            self.sharing.asked += answers as u32;
        }
    }

    /// Whether plain requests may go out on the connection that the client has.
    pub(super) fn plain_line(&self) -> bool {
        match self.sharing.line {
            Line::Own => !self.sharing.allowed || !self.asks_login || self.logged_in,
            Line::Shared => !self.asks_login || self.logged_in,
            Line::None => false,
        }
    }

    /// How many plain requests may be sent in a row.
    pub(super) fn room_in_run(&self) -> usize {
        let limit = if self.has_own_line() {
            RUN_LIMIT
        } else {
            self.sharing.window()
        };
        limit.saturating_sub(self.pending.len())
    }
}
