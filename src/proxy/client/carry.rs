//! Bytes between a client's sockets and its session: for each wake-up one read of all that is there, and one write in each
//! direction. Decides nothing about commands or locks.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};

use super::{Client, Upstream};
use crate::metrics::{Direction, Side};
use crate::proxy::stream::Stream;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// An empty buffer larger than this is given back.
const KEEP_CAPACITY: usize = 4 * 1024;
/// Room for so many settled commands may be kept.
const KEEP_SETTLED: usize = 64;

thread_local! {
    // One read buffer for each worker thread, not for each connection: an idle client holds none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into_boxed_slice());
}

/// Lends the thread's read buffer. Not to be nested.
pub(in crate::proxy) fn with_scratch<T>(use_it: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| use_it(scratch))
}

/// How far a buffer was written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Moved {
    /// Nothing, or everything that there was.
    Done,
    /// The socket takes no more for now.
    Full,
    /// The peer is gone.
    Gone,
}

impl Client {
    /// Reads what the client sent. Pending: nothing is there, and the task is woken when something is.
    pub(super) fn read_downstream(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = &mut self.downstream else {
            return Poll::Pending;
        };
        let (worker, session) = (&self.worker, &mut self.session);
        let shared = &worker.shared;
        with_scratch(|scratch| match stream.poll_read(cx, scratch) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => {
                session.downstream_ended(shared.now());
                Poll::Ready(())
            }
            Poll::Ready(Ok(len)) => {
                worker.with_policy(self.listener, |policy| session.adopt(policy));
                shared.moved(Side::Downstream, Direction::In, len);
                let now = shared.now();
                self.active = now;
                session.receive_downstream(scratch.get(..len).unwrap_or_default(), now);
                Poll::Ready(())
            }
            Poll::Ready(Err(_)) => {
                session.downstream_lost();
                Poll::Ready(())
            }
        })
    }

    /// Reads what the server said on this client's own connection.
    pub(super) fn read_upstream(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Upstream::Own(own) = &mut self.upstream else {
            return Poll::Pending;
        };
        let (shared, session) = (&self.worker.shared, &mut self.session);
        let read = with_scratch(|scratch| match own.stream.poll_read(cx, scratch) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(false),
            Poll::Ready(Ok(len)) => {
                shared.moved(Side::Upstream, Direction::In, len);
                session.receive_upstream(scratch.get(..len).unwrap_or_default(), shared.now());
                Poll::Ready(true)
            }
        });
        read.map(|open| {
            if !open && !self.outlives_own() {
                self.session.upstream_ended();
            }
        })
    }

    /// Writes out both buffers, as far as the sockets take it, and lets the session go on where that made room.
    pub(super) fn write(&mut self) {
        loop {
            // Whoever keeps leases hears of a grant before its client can act on it.
            self.hand_over();
            let before = (self.session.to_upstream.len(), self.session.to_downstream.len());
            if before == (0, 0) {
                return;
            }
            self.write_upstream();
            if let Some(stream) = &self.downstream
                && let Moved::Gone = flush(stream, &mut self.session.to_downstream)
            {
                let unwritten = self.session.to_downstream.len();
                self.session.wrote_downstream(before.1 - unwritten);
                return self.session.downstream_lost();
            }
            let after = (self.session.to_upstream.len(), self.session.to_downstream.len());
            if before == after {
                return;
            }
            // What went to a trunk is counted there.
            if before.0 > after.0 && self.has_own() {
                self.worker
                    .shared
                    .moved(Side::Upstream, Direction::Out, before.0 - after.0);
            }
            if before.1 > after.1 {
                self.worker
                    .shared
                    .moved(Side::Downstream, Direction::Out, before.1 - after.1);
                self.session.wrote_downstream(before.1 - after.1);
            }
            if !self.session.goes_on() {
                return;
            }
            self.session.advance(self.worker.shared.now());
        }
    }

    fn write_upstream(&mut self) {
        match &self.upstream {
            Upstream::Own(own) => {
                if let Moved::Gone = flush(&own.stream, &mut self.session.to_upstream) {
                    // What the server still said is read first; its end of stream comes by itself.
                    self.session.to_upstream.clear();
                }
            }
            Upstream::Shared(trunk) => {
                let asked = self.session.take_asked();
                if let Some(me) = self.me.upgrade()
                    && asked > 0
                {
                    trunk.send(&self.worker.shared, me, &mut self.session.to_upstream, asked);
                }
            }
            Upstream::None => {}
        }
    }

    /// Gives what happened to those who show and keep it.
    pub(super) fn hand_over(&mut self) {
        let shared = &self.worker.shared;
        for settled in self.session.settled.drain(..) {
            shared.settled(&settled);
        }
        if self.session.settled.capacity() > KEEP_SETTLED {
            // An idle client keeps no room from its busy days.
            self.session.settled = Vec::new();
        }
        if !self.session.events.is_empty() {
            shared.witnessed(&mut self.session.events);
        }
        if !self.session.observed.is_empty() {
            shared.observed(&mut self.session.observed);
        }
        if !self.session.sightings.is_empty() {
            let connection = self.session.connection().number;
            shared.scouting.sighted(connection, &mut self.session.sightings);
        }
        // Behind the answers: they may tell that the lock is held.
        if !self.session.releasing.is_empty() {
            shared.releasing(&mut self.session.releasing);
        }
        if !self.session.notices.is_empty() {
            for notice in std::mem::take(&mut self.session.notices) {
                shared.noticed(self.session.connection(), notice);
            }
        }
    }
}

/// Writes out a buffer as far as the socket takes it.
pub(in crate::proxy) fn flush(stream: &Stream, buffer: &mut BytesMut) -> Moved {
    while !buffer.is_empty() {
        match stream.try_write(buffer) {
            Ok(len) => buffer.advance(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Moved::Full,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Moved::Gone,
        }
    }
    buffer.clear();
    if buffer.capacity() > KEEP_CAPACITY {
        *buffer = BytesMut::new();
    }
    Moved::Done
}
