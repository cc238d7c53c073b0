//! TLS on both sides: the certificates in force, the beginning of a connection, and the connection itself behind the face
//! of a plain one. Certificates are read at the start and at each reload, all or none; what is open stays as it is. The
//! other side's certificate is verified always: there is no way to leave it out.

mod explain;
mod files;
mod tunnel;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, Error, ServerConfig, ServerConnection};
use rustls_pki_types::ServerName;

pub use files::CertificateFault;
pub(super) use tunnel::Tls;

use super::socket::Socket;
use super::stream::Stream;
use crate::config::{Config, Entrance, KeyPair, ListenTls, Place, Target, UpstreamTls};
use crate::metrics::Unwelcome;
use files::Named;
use tunnel::HandshakeError;

/// What TLS goes by now. A listener, or a server, that speaks none has none, and gets none by a reload.
#[derive(Default)]
pub struct Certificates {
    /// For each listener, the main one first.
    incoming: Vec<Option<ArcSwap<ServerConfig>>>,
    outgoing: Option<ArcSwap<Outgoing>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of what is inside: there are keys in it.
        f.debug_struct("Certificates")
            .field("incoming", &self.incoming.iter().flatten().count())
            .field("outgoing", &self.outgoing.is_some())
            .finish()
    }
}

/// How connections to the server begin.
pub(super) struct Outgoing {
    config: Arc<ClientConfig>,
    /// `None`: that of the host that is connected to.
    name: Option<ServerName<'static>>,
}

impl Certificates {
    /// Reads all files that the configuration names.
    ///
    /// # Errors
    /// The first file that is of no use.
    pub fn read(config: &Config) -> Result<Certificates, CertificateFault> {
        let (incoming, outgoing) = read(config)?;
        Ok(Certificates {
            incoming: incoming.into_iter().map(|one| one.map(ArcSwap::from)).collect(),
            outgoing: outgoing.map(ArcSwap::from_pointee),
        })
    }

    /// Reads all files anew, and puts them in force for new connections. `config` has the listeners that there are.
    /// One that speaks TLS now and would not, or the other way round, stays as it is: that needs a restart.
    ///
    /// # Errors
    /// The first file that is of no use; then everything stays as it is.
    pub fn reload(&self, config: &Config) -> Result<(), CertificateFault> {
        let (incoming, outgoing) = read(config)?;
        for (in_force, incoming) in self.incoming.iter().zip(incoming) {
            if let (Some(in_force), Some(incoming)) = (in_force, incoming) {
                in_force.store(incoming);
            }
        }
        if let (Some(in_force), Some(outgoing)) = (&self.outgoing, outgoing) {
            in_force.store(Arc::new(outgoing));
        }
        Ok(())
    }

    /// For a client that comes in by this listener now; `None`: clients speak plain RESP there.
    pub(super) fn incoming(&self, listener: usize) -> Option<Arc<ServerConfig>> {
        self.incoming.get(listener)?.as_ref().map(ArcSwap::load_full)
    }

    /// For a connection to the server that begins now; `None`: the server speaks plain RESP.
    pub(super) fn outgoing(&self) -> Option<Arc<Outgoing>> {
        self.outgoing.as_ref().map(ArcSwap::load_full)
    }
}

type BothSides = (Vec<Option<Arc<ServerConfig>>>, Option<Outgoing>);

