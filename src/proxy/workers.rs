//! The worker threads: each has a runtime of its own and keeps the clients that it is given, by turns. Counts the clients
//! in all. Carries no bytes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

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
    /// Held as long as it is there.
    pub seat: Seat,
}

/// How many clients there are.
#[derive(Debug, Default)]
pub(super) struct Seats {
    taken: AtomicUsize,
    left: Notify,
}

/// One client's place.
pub(super) struct Seat(Arc<Seats>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.left.notify_one();
    }
}

/// The threads, from the side of the listener. They end when this is dropped, and with them the clients.
pub(super) struct Workers {
    inboxes: Vec<UnboundedSender<Newcomer>>,
    next: usize,
    seats: Arc<Seats>,
}

impl Workers {
    /// Starts so many threads.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn start(shared: &Arc<Shared>, count: usize) -> io::Result<Workers> {
        let mut inboxes = Vec::new();
        for number in 0..count.max(1) {
            let (inbox, newcomers) = mpsc::unbounded_channel();
            let shared = Arc::clone(shared);
            // A runtime belongs to the thread that makes it, which says here whether it could.
            let (said, started) = std::sync::mpsc::channel();
            thread::Builder::new()
                .name(format!("lockward-{number}"))
                .spawn(move || serve(shared, newcomers, &said))?;
            started.recv().map_err(io::Error::other)??;
            inboxes.push(inbox);
        }
        Ok(Workers {
            inboxes,
            next: 0,
            seats: Arc::default(),
        })
    }

    /// How many clients there are.
    pub(super) fn clients(&self) -> usize {
        self.seats.taken.load(Ordering::Acquire)
    }

    /// Gives a client to the next thread.
    pub(super) fn give(&mut self, arrival: Arrival, connection: ConnectionId) {
        self.seats.taken.fetch_add(1, Ordering::AcqRel);
        let newcomer = Newcomer {
            arrival,
            connection,
            seat: Seat(Arc::clone(&self.seats)),
        };
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

fn serve(shared: Arc<Shared>, newcomers: UnboundedReceiver<Newcomer>, said: &std::sync::mpsc::Sender<io::Result<()>>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    match runtime {
        Ok(runtime) => {
            // Nobody listens any more only if the start was given up.
            let _ = said.send(Ok(()));
            runtime.block_on(worker::run(shared, newcomers));
        }
        Err(error) => drop(said.send(Err(error))),
    }
}
