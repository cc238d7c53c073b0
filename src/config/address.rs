//! Where to listen and where the server is: `host:port`, `[::1]:port`, `redis://…`, `rediss://…`,
//! `redis+unix:///…`, `redis-sentinel://…`. Resolves no names. Errors never repeat an URL, since a password may stand
//! in it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use super::Secret;
use super::fault::shown;
use super::sentinel::{self, Sentinels};

/// The longest path of a unix socket, in bytes (Linux; 108 with the zero behind it).
const LONGEST_SOCKET_PATH: usize = 107;
/// The longest host name, in bytes (RFC 1035).
pub(super) const LONGEST_HOST: usize = 253;
const DEFAULT_PORT: u16 = 6379;

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Name, IPv4 address, or IPv6 address without its brackets.
    pub host: String,
    /// Port; 0 lets the system choose one to listen on.
    pub port: u16,
}

impl HostPort {
    /// What another program calls a host and a port to connect to; `None` if that is none.
    pub fn told(host: &[u8], port: &[u8]) -> Option<HostPort> {
        let host = std::str::from_utf8(host).ok()?;
        let port = std::str::from_utf8(port).ok().filter(|port| !port.starts_with('+'))?;
        // With colons it is an IPv6 address or nothing.
        let good = !host.is_empty() && host.len() <= LONGEST_HOST && is_host(host);
        if !good || (host.contains(':') && host.parse::<IpAddr>().is_err()) {
            return None;
        }
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let host = host.to_owned();
        Some(HostPort { host, port })
    }

    /// Whether only this machine can get there.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A place to listen at or to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// TCP.
    Tcp(HostPort),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => address.fmt(f),
            Place::Unix(path) => write!(f, "unix socket {}", path.display()),
        }
    }
}

/// Where the server is, or who knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It stays at this place.
    Place(Place),
    /// These say where the master is.
    Sentinels(Sentinels),
}

impl From<Place> for Target {
    fn from(place: Place) -> Target {
        Target::Place(place)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Place(place) => place.fmt(f),
            Target::Sentinels(sentinels) => sentinels.fmt(f),
        }
    }
}

/// The server and as whom lockward's own connection comes to it. Clients come as themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it is.
    pub target: Target,
    /// Whether TLS is spoken there.
    pub tls: bool,
    /// The ACL user; `None`: the default user.
    pub user: Option<String>,
    /// That user's password.
    pub password: Option<Secret>,
    /// The database in which lockward's own connection begins.
    pub database: u32,
}

/// Reads `host:port`.
///
/// # Errors
///
/// What is wrong with the text.
pub(super) fn host_port(text: &str) -> Result<HostPort, String> {
    let shown = shown(text);
    let (host, port) = split(text).map_err(|hint| format!("\"{shown}\" is no address: {hint}"))?;
    let port = port.ok_or_else(|| format!("\"{shown}\" has no port; write host:port"))?;
    Ok(HostPort { host, port })
}

/// Reads the path of a unix socket.
///
/// # Errors
///
/// What is wrong with the text.
pub(super) fn socket_path(text: &str) -> Result<PathBuf, String> {
    match text.len() {
        0 => Err("must be the path of a unix socket".to_owned()),
        1..=LONGEST_SOCKET_PATH if !text.contains('\0') => Ok(PathBuf::from(text)),
        length => Err(format!(
            "no path of a unix socket: {length} bytes, at most {LONGEST_SOCKET_PATH}, no zero byte"
        )),
    }
}

/// Reads `redis://[user[:password]@]host[:port][/database]`, the same with `rediss://` for TLS,
/// `redis+unix://[user[:password]@]/path`, or `redis-sentinel://[user[:password]@]host[:port],…/name`, the same with
/// `rediss-sentinel://` for TLS.
///
/// # Errors
///
/// What is wrong with the text, without repeating it.
pub(super) fn server(text: &str) -> Result<Server, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("must be a URL, like redis://127.0.0.1:6379".to_owned());
    };
    let (kind, tls) = kind(scheme)?;
    if rest.contains(['?', '#']) {
        return Err("takes no options behind ? or #; in a user or password write %3F, %23".to_owned());
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, password, host) = match authority.rsplit_once('@') {
        Some((who, host)) => {
            let (user, password) = who.split_once(':').unwrap_or((who, ""));
            (unescape(user)?, unescape(password)?, host)
        }
        None => (String::new(), String::new(), authority),
    };
    let (target, database) = match kind {
        Kind::Unix => (unix_place(host, path)?.into(), 0),
        Kind::Tcp => (tcp_place(host)?.into(), database(path)?),
        Kind::Sentinels => (Target::Sentinels(sentinel::sentinels(host, path)?), 0),
    };
    let (user, password) = (some(user), some(password).map(Secret::new));
    Ok(Server {
        target,
        tls,
        user,
        password,
        database,
    })
}

