//! PROXY headers: who reads exactly what is asked for never takes a byte of the client's own and comes to the same end,
//! and what is accepted is what the protocol says, told once more.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use lockward::resp::announced::{Announced, HeaderError, LONGEST_1, LONGEST_2, SIGNATURE, is_line, read};

/// All of the input is what comes through the connection.
pub fn check(input: &[u8]) {
    let (length, said) = as_a_door_reads(input);
    let header = &input[..length];
    assert!(length <= LONGEST_2.max(LONGEST_1), "a header of {length} bytes");
    match said {
        Ok(Announced::More(_)) => {
            let whole = (0..=input.len()).find(|end| expected(&input[..*end]).is_some());
            assert_eq!(whole, None, "asks for more than the header");
        }
        Ok(Announced::Client(client)) => assert_eq!(expected(header), Some(Some(client)), "whose connection?"),
        Ok(Announced::Nobody) => assert_eq!(expected(header), Some(None), "nobody's?"),
        Err(_) => assert_eq!(expected(header), None, "a good header is refused"),
    }
    // With a byte too many it is none.
    if matches!(said, Ok(Announced::Client(_) | Announced::Nobody)) {
        assert_eq!(read(&[header, b"*"].concat()), Err(HeaderError::Malformed));
    }
    if is_line(input) {
        assert!(input.starts_with(b"PROXY "));
    }
}

/// Reads no more than was asked for; how much was read, and what came of it.
fn as_a_door_reads(input: &[u8]) -> (usize, Result<Announced, HeaderError>) {
    let mut at = 0;
    loop {
        let said = read(&input[..at]);
        // All that was said of a longer beginning must fit to it.
        match said {
            Ok(Announced::More(due)) => {
                assert!(due > 0, "asks for nothing");
                if at + due > input.len() {
                    let partly = read(input);
                    if let Ok(Announced::More(less)) = partly {
                        assert!(less > 0);
                    }
                    return (at, said);
                }
                at += due;
            }
            _ => return (at, said),
        }
    }
}

/// `None`: no good header. `Some(None)`: it names nobody.
fn expected(header: &[u8]) -> Option<Option<SocketAddr>> {
    if header.starts_with(SIGNATURE) {
        version_2(header)
    } else {
        version_1(header)
    }
}

fn version_1(header: &[u8]) -> Option<Option<SocketAddr>> {
    if header.len() > 107 || header.iter().filter(|byte| **byte == b'\n').count() != 1 {
        return None;
    }
    let text = core::str::from_utf8(header).ok()?.strip_suffix("\r\n")?;
    let words: Vec<&str> = text.split(' ').collect();
    if words[0] != "PROXY" || words.len() < 2 {
        return None;
    }
    if words[1] == "UNKNOWN" {
        return Some(None);
    }
    let [_, family, source, target, from, to] = words[..] else {
        return None;
    };
    let (source, target): (IpAddr, IpAddr) = (source.parse().ok()?, target.parse().ok()?);
    let fits = match family {
        "TCP4" => source.is_ipv4() && target.is_ipv4(),
        "TCP6" => source.is_ipv6() && target.is_ipv6(),
        _ => false,
    };
    let ports: Vec<u16> = [from, to].iter().filter_map(|text| text.parse().ok()).collect();
    let plain = ports.len() == 2 && ports[0].to_string() == from && ports[1].to_string() == to;
    (fits && plain).then(|| Some(SocketAddr::new(source, ports[0])))
}

fn version_2(header: &[u8]) -> Option<Option<SocketAddr>> {
    let (command, kind) = (*header.get(12)?, *header.get(13)?);
    let length = usize::from(*header.get(14)?) << 8 | usize::from(*header.get(15)?);
    if header.len() != 16 + length || header.len() > LONGEST_2 {
        return None;
    }
    let body = &header[16..];
    match (command, kind >> 4, kind & 15) {
        (0x20, _, _) => Some(None),
        (0x21, 0..=3, 0..=2) => match kind {
            0x11 if length < 12 => None,
            0x21 if length < 36 => None,
            0x11 => Some(Some(SocketAddr::new(
                [body[0], body[1], body[2], body[3]].into(),
                port(&body[8..]),
            ))),
            0x21 => {
                let address: [u8; 16] = body[..16].try_into().ok()?;
                Some(Some(SocketAddr::new(Ipv6Addr::from(address).into(), port(&body[32..]))))
            }
            _ => Some(None),
        },
        _ => None,
    }
}

fn port(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}
