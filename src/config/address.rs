//! Where to listen and where the server is: `host:port`, `[::1]:port`, `redis://…`, `rediss://…`,
//! `redis+unix:///…`. Resolves no
//! names. Errors never repeat an URL, since a password may stand in it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use super::Secret;
use super::fault::shown;

/// The longest path of a unix socket, in bytes (Linux; 108 with the zero behind it).
const LONGEST_SOCKET_PATH: usize = 107;
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

/// The server and as whom lockward's own connection comes to it. Clients come as themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it is.
    pub place: Place,
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

/// Reads `redis://[user[:password]@]host[:port][/database]`, the same with `rediss://` for TLS, or
/// `redis+unix://[user[:password]@]/path`.
///
/// # Errors
///
/// What is wrong with the text, without repeating it.
pub(super) fn server(text: &str) -> Result<Server, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("must be a URL, like redis://127.0.0.1:6379".to_owned());
    };
    let (unix, tls) = match scheme {
        "redis" => (false, false),
        "rediss" => (false, true),
        "redis+unix" => (true, false),
        scheme if scheme.contains("sentinel") || scheme.contains("cluster") => {
            return Err("Sentinel and Cluster are not in this version yet; name one server by redis://".to_owned());
        }
        "unix" | "redis-socket" => return Err("for a unix socket write redis+unix:///path".to_owned()),
        _ => return Err("must begin with redis://, rediss:// or redis+unix://".to_owned()),
    };
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
    let (place, database) = if unix {
        (unix_place(host, path)?, 0)
    } else {
        (tcp_place(host)?, database(path)?)
    };
    let (user, password) = (some(user), some(password).map(Secret::new));
    Ok(Server {
        place,
        tls,
        user,
        password,
        database,
    })
}

fn unix_place(host: &str, path: &str) -> Result<Place, String> {
    match host {
        "" => Ok(Place::Unix(socket_path(&unescape(path)?)?)),
        _ => Err("names a host before the path; a unix socket has three slashes: redis+unix:///path".to_owned()),
    }
}

fn tcp_place(host: &str) -> Result<Place, String> {
    let (host, port) = split(host)?;
    match port.unwrap_or(DEFAULT_PORT) {
        0 => Err("port 0 is no port to connect to".to_owned()),
        port => Ok(Place::Tcp(HostPort { host, port })),
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
    if !host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
    {
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

/// Undoes percent escapes.
fn unescape(text: &str) -> Result<String, String> {
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
