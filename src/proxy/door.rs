//! How a client gets in: by a load balancer's header and by TLS, where its listener has these, within a time limit,
//! and on the thread that will serve it, so that nobody waits for it. Who does not get in costs no connection to the
//! server; it is counted, and told of in the log.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{Instant, sleep, timeout_at};

use super::announced;
use super::listener::{drain_begins, turn_away};
use super::shared::Shared;
use super::socket::Socket;
use super::stream::Stream;
use super::tls::{self, Certificates, Refusal};
use super::workers::Seat;
use crate::config::{Config, Trusted};
use crate::event::ConnectionId;
use crate::metrics::{Metrics, Unwelcome, UnwelcomeLog};
use crate::session::Protocol;

/// How long a handshake may still take once a drain was asked for.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// What clients get in by.
pub(super) struct Door {
    /// What TLS goes by, on both sides.
    pub certificates: Arc<Certificates>,
    /// Tells of those who do not get in.
    pub log: UnwelcomeLog,
    /// For each listener, the main one first: whose PROXY headers are believed; `None`: nobody sends one.
    trusted: Vec<Option<ArcSwap<Trusted>>>,
    handshake_timeout: Duration,
}

/// A client that is in.
pub(super) struct Guest {
    /// Its connection.
    pub stream: Stream,
    /// Where a load balancer says that it comes from.
    pub announced: Option<SocketAddr>,
    /// By which listener it came; 0 is the main one.
    pub listener: usize,
}

impl Door {
    pub(super) fn new(config: &Config, certificates: Arc<Certificates>, metrics: Arc<Metrics>) -> Door {
        let trusted = config.entrances().map(|entrance| entrance.trusted.clone());
        Door {
            certificates,
            log: UnwelcomeLog::new(metrics),
            trusted: trusted.map(|trusted| trusted.map(ArcSwap::from_pointee)).collect(),
            handshake_timeout: config.listen.handshake_timeout,
        }
    }

    /// Other load balancers are believed from here on. `config` has the listeners that there are.
    pub(super) fn reload(&self, config: &Config) {
        for (in_force, entrance) in self.trusted.iter().zip(config.entrances()) {
            if let (Some(in_force), Some(trusted)) = (in_force, &entrance.trusted) {
                in_force.store(Arc::new(trusted.clone()));
            }
        }
    }

    /// Whether whoever comes by this listener sends a PROXY header first.
    pub(super) fn is_proxied(&self, listener: usize) -> bool {
        self.trusted.get(listener).is_some_and(Option::is_some)
    }

    /// Whether somebody may go on who comes by this listener from there. Tells of it if not.
    pub(super) fn lets_in(&self, shared: &Shared, listener: usize, socket: &Socket) -> bool {
        let Some(Some(trusted)) = self.trusted.get(listener) else {
            return true;
        };
        let from = socket.peer_address();
        if from.is_none() && !socket.is_unix() {
            // It is gone again, as load balancers do that only look; nobody can say who it was.
            return false;
        }
        let believed = trusted.load().believes(from.map(|address| address.ip()));
        if !believed {
            let text = "only load balancers get in there, and it is none of those in trusted_proxies";
            let from = address(socket, None);
            self.log.tell(Unwelcome::UntrustedProxy, &from, text, shared.now());
        }
        believed
    }

    /// A client was closed that speaks another protocol in the clear.
    pub(super) fn closed(&self, shared: &Shared, connection: &ConnectionId, protocol: Protocol) {
        let from = shared.clients.find(connection);
        let from = from.as_ref().map_or("", |client| &client.address);
        let (reason, text) = match protocol {
            Protocol::Tls => (Unwelcome::TlsOnPlain, "it speaks TLS, and its listener has no tls"),
            Protocol::Http => (Unwelcome::Http, "it speaks HTTP; that is for the address in [admin]"),
            Protocol::ProxyHeader => (
                Unwelcome::UnaskedProxyHeader,
                "it sent a PROXY header, and its listener has no proxy_protocol",
            ),
        };
        self.log.tell(reason, from, text, shared.now());
    }

