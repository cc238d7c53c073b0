//! The way out: cuts the server's bytes into frames, pairs each with the request that it answers, and passes it on as
//! that request asked. Frames that answer nobody (pushes, messages, monitor lines) pass beside the queue.

use bytes::BytesMut;

use super::acknowledge::Said;
use super::pending::{Expect, Listing, Pending, Special};
use super::{HOLD_LIMIT, Session, Settled, Stage, filter};
use crate::event::Time;
use crate::resp::frame::{self, Leading};
use crate::resp::{Resp, encode, texts};

/// Bytes of an answer that are dealt with at once. Longer than any line that is waited for.
const PIECE: usize = super::BUFFER_LIMIT;

/// How the server says that it lets nobody in without a login.
pub(super) const NOAUTH: &[u8] = b"-NOAUTH";

/// Whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// It answers the request at the front.
    Front,
    /// It answers nobody.
    Nobody,
}

/// What happens to the bytes of the frame under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Between two frames.
    Idle,
    /// They go to the client.
    Pass(Whose),
    /// They go nowhere.
    Drop(Whose),
    /// They are kept until the frame is whole.
    Keep(Kept),
}

/// Why a frame is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Acknowledgement,
    Invalidation,
    Listing(Listing),
}

/// What the beginning of a frame led to.
pub(super) enum Begun {
    /// Its kind cannot be told yet.
    NeedMore,
    /// So many bytes are dealt with, and the sink for the rest is set.
    Took(usize),
}

/// The array of an EXEC under way.
pub(super) struct Elements {
    /// Which element is next.
    pub position: u64,
    /// How many there are in all.
    pub total: u64,
    /// How the element under way is read.
    pub current: Expect,
}

impl Session {
    /// Takes what it can of `input` and returns how many bytes that were.
    /// Stops where `limit` bytes wait for the client.
    pub(super) fn take_answers(&mut self, input: &[u8], limit: usize, now: Time) -> usize {
        if self.raw {
            self.to_downstream.extend_from_slice(input);
            return input.len();
        }
        let mut at = self.take_plain_answers(input, limit, now);
        while at < input.len() && self.to_downstream.len() < limit {
            if matches!(self.stage, Stage::Ended { .. }) {
                break;
            }
            let rest = input.get(at..).unwrap_or_default();
            if self.sink == Sink::Idle {
                match self.begin(rest, now) {
                    Begun::NeedMore => break,
                    Begun::Took(len) => at += len,
                }
                continue;
            }
            // No more than the client is about to be written, so that a long answer is not copied as a whole.
            let rest = rest.get(..PIECE).unwrap_or(rest);
            let Ok(step) = self.replies.scan(rest) else {
                // Not RESP: what came is shown as it is, and nothing can be paired any more.
                self.to_downstream.extend_from_slice(rest);
                self.end(false);
                return input.len();
            };
            self.consume(rest.get(..step.taken).unwrap_or_default());
            at += step.taken;
            if step.done {
                self.replies.next();
                self.finish_frame(now);
            } else if step.taken == 0 {
                break;
            }
            if self.sink == Sink::Idle {
                at += self.take_plain_answers(input.get(at..).unwrap_or_default(), limit, now);
            }
        }
        at
    }

    fn consume(&mut self, bytes: &[u8]) {
        match self.sink {
            Sink::Pass(_) => self.to_downstream.extend_from_slice(bytes),
            Sink::Keep(_) if self.kept.len() + bytes.len() > HOLD_LIMIT => self.overflow(),
            Sink::Keep(_) => self.kept.extend_from_slice(bytes),
            Sink::Drop(_) | Sink::Idle => {}
        }
    }

    /// A listing too long to be kept is answered with an error; nothing of it has gone out yet. An invalidation that
    /// long becomes one of everything. (No acknowledgement is: it repeats one argument of the client.)
    fn overflow(&mut self) {
        self.kept = BytesMut::new();
        if self.sink == Sink::Keep(Kept::Invalidation) {
            filter::invalidate_all(self.identity.resp, &mut self.to_downstream);
            self.sink = Sink::Drop(Whose::Nobody);
            return;
        }
        let mut line = BytesMut::new();
        encode::error(&mut line, texts::LISTING_TOO_LONG.as_bytes());
        self.say(&line);
        self.error = true;
        self.sink = Sink::Drop(Whose::Front);
    }

