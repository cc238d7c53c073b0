//! One worker thread: the clients that it serves, their trunks, and what is looked after now and then. Everything of a
//! client stays on its thread, so nothing here is locked.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::interval;

use super::client::{self, ClientCell};
use super::door;
use super::listener::drain_begins;
use super::pausing::Census;
use super::pools::{Pools, Proof};
use super::shared::Shared;
use super::trunk::Trunk;
use super::workers::Newcomer;
use crate::event::Time;
use crate::session::{Policies, Policy};

/// How often those clients are looked at that may do without their own connection.
const LOOK: Duration = Duration::from_millis(500);
/// How often clients are asked to leave in a drain.
const FAREWELL: Duration = Duration::from_millis(50);
/// So long into a drain clients that always ask for something are still read: a third of it is left for the answers.
const POLITE: Duration = Duration::from_secs(3);
/// How often clients are looked at that may have been idle for too long, or have gone while they are held back: so much
/// later one may be closed, at most.
const IDLE_LOOK: Duration = Duration::from_secs(1);
/// A trunk that no client has at so many of these looks in a row is closed.
const IDLE_LOOKS: u32 = 20;

/// What the tasks of one thread have in common.
pub(super) struct Worker {
    /// What all threads share.
    pub shared: Arc<Shared>,
    /// The trunks.
    pub pools: Rc<Pools>,
    /// The policies in force, looked at for each wake-up of a client.
    policies: RefCell<Cache<Arc<ArcSwap<Policies>>, Arc<Policies>>>,
    clients: RefCell<HashMap<u64, Weak<ClientCell>>>,
    /// Its clients are held back.
    held: Cell<bool>,
}

/// Serves the clients that come in until nobody hands any in.
pub(super) async fn run(shared: Arc<Shared>, mut newcomers: UnboundedReceiver<Newcomer>) {
    let mut draining = shared.draining.clone();
    let mut reloads = shared.reloads.subscribe();
    let mut pauses = shared.pausing.watch();
    let mut questions = shared.pausing.worker();
    let worker = Rc::new(Worker {
        policies: RefCell::new(Cache::new(Arc::clone(&shared.policies))),
        shared,
        pools: Rc::default(),
        clients: RefCell::default(),
        held: Cell::new(false),
    });
    let mut number = worker.shared.whereabouts.number();
    let mut crowded = worker.shared.held.crowded();
    let mut look = interval(LOOK);
    let mut idle_look = interval(IDLE_LOOK);
    let mut leaving: Option<Time> = None;
    let mut farewell = interval(FAREWELL);
    loop {
        tokio::select! {
            newcomer = newcomers.recv() => match newcomer {
                Some(newcomer) => worker.take(newcomer),
                None => return,
            },
            () = drain_begins(&mut draining), if leaving.is_none() => {
                leaving = Some(worker.shared.now());
                farewell.reset_immediately();
            }
            _ = farewell.tick(), if leaving.is_some() => worker.send_away(leaving.unwrap_or_default()),
            _ = look.tick(), if worker.shares() => worker.look(),
            // Whoever could send has ended only with everything else.
            Ok(()) = reloads.changed() => worker.each_client(|client| client.borrow_mut().adopt()),
            Ok(()) = pauses.changed() => worker.hold(),
            Some(question) = questions.recv() => {
                worker.hold();
                // Whoever asked may have gone.
                let _ = question.send(worker.census());
            }
            _ = idle_look.tick() => worker.look_at_idle(),
            Ok(()) = crowded.changed() => worker.make_room(),
            () = worker.shared.whereabouts.moved_from(number) => {
                number = worker.shared.whereabouts.number();
                worker.change_server(number);
            }
        }
    }
}

impl Worker {
    /// Whether clients share connections where they can.
    pub(super) fn shares(&self) -> bool {
        self.shared.shares
    }

    /// Lends the policy in force for the clients of a listener.
    pub(super) fn with_policy(&self, listener: usize, use_it: impl FnOnce(&Arc<Policy>)) {
        use_it(self.policies.borrow_mut().load().at(listener));
    }