/// What stands behind the scheme of a URL.
enum Kind {
    Tcp,
    Unix,
    Sentinels,
}

/// Also whether TLS is spoken.
fn kind(scheme: &str) -> Result<(Kind, bool), String> {
    let hint = match scheme {
        "redis" => return Ok((Kind::Tcp, false)),
        "rediss" => return Ok((Kind::Tcp, true)),
        "redis+unix" => return Ok((Kind::Unix, false)),
        "redis-sentinel" => return Ok((Kind::Sentinels, false)),
        "rediss-sentinel" => return Ok((Kind::Sentinels, true)),
        scheme if scheme.to_ascii_lowercase().contains("sentinel") => {
            "for sentinels write redis-sentinel://host:26379,host:26379/master-name, or rediss-sentinel:// for TLS"
        }
        scheme if scheme.contains("cluster") => {
            "Cluster is not in this version yet; name one server by redis://, or sentinels by redis-sentinel://"
        }
        "unix" | "redis-socket" => "for a unix socket write redis+unix:///path",
        _ => "must begin with redis://, rediss://, redis+unix:// or redis-sentinel://",
    };
    Err(hint.to_owned())
}

fn unix_place(host: &str, path: &str) -> Result<Place, String> {
    match host {
        "" => Ok(Place::Unix(socket_path(&unescape(path)?)?)),
        _ => Err("names a host before the path; a unix socket has three slashes: redis+unix:///path".to_owned()),
    }
}

fn tcp_place(host: &str) -> Result<Place, String> {
    to_connect_to(host, DEFAULT_PORT).map(Place::Tcp)
}

/// Reads `host[:port]`.
pub(super) fn to_connect_to(text: &str, default_port: u16) -> Result<HostPort, String> {
    let (host, port) = split(text)?;
    match port.unwrap_or(default_port) {
        0 => Err("port 0 is no port to connect to".to_owned()),
        port => Ok(HostPort { host, port }),
    }
}

fn database(path: &str) -> Result<u32, String> {
    match path.trim_start_matches('/') {
        "" => Ok(0),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() < 10 => digits
            .parse()
            .map_err(|_| "names a database that is no number".to_owned()),
        _ => Err("what stands behind the port must be the number of a database, like /0".to_owned()),
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Splits a host, perhaps in brackets, from its port.
fn split(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("no IPv6 address stands in the brackets".to_owned());
            }
            let port = after.strip_prefix(':');
            if port.is_none() && !after.is_empty() {
                return Err("a colon and a port must follow the bracket".to_owned());
            }
            (host, port)
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => return Err("an IPv6 address stands in brackets".to_owned()),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err("the host is missing; 0.0.0.0 stands for all interfaces".to_owned());
    }
    if !is_host(host) {
        return Err("the host has characters that no host has (in a user or password, write them as %XX)".to_owned());
    }
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse().map_err(|_| "the port must be a number up to 65535")?)
        }
        Some(_) => return Err("the port must be a number up to 65535".to_owned()),
        None => None,
    };
    Ok((host.to_owned(), port))
}

/// Whether all characters can stand in the name or address of a host.
fn is_host(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
}

/// Undoes percent escapes.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let hex = piece
            .get(..2)
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let byte = byte.ok_or("has a % without two hex digits; for the character itself write %25")?;
        bytes.push(byte);
        bytes.extend_from_slice(piece.get(2..).unwrap_or_default().as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| "has escapes that are not UTF-8".to_owned())
}

#[cfg(test)]
mod tests;
