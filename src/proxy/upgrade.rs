//! The old process' side of an upgrade: it starts the new one, hands its listening sockets over, and lets go only when that
//! one serves. If it does not come to that in time, it is ended, and nothing has changed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::backend;
use super::handover::{self, Lines, Opening, Order, Origins, Ready, VARIABLE, Word};
use super::listener::Listener;
use super::shared::Shared;

/// How long the new process may take until it could serve.
const LIMIT: Duration = Duration::from_secs(15);
/// And then until it does.
const SERVING_LIMIT: Duration = Duration::from_secs(5);
/// So long we wait for the new process to take what it is told of leases.
const TELLING_LIMIT: Duration = Duration::from_secs(2);
/// And so long for an upgrade that is given up, or has just been done.
const SETTLING_LIMIT: Duration = Duration::from_secs(1);

/// Why this process goes on as if nothing had been.
#[derive(Debug, Error)]
pub enum UpgradeError {
    /// Nobody said how another one is started, or it cannot be.
    #[error("{0}")]
    Impossible(String),
    /// It is being done already.
    #[error("an upgrade is under way already")]
    UnderWay,
    /// This process ends.
    #[error("this lockward is draining")]
    Draining,
    /// The new one would not hold them back.
    #[error("clients are held back (paused): let them go on first, with `lockward resume`")]
    Paused,
    /// The new program cannot be started.
    #[error("the new process cannot be started: {0}")]
    Start(io::Error),
    /// It could not serve: its own words.
    #[error("the new process could not serve: {0}")]
    Failed(String),
    /// It has ended without a word.
    #[error("the new process ended before it served ({0}); if it said why, that stands in the log")]
    Ended(String),
    /// It took too long, or said something else.
    #[error("the new process did not come to serve within {limit} s: {0}", limit = LIMIT.as_secs())]
    Late(io::Error),
    /// This one could serve clients, and that one cannot.
    #[error("the new process would not be ready, and this one is: {0}")]
    NotReady(String),
}

/// Knows what the new process is.
pub trait Successor: Send + Sync {
    /// The command that starts it. The error says why there can be none.
    ///
    /// # Errors
    /// A sentence.
    fn command(&self) -> Result<Command, String>;

    /// From here on the service manager is to look after this process.
    fn is_main(&self, pid: u32);
}

/// A new process that serves.
#[derive(Clone, Debug)]
pub struct Upgraded {
    /// Its number.
    pub pid: u32,
    /// What it says of itself.
    pub ready: Ready,
}

/// What an upgrade takes.
pub(super) struct Upgrading {
    successor: Box<dyn Successor>,
    origins: Origins,
    /// The listening sockets, once more: the clients', then that for HTTP. `None` once this process ends.
    sockets: Mutex<Option<Vec<OwnedFd>>>,
    /// This process ends.
    ending: AtomicBool,
    /// The new process, until it serves.
    started: Started,
    /// The new process that serves.
    heir: Mutex<Option<(Upgraded, UnixStream)>>,
    done: Notify,
}

/// Whoever has one can have the proxy's place taken.
#[derive(Clone)]
pub struct Upgrader(pub(super) Arc<Shared>);

impl Upgrading {
    pub(super) fn new(
        successor: Box<dyn Successor>,
        origins: Origins,
        clients: &[Listener],
        admin: &TcpListener,
    ) -> io::Result<Upgrading> {
        let sockets = clients.iter().map(Listener::as_fd).chain([admin.as_fd()]);
        let all = sockets.map(|socket| socket.try_clone_to_owned());
        let all = all.collect::<io::Result<_>>()?;
        Ok(Upgrading {
            successor,
            origins,
            sockets: Mutex::new(Some(all)),
            ending: AtomicBool::new(false),
            started: Started::default(),
            heir: Mutex::default(),
            done: Notify::new(),
        })
    }

