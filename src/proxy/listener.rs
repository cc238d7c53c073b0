//! Where clients come in: TCP ports and unix sockets. Takes connections and gives each to a worker.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::shared::Shared;
use super::socket::{Arrival, Socket};
use super::unix;
use super::workers::{Newcomer, Workers};
use crate::config::{Entrance, Listen, Place};
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
    /// Bytes that all clients together may have lying here.
    pub buffered: usize,
}

impl From<&Listen> for Limits {
    fn from(listen: &Listen) -> Limits {
        Limits {
            keep_alive: listen.tcp_keepalive,
            max_connections: listen.max_connections,
            per_address: listen.max_connections_per_address,
            idle: listen.idle_timeout,
            buffered: listen.max_buffered,
        }
    }
}

impl Listener {
    /// Binds the place. A unix socket that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn bind(entrance: &Entrance) -> io::Result<Listener> {
        match &entrance.place {
            Place::Tcp(address) => TcpListener::bind((address.host.as_str(), address.port))
                .await
                .map(Listener::Tcp),
            Place::Unix(path) => {
                remove_stale(path).await?;
                unix::listen(path, &entrance.rights).map(Listener::Unix)
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

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Socket>> {
        Poll::Ready(match self {
            Listener::Tcp(listener) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                stream.set_nodelay(true).map(|()| Socket::Tcp(stream))
            }
            Listener::Unix(listener) => ready!(listener.poll_accept(cx)).map(|(stream, _)| Socket::Unix(stream)),
        })
    }
}

/// The next client of any listener, and of which; `turn` says who is asked first, so that each has its turn.
fn poll_accept(listeners: &[Listener], turn: usize, cx: &mut Context<'_>) -> Poll<(usize, io::Result<Socket>)> {
    let numbered = listeners.iter().enumerate();
    for (number, listener) in numbered.clone().skip(turn).chain(numbered.take(turn)) {
        if let Poll::Ready(accepted) = listener.poll_accept(cx) {
            return Poll::Ready((number, accepted));
        }
    }
    Poll::Pending
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
pub(super) async fn run(listeners: Vec<Listener>, shared: Arc<Shared>, mut workers: Workers) {
    let mut turn = 0;
    let mut draining = shared.draining.clone();
    // As long as nothing changes, each try would say the same.
    let troubles = Limit::of(1);
    loop {
        tokio::select! {
            () = drain_begins(&mut draining) => break,
            (listener, accepted) = poll_fn(|cx| poll_accept(&listeners, turn, cx)) => match accepted {
                Ok(stream) => {
                    take(stream, listener, &shared, &mut workers);
                    turn = (listener + 1) % listeners.len();
                }
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
    for (number, listener) in listeners.iter().enumerate() {
        // Another process takes those who wait there.
        if shared
            .upgrading
            .get()
            .is_some_and(|upgrading| upgrading.keeps_socket(number))
        {
            continue;
        }
        // Those who are connected as far as they know would be reset.
        for _ in 0..BACKLOG {
            let Some(stream) = waiting(listener).await else { break };
            take(stream, number, &shared, &mut workers);
        }
    }
    drop(listeners);
    workers.empty().await;
}

/// A client that waits there already.
async fn waiting(listener: &Listener) -> Option<Socket> {
    let next = poll_fn(|cx| listener.poll_accept(cx));
    timeout(Duration::ZERO, next).await.ok()?.ok()
}

/// Gives a client to a worker, if there is room for it.
fn take(stream: Socket, listener: usize, shared: &Shared, workers: &mut Workers) {
    if !shared.door.lets_in(shared, listener, &stream) {
        return;
    }
    let (limits, proxied) = (shared.limits.load(), shared.door.is_proxied(listener));
    // Where a load balancer's client comes from is known only later.
    let address = stream.peer_address().filter(|_| !proxied);
    let address = address.map(|address| address.ip().to_canonical());
    let Some(seat) = workers.seat(address, &limits) else {
        // Who waits for a handshake would not understand it.
        if shared.door.certificates.incoming(listener).is_none() {
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
        Ok(arrival) => workers.give(Newcomer {
            arrival,
            connection: shared.connection(),
            listener,
            seat,
        }),
        Err(error) => tracing::warn!(%error, "cannot take a client"),
    }
}

/// Waits until a drain is asked for, or nobody is left to ask.
pub(super) async fn drain_begins(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|draining| *draining).await;
}

/// Says what the server itself would say, as far as it fits at once, and closes.
pub(super) fn turn_away(stream: &Socket) {
    let mut line = BytesMut::new();
    encode::error(&mut line, texts::TOO_MANY_CLIENTS.as_bytes());
    // Nobody waits for a client that there is no room for.
    let _ = stream.try_write(&line);
}
