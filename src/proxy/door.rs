//! How a client gets in: by TLS where that is spoken, within a time limit, and on the thread that will serve it, so that
//! nobody waits for it. Who does not get in by TLS costs no connection to the server; it is counted, and told of in the
//! log.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::listener::drain_begins;
use super::shared::Shared;
use super::socket::Socket;
use super::stream::Stream;
use super::tls::{self, Certificates};
use crate::config::Config;
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
    handshake_timeout: Duration,
}

impl Door {
    pub(super) fn new(config: &Config, certificates: Arc<Certificates>, metrics: Arc<Metrics>) -> Door {
        Door {
            certificates,
            log: UnwelcomeLog::new(metrics),
            handshake_timeout: config.listen.handshake_timeout,
        }
    }

    /// A client was closed that speaks another protocol in the clear.
    pub(super) fn closed(&self, shared: &Shared, connection: &ConnectionId, protocol: Protocol) {
        let from = shared.clients.find(connection);
        let from = from.as_ref().map_or("", |client| &client.address);
        let (reason, text) = match protocol {
            Protocol::Tls => (Unwelcome::TlsOnPlain, "it speaks TLS, and [listen] has no tls"),
            Protocol::Http => (Unwelcome::Http, "it speaks HTTP; that is for the address in [admin]"),
        };
        self.log.tell(reason, from, text, shared.now());
    }
}

/// Lets a client in. `None`: it did not get in, or a drain was asked for meanwhile.
pub(super) async fn welcome(shared: &Shared, socket: Socket) -> Option<Stream> {
    let Some(config) = shared.door.certificates.incoming() else {
        return Some(Stream::Plain(socket));
    };
    let (from, limit) = (address(&socket), shared.door.handshake_timeout);
    let mut draining = shared.draining.clone();
    let drained = async {
        drain_begins(&mut draining).await;
        // Who is nearly in has a request on its lips.
        sleep(LAST_MOMENT).await;
    };
    // Boxed: a client that is in has no room set aside for it.
    let handshake = Box::pin(timeout(limit, tls::accept(socket, config)));
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = drained => return None,
    };
    let refusal = match outcome {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(refusal)) => refusal?,
        Err(_) => (
            Unwelcome::HandshakeTimeout,
            format!("its TLS handshake took longer than {limit:?}"),
        ),
    };
    let (reason, text) = refusal;
    shared.door.log.tell(reason, &from, &text, shared.now());
    None
}

/// Where a client comes from, for the log.
pub(super) fn address(socket: &Socket) -> String {
    socket
        .peer_address()
        .map_or_else(|| "unix socket".to_owned(), |address| address.to_string())
}
