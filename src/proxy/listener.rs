//! Where clients come in: a TCP port or a unix socket. Takes connections and gives each to a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::shared::Shared;
use super::socket::{Arrival, Socket};
use super::upgrade::Upgrading;
use super::workers::Workers;
use crate::config::{Listen, Place};
use crate::metrics::{Limit, Verdict};
use crate::resp::{encode, texts};

/// How long to wait when the system has no file descriptor left.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

/// As many clients wait to be taken, at most, as the system keeps for a listener (tokio asks for so many).
const BACKLOG: usize = 1024;

/// A bound listener.
pub(super) enum Listener {
    /// On TCP.
    Tcp(TcpListener),
    /// On a unix socket.
    Unix(UnixListener),
}

/// Limits of the accepting side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// When the system looks for dead peers; `None`: never.
    pub keep_alive: Option<Duration>,
    /// More are turned away, as the server does it.
    pub max_connections: usize,
    /// More of one IP address, likewise.
    pub per_address: Option<usize>,
    /// How long a client may be idle.
    pub idle: Option<Duration>,
}

impl From<&Listen> for Limits {
    fn from(listen: &Listen) -> Limits {
        Limits {
            keep_alive: listen.tcp_keepalive,
            max_connections: listen.max_connections,
            per_address: listen.max_connections_per_address,
            idle: listen.idle_timeout,
        }
    }
}

impl Listener {
    /// Binds the place. A unix socket that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn bind(place: &Place) -> io::Result<Listener> {
        match place {
            Place::Tcp(address) => TcpListener::bind((address.host.as_str(), address.port))
                .await
                .map(Listener::Tcp),
            Place::Unix(path) => {
                remove_stale(path).await?;
                UnixListener::bind(path).map(Listener::Unix)
            }
        }
    }

    /// The TCP port that was bound.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        }
    }

    /// The socket itself.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| Socket::Unix(stream)),
        }
    }
}

async fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if found.file_type().is_socket() && UnixStream::connect(path).await.is_err() {
        return std::fs::remove_file(path);
    }
    Ok(())
}

/// Takes clients until a drain is asked for, then waits for those that are there.
pub(super) async fn run(listener: Listener, shared: Arc<Shared>, mut workers: Workers) {
    let mut draining = shared.draining.clone();
    // As long as nothing changes, each try would say the same.
    let troubles = Limit::of(1);
    loop {
        tokio::select! {
            () = drain_begins(&mut draining) => break,
            accepted = listener.accept() => match accepted {
                Ok(stream) => take(stream, &shared, &mut workers),
                // A client that is gone before it was taken is nobody's fault; no descriptor left calms down by waiting.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    if let Verdict::Write { dropped } = troubles.ask(shared.now()) {
                        tracing::warn!(%error, dropped, "cannot take a client");
                    }
                    sleep(OUT_OF_FILES).await;
                }
            },
        }
    }
    if !shared.upgrading.get().is_some_and(Upgrading::has_heir) {
        // Those who are connected as far as they know would be reset.
        for _ in 0..BACKLOG {
            match timeout(Duration::ZERO, listener.accept()).await {
                Ok(Ok(stream)) => take(stream, &shared, &mut workers),
                Ok(Err(_)) | Err(_) => break,
            }
        }
    }
    drop(listener);
    workers.empty().await;
}

/// Gives a client to a worker, if there is room for it.
fn take(stream: Socket, shared: &Shared, workers: &mut Workers) {
    let limits = shared.limits.load();
    let address = stream.peer_address().map(|address| address.ip().to_canonical());
    let Some(seat) = workers.seat(address, &limits) else {
        // Who waits for a handshake would not understand it.
        if shared.door.certificates.incoming().is_none() {
            turn_away(&stream);
        }
        return;
    };
    if let Some(idle) = limits.keep_alive
        && let Err(error) = stream.keep_alive(idle)
    {
        tracing::debug!(%error, "no keep-alive for a client");
    }
    match Arrival::try_from(stream) {
        Ok(arrival) => workers.give(arrival, shared.connection(), seat),
        Err(error) => tracing::warn!(%error, "cannot take a client"),
    }
}

/// Waits until a drain is asked for, or nobody is left to ask.
pub(super) async fn drain_begins(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|draining| *draining).await;
}

/// Says what the server itself would say, as far as it fits at once, and closes.
fn turn_away(stream: &Socket) {
    let mut line = BytesMut::new();
    encode::error(&mut line, texts::TOO_MANY_CLIENTS.as_bytes());
    // Nobody waits for a client that there is no room for.
    let _ = stream.try_write(&line);
}
