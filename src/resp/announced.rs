//! The header by which a load balancer announces whose connection it passes on, before the first byte of the client's
//! own: the PROXY protocol, versions 1 and 2 (HAProxy's `proxy-protocol.txt`). Knows how many bytes can still be read
//! without taking one of the client's. Whether the sender may announce anything is others' business.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// How a header of version 2 begins.
pub const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// How one of version 1 does.
const WORD: &[u8] = b"PROXY ";
/// The shortest header of all.
const SHORTEST: usize = b"PROXY UNKNOWN\r\n".len();
/// The longest of version 1, in bytes, its line end included (the protocol's own bound).
pub const LONGEST_1: usize = 107;
/// The longest of version 2 that is taken, in bytes: the addresses need 232 at most, the rest is for what load
/// balancers add (identifiers of a network's end point, certificates' names).
pub const LONGEST_2: usize = 4096;
/// What all headers of version 2 have: the signature, version and command, family and protocol, and a length.
const FIXED: usize = 16;

/// What is known of a header so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// At least so many bytes more belong to it.
    More(usize),
    /// It is whole, and says where the client's connection comes from.
    Client(SocketAddr),
    /// It is whole, and says that the connection is the sender's own (a health check), or does not say where it comes
    /// from.
    Nobody,
}

/// What makes it none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// It begins otherwise.
    #[error("its first bytes are no PROXY header")]
    None,
    /// It begins as one and goes on otherwise.
    #[error("its PROXY header is malformed")]
    Malformed,
    /// It has no end where it must have ended.
    #[error("its PROXY header is too long")]
    TooLong,
}

/// Reads a header, or the beginning of one: all that was read of the connection so far.
///
/// # Errors
/// What is wrong with it, as soon as that is known.
pub fn read(header: &[u8]) -> Result<Announced, HeaderError> {
    match header.first() {
        None => Ok(Announced::More(SHORTEST)),
        Some(b'P') => version_1(header),
        Some(b'\r') => version_2(header),
        Some(_) => Err(HeaderError::None),
    }
}

/// Whether an inline command is really the header of a load balancer: no command is called so, and none takes such
/// words.
pub fn is_line(line: &[u8]) -> bool {
    let words = line.strip_prefix(WORD).unwrap_or_default();
    [b"TCP4 ".as_slice(), b"TCP6 ", b"UNKNOWN"]
        .iter()
        .any(|start| words.starts_with(start))
}

/// Whether the beginning that two texts have in common is the same, and not all of the other is missing.
fn agrees(header: &[u8], start: &[u8]) -> bool {
    header.iter().zip(start).all(|(byte, wanted)| byte == wanted)
}

fn version_1(header: &[u8]) -> Result<Announced, HeaderError> {
    if !agrees(header, WORD) {
        return Err(HeaderError::None);
    }
    let Some(end) = header.iter().position(|byte| *byte == b'\n') else {
        // Its line end is still to come, or a half of it.
        let due = if header.ends_with(b"\r") { 1 } else { 2 };
        return match header.len() + due {
            all if all > LONGEST_1 => Err(HeaderError::TooLong),
            _ => Ok(Announced::More(due.max(SHORTEST.saturating_sub(header.len())))),
        };
    };
    let line = header.get(..=end).and_then(|line| line.strip_suffix(b"\r\n"));
    let words = line.and_then(|line| line.strip_prefix(WORD));
    match words.and_then(|words| core::str::from_utf8(words).ok()) {
        _ if end + 1 > LONGEST_1 => Err(HeaderError::TooLong),
        // Nobody was to read beyond it.
        _ if end + 1 != header.len() => Err(HeaderError::Malformed),
        Some(words) => line_1(words).ok_or(HeaderError::Malformed),
        None => Err(HeaderError::Malformed),
    }
}

/// `TCP4 192.0.2.1 192.0.2.9 40000 6379`, each with one space before it; or `UNKNOWN`, with whatever behind it.
fn line_1(words: &str) -> Option<Announced> {
    if words == "UNKNOWN" || words.starts_with("UNKNOWN ") {
        return Some(Announced::Nobody);
    }
    let mut words = words.split(' ');
    let family = words.next()?;
    let address = |word: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, _) = (address(words.next()?)?, address(words.next()?)?);
    let (port, _) = (port(words.next()?)?, port(words.next()?)?);
    let whole = words.next().is_none();
    whole.then(|| Announced::Client(SocketAddr::new(source, port)))
}

/// Without a sign, and without zeros in front.
fn port(word: &str) -> Option<u16> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    plain.then(|| word.parse().ok()).flatten()
}

fn version_2(header: &[u8]) -> Result<Announced, HeaderError> {
    if !agrees(header, SIGNATURE) {
        return Err(HeaderError::None);
    }
    let Some((fixed, rest)) = header.split_first_chunk::<FIXED>() else {
        return Ok(Announced::More(FIXED - header.len()));
    };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if FIXED + length > LONGEST_2 {
        return Err(HeaderError::TooLong);
    }
    let local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(HeaderError::Malformed),
    };
    match length.checked_sub(rest.len()) {
        Some(0) if local => Ok(Announced::Nobody),
        Some(0) => addresses_2(family, rest),
        Some(due) => Ok(Announced::More(due)),
        // Nobody was to read beyond it.
        None => Err(HeaderError::Malformed),
    }
}

/// The addresses stand at the front: both of them, then both ports. What follows is of no interest here.
fn addresses_2(family: u8, rest: &[u8]) -> Result<Announced, HeaderError> {
    let malformed = HeaderError::Malformed;
    let client = |address: IpAddr, ports: &[u8]| {
        let port = ports.first_chunk::<2>().ok_or(malformed)?;
        Ok(Announced::Client(SocketAddr::new(address, u16::from_be_bytes(*port))))
    };
    match (family >> 4, family & 0xf) {
        (4.., _) | (_, 3..) => Err(malformed),
        (1, 1) => {
            let (both, _) = rest.split_first_chunk::<12>().ok_or(malformed)?;
            let [a, b, c, d, _, _, _, _, ports @ ..] = both;
            client(Ipv4Addr::new(*a, *b, *c, *d).into(), ports)
        }
        (2, 1) => {
            let (both, _) = rest.split_first_chunk::<36>().ok_or(malformed)?;
            let (source, others) = both.split_first_chunk::<16>().ok_or(malformed)?;
            client(Ipv6Addr::from(*source).into(), others.get(16..).unwrap_or_default())
        }
        // Unix sockets, datagrams, or not said: no address of a client.
        _ => Ok(Announced::Nobody),
    }
}

#[cfg(test)]
mod tests;
