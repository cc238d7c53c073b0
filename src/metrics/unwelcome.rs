//! Connections that were closed before they had a session, or because they speak another protocol: counted by reason, and
//! told of in the log, at most a line each second with a count of those left out. Closes nothing.

use std::sync::Arc;

use super::Metrics;
use super::limit::{Limit, Verdict};
use super::printable::printable;
use crate::event::Time;

/// Why a connection was closed (metric label and log field `reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwelcome {
    /// Something else than TLS came to a port where that is spoken.
    PlainOnTls,
    /// TLS came to a port where it is not spoken.
    TlsOnPlain,
    /// HTTP came in the clear.
    Http,
    /// The TLS handshake, or a PROXY header before it, took too long.
    HandshakeTimeout,
    /// The client's certificate is missing or cannot be verified.
    ClientCertificate,
    /// The TLS handshake failed otherwise.
    Handshake,
    /// A PROXY header came where none is expected.
    UnaskedProxyHeader,
    /// Where one is expected, something else came, or a faulty one.
    ProxyHeader,
    /// Where one is expected, somebody came whose headers are not believed.
    UntrustedProxy,
    /// Too much of what it sent, or did not read, lay here.
    Buffers,
}

impl Unwelcome {
    /// Every reason, in the order of its variants.
    pub const ALL: [Unwelcome; 10] = [
        Unwelcome::PlainOnTls,
        Unwelcome::TlsOnPlain,
        Unwelcome::Http,
        Unwelcome::HandshakeTimeout,
        Unwelcome::ClientCertificate,
        Unwelcome::Handshake,
        Unwelcome::UnaskedProxyHeader,
        Unwelcome::ProxyHeader,
        Unwelcome::UntrustedProxy,
        Unwelcome::Buffers,
    ];

    /// The word used in labels and log lines.
    pub fn word(self) -> &'static str {
        match self {
            Unwelcome::PlainOnTls => "plain_on_tls",
            Unwelcome::TlsOnPlain => "tls_on_plain",
            Unwelcome::Http => "http",
            Unwelcome::HandshakeTimeout => "handshake_timeout",
            Unwelcome::ClientCertificate => "client_certificate",
            Unwelcome::Handshake => "handshake",
            Unwelcome::UnaskedProxyHeader => "unasked_proxy_header",
            Unwelcome::ProxyHeader => "proxy_header",
            Unwelcome::UntrustedProxy => "untrusted_proxy",
            Unwelcome::Buffers => "buffers",
        }
    }
}

/// Tells of them.
#[derive(Debug)]
pub struct UnwelcomeLog {
    metrics: Arc<Metrics>,
    limit: Limit,
}

impl UnwelcomeLog {
    /// A log that counts in `metrics`.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        UnwelcomeLog {
            metrics,
            limit: Limit::of(1),
        }
    }

    /// One was closed. `from` is its address; `text` says more than the reason.
    pub fn tell(&self, reason: Unwelcome, from: &str, text: &str, now: Time) {
        self.metrics.unwelcome(reason);
        if let Verdict::Write { dropped } = self.limit.ask(now) {
            let (reason, text) = (reason.word(), printable(text.as_bytes()));
            tracing::warn!(reason, from, left_out = dropped, "a connection was closed: {text}");
        }
    }

    /// Tells of those left out that no later line has told of. To be called about once a second.
    pub fn settle(&self, now: Time) {
        let left_out = self.limit.settle(now);
        if left_out > 0 {
            tracing::warn!(left_out, "more connections were closed");
        }
    }
}
