//! The new process' side of an upgrade: it finds the one that started it, takes its sockets, says that it could serve,
//! waits to be told so, and then hears of the leases that the other one knows.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::handover::{self, Lines, Opening, Order, Ready, VARIABLE, Word};
use super::legacy::Legacy;
use super::shared::Shared;

/// The old process gives up before.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The way to the old process.
#[derive(Clone)]
pub struct Heir {
    line: Arc<UnixStream>,
    lines: Arc<Mutex<Option<Lines>>>,
    main: Arc<Notify>,
}

impl fmt::Debug for Heir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What was read holds owner tokens.
        f.debug_struct("Heir").finish_non_exhaustive()
    }
}

/// What it handed over.
pub(super) struct Inheritance {
    pub opening: Opening,
    /// The clients', in the order in which it tells of them, then that for HTTP.
    pub sockets: Vec<OwnedFd>,
}

impl Heir {
    /// The process that started this one to take its place, if that was so.
    pub(super) fn find() -> io::Result<Option<(Heir, Inheritance)>> {
        if std::env::var(VARIABLE).ok() != Some(parent_id().to_string()) {
            return Ok(None);
        }
        let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (opening, sockets) = handover::take_sockets(&line)?;
        Ok(Some((Heir::over(line)?, Inheritance { opening, sockets })))
    }

    /// With the old process at the other end of the line.
    pub(super) fn over(line: UnixStream) -> io::Result<Heir> {
        Ok(Heir {
            lines: Arc::new(Mutex::new(Some(Lines::new(&line)?))),
            line: Arc::new(line),
            main: Arc::new(Notify::new()),
        })
    }

    /// This process cannot serve.
    pub fn failed(&self, text: &str) {
        // If nobody hears it, nobody waits for it.
        let _ = handover::say(&self.line, &Word::Failed(text.to_owned()));
    }

    /// This process could serve: waits until it is told to. Blocks.
    ///
    /// # Errors
    /// A sentence, if the old process has changed its mind or is gone.
    pub fn ready(&self, ready: Ready) -> Result<(), String> {
        let gone = |why: String| format!("the lockward that started this one did not let it take over: {why}");
        handover::say(&self.line, &Word::Ready(ready)).map_err(|error| gone(error.to_string()))?;
        let deadline = Some(Instant::now() + LONGEST_WAIT);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.as_mut().map(|lines| lines.next(deadline)) {
            Some(Ok(Some(Order::Go))) => Ok(()),
            Some(Ok(_)) | None => Err(gone("it has gone".to_owned())),
            Some(Err(error)) => Err(gone(error.to_string())),
        }
    }

    /// This process serves.
    pub fn serving(&self) {
        // The old process may be gone: then it drains no more.
        let _ = handover::say(&self.line, &Word::Serving);
    }

    /// Waits until the service manager takes this process for the main one, or nobody is left to say so. Only while
    /// [`Proxy::inherits`](super::Proxy::inherits) listens.
    pub async fn is_main(&self) {
        self.main.notified().await;
    }

    /// Hears of the old process' leases until that ends.
    pub(super) fn inherit(&self, shared: &Arc<Shared>) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut lines) = lines else { return };
        let (shared, main) = (Arc::clone(shared), Arc::clone(&self.main));
        let listening = move || {
            shared.keeper().accompanied();
            let mut leases = 0;
            while let Ok(Some(order)) = lines.next(None) {
                match order {
                    Order::Go => {}
                    Order::Main => main.notify_one(),
                    Order::Lease(legacy) => {
                        leases += usize::from(inherit(&shared, &legacy));
                    }
                }
            }
            main.notify_one();
            shared.keeper().alone(shared.now());
            shared.chores.notify_one();
            tracing::info!(leases, "the lockward whose place this one takes has ended");
        };
        if let Err(error) = thread::Builder::new().name("lockward-heir".to_owned()).spawn(listening) {
            tracing::warn!(%error, "the leases of before are not known here: they are not renewed");
            self.main.notify_one();
        }
    }
}

/// Takes one lease over; whether it is one.
fn inherit(shared: &Shared, legacy: &Legacy) -> bool {
    let held = legacy.held();
    if let Some(held) = &held {
        shared.keeper().inherit(shared.now(), held);
        shared.chores.notify_one();
        shared.telling.changed();
    }
    held.is_some()
}
