//! Holding all clients back for a while, so that the server can be restarted or switched under them: what is under way is
//! answered, what is new waits where it is. It ends by itself, so that nobody waits for ever. Counts who is still under
//! way; carries no bytes.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::shared::Shared;

/// How often is looked whether somebody is still under way.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How many clients are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Waiting for an answer that comes soon, or in the middle of a transaction.
    pub under_way: usize,
    /// In a command that blocks.
    pub blocked: usize,
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Census) {
        self.under_way += other.under_way;
        self.blocked += other.blocked;
    }
}

/// A worker is asked for its census.
pub(super) type Question = oneshot::Sender<Census>;

/// Whether clients are held back.
pub(super) struct Pausing {
    /// Until when.
    until: watch::Sender<Option<Instant>>,
    workers: Mutex<Vec<mpsc::UnboundedSender<Question>>>,
}

impl Pausing {
    pub(super) fn new() -> Pausing {
        Pausing {
            until: watch::Sender::new(None),
            workers: Mutex::default(),
        }
    }

    /// The side of one worker: what it is asked by.
    pub(super) fn worker(&self) -> mpsc::UnboundedReceiver<Question> {
        let (ask, asked) = mpsc::unbounded_channel();
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(ask);
        asked
    }

    /// Changes when that changes.
    pub(super) fn watch(&self) -> watch::Receiver<Option<Instant>> {
        self.until.subscribe()
    }

    /// Whether clients are held back now.
    pub(super) fn is_on(&self) -> bool {
        self.until.borrow().is_some()
    }

    /// For how long they still are.
    pub(super) fn left(&self) -> Option<Duration> {
        let until = *self.until.borrow();
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Waits until they are not.
    pub(super) async fn over(&self) {
        let mut watch = self.watch();
        // Whoever could say otherwise has ended only with everything else.
        let _ = watch.wait_for(Option::is_none).await;
    }

    /// Counts the clients; those of a worker that has ended are gone.
    pub(super) async fn census(&self) -> Census {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut answers = Vec::new();
        for worker in workers {
            let (question, answer) = oneshot::channel();
            if worker.send(question).is_ok() {
                answers.push(answer);
            }
        }
        let mut census = Census::default();
        for answer in answers {
            census += answer.await.unwrap_or_default();
        }
        census
    }

    /// Counts them until nobody is under way, for at most so long.
    pub(super) async fn settled(&self, longest: Duration) -> Census {
        let deadline = Instant::now() + longest;
        loop {
            let census = self.census().await;
            if census.under_way == 0 || Instant::now() >= deadline {
                return census;
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

impl Shared {
    /// Holds clients back from now on, for so long.
    pub(super) fn pause(&self, length: Duration) {
        self.pausing.until.send_replace(Some(Instant::now() + length));
        self.metrics.paused(true);
        tracing::warn!(?length, "paused: new commands wait");
    }

    /// Lets them go on. Whether they were held.
    pub(super) fn resume(&self, why: &str) -> bool {
        self.resume_if(why, |_| true)
    }

    fn resume_if(&self, why: &str, meant: impl FnOnce(Instant) -> bool) -> bool {
        let was = self
            .pausing
            .until
            .send_if_modified(|until| until.take_if(|until| meant(*until)).is_some());
        if was {
            self.metrics.paused(false);
            tracing::warn!(why, "resumed: the commands that waited go on");
        }
        was
    }
}

/// Ends each pause when its time is over.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut watch = shared.pausing.watch();
    loop {
        let until = *watch.borrow_and_update();
        let over = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Unless somebody has made it longer meanwhile.
            () = over => {
                shared.resume_if("its time is over", |now| Some(now) == until);
            }
            changed = watch.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