    /// Closes the client that has most lying here, if there is too much.
    fn make_room(&self) {
        let mut largest: Option<(usize, Rc<ClientCell>)> = None;
        for client in self.clients.borrow().values().filter_map(Weak::upgrade) {
            let held = client.borrow().held();
            if largest.as_ref().is_none_or(|(most, _)| held > *most) {
                largest = Some((held, client));
            }
        }
        if let Some((1.., client)) = largest {
            client.borrow_mut().make_room();
        }
    }

    /// Asks all clients to leave, since `since`.
    fn send_away(&self, since: Time) {
        let now = self.shared.now();
        let last = u128::from(now.since(since)) >= POLITE.as_micros();
        self.each_client(|client| client.borrow_mut().leave(now, last));
    }

    /// Holds all clients back, or lets them go on, as it is wanted now.
    fn hold(&self) {
        let (held, now) = (self.shared.pausing.is_on(), self.shared.now());
        if self.held.replace(held) != held {
            self.each_client(|client| client.borrow_mut().hold(held, now));
        }
    }

    fn census(&self) -> Census {
        let mut census = Census::default();
        self.each_client(|client| client.borrow().count(&mut census));
        census
    }

    fn look(&self) {
        self.pools.look(IDLE_LOOKS);
        self.each_client(|client| {
            let client = client.borrow();
            if client.has_own() {
                client.wake();
            }
        });
    }

    /// Asks clients to leave that have been idle for too long, if there is such a limit. No time runs against those who are
    /// held back, but they may have gone.
    fn look_at_idle(&self) {
        if self.held.get() {
            return self.each_client(|client| client.borrow_mut().look_after());
        }
        if let Some(idle) = self.shared.limits.load().idle {
            let now = self.shared.now();
            self.each_client(|client| {
                let mut client = client.borrow_mut();
                if client.is_idle(idle, now) {
                    client.idle_for_too_long();
                }
            });
        }
    }

    /// The server is another one: who is on a connection to the one before leaves it.
    fn change_server(&self, number: u64) {
        self.shared.pace.trouble(self.shared.now());
        self.pools.change_server(number);
        self.each_client(|client| client.borrow_mut().change_server(number));
    }

    /// What a server that lets somebody in now has proved.
    pub(super) fn proof(&self) -> Proof {
        Proof {
            at: Instant::now(),
            changes: self.shared.rights.load(Ordering::Acquire),
        }
    }

    fn take(self: &Rc<Self>, newcomer: Newcomer) {
        let Newcomer {
            arrival,
            connection,
            listener,
            mut seat,
        } = newcomer;
        let worker = Rc::clone(self);
        match arrival.register() {
            Ok(socket) => {
                tokio::task::spawn_local(async move {
                    if let Some(guest) = door::welcome(&worker.shared, socket, listener, &mut seat).await {
                        client::serve(worker, guest, connection).await;
                    }
                    drop(seat);
                });
            }
            Err(error) => tracing::warn!(%error, "cannot take a client"),
        }
    }

    /// A client has come.
    pub(super) fn came(&self, number: u64, client: &Rc<ClientCell>) {
        if *self.shared.draining.borrow() {
            client.borrow_mut().leave(self.shared.now(), false);
        }
        if self.held.get() {
            client.borrow_mut().hold(true, self.shared.now());
        }
        self.clients.borrow_mut().insert(number, Rc::downgrade(client));
    }

    /// A client has gone.
    pub(super) fn went(&self, number: u64) {
        self.clients.borrow_mut().remove(&number);
    }

    fn each_client(&self, mut each: impl FnMut(&ClientCell)) {
        let clients: Vec<_> = self.clients.borrow().values().filter_map(Weak::upgrade).collect();
        clients.iter().for_each(|client| each(client));
    }

    /// A trunk has broken: nobody uses it from here on.
    pub(super) fn broken(&self, trunk: &Rc<Trunk>) {
        self.pools.remove(trunk);
        self.each_client(|client| {
            let on = client.borrow().is_on(trunk);
            if on {
                client.borrow_mut().lose_trunk();
            }
        });
    }
}