    /// A client is closed for what it has lying here.
    pub(super) fn held_too_much(&self, shared: &Shared, connection: &ConnectionId, bytes: usize) {
        let from = shared.clients.find(connection);
        let from = from.as_ref().map_or("", |client| &client.address);
        let all = shared.held.bytes();
        let text = format!(
            "{bytes} bytes of its requests and answers lie here, {all} of all clients: see max_buffered in [listen]"
        );
        self.log.tell(Unwelcome::Buffers, from, &text, shared.now());
    }
}

/// Lets a client in. `None`: it did not get in, or a drain was asked for meanwhile.
pub(super) async fn welcome(shared: &Shared, socket: Socket, listener: usize, seat: &mut Seat) -> Option<Guest> {
    let (door, tls) = (&shared.door, shared.door.certificates.incoming(listener));
    if tls.is_none() && !door.is_proxied(listener) {
        return Some(Guest {
            stream: Stream::Plain(socket),
            announced: None,
            listener,
        });
    }
    // Boxed: a client that is in has no room set aside for it.
    Box::pin(enter(shared, socket, listener, seat)).await
}

async fn enter(shared: &Shared, socket: Socket, listener: usize, seat: &mut Seat) -> Option<Guest> {
    let (door, tls) = (&shared.door, shared.door.certificates.incoming(listener));
    let mut entering = Entering {
        shared,
        from: address(&socket, None),
        until: Instant::now() + door.handshake_timeout,
    };
    let (mut socket, mut announced) = (socket, None);
    if door.is_proxied(listener) {
        (socket, announced) = entering.step("PROXY header", announced::take(socket)).await?;
        entering.from = address(&socket, announced);
        if !seat.is_for(ip(&socket, announced), &shared.limits.load()) {
            // Who waits for a handshake would not understand it.
            if tls.is_none() {
                turn_away(&socket);
            }
            return None;
        }
    }
    let stream = match tls {
        None => Stream::Plain(socket),
        Some(config) => entering.step("TLS handshake", tls::accept(socket, config)).await?,
    };
    Some(Guest {
        stream,
        announced,
        listener,
    })
}

/// A client on its way in.
struct Entering<'s> {
    shared: &'s Shared,
    from: String,
    until: Instant,
}

impl Entering<'_> {
    /// One step on the way. `None`: it fails, which is told, or a drain was asked for meanwhile.
    async fn step<T>(&self, what: &str, step: impl Future<Output = Result<T, Refusal>>) -> Option<T> {
        let (door, mut draining) = (&self.shared.door, self.shared.draining.clone());
        let drained = async {
            drain_begins(&mut draining).await;
            // Who is nearly in has a request on its lips.
            sleep(LAST_MOMENT).await;
        };
        let outcome = tokio::select! {
            outcome = timeout_at(self.until, step) => outcome,
            () = drained => return None,
        };
        let refusal = match outcome {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(refusal)) => refusal?,
            Err(_) => (
                Unwelcome::HandshakeTimeout,
                format!("its {what} took longer than {:?}", door.handshake_timeout),
            ),
        };
        let (reason, text) = refusal;
        door.log.tell(reason, &self.from, &text, self.shared.now());
        None
    }
}

/// The IP address that a client counts under.
fn ip(socket: &Socket, announced: Option<SocketAddr>) -> Option<IpAddr> {
    let address = announced.or_else(|| socket.peer_address());
    address.map(|address| address.ip().to_canonical())
}

/// Where a client comes from, for the log.
pub(super) fn address(socket: &Socket, announced: Option<SocketAddr>) -> String {
    match announced.or_else(|| socket.peer_address()) {
        Some(address) => address.to_string(),
        None if socket.is_unix() => "unix socket".to_owned(),
        None => "a connection that is gone".to_owned(),
    }
}
