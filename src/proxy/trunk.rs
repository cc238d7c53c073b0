//! A trunk: one connection to the server that many clients of one worker share. Takes their requests in the order in
//! which they come, one answer due for each, and hands each client the bytes of its own answers. It is always read: an
//! answer that one client does not take is kept for it, and the others do not wait. What several clients send goes out in
//! one write; a client that was alone lately writes by itself, which saves it the turn of another task. Knows frames, no
//! commands.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};

use super::client::{ClientCell, Moved, flush, with_scratch};
use super::pools::Proof;
use super::shared::Shared;
use super::upstream::Own;
use super::worker::Worker;
use crate::metrics::{Direction, Side};
use crate::resp::encode;
use crate::resp::reply::ReplyScanner;
use crate::session::Pool;

/// Bytes that wait for the server, above which the clients are not read any more.
const OUT_LIMIT: usize = 1024 * 1024;

/// Whose answers come next, and how many.
struct Route {
    /// `None`: an answer that nobody waits for.
    client: Option<Rc<ClientCell>>,
    due: u32,
}

/// What goes out, and who waits for what comes back.
#[derive(Default)]
struct Outbound {
    bytes: BytesMut,
    routes: VecDeque<Route>,
    /// How often something was added since the last write.
    additions: u32,
    /// Clients that are not read until there is room.
    waiting: Vec<Waker>,
}

/// The clients' side of it.
pub(super) struct Trunk {
    /// Who may use it.
    pub pool: Pool,
    /// When the server has last let in somebody without a login.
    pub proved: Cell<Option<Proof>>,
    own: RefCell<Own>,
    outbound: RefCell<Outbound>,
    /// Of its task.
    waker: RefCell<Option<Waker>>,
    /// Its task has to be woken where there is something to do.
    asleep: Cell<bool>,
    /// The last write had the requests of one client.
    alone: Cell<bool>,
    /// How often it was found without clients.
    idle: Cell<u32>,
    over: Cell<bool>,
}

/// The server's side of it.
struct Inbound {
    replies: ReplyScanner,
    /// The beginning of a frame that cannot be passed on yet.
    rest: BytesMut,
    /// A part of a frame was passed on.
    inside: bool,
    /// The frame at hand is a push, which answers nobody.
    push: bool,
    answered: Vec<Rc<ClientCell>>,
}

/// The connection is of no use any more.
struct Broken;

impl Inbound {
    fn begins_push(&self, bytes: &[u8], at: usize) -> bool {
        self.replies.at_start() && bytes.get(at) == Some(&b'>')
    }
}

impl Trunk {
    /// Makes a trunk of a connection on which nothing is under way, and carries its bytes from here on. `named`: it has
    /// the name of the client that it belonged to.
    pub(super) fn start(worker: &Rc<Worker>, pool: Pool, own: Own, named: bool) -> Rc<Trunk> {
        let trunk = Rc::new(Trunk {
            pool,
            proved: Cell::new(None),
            own: RefCell::new(own),
            outbound: RefCell::default(),
            waker: RefCell::default(),
            asleep: Cell::new(false),
            alone: Cell::new(true),
            idle: Cell::new(0),
            over: Cell::new(false),
        });
        if named {
            let mut outbound = trunk.outbound.borrow_mut();
            encode::command(&mut outbound.bytes, [b"CLIENT".as_slice(), b"SETNAME", b""]);
            outbound.routes.push_back(Route { client: None, due: 1 });
        }
        tokio::task::spawn_local(run(Rc::clone(worker), Rc::clone(&trunk)));
        trunk
    }

    /// Gives the connection up if nobody has used it at so many looks in a row.
    pub(super) fn look(self: &Rc<Self>, looks: u32) {
        // One for the pool, one for its own task.
        let used = Rc::strong_count(self) > 2 || !self.outbound.borrow().routes.is_empty();
        self.idle.set(if used { 0 } else { self.idle.get() + 1 });
        if self.idle.get() >= looks {
            self.over.set(true);
            self.wake();
        }
    }

