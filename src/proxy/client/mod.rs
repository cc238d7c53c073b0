//! One downstream connection: carries bytes between sockets and a session, and does what the session says. One task of
//! one worker thread for each; the answers on a shared connection are handed in by that connection's own task. Decides
//! nothing about commands or locks.

mod buffers;
mod carry;
mod farewell;
mod holding;
mod last_words;
mod moving;

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Sleep, sleep};

pub(super) use carry::{Moved, flush, with_scratch};

use super::door::Guest;
use super::stream::Stream;
use super::trunk::Trunk;
use super::upstream::{Own, connect};
use super::worker::Worker;
use crate::event::{ConnectionId, Time};
use crate::lock::keeper::Closing;
use crate::resp::{encode, texts};
use crate::session::{Line, Next, Session};

/// How often we look whether a client has hung up from whom nothing is read: its command blocks, or it is not let in yet.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// After so long a session tries again whose acquire waits for what another one is told.
const MOMENT: Duration = Duration::from_millis(1);

/// A client, as its own task and the task of its shared connection hold it. Never borrowed across an await.
pub(super) type ClientCell = RefCell<Client>;

/// The way to the server.
pub(super) enum Upstream {
    /// None for now.
    None,
    /// A connection of its own.
    Own(Own),
    /// A connection that other clients use too.
    Shared(Rc<Trunk>),
}

/// One client.
pub(super) struct Client {
    worker: Rc<Worker>,
    /// By which it came: its rules are that one's.
    listener: usize,
    me: Weak<ClientCell>,
    session: Session,
    /// `None` once its last words are under way.
    downstream: Option<Stream>,
    upstream: Upstream,
    /// Whether the server itself has let this client in, on a connection that was not broken since.
    proven: bool,
    /// Wakes its task.
    waker: Option<Waker>,
    /// Its task waits for bytes of the client.
    reading: bool,
    /// When it last sent something or was answered.
    active: Time,
    /// When it came.
    came: Time,
    /// It is on the list of those whose answers wait to be written.
    answered: bool,
    /// Bytes of it that count as lying here.
    held: usize,
    /// A drain was asked for.
    leaving: bool,
    /// It waits for another connection to the server.
    moving: bool,
    /// It was held back while it had no connection to the server, and has got none since.
    was_held: bool,
    /// When it looks again whether its client has hung up, or tries again what it waits with.
    timer: Timer,
}

/// How long, and until when; `None`: it is not set.
type Timer = Option<(Duration, Pin<Box<Sleep>>)>;

/// Why a client's task came to rest.
enum Step {
    /// It is over: nothing is left to be said.
    Abort,
    /// It is over once its last bytes are written.
    Close,
    /// It needs another connection to the server.
    Want(Line),
}

/// Serves one client until it or its server is gone.
pub(super) async fn serve(worker: Rc<Worker>, guest: Guest, connection: ConnectionId) {
    let shared = &worker.shared;
    let upstream = if worker.shares() {
        Upstream::None
    } else {
        // Boxed, like all that a client needs at times only: no room is set aside for it while nothing happens.
        let connecting = Box::pin(async {
            // The server may be away on purpose.
            let held = shared.pausing.is_on();
            let gone = holding::hangs_up_before(&guest.stream, shared.pausing.over()).await;
            if gone { None } else { Some(connect(shared, held).await) }
        });
        match connecting.await {
            None => return,
            Some(Ok(own)) => Upstream::Own(own),
            Some(Err(error)) => {
                let mut line = BytesMut::new();
                let text = texts::upstream_unreachable(&shared.whereabouts.to_string(), &error.to_string());
                encode::error(&mut line, text.as_bytes());
                Box::pin(last_words::say(guest.stream, line)).await;
                return;
            }
        }
    };
    let client = begin(&worker, guest, upstream, &connection);
    run(&client).await;
    worker.went(connection.number);
    client.borrow_mut().over(&connection);
}

