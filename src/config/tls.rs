//! The two `tls` tables: which files hold certificates and keys, for the clients' side and for the server's. Reads none
//! of those files.

use std::path::PathBuf;

use rustls_pki_types::ServerName;

use super::keys;
use super::reader::Reader;
use super::tree::{Node, Value};

/// A certificate and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// PEM: the certificate, and those between it and its root behind it.
    pub cert: PathBuf,
    /// PEM: the private key.
    pub key: PathBuf,
}

/// `tls` in `[listen]`, or in one of `[[listeners]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// What lockward shows to its clients.
    pub own: KeyPair,
    /// PEM: who signs clients' certificates; `None`: clients need none.
    pub client_ca: Option<PathBuf>,
}

/// `[upstream] tls`, for `rediss://`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// PEM: who signs the server's certificate; `None`: whom the system trusts.
    pub ca: Option<PathBuf>,
    /// What lockward shows to the server, if it asks.
    pub own: Option<KeyPair>,
    /// The name in the server's certificate; `None`: the host in the URL.
    pub server_name: Option<String>,
}

/// Reads `tls` of an entrance.
pub(super) fn listen(reader: &mut Reader<'_>) -> Option<ListenTls> {
    let mut tls = table(reader, keys::LISTEN_TLS)?;
    let (own, client_ca) = (key_pair(&mut tls, true), path(&mut tls, "client_ca"));
    tls.finish();
    Some(ListenTls { own: own?, client_ca })
}

/// Reads `[upstream] tls`.
pub(super) fn upstream(reader: &mut Reader<'_>) -> UpstreamTls {
    let Some(mut tls) = table(reader, keys::UPSTREAM_TLS) else {
        return UpstreamTls::default();
    };
    let settings = UpstreamTls {
        ca: path(&mut tls, "ca"),
        own: key_pair(&mut tls, false),
        server_name: tls.parsed("server_name", "a name in quotes", |text| {
            match ServerName::try_from(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(_) => {
                    Err("must be a host name or an IP address, as it stands in the server's certificate".to_owned())
                }
            }
        }),
    };
    tls.finish();
    settings
}

fn table<'r>(reader: &'r mut Reader<'_>, known: &'static [&'static str]) -> Option<Reader<'r>> {
    let Node { origin, value } = reader.take("tls")?;
    let Value::Table(table) = value else {
        let text = "must be a table, like { cert = \"/etc/lockward/cert.pem\", key = \"/etc/lockward/key.pem\" }";
        reader.fault(origin, "tls", text);
        return None;
    };
    let path = reader.path_of("tls");
    Some(Reader::new(path, origin, known, table, reader.faults))
}

fn path(tls: &mut Reader<'_>, key: &'static str) -> Option<PathBuf> {
    tls.parsed(key, "a path in quotes", |text| match text {
        "" => Err("must be the path of a PEM file".to_owned()),
        path => Ok(PathBuf::from(path)),
    })
}

/// One of the two without the other is a fault; so is neither, where they are `needed`.
fn key_pair(tls: &mut Reader<'_>, needed: bool) -> Option<KeyPair> {
    let slip = tls.has_slip_of("cert") || tls.has_slip_of("key");
    let there = [tls.has("cert"), tls.has("key")];
    let (cert, key) = (path(tls, "cert"), path(tls, "key"));
    if !slip && (needed || there.contains(&true)) {
        for (name, _) in ["cert", "key"].into_iter().zip(there).filter(|(_, there)| !there) {
            tls.whole_fault(
                name,
                format!("{name} is missing: a certificate and its key belong together"),
            );
        }
    }
    Some(KeyPair { cert: cert?, key: key? })
}
