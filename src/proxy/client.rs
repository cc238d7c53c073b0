//! One downstream connection: carries bytes between two sockets and a session, and does what the session says. Decides
//! nothing about commands or locks.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::time::{sleep, timeout};

use super::listener::drain_begins;
use super::shared::Shared;
use super::stream::Stream;
use crate::event::ConnectionId;
use crate::lock::keeper::Closing;
use crate::metrics::{Direction, Side};
use crate::resp::{encode, texts};
use crate::session::{Next, Session};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// An empty buffer larger than this is given back.
const KEEP_CAPACITY: usize = 4 * 1024;
/// Room for so many settled commands may be kept.
const KEEP_SETTLED: usize = 256;
/// How long a client may take to read its last answers once everything else is over.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long we listen on after our last word, so that the system does not throw it away for unread requests.
const LINGER: Duration = Duration::from_secs(1);

/// After so long a silence the system looks whether the server is still there: a subscriber only listens, and its own
/// keep-alive ends here.
const UPSTREAM_KEEP_ALIVE: Duration = Duration::from_secs(60);
/// After so long a session tries again whose acquire waits for what another one is told.
const MOMENT: Duration = Duration::from_millis(1);
/// How often we look whether a client has hung up whose command blocks and from whom nothing is read.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

thread_local! {
    // One read buffer for each worker thread, not for each connection: an idle client holds none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into_boxed_slice());
}

/// How far a buffer was written out.
enum Moved {
    /// Nothing, or everything that there was.
    Done,
    /// The socket takes no more for now.
    Full,
    /// The peer is gone.
    Gone,
}

/// Serves one client until it or its server is gone.
pub(super) async fn serve(shared: Arc<Shared>, mut downstream: Stream, connection: ConnectionId) {
    let upstream = match Stream::connect(&shared.upstream, shared.connect_timeout).await {
        Ok(stream) => stream,
        Err(error) => {
            let mut line = BytesMut::new();
            let text = texts::upstream_unreachable(&shared.upstream.to_string(), &error.to_string());
            encode::error(&mut line, text.as_bytes());
            say_last(&mut downstream, line).await;
            return;
        }
    };
    if let Err(error) = upstream.keep_alive(UPSTREAM_KEEP_ALIVE) {
        tracing::debug!(%error, "no keep-alive for the server");
    }
    let peer = super::peer::of(&downstream);
    let from = downstream
        .peer_address()
        .map_or_else(|| "unix socket".to_owned(), |address| address.to_string());
    let session = Session::new(shared.policy.load_full(), connection.clone(), peer);
    let mut client = Client {
        shared,
        session,
        downstream,
        upstream: Some(upstream),
    };
    client.shared.opened(&client.session, &from);
    client.run().await;
    let closing = if client.session.was_ended_by_client() {
        Closing::ByClient
    } else {
        Closing::ByProxyOrServer
    };
    client.hand_over();
    if !client.session.sightings.is_empty() {
        let sightings = &client.session.sightings;
        client.shared.scouting.last_sighted(connection.number, sightings);
    }
    client.shared.unheard(client.session.unheard());
    client
        .shared
        .closed(&connection, closing, &client.session.bound_owners());
}

struct Client {
    shared: Arc<Shared>,
    session: Session,
    downstream: Stream,
    upstream: Option<Stream>,
}

impl Client {
    async fn run(&mut self) {
        let mut draining = self.shared.draining.clone();
        loop {
            self.write();
            let (read_downstream, read_upstream) = match self.session.next() {
                Next::Wait {
                    read_downstream,
                    read_upstream,
                } => (read_downstream, read_upstream),
                Next::Abort => {
                    self.upstream = None;
                    return;
                }
                Next::Close => {
                    self.upstream = None;
                    let rest = std::mem::take(&mut self.session.to_downstream);
                    let length = rest.len();
                    if say_last(&mut self.downstream, rest).await {
                        self.session.wrote_downstream(length);
                    }
                    return;
                }
            };
            let Some(upstream) = &self.upstream else { return };
            // A client that keeps both sockets busy must not keep its worker from the others.
            tokio::task::consume_budget().await;
            let down = interest(read_downstream, !self.session.to_downstream.is_empty());
            let up = interest(read_upstream, !self.session.to_upstream.is_empty());
            let (mut from_client, mut from_server) = (false, false);
            tokio::select! {
                ready = wait(&self.downstream, down) => from_client = ready,
                ready = wait(upstream, up) => from_server = ready,
                () = drain_begins(&mut draining), if !self.session.is_leaving() => self.session.leave(),
                () = a_moment(), if self.session.waits() => self.session.advance(self.shared.now()),
                () = hung_up(&self.downstream), if !read_downstream && self.session.is_blocked() => {
                    self.session.downstream_ended(self.shared.now());
                }
            }
            // Both may be ready; a try costs little and saves a turn.
            if from_client && read_downstream {
                self.read_downstream();
            }
            if from_server && read_upstream {
                self.read_upstream();
            }
        }
    }