/// A client that is in. Not a part of [`serve`], whose task would keep room for all that is only moved here.
fn begin(worker: &Rc<Worker>, guest: Guest, upstream: Upstream, connection: &ConnectionId) -> Rc<ClientCell> {
    let Guest {
        stream: downstream,
        announced,
        listener,
    } = guest;
    let shared = &worker.shared;
    let peer = super::peer::of(&downstream, announced);
    let from = super::door::address(downstream.socket(), announced);
    let policy = Arc::clone(shared.policies.load().at(listener));
    let mut session = Session::new(policy, connection.clone(), peer);
    if worker.shares() {
        session.share();
    }
    shared.opened(&session, &from);
    let client = Rc::new_cyclic(|me| {
        RefCell::new(Client {
            worker: Rc::clone(worker),
            listener,
            me: Weak::clone(me),
            session,
            downstream: Some(downstream),
            upstream,
            proven: false,
            waker: None,
            reading: false,
            active: worker.shared.now(),
            came: worker.shared.now(),
            answered: false,
            held: 0,
            leaving: false,
            moving: false,
            was_held: false,
            timer: None,
        })
    });
    worker.came(connection.number, &client);
    client
}

async fn run(client: &Rc<ClientCell>) {
    loop {
        match poll_fn(|cx| client.borrow_mut().poll(cx)).await {
            Step::Abort => return,
            Step::Want(line) => {
                client.borrow_mut().moving = true;
                Box::pin(moving::get(client, line)).await;
                client.borrow_mut().moving = false;
            }
            Step::Close => {
                let (downstream, rest) = client.borrow_mut().close();
                let Some(downstream) = downstream else { return };
                let written = Box::pin(last_words::say(downstream, rest)).await;
                client.borrow_mut().session.wrote_downstream(written);
                return;
            }
        }
    }
}

