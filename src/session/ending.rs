//! How a session ends: who may still be heard, when everything due has been delivered, what the driver does next. Takes
//! no request and reads no answer.

use std::mem;

use bytes::BytesMut;

use super::answers::{Kept, Sink};
use super::pending::{Expect, Special};
use super::{BUFFER_LIMIT, ClientEnd, STREAM_FROM, Session, Stage};
use crate::event::{Event, Time};

/// How soon it has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Leaving {
    /// Nobody asked for that.
    #[default]
    No,
    /// As soon as nothing is under way.
    Soon,
    /// At the next command boundary.
    Now,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for the sockets.
    Wait {
        /// Whether bytes from the client are welcome.
        read_downstream: bool,
        /// Whether bytes from the server are welcome.
        read_upstream: bool,
    },
    /// Write what is left to the client, then close both.
    Close,
    /// Close the upstream connection at once, then both: a blocked command must not swallow an element.
    Abort,
}

impl Session {
    /// The client sends no more: end of stream. Answers due are still delivered, unless a command blocks.
    pub fn downstream_ended(&mut self, now: Time) {
        self.client_ended = ClientEnd::Silent;
        if self.stage == Stage::Open {
            self.stage = Stage::Draining;
            self.advance_requests(now);
        }
        if mem::take(&mut self.streaming) {
            // The rest of that request will never come, so the server will never answer it.
            self.pending.pop_youngest();
        }
        if self.pending.blocks() {
            self.end(true);
        }
    }

    /// The client is gone: reset, or cannot be written to.
    pub fn downstream_lost(&mut self) {
        self.client_ended = ClientEnd::Silent;
        self.lost = true;
        self.forget_if_lost();
        if self.pending.blocks() || !self.pending.awaits_grant() {
            return self.end(true);
        }
        // A grant may be on its way that nobody will hear of.
        self.turn_deaf();
    }

    /// Nobody is left to be written to.
    pub(super) fn forget_if_lost(&mut self) {
        if self.lost {
            self.to_downstream = BytesMut::new();
        }
    }

    /// So many bytes of [`Session::to_downstream`] were written to the client.
    pub fn wrote_downstream(&mut self, bytes: usize) {
        self.unheard.wrote(bytes);
    }

    /// The grants whose answers were never written to the client, once the session is over.
    pub fn unheard(&mut self) -> Vec<Event> {
        self.unheard.take()
    }

    /// The server closed or reset its side. What it sent before is still delivered.
    pub fn upstream_ended(&mut self) {
        // Everything now, however much waits for the client already: nothing will follow.
        self.advance_answers(usize::MAX, self.heard);
        let rest = mem::take(&mut self.answers);
        let kept = mem::take(&mut self.kept);
        // A cut-off answer goes out as it came: that is what a direct connection would show. Not so if it is to a
        // question of ours, or may name record keys.
        let shown = match self.sink {
            Sink::Idle => !self.silence.hush() && !self.is_ours(),
            Sink::Pass(_) | Sink::Keep(Kept::Acknowledgement) => true,
            Sink::Drop(_) | Sink::Keep(Kept::Invalidation | Kept::Listing(_)) => false,
        };
        if shown {
            self.to_downstream.extend_from_slice(&kept);
            self.to_downstream.extend_from_slice(&rest);
        }
        self.end(false);
    }

    /// Whether the next answer is not, or not all, meant for the client.
    fn is_ours(&self) -> bool {
        let Some(Expect::Special(special)) = self.current() else {
            return false;
        };
        matches!(
            **special,
            Special::Script(_)
                | Special::Reconcile(_)
                | Special::Replace { .. }
                | Special::Switch(_)
                | Special::LoginProbe(_)
                | Special::Mute
                | Special::Look(_)
                | Special::Ours
        )
    }

    /// Asks for an end as soon as nothing is under way: what the client sends until then is served. Blocked, subscribed and
    /// monitoring clients end at once.
    pub fn leave_soon(&mut self) {
        self.leaving = self.leaving.max(Leaving::Soon);
        self.held = false;
    }

    /// Asks for an end at the next command boundary: what was read of the client is served, and no more is read. Blocked,
    /// subscribed and monitoring clients end at once.
    pub fn leave(&mut self) {
        self.leaving = Leaving::Now;
        self.held = false;
    }

    /// Whether the end was asked for.
    pub fn is_leaving(&self) -> bool {
        self.leaving != Leaving::No
    }