    fn read_downstream(&mut self) {
        SCRATCH.with_borrow_mut(|scratch| match self.downstream.try_read(scratch) {
            Ok(0) => {
                self.session.downstream_ended(self.shared.now());
            }
            Ok(len) => {
                self.session.adopt(&self.shared.policy.load());
                self.shared.moved(Side::Downstream, Direction::In, len);
                self.session
                    .receive_downstream(scratch.get(..len).unwrap_or_default(), self.shared.now());
            }
            Err(error) if would_block(&error) => {}
            Err(_) => self.session.downstream_lost(),
        });
    }

    fn read_upstream(&mut self) {
        let Some(upstream) = &self.upstream else { return };
        SCRATCH.with_borrow_mut(|scratch| match upstream.try_read(scratch) {
            Ok(0) => self.session.upstream_ended(),
            Ok(len) => {
                self.shared.moved(Side::Upstream, Direction::In, len);
                self.session
                    .receive_upstream(scratch.get(..len).unwrap_or_default(), self.shared.now());
            }
            Err(error) if would_block(&error) => {}
            Err(_) => self.session.upstream_ended(),
        });
    }

    /// Writes out both buffers, as far as the sockets take it, and lets the session go on where that made room.
    fn write(&mut self) {
        loop {
            // Whoever keeps leases hears of a grant before its client can act on it.
            self.hand_over();
            let before = (self.session.to_upstream.len(), self.session.to_downstream.len());
            if before == (0, 0) {
                return;
            }
            if let Some(upstream) = &self.upstream
                && let Moved::Gone = flush(upstream, &mut self.session.to_upstream)
            {
                // What the server still said is read first; its end of stream comes by itself.
                self.session.to_upstream.clear();
            }
            if let Moved::Gone = flush(&self.downstream, &mut self.session.to_downstream) {
                let unwritten = self.session.to_downstream.len();
                self.session.wrote_downstream(before.1 - unwritten);
                return self.session.downstream_lost();
            }
            let after = (self.session.to_upstream.len(), self.session.to_downstream.len());
            if before == after {
                return;
            }
            self.shared.moved(Side::Upstream, Direction::Out, before.0 - after.0);
            self.shared.moved(Side::Downstream, Direction::Out, before.1 - after.1);
            self.session.wrote_downstream(before.1 - after.1);
            self.session.advance(self.shared.now());
        }
    }

    /// Gives what happened to those who show and keep it.
    fn hand_over(&mut self) {
        for settled in self.session.settled.drain(..) {
            self.shared.settled(&settled);
        }
        // An idle client keeps no room from its busy days.
        self.session.settled.shrink_to(KEEP_SETTLED);
        if !self.session.events.is_empty() {
            self.shared.witnessed(&mut self.session.events);
        }
        if !self.session.observed.is_empty() {
            self.shared.observed(&mut self.session.observed);
        }
        if !self.session.sightings.is_empty() {
            let connection = self.session.connection().number;
            self.shared.scouting.sighted(connection, &mut self.session.sightings);
        }
        // Behind the answers: they may tell that the lock is held.
        if !self.session.releasing.is_empty() {
            self.shared.releasing(&mut self.session.releasing);
        }
        for notice in std::mem::take(&mut self.session.notices) {
            self.shared.noticed(self.session.connection(), notice);
        }
    }
}

fn interest(read: bool, write: bool) -> Option<Interest> {
    match (read, write) {
        (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
        (true, false) => Some(Interest::READABLE),
        (false, true) => Some(Interest::WRITABLE),
        (false, false) => None,
    }
}

/// Waits for the socket; forever if nothing of it is of interest. Tells whether it may be read.
async fn wait(stream: &Stream, interest: Option<Interest>) -> bool {
    match interest {
        // An error shows itself at the next read or write.
        Some(interest) => stream
            .ready(interest)
            .await
            .map_or(true, |ready| ready.is_readable() || ready.is_error()),
        None => std::future::pending().await,
    }
}

/// Begins only when it is waited for, so it costs nothing where nobody does.
async fn a_moment() {
    sleep(MOMENT).await;
}

/// Waits until the client has hung up, however much it has sent that nobody reads yet.
async fn hung_up(stream: &Stream) {
    while !stream.is_hung_up().await {
        sleep(LOOK_AGAIN).await;
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn flush(stream: &Stream, buffer: &mut BytesMut) -> Moved {
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

/// Writes the last bytes and closes so that they arrive even if the client has sent more that nobody read.
/// Tells whether they were all written.
async fn say_last(stream: &mut Stream, mut bytes: BytesMut) -> bool {
    let writing = async {
        loop {
            match flush(stream, &mut bytes) {
                Moved::Done => return true,
                Moved::Gone => return false,
                Moved::Full => {
                    if stream.ready(Interest::WRITABLE).await.is_err() {
                        return false;
                    }
                }
            }
        }
    };
    if !timeout(LAST_WORDS, writing).await.unwrap_or(false) {
        return false;
    }
    stream.half_close().await;
    let listening = async {
        loop {
            if stream.ready(Interest::READABLE).await.is_err() {
                return;
            }
            let ended = SCRATCH.with_borrow_mut(|scratch| match stream.try_read(scratch) {
                Ok(len) => len == 0,
                Err(error) => !would_block(&error),
            });
            if ended {
                return;
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = sleep(LINGER) => {}
    }
    true
}