impl Client {
    /// Carries bytes until there is nothing more to do.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
        // Where nothing was there to read, nothing comes before the task's next turn, and the task is woken then.
        let (mut client_silent, mut server_silent) = (false, false);
        // Most often it was woken by the client. If it is too much, it is kept like the rest of a request.
        if self.reading {
            client_silent = self.read_downstream(cx).is_pending();
        }
        loop {
            if self.leaving && self.says_farewell(cx) {
                return Poll::Ready(Step::Close);
            }
            self.write();
            self.mind_held();
            let (read_downstream, read_upstream) = match self.session.next() {
                Next::Wait {
                    read_downstream,
                    read_upstream,
                } => (read_downstream, read_upstream),
                Next::Abort => return Poll::Ready(Step::Abort),
                Next::Close => return Poll::Ready(Step::Close),
            };
            if let Some(line) = self.wants() {
                return Poll::Ready(Step::Want(line));
            }
            // Both may be ready; a try costs little and saves a turn.
            let from_client = self.listen(read_downstream, &mut client_silent, cx);
            let from_server = read_upstream && !server_silent && self.read_upstream(cx).is_ready();
            server_silent |= read_upstream && !from_server;
            if !from_client && !from_server && !self.made_room(cx) && !self.moment_is_over(cx) {
                return Poll::Pending;
            }
        }
    }

    /// The connection that it needs, or can make do with from here on.
    fn wants(&self) -> Option<Line> {
        if !self.worker.shares() {
            return self.lacks_own().then_some(Line::Own);
        }
        let may_share = || {
            let own = matches!(self.upstream, Upstream::Own(_));
            (own && self.session.may_share(self.worker.shared.now())).then_some(Line::Shared)
        };
        self.session.wants().or_else(may_share)
    }

    fn listen(&mut self, read: bool, silent: &mut bool, cx: &mut Context<'_>) -> bool {
        let full = match &self.upstream {
            Upstream::Shared(trunk) => !trunk.has_room(cx.waker()),
            Upstream::Own(_) | Upstream::None => false,
        };
        self.reading = read && !full;
        if self.reading {
            *silent = *silent || self.read_downstream(cx).is_pending();
            return !*silent;
        }
        !read && self.session.is_blocked() && self.hung_up(cx)
    }

    /// Whether a client that nobody reads from has hung up. Looks now and then.
    fn hung_up(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(downstream) = &self.downstream else {
            return false;
        };
        while !downstream.is_hung_up() {
            if !elapsed(&mut self.timer, LOOK_AGAIN, cx) {
                return false;
            }
        }
        self.session.downstream_ended(self.worker.shared.now());
        true
    }

    /// Whether it is time to try again what waits for what another session is told.
    fn moment_is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.session.waits() {
            return false;
        }
        let over = elapsed(&mut self.timer, MOMENT, cx);
        if over {
            self.session.advance(self.worker.shared.now());
        }
        over
    }

    /// Waits for room in the sockets that are full; whether one has got some already.
    fn made_room(&mut self, cx: &mut Context<'_>) -> bool {
        let ready = |stream: &Stream, cx: &mut Context<'_>| stream.poll_write_ready(cx).is_ready();
        let mut room = false;
        if let Some(stream) = &self.downstream
            && !self.session.to_downstream.is_empty()
        {
            room |= ready(stream, cx);
        }
        if let Upstream::Own(own) = &self.upstream
            && !self.session.to_upstream.is_empty()
        {
            room |= ready(&own.stream, cx);
        }
        room
    }

    fn close(&mut self) -> (Option<Stream>, BytesMut) {
        // Before the last answers are heard.
        self.hand_over();
        self.upstream = Upstream::None;
        (self.downstream.take(), mem::take(&mut self.session.to_downstream))
    }

    /// The end, told to everybody who wants to know.
    fn over(&mut self, connection: &ConnectionId) {
        self.upstream = Upstream::None;
        self.downstream = None;
        self.worker.shared.held.change(mem::take(&mut self.held), 0);
        // Whom a drain sends away in part may throw the rest of its connections away itself, and lives on elsewhere.
        let closing = if self.session.was_ended_by_client() && !self.leaving {
            Closing::ByClient
        } else {
            Closing::ByProxyOrServer
        };
        self.hand_over();
        let shared = &self.worker.shared;
        if !self.session.sightings.is_empty() {
            shared.scouting.last_sighted(connection.number, &self.session.sightings);
        }
        shared.unheard(self.session.unheard());
        shared.closed(connection, closing, &self.session.bound_owners());
    }

    /// Whether it has asked for nothing for so long, and waits for nothing.
    pub(super) fn is_idle(&self, idle: Duration, now: Time) -> bool {
        let since = now.since(self.active.max(self.session.heard()));
        u128::from(since) >= idle.as_micros() && self.session.waits_for_nothing()
    }

    /// It has been idle for too long.
    pub(super) fn idle_for_too_long(&mut self) {
        self.session.idle_for_too_long();
        self.wake();
    }

    /// Other rules are in force.
    pub(super) fn adopt(&mut self) {
        let session = &mut self.session;
        self.worker.with_policy(self.listener, |policy| session.adopt(policy));
        self.hand_over();
        self.wake();
    }

    /// The server is another one: connections to the one before are closed, and clients with them that would notice.
    pub(super) fn change_server(&mut self, number: u64) {
        if matches!(&self.upstream, Upstream::Own(own) if own.number != number) {
            if !self.outlives_own() {
                self.upstream = Upstream::None;
                self.session.upstream_ended();
            }
            self.wake();
        }
    }

    /// Makes its task look around.
    pub(super) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// Whether it has a connection of its own.
    pub(super) fn has_own(&self) -> bool {
        matches!(self.upstream, Upstream::Own(_))
    }
}

/// Whether the timer has run out; then it is none any more. One that is not there, or is for something else, is set.
fn elapsed(timer: &mut Timer, length: Duration, cx: &mut Context<'_>) -> bool {
    if timer.as_ref().is_none_or(|(other, _)| *other != length) {
        *timer = Some((length, Box::pin(sleep(length))));
    }
    let over = timer
        .as_mut()
        .is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
    if over {
        *timer = None;
    }
    over
}