    /// Whether an end would come at once, whatever the client is about to send: a command of it blocks, or it only listens.
    pub fn leaves_at_once(&self) -> bool {
        self.pending.blocks() || self.listens()
    }

    /// Whether anything of the client is under way.
    pub fn is_asking(&self) -> bool {
        !self.pending.is_empty() || !self.requests.is_empty() || self.in_transaction
    }

    /// Messages or lines come to it unasked, or nobody knows what.
    fn listens(&self) -> bool {
        self.subscriptions.any() || self.monitoring || self.raw
    }

    /// Whether the client wanted the end: it said QUIT, or sends no more.
    pub fn was_ended_by_client(&self) -> bool {
        self.client_ended != ClientEnd::No
    }

    /// Whether a command is under way that may wait for ever, so that a client that hangs up must be noticed even while
    /// nothing is read from it.
    pub fn is_blocked(&self) -> bool {
        self.pending.blocks()
    }

    /// Whether the client is due nothing, now or later: no answer, no message, no monitor line.
    pub fn waits_for_nothing(&self) -> bool {
        // A part of a request, whose rest does not come, is nothing to wait for.
        let asks = !self.pending.is_empty() || self.wants().is_some() || self.waits();
        !asks && !self.listens() && self.to_downstream.is_empty()
    }

    /// Ends a client that waits for nothing. A transaction that it has begun, or a request, is given up with it.
    pub fn idle_for_too_long(&mut self) {
        self.end(self.in_transaction);
    }

    /// When the server was last heard.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// What the driver does next.
    pub fn next(&self) -> Next {
        let blocks = self.pending.blocks();
        match self.stage {
            Stage::Ended { abort: true } => return Next::Abort,
            Stage::Ended { abort: false } => return Next::Close,
            // It may have begun to block only now: what came before it had to be answered first.
            Stage::Draining if blocks && self.client_ended == ClientEnd::Silent => return Next::Abort,
            // What it sent before its end may wait for another connection still.
            Stage::Draining if self.is_settled() && self.wants().is_none() && !self.keeps_waiting() => {
                return Next::Close;
            }
            Stage::Open | Stage::Draining if self.is_leaving() && blocks => return Next::Abort,
            Stage::Open if self.is_leaving() && self.may_end() => return Next::Close,
            Stage::Open | Stage::Draining => {}
        }
        Next::Wait {
            read_downstream: self.hears(),
            read_upstream: self.to_downstream.len() < BUFFER_LIMIT,
        }
    }

    /// Whether bytes from the client are welcome. Those of a client that may say nothing more are thrown away, but its
    /// end must be noticed.
    pub fn hears(&self) -> bool {
        if self.client_ended == ClientEnd::Silent || matches!(self.stage, Stage::Ended { .. }) {
            return false;
        }
        self.deaf
            || (!self.is_held()
                && (self.leaving != Leaving::Now || self.streaming || self.in_transaction)
                && self.to_upstream.len() < BUFFER_LIMIT
                && self.pending.has_room()
                && self.line_has_room()
                && !((self.held_back() || self.wants_line() || self.waits()) && self.requests.len() >= STREAM_FROM))
    }

    /// What comes is not looked at before the answers due have come.
    pub(super) fn held_back(&self) -> bool {
        self.gated && !self.pending.is_empty()
    }

    /// No request is half sent, no transaction half queued, and what was read is served, but for a part of a request: its
    /// rest is waited for only as long as more is read.
    fn may_end(&self) -> bool {
        let served = self.requests.is_empty() || (self.leaving == Leaving::Now && !self.wants_line() && !self.waits());
        served && !self.streaming && !self.in_transaction && self.is_settled()
    }

    fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.to_upstream.is_empty() && matches!(self.sink, Sink::Idle)
    }

    pub(super) fn end(&mut self, abort: bool) {
        if !matches!(self.stage, Stage::Ended { .. }) {
            self.stage = Stage::Ended { abort };
        }
    }

    /// Takes no request any more; what was sent is still answered.
    pub(super) fn turn_deaf(&mut self) {
        self.deaf = true;
        self.wants_nothing();
        self.stage = Stage::Draining;
    }

    /// The time of the youngest request begins now, for the metrics.
    pub(super) fn stamp_youngest(&mut self, now: Time) {
        if let Some(youngest) = self.pending.youngest_mut() {
            youngest.received = now;
            youngest.sent = now;
        }
    }
}