    /// Gives the connection up if it leads to another server than that of this number.
    pub(super) fn change_server(&self, number: u64) {
        if self.own.borrow().number != number {
            self.over.set(true);
            self.wake();
        }
    }

    /// Whether it is given up, or about to be.
    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Makes its task look around.
    fn wake(&self) {
        if self.asleep.replace(false)
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Takes requests of a client, which have so many answers. `bytes` is empty behind it.
    pub(super) fn send(&self, shared: &Shared, client: Rc<ClientCell>, bytes: &mut BytesMut, answers: u32) {
        let outbound = &mut *self.outbound.borrow_mut();
        let at_once = self.asleep.get() && self.alone.get() && outbound.routes.is_empty();
        if outbound.bytes.is_empty() && outbound.bytes.capacity() <= bytes.capacity() {
            mem::swap(&mut outbound.bytes, bytes);
        } else {
            outbound.bytes.extend_from_slice(bytes);
        }
        bytes.clear();
        match outbound.routes.back_mut() {
            Some(last) if last.client.as_ref().is_some_and(|other| Rc::ptr_eq(other, &client)) => last.due += answers,
            _ => outbound.routes.push_back(Route {
                client: Some(client),
                due: answers,
            }),
        }
        outbound.additions += 1;
        if !at_once || !matches!(self.write(shared, outbound), Moved::Done) {
            self.wake();
        }
    }

    /// Whether more may be sent; if not, `waker` is woken when it may.
    pub(super) fn has_room(&self, waker: &Waker) -> bool {
        let mut outbound = self.outbound.borrow_mut();
        if outbound.bytes.len() < OUT_LIMIT {
            return true;
        }
        if !outbound.waiting.iter().any(|other| other.will_wake(waker)) {
            outbound.waiting.push(waker.clone());
        }
        false
    }

    fn poll(&self, worker: &Worker, inbound: &mut Inbound, cx: &mut Context<'_>) -> Poll<Broken> {
        self.asleep.set(false);
        if self.over.get() {
            return Poll::Ready(Broken);
        }
        loop {
            match self.write(&worker.shared, &mut self.outbound.borrow_mut()) {
                Moved::Done => {}
                // If there is room already the next turn finds it.
                Moved::Full => drop(self.own.borrow().stream.poll_write_ready(cx)),
                Moved::Gone => return Poll::Ready(Broken),
            }
            let read = with_scratch(|scratch| {
                let read = self.own.borrow_mut().stream.poll_read(cx, scratch);
                match read {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(Broken)),
                    Poll::Ready(Ok(len)) => {
                        worker.shared.moved(Side::Upstream, Direction::In, len);
                        Poll::Ready(self.take(worker, inbound, scratch.get(..len).unwrap_or_default()))
                    }
                }
            });
            // Not before the scratch is given back: they may have more to do than write.
            for client in inbound.answered.drain(..) {
                client.borrow_mut().write_answers();
            }
            match read {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(broken)) => return Poll::Ready(broken),
                Poll::Pending => {
                    // What the clients said to their answers goes out before anybody sleeps.
                    if self.outbound.borrow().bytes.is_empty() || self.waits_for_room(cx) {
                        self.sleep(cx);
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn sleep(&self, cx: &Context<'_>) {
        self.asleep.set(true);
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    fn waits_for_room(&self, cx: &mut Context<'_>) -> bool {
        self.own.borrow().stream.poll_write_ready(cx).is_pending()
    }

    /// Writes out as much as the server takes.
    fn write(&self, shared: &Shared, outbound: &mut Outbound) -> Moved {
        let before = outbound.bytes.len();
        if before == 0 {
            return Moved::Done;
        }
        self.alone.set(mem::take(&mut outbound.additions) <= 1);
        let moved = flush(&self.own.borrow().stream, &mut outbound.bytes);
        shared.moved(Side::Upstream, Direction::Out, before - outbound.bytes.len());
        if before >= OUT_LIMIT && outbound.bytes.len() < OUT_LIMIT {
            outbound.waiting.drain(..).for_each(Waker::wake);
        }
        moved
    }

    /// Takes bytes of the server and hands them to those whose answers they are.
    fn take(&self, worker: &Worker, inbound: &mut Inbound, bytes: &[u8]) -> Result<(), Broken> {
        if inbound.rest.is_empty() {
            let used = self.hand_out(worker, inbound, bytes)?;
            inbound.rest.extend_from_slice(bytes.get(used..).unwrap_or_default());
            return Ok(());
        }
        let mut held = mem::take(&mut inbound.rest);
        held.extend_from_slice(bytes);
        let used = self.hand_out(worker, inbound, &held)?;
        held.advance(used);
        if !held.is_empty() {
            inbound.rest = held;
        }
        Ok(())
    }

    /// Returns how many bytes are dealt with; the rest is the beginning of a frame.
    fn hand_out(&self, worker: &Worker, inbound: &mut Inbound, bytes: &[u8]) -> Result<usize, Broken> {
        let now = worker.shared.now();
        let mut at = 0;
        while at < bytes.len() {
            // Nobody here asked for any, but whoever knows the connection's number can have some sent to it.
            if inbound.push || inbound.begins_push(bytes, at) {
                let step = inbound
                    .replies
                    .scan(bytes.get(at..).unwrap_or_default())
                    .map_err(|_| Broken)?;
                at += step.taken;
                inbound.push = !step.done;
                if inbound.push {
                    break;
                }
                inbound.replies.next();
                continue;
            }
            let begin = at;
            let due = self.outbound.borrow().routes.front().map_or(0, |route| route.due);
            let mut done = 0;
            let mut more = true;
            while more && done < due && !inbound.begins_push(bytes, at) {
                let step = inbound
                    .replies
                    .scan(bytes.get(at..).unwrap_or_default())
                    .map_err(|_| Broken)?;
                at += step.taken;
                more = step.done && at < bytes.len();
                inbound.inside = !step.done && (inbound.inside || step.taken > 0);
                if step.done {
                    inbound.replies.next();
                    done += 1;
                }
            }
            if at == begin && due > 0 {
                break;
            }
            let client = self.answered(done).ok_or(Broken)?;
            if let Some(client) = client {
                let part = bytes.get(begin..at).unwrap_or_default();
                if client.borrow_mut().take_answers(part, now) {
                    inbound.answered.push(client);
                }
            }
            if !more {
                break;
            }
        }
        Ok(at)
    }

    /// So many answers of the client at the front have come whole. `None`: nobody waits for one.
    fn answered(&self, answers: u32) -> Option<Option<Rc<ClientCell>>> {
        let routes = &mut self.outbound.borrow_mut().routes;
        let front = routes.front_mut()?;
        front.due -= answers;
        if front.due > 0 {
            return Some(front.client.clone());
        }
        routes.pop_front().map(|route| route.client)
    }

    /// The clients that wait for answers which will never come, each with their number.
    fn abandoned(&self) -> Vec<(Rc<ClientCell>, u32)> {
        let outbound = mem::take(&mut *self.outbound.borrow_mut());
        outbound.waiting.into_iter().for_each(Waker::wake);
        let routes = outbound.routes.into_iter();
        routes.filter_map(|route| Some((route.client?, route.due))).collect()
    }
}

/// Carries the trunk's bytes until it breaks, and tells its clients so.
async fn run(worker: Rc<Worker>, trunk: Rc<Trunk>) {
    let mut inbound = Inbound {
        replies: ReplyScanner::new(),
        rest: BytesMut::new(),
        inside: false,
        push: false,
        answered: Vec::new(),
    };
    let Broken = poll_fn(|cx| trunk.poll(&worker, &mut inbound, cx)).await;
    // First nobody finds it any more, then those who wait are told.
    worker.broken(&trunk);
    let mut cut_off = inbound.inside;
    drop(inbound);
    for (client, answers) in trunk.abandoned() {
        client.borrow_mut().lose_answers(answers, mem::take(&mut cut_off));
    }
}