fn read(config: &Config) -> Result<BothSides, CertificateFault> {
    let one = |entrance: &Entrance| {
        let section = entrance.section();
        entrance.tls.as_ref().map(|tls| incoming(tls, &section)).transpose()
    };
    let incoming: Result<_, CertificateFault> = config.entrances().map(one).collect();
    let incoming = incoming?;
    let server = &config.upstream.server;
    let outgoing = match &server.target {
        Target::Place(Place::Tcp(address)) if server.tls => Some(outgoing(&config.upstream.tls, Some(&address.host))?),
        Target::Sentinels(_) if server.tls => Some(outgoing(&config.upstream.tls, None)?),
        Target::Place(_) | Target::Sentinels(_) => None,
    };
    Ok((incoming, outgoing))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// `section` is what the settings of this listener stand under.
fn incoming(tls: &ListenTls, section: &str) -> Result<Arc<ServerConfig>, CertificateFault> {
    let [cert, key, client_ca] = ["cert", "key", "client_ca"].map(|key| format!("{section}.tls.{key}"));
    let cert = Named {
        key: &cert,
        path: &tls.own.cert,
    };
    let key = Named {
        key: &key,
        path: &tls.own.key,
    };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| cert.fault(error.to_string()))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let ca = Named { key: &client_ca, path };
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(ca.roots()?), provider())
                .build()
                .map_err(|error| ca.fault(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(cert.certificates()?, key.private_key()?)
        .map_err(|error| own_fault(&tls.own, cert, key, &error))?;
    Ok(Arc::new(config))
}

/// `host`: the one in the URL, if the server stays there.
fn outgoing(tls: &UpstreamTls, host: Option<&str>) -> Result<Outgoing, CertificateFault> {
    let roots = match &tls.ca {
        None => files::system_roots()?,
        Some(path) => Named {
            key: "upstream.tls.ca",
            path,
        }
        .roots()?,
    };
    let url = Named {
        key: "upstream.url",
        path: host.unwrap_or_default().as_ref(),
    };
    let name = tls.server_name.as_deref().or(host).map(str::to_owned);
    let name = name
        .map(ServerName::try_from)
        .transpose()
        .map_err(|_| url.fault("is no name that stands in a certificate; set upstream.tls.server_name"))?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| url.fault(error.to_string()))?
        .with_root_certificates(roots);
    let config = match &tls.own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let cert = Named {
                key: "upstream.tls.cert",
                path: &own.cert,
            };
            let key = Named {
                key: "upstream.tls.key",
                path: &own.key,
            };
            builder
                .with_client_auth_cert(cert.certificates()?, key.private_key()?)
                .map_err(|error| own_fault(own, cert, key, &error))?
        }
    };
    Ok(Outgoing {
        config: Arc::new(config),
        name,
    })
}

/// A certificate and a key that are of no use together.
fn own_fault(own: &KeyPair, cert: Named<'_>, key: Named<'_>, error: &Error) -> CertificateFault {
    match error {
        Error::InconsistentKeys(_) => key.fault(format!(
            "is not the key of the certificate in {} (the first one there counts)",
            own.cert.display()
        )),
        Error::InvalidCertificate(fault) => cert.fault(format!("the certificate cannot be used: {fault}")),
        // Rustls' texts here name kinds of keys and nothing of the key itself.
        other => key.fault(format!("cannot be used: {other}")),
    }
}

impl Outgoing {
    fn name_at(&self, place: &Place) -> io::Result<ServerName<'static>> {
        let named = match (&self.name, place) {
            (Some(name), _) => Some(name.clone()),
            (None, Place::Tcp(address)) => ServerName::try_from(address.host.clone()).ok(),
            (None, Place::Unix(_)) => None,
        };
        let text = "TLS: the host has no name that stands in a certificate; set upstream.tls.server_name";
        named.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    /// Begins TLS on a connection to the server at this place.
    ///
    /// # Errors
    /// What is wrong with the server's TLS or ours, with the key of the configuration to look at.
    pub(super) async fn begin(&self, socket: Socket, place: &Place) -> io::Result<Stream> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name_at(place)?)
            .map_err(|error| explain::broken(&error))?;
        let mut tls = Box::new(Tls::new(socket, Connection::Client(connection)));
        match poll_fn(|cx| tls.poll_handshake(cx)).await {
            Ok(()) => Ok(Stream::Tls(tls)),
            Err(HandshakeError::Tls(error)) => Err(explain::broken(&error)),
            Err(HandshakeError::NotTls) => Err(io::Error::new(io::ErrorKind::InvalidData, explain::NO_TLS)),
            Err(HandshakeError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            Err(HandshakeError::Silent | HandshakeError::Io(_)) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "TLS: the server closed the connection at its beginning; perhaps it does not speak TLS at this port",
            )),
        }
    }
}

/// Why a client did not get in. `None`: it left without a word, as who only looks whether the port is open.
pub(super) type Refusal = Option<(Unwelcome, String)>;

/// Begins TLS on a client's connection.
///
/// # Errors
/// Why it does not come about.
pub(super) async fn accept(socket: Socket, config: Arc<ServerConfig>) -> Result<Stream, Refusal> {
    let broken = |text: String| Some((Unwelcome::Handshake, text));
    let connection = ServerConnection::new(config).map_err(|error| broken(error.to_string()))?;
    let mut tls = Box::new(Tls::new(socket, Connection::Server(connection)));
    match poll_fn(|cx| tls.poll_handshake(cx)).await {
        Ok(()) => Ok(Stream::Tls(tls)),
        Err(HandshakeError::Silent) => Err(None),
        Err(HandshakeError::NotTls) => Err(Some((
            Unwelcome::PlainOnTls,
            "its first bytes are none of TLS, which is spoken at this port".to_owned(),
        ))),
        Err(HandshakeError::Tls(error)) => Err(Some(explain::client(&error))),
        Err(HandshakeError::Io(error)) => Err(broken(format!("it left in the middle of the TLS handshake: {error}"))),
    }
}