    /// How the next frame that answers somebody is read.
    pub(super) fn current(&self) -> Option<&Expect> {
        match &self.elements {
            Some(elements) => Some(&elements.current),
            None => self.pending.front().map(|pending| &pending.expect),
        }
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Expect> {
        match &mut self.elements {
            Some(elements) => Some(&mut elements.current),
            None => self.pending.front_mut().map(|pending| &mut pending.expect),
        }
    }

    fn begin(&mut self, rest: &[u8], now: Time) -> Begun {
        let Some(&kind) = rest.first() else {
            return Begun::NeedMore;
        };
        let push = kind == b'>';
        let listens = kind == b'*' && self.identity.resp == Resp::Two;
        if push || (listens && (self.subscriptions.any() || self.awaits_acknowledgement())) {
            match self.begin_beside(rest, push) {
                None => return Begun::NeedMore,
                Some(Some(sink)) => return self.sink_to(sink, 0),
                Some(None) => {}
            }
        }
        if self.monitoring && kind == b'+' {
            match rest.get(1) {
                None => return Begun::NeedMore,
                // A monitor line begins with the time; `+OK` and the like do not.
                Some(digit) if digit.is_ascii_digit() => {
                    let sink = if self.silence.hush() { Sink::Drop } else { Sink::Pass };
                    return self.sink_to(sink(Whose::Nobody), 0);
                }
                Some(_) => {}
            }
        }
        if kind == b'-' && rest.len() < NOAUTH.len() && NOAUTH.starts_with(rest) {
            return Begun::NeedMore;
        }
        self.error = matches!(kind, b'-' | b'!');
        // Believed for this client alone: a script can answer anything.
        self.asks_login |= rest.starts_with(NOAUTH);
        match self.current() {
            None => self.sink_to(Sink::Pass(Whose::Nobody), 0),
            Some(Expect::Forward) if !self.front_is_queued() => self.pass(),
            Some(_) => self.begin_special(rest, now),
        }
    }

    /// A frame that may answer nobody: `None` if that cannot be told yet, `Some(None)` if it is an ordinary answer.
    fn begin_beside(&self, rest: &[u8], push: bool) -> Option<Option<Sink>> {
        let said = match frame::leading_word(rest) {
            Leading::NeedMore => return None,
            Leading::Word { word, .. } => Said::from_word(word),
            Leading::Other { .. } => Said::Other,
        };
        let filters = self.policy.rules.any_enforce();
        Some(match said {
            // In the array of an EXEC a script's answer can look like one.
            Said::Acknowledgement if !push && self.elements.is_some() && !self.awaits_acknowledgement() => None,
            Said::Acknowledgement => Some(Sink::Keep(Kept::Acknowledgement)),
            Said::Message if filters && !push => match filter::is_redirected_invalidation(rest) {
                None => return None,
                Some(true) => Some(Sink::Keep(Kept::Invalidation)),
                Some(false) => Some(Sink::Pass(Whose::Nobody)),
            },
            Said::Invalidate if filters && push => Some(Sink::Keep(Kept::Invalidation)),
            Said::Message => Some(Sink::Pass(Whose::Nobody)),
            Said::Invalidate | Said::Other => push.then_some(Sink::Pass(Whose::Nobody)),
        })
    }

    pub(super) fn sink_to(&mut self, sink: Sink, took: usize) -> Begun {
        self.sink = sink;
        Begun::Took(took)
    }

    /// The answer to the front goes to the client as it is, unless the client wants to hear none.
    pub(super) fn pass(&mut self) -> Begun {
        let sink = if self.silence.hush() { Sink::Drop } else { Sink::Pass };
        self.sink_to(sink(Whose::Front), 0)
    }

    /// Says something of our own to the client, unless it wants to hear nothing.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        if !self.silence.hush() {
            self.to_downstream.extend_from_slice(bytes);
        }
    }

    /// Whether `+QUEUED` may be the answer to the front.
    pub(super) fn front_is_queued(&self) -> bool {
        let queues = || {
            self.pending
                .front()
                .is_some_and(|pending| !pending.bounds_transaction())
        };
        self.transaction.is_open() && self.elements.is_none() && queues()
    }

    fn finish_frame(&mut self, now: Time) {
        match std::mem::replace(&mut self.sink, Sink::Idle) {
            Sink::Idle | Sink::Pass(Whose::Nobody) | Sink::Drop(Whose::Nobody) => {}
            Sink::Pass(Whose::Front) | Sink::Drop(Whose::Front) => self.finish_front(now),
            Sink::Keep(kept) => self.finish_kept(kept, now),
        }
        if self.pending.has_specials() {
            self.settle_unanswered();
        }
    }

    fn finish_kept(&mut self, kept: Kept, now: Time) {
        let frame = std::mem::take(&mut self.kept);
        match kept {
            Kept::Acknowledgement => {
                let last = self.acknowledge(&frame);
                self.to_downstream.extend_from_slice(&frame);
                if last {
                    self.finish_front(now);
                }
            }
            Kept::Invalidation => {
                let rules = &self.policy.rules;
                filter::invalidation(&frame, |key| rules.is_record(key), &mut self.to_downstream);
            }
            Kept::Listing(listing) => {
                let rules = &self.policy.rules;
                if !self.silence.hush() {
                    filter::listing(listing, &frame, |key| rules.is_record(key), &mut self.to_downstream);
                }
                self.finish_front(now);
            }
        }
    }

    /// The answer under way is complete: the next element of the array, or the next request.
    pub(super) fn finish_front(&mut self, now: Time) {
        if let Some(elements) = &mut self.elements {
            elements.position += 1;
            if elements.position < elements.total {
                elements.current = self
                    .transaction
                    .take(elements.position)
                    .map_or(Expect::Forward, Expect::Special);
                return;
            }
            self.elements = None;
            self.error = false;
            self.transaction = Default::default();
        }
        if let Some(done) = self.pending.pop() {
            self.stayed(&done, now);
            self.settle(&done, now);
        }
        if self.pending.is_empty() {
            // Nothing is under way: what we believed of the server is what it has said.
            self.in_transaction = self.transaction.is_open();
        }
    }

    fn settle(&mut self, done: &Pending, now: Time) {
        if matches!(&done.expect, Expect::Special(special) if special.is_question_of_ours()) {
            return;
        }
        self.silence.command_over();
        self.note_settled(done, now);
    }

    pub(super) fn note_settled(&mut self, done: &Pending, now: Time) {
        let micros = |from: Time| u32::try_from(now.since(from)).unwrap_or(u32::MAX);
        let settled = Settled {
            command: done.command,
            error: self.error,
            lock: done.lock,
            count: done.count,
            request_us: micros(done.received),
            upstream_us: micros(done.sent),
        };
        match self.settled.last_mut() {
            Some(last) if last.is_like(&settled) => last.count += settled.count,
            _ => self.settled.push(settled),
        }
    }

    /// What needs no frame from the server leaves as soon as its turn has come.
    pub(super) fn settle_unanswered(&mut self) {
        if self.elements.is_some() || self.sink != Sink::Idle {
            return;
        }
        while let Some(Expect::Special(special)) = self.pending.front().map(|pending| &pending.expect) {
            match &**special {
                Special::LastWords(bytes) => {
                    let bytes = bytes.clone();
                    self.say(&bytes);
                }
                Special::Shielded(spelling) => {
                    let spelling = *spelling;
                    self.say_shielded(spelling);
                    continue;
                }
                Special::Blank => {}
                _ => return,
            }
            self.pending.pop();
            self.silence.command_over();
        }
    }
}
