//! The worker threads: each has a runtime of its own and keeps the clients that it is given, by turns. Counts the clients
//! in all. Carries no bytes.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::listener::Limits;
use super::pulse::{Beat, Pulse};
use super::shared::Shared;
use super::socket::Arrival;
use super::worker;
use crate::event::ConnectionId;

/// A client that was taken and not served yet.
pub(super) struct Newcomer {
    /// Its socket.
    pub arrival: Arrival,
    /// Its name.
    pub connection: ConnectionId,
    /// By which listener it came; 0 is the main one.
    pub listener: usize,
    /// Held as long as it is there.
    pub seat: Seat,
}

/// How many clients there are.
#[derive(Debug, Default)]
pub(super) struct Seats {
    taken: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    left: Notify,
}

/// One client's place.
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Over TCP, once it is known.
    address: Option<IpAddr>,
}

impl Seats {
    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more of those from an address, unless there are enough of them.
    fn count(&self, address: Option<IpAddr>, limits: &Limits) -> bool {
        let Some(address) = address else { return true };
        let mut by_address = self.by_address();
        let count = by_address.get(&address).copied().unwrap_or_default();
        if limits.per_address.is_some_and(|most| count >= most) {
            return false;
        }
        by_address.insert(address, count + 1);
        true
    }

    /// A place for one client more, unless there are enough of them, or of those from its address.
    fn take(self: &Arc<Self>, address: Option<IpAddr>, limits: &Limits) -> Option<Seat> {
        if self.taken.load(Ordering::Acquire) >= limits.max_connections {
            return None;
        }
        if !self.count(address, limits) {
            return None;
        }
        self.taken.fetch_add(1, Ordering::AcqRel);
        Some(Seat {
            seats: Arc::clone(self),
            address,
        })
    }
}

impl Seat {
    /// It is known now where the client comes from; until then it counted under no address. False: there are enough of
    /// those.
    pub(super) fn is_for(&mut self, address: Option<IpAddr>, limits: &Limits) -> bool {
        let counted = self.seats.count(address, limits);
        if counted {
            self.address = address;
        }
        counted
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            let mut by_address = self.seats.by_address();
            match by_address.get_mut(&address) {
                Some(count) if *count > 1 => *count -= 1,
                _ => _ = by_address.remove(&address),
            }
        }
        self.seats.taken.fetch_sub(1, Ordering::AcqRel);
        self.seats.left.notify_one();
    }
}

/// The threads, from the side of the listener. They end when this is dropped, and with them the clients.
pub(super) struct Workers {
    inboxes: Vec<UnboundedSender<Newcomer>>,
    next: usize,
    pulse: Pulse,
    seats: Arc<Seats>,
}

impl Workers {
    /// Starts so many threads.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn start(shared: &Arc<Shared>, count: usize) -> io::Result<Workers> {
        let mut inboxes = Vec::new();
        let mut pulse = Pulse::default();
        for number in 0..count.max(1) {
            let (inbox, newcomers) = mpsc::unbounded_channel();
            let shared = Arc::clone(shared);
            let beat = pulse.thread();
            // A runtime belongs to the thread that makes it, which says here whether it could.
            let (said, started) = std::sync::mpsc::channel();
            thread::Builder::new()
                .name(format!("lockward-{number}"))
                .spawn(move || serve(shared, newcomers, beat, &said))?;
            started.recv().map_err(io::Error::other)??;
            inboxes.push(inbox);
        }
        Ok(Workers {
            inboxes,
            next: 0,
            pulse,
            seats: Arc::default(),
        })
    }

    /// How many clients there are.
    pub(super) fn clients(&self) -> usize {
        self.seats.taken.load(Ordering::Acquire)
    }

    /// A place for one client more, if there is any.
    pub(super) fn seat(&self, address: Option<IpAddr>, limits: &Limits) -> Option<Seat> {
        self.seats.take(address, limits)
    }

    /// By which to ask whether they still turn.
    pub(super) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Gives a client to the next thread.
    pub(super) fn give(&mut self, newcomer: Newcomer) {
        self.next = (self.next + 1) % self.inboxes.len();
        if let Some(inbox) = self.inboxes.get(self.next) {
            // A thread ends only behind this; a client that none takes is closed.
            let _ = inbox.send(newcomer);
        }
    }

    /// Waits until the last client is gone.
    pub(super) async fn empty(&self) {
        while self.clients() > 0 {
            self.seats.left.notified().await;
        }
    }
}

fn serve(
    shared: Arc<Shared>,
    newcomers: UnboundedReceiver<Newcomer>,
    beat: Beat,
    said: &std::sync::mpsc::Sender<io::Result<()>>,
) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    match runtime {
        Ok(runtime) => {
            // Nobody listens any more only if the start was given up.
            let _ = said.send(Ok(()));
            runtime.block_on(async {
                tokio::select! {
                    () = worker::run(shared, newcomers) => {}
                    () = beat.answer() => {}
                }
            });
        }
        Err(error) => drop(said.send(Err(error))),
    }
}