    fn heir(&self) -> MutexGuard<'_, Option<(Upgraded, UnixStream)>> {
        self.heir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds clients back by `pause`, unless another process is about to take this one's place: that one would not.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn unless_under_way(&self, pause: impl FnOnce()) -> Result<(), UpgradeError> {
        let sockets = self.sockets.try_lock().map_err(|_| UpgradeError::UnderWay)?;
        // From here on no upgrade begins until clients are held back, and then it refuses.
        sockets.as_ref().map(|_| pause()).ok_or(UpgradeError::Draining)
    }

    /// Waits until another process has taken this one's place.
    pub(super) async fn done(&self) {
        self.done.notified().await;
    }

    /// Lets the listening sockets go: this process takes nobody any more. An upgrade that is under way comes to nothing,
    /// and lets them go then.
    pub(super) fn let_go(&self) {
        self.ending.store(true, Ordering::Release);
        self.started.kill();
        if let Ok(mut sockets) = self.sockets.try_lock() {
            *sockets = None;
        }
    }

    /// The places of which the new process uses the sockets.
    pub(super) fn keeps_sockets(&self) -> Vec<String> {
        let heir = self.heir();
        heir.as_ref()
            .map_or_else(Vec::new, |(upgraded, _)| upgraded.ready.took_clients.clone())
    }

    /// Whether that of this listener is among them.
    pub(super) fn keeps_socket(&self, listener: usize) -> bool {
        let origin = self.origins.clients.get(listener);
        origin.is_some_and(|origin| self.keeps_sockets().contains(&origin.place))
    }

    /// Waits until an upgrade that comes to its end in the moment in which this process is told to end is over. Blocks, but
    /// not for long: who is not let go by then was ended.
    pub(super) fn settle(&self) {
        let soon = Instant::now() + SETTLING_LIMIT;
        while matches!(self.sockets.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < soon {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Tells the new process of the leases that hold their locks, of each once. Blocks.
    pub(super) fn bequeath(&self, shared: &Shared) {
        let heir = self.heir();
        let Some((_, line)) = &*heir else { return };
        let held = shared.keeper().bequeath(shared.now());
        for lease in &held {
            if let Err(error) = handover::say(line, &Order::Lease(Box::new(lease.into()))) {
                tracing::warn!(%error, "the new process does not hear of all leases");
                return;
            }
        }
    }

    fn hand_over(&self, shared: &Shared, sockets: &[OwnedFd]) -> Result<(Upgraded, UnixStream), UpgradeError> {
        let mut command = self.successor.command().map_err(UpgradeError::Impossible)?;
        let (ours, theirs) = UnixStream::pair().map_err(UpgradeError::Start)?;
        let child = command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .env(VARIABLE, std::process::id().to_string())
            .spawn()
            .map_err(UpgradeError::Start)?;
        // With it goes our hold on the other end, so that its end is heard.
        drop(command);
        let pid = child.id();
        *self.started.child() = Some(child);
        if self.ending.load(Ordering::Acquire) {
            self.started.kill();
        }
        let ready = self.until_serving(shared, sockets, &ours);
        if ready.is_err() || self.ending.load(Ordering::Acquire) {
            self.started.kill();
        }
        // From here on it is nobody's to end; unless that was done already.
        let serves = self.started.child().take().is_some();
        if self.ending.load(Ordering::Acquire) && !serves {
            return Err(UpgradeError::Draining);
        }
        let ready = ready?;
        self.successor.is_main(pid);
        if let Err(error) = handover::say(&ours, &Order::Main) {
            tracing::warn!(%error, "the new process does not hear that it is the main one");
        }
        Ok((Upgraded { pid, ready }, ours))
    }

    fn until_serving(&self, shared: &Shared, sockets: &[OwnedFd], line: &UnixStream) -> Result<Ready, UpgradeError> {
        let ready = self.until_ready(shared, sockets, line)?;
        line.set_write_timeout(Some(TELLING_LIMIT))
            .and_then(|()| handover::say(line, &Order::Go))
            .map_err(|_| UpgradeError::Ended(self.started.end()))?;
        match word(line, SERVING_LIMIT, &self.started)? {
            Word::Serving => Ok(ready),
            Word::Failed(text) => Err(UpgradeError::Failed(text)),
            Word::Ready(_) => Err(UpgradeError::Late(io::ErrorKind::InvalidData.into())),
        }
    }

    fn until_ready(&self, shared: &Shared, sockets: &[OwnedFd], line: &UnixStream) -> Result<Ready, UpgradeError> {
        let opening = Opening {
            origins: self.origins.clone(),
            clock: shared.now().0,
        };
        let all: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        if let Err(error) = handover::send_sockets(line, &opening, &all) {
            return Err(match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => UpgradeError::Ended(self.started.end()),
                _ => UpgradeError::Start(error),
            });
        }
        match word(line, LIMIT, &self.started)? {
            Word::Ready(ready) => match (&ready.not_ready, backend::ready(shared)) {
                (Some(reason), Ok(())) => Err(UpgradeError::NotReady(reason.clone())),
                _ => Ok(ready),
            },
            Word::Failed(text) => Err(UpgradeError::Failed(text)),
            Word::Serving => Err(UpgradeError::Late(io::ErrorKind::InvalidData.into())),
        }
    }
}

/// The next thing that the new process says. It says nothing more before it is answered, so nothing is lost between two.
fn word(line: &UnixStream, limit: Duration, started: &Started) -> Result<Word, UpgradeError> {
    let said = Lines::new(line).and_then(|mut lines| lines.next(Some(Instant::now() + limit)));
    match said {
        Ok(Some(word)) => Ok(word),
        Ok(None) => Err(UpgradeError::Ended(started.end())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(UpgradeError::Ended(started.end())),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            let text = "nothing was heard of it";
            Err(UpgradeError::Late(io::Error::new(io::ErrorKind::TimedOut, text)))
        }
        Err(error) => Err(UpgradeError::Late(error)),
    }
}

/// A new process that is ended unless it is let go.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<Option<Child>>>);

impl Started {
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended; it does now, if it has not yet.
    fn end(&self) -> String {
        // It closed its end of the line, and is about to end; or it hangs.
        let soon = Instant::now() + Duration::from_millis(500);
        while Instant::now() < soon {
            if let Some(Ok(Some(status))) = self.child().as_mut().map(Child::try_wait) {
                return status.to_string();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        "it was ended".to_owned()
    }

    /// Ends it.
    fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Upgrader {
    /// Has a new process take this one's place, or changes nothing; says in the log which. Blocks until that serves, or
    /// for some seconds. This process drains from then on.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub fn upgrade(&self) -> Result<Upgraded, UpgradeError> {
        let outcome = self.try_upgrade();
        match &outcome {
            Ok(upgraded) => tracing::info!(
                pid = upgraded.pid,
                version = upgraded.ready.version,
                "upgraded: the new process serves, and this one drains"
            ),
            Err(error) => {
                for line in error.to_string().lines() {
                    tracing::error!("not upgraded, and nothing has changed: {line}");
                }
            }
        }
        outcome
    }

    fn try_upgrade(&self) -> Result<Upgraded, UpgradeError> {
        let shared = &self.0;
        let nobody = || UpgradeError::Impossible("this lockward does not know how another one is started".to_owned());
        let upgrading = shared.upgrading.get().ok_or_else(nobody)?;
        let mut sockets = upgrading.sockets.try_lock().map_err(|_| UpgradeError::UnderWay)?;
        // As long as the sockets are held, nobody is held back anew.
        if shared.pausing.is_on() {
            return Err(UpgradeError::Paused);
        }
        let outcome = upgrading.hand_over(shared, sockets.as_ref().ok_or(UpgradeError::Draining)?);
        if outcome.is_ok() || upgrading.ending.load(Ordering::Acquire) {
            *sockets = None;
        }
        let outcome = outcome?;
        let upgraded = outcome.0.clone();
        *upgrading.heir() = Some(outcome);
        upgrading.done.notify_one();
        Ok(upgraded)
    }
}
