//! What ends a command that would go on for ever: Ctrl-C and its like, or that nobody reads its output any more.

use std::io;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

/// What is left to do after a signal is done by then, or not at all: a terminal that was stopped with Ctrl-S blocks us.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// A signal that asks us to end, as its number: SIGINT, SIGTERM or SIGHUP. Whatever we do then, the process ends soon
/// after, and at once after a second signal. `before_exit` puts right what must not stay as it is.
pub(super) fn asked_to_end(before_exit: fn()) -> io::Result<impl Future<Output = i32>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (tell, mut told) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = hangup.recv() => 1,
            }
        };
        let first = next().await;
        let _ = tell.send(first);
        let last = tokio::select! {
            second = next() => second,
            () = tokio::time::sleep(LAST_WORDS) => first,
        };
        before_exit();
        std::process::exit(128 + last);
    });
    Ok(async move {
        match told.wait_for(|number| *number != 0).await {
            Ok(number) => *number,
            Err(_) => std::future::pending().await,
        }
    })
}

/// Ends when nobody can read standard output any more, where it is a pipe and the system lets us watch it (Linux): so
/// that `lockward tap | head` ends with `head` and not at the next event.
pub(super) async fn reader_gone() {
    // Opened once more, because a pipe that is watched must not block, and ours has to.
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(out) => {
            if out.ready(Interest::ERROR).await.is_ok() {
                return;
            }
        }
        Err(error) if error.raw_os_error() == Some(NO_READER) => return,
        Err(_) => {}
    }
    std::future::pending().await
}

/// `ENXIO`: nobody has the pipe open for reading.
const NO_READER: i32 = 6;
