//! Headers of load balancers by table, and by chance.

use proptest::prelude::*;

use super::*;

/// A header of version 2.
fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
    [SIGNATURE.as_slice(), &[command, family], &length, rest].concat()
}

/// 192.0.2.1, port 513, came to 192.0.2.9, port 1027.
const IPV4: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 9, 2, 1, 4, 3];

fn ipv6() -> Vec<u8> {
    let octets = |text: &str| text.parse::<Ipv6Addr>().expect("an address").octets();
    [octets("2001:db8::1").as_slice(), &octets("2001:db8::9"), &[2, 1, 4, 3]].concat()
}

fn client(text: &str) -> Result<Announced, HeaderError> {
    Ok(Announced::Client(text.parse().expect("an address with a port")))
}

#[test]
fn lines_of_version_1() {
    use HeaderError::{Malformed, None, TooLong};
    let long =
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    let unknown = format!("PROXY UNKNOWN {}\r\n", "x".repeat(LONGEST_1 - 16));
    assert_eq!((long.len(), unknown.len()), (104, LONGEST_1));
    for (line, expected) in [
        ("PROXY TCP4 192.0.2.1 192.0.2.9 513 1027\r\n", client("192.0.2.1:513")),
        (
            "PROXY TCP4 255.255.255.255 0.0.0.0 65535 0\r\n",
            client("255.255.255.255:65535"),
        ),
        (
            "PROXY TCP6 2001:db8::1 2001:db8::9 513 1027\r\n",
            client("[2001:db8::1]:513"),
        ),
        (
            "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n",
            client("[::ffff:192.0.2.1]:1"),
        ),
        (long, client("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535")),
        ("PROXY UNKNOWN\r\n", Ok(Announced::Nobody)),
        ("PROXY UNKNOWN ff:: ff:: 1 2\r\n", Ok(Announced::Nobody)),
        (&unknown, Ok(Announced::Nobody)),
        (&unknown.replace("UNKNOWN ", "UNKNOWN  "), Err(TooLong)),
        (&"PROXY TCP4 ".repeat(20), Err(TooLong)),
        ("PROXY UNKNOWNS\r\n", Err(Malformed)),
        ("PROXY TCP5 1.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY tcp4 1.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY  TCP4 1.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP4  1.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1 2 \r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP4 01.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP4 ::1 ::1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP6 1.1.1.1 1.1.1.1 1 2\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 +1 2\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 01 2\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1 65536\r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1 \r\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1 2\n", Err(Malformed)),
        ("PROXY TCP4 1.1.1.1 1.1.1.1 1 2\r\r\n", Err(Malformed)),
        ("PROXY \u{e9}\r\n", Err(Malformed)),
        ("PROXY UNKNOWN\r\nPING\r\n", Err(Malformed)),
        ("PING\r\n", Err(None)),
        ("proxy UNKNOWN\r\n", Err(None)),
        ("*1\r\n$4\r\nPING\r\n", Err(None)),
        ("GET / HTTP/1.1\r\n", Err(None)),
    ] {
        assert_eq!(read(line.as_bytes()), expected, "{line:?}");
    }
}

#[test]
fn headers_of_version_2() {
    use HeaderError::{Malformed, None, TooLong};
    let with_more = [IPV4.as_slice(), &[0xea, 0, 3, 1, 2, 3]].concat();
    for (header, expected) in [
        (version_2(0x21, 0x11, &IPV4), client("192.0.2.1:513")),
        (version_2(0x21, 0x11, &with_more), client("192.0.2.1:513")),
        (version_2(0x21, 0x21, &ipv6()), client("[2001:db8::1]:513")),
        (version_2(0x21, 0x11, &[0; LONGEST_2 - FIXED]), client("0.0.0.0:0")),
        (version_2(0x20, 0x00, &[]), Ok(Announced::Nobody)),
        (version_2(0x20, 0x11, &IPV4), Ok(Announced::Nobody)),
        (version_2(0x20, 0xff, &[9; 40]), Ok(Announced::Nobody)),
        (version_2(0x21, 0x00, &[]), Ok(Announced::Nobody)),
        (version_2(0x21, 0x12, &IPV4), Ok(Announced::Nobody)),
        (version_2(0x21, 0x31, &[0; 216]), Ok(Announced::Nobody)),
        (version_2(0x21, 0x11, &IPV4[..11]), Err(Malformed)),
        (version_2(0x21, 0x21, &ipv6()[..35]), Err(Malformed)),
        (version_2(0x21, 0x41, &ipv6()), Err(Malformed)),
        (version_2(0x21, 0x13, &IPV4), Err(Malformed)),
        (version_2(0x22, 0x11, &IPV4), Err(Malformed)),
        (version_2(0x11, 0x11, &IPV4), Err(Malformed)),
        (version_2(0x21, 0x11, &[0; LONGEST_2 - FIXED + 1]), Err(TooLong)),
        (b"\r\n\r\nPING\r\n".to_vec(), Err(None)),
    ] {
        assert_eq!(read(&header), expected, "{}", header.escape_ascii());
    }
    let short = version_2(0x21, 0x11, &IPV4);
    assert_eq!(read(&short[..FIXED]), Ok(Announced::More(12)));
    // What is announced and too long is refused before it comes.
    let announced = [SIGNATURE.as_slice(), &[0x21, 0x11, 0xff, 0xff]].concat();
    assert_eq!(read(&announced), Err(TooLong));
}

#[test]
fn a_line_among_commands_is_known() {
    for line in [
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 2",
        "PROXY TCP6 :",
        "PROXY UNKNOWN",
        "PROXY UNKNOWN x",
    ] {
        assert!(is_line(line.as_bytes()), "{line}");
    }
    for line in ["PROXY", "PROXY ", "PROXY LIST", "PROXY TCP4", "proxy UNKNOWN", "PING"] {
        assert!(!is_line(line.as_bytes()), "{line}");
    }
}

/// Good headers of both versions.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let tlvs = prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        any::<([u8; 4], [u8; 4], u16, u16)>().prop_map(|(from, to, one, other)| {
            let (from, to) = (Ipv4Addr::from(from), Ipv4Addr::from(to));
            format!("PROXY TCP4 {from} {to} {one} {other}\r\n").into_bytes()
        }),
        any::<([u8; 16], [u8; 16], u16, u16)>().prop_map(|(from, to, one, other)| {
            let (from, to) = (Ipv6Addr::from(from), Ipv6Addr::from(to));
            format!("PROXY TCP6 {from} {to} {one} {other}\r\n").into_bytes()
        }),
        "[ -~]{0,91}".prop_map(|text| format!("PROXY UNKNOWN {text}\r\n").into_bytes()),
        tlvs.clone()
            .prop_map(|tlvs| version_2(0x21, 0x11, &[IPV4.as_slice(), &tlvs].concat())),
        tlvs.clone()
            .prop_map(|tlvs| version_2(0x21, 0x21, &[ipv6(), tlvs].concat())),
        tlvs.prop_map(|tlvs| version_2(0x20, 0x00, &tlvs)),
    ]
}

proptest! {
    /// Whoever reads as many bytes as he is told, or fewer, has the header in the end and nothing of the client's.
    #[test]
    fn no_byte_of_the_client_is_taken(
        header in header(), client in prop::collection::vec(any::<u8>(), 0..50),
        pieces in prop::collection::vec(1usize..40, 1..200),
    ) {
        let stream = [header.as_slice(), &client].concat();
        let mut pieces = pieces.into_iter().cycle();
        let mut at = 0;
        while let Announced::More(due) = read(&stream[..at]).expect("a good header") {
            prop_assert!(due > 0);
            at += due.min(pieces.next().expect("without end"));
        }
        prop_assert_eq!(at, header.len());
    }

    #[test]
    fn nothing_makes_it_panic_or_read_on_for_ever(mut bytes in prop::collection::vec(any::<u8>(), 0..200), signed in 0..3) {
        match signed {
            1 => drop(bytes.splice(..0, SIGNATURE.iter().copied())),
            2 => drop(bytes.splice(..0, WORD.iter().copied())),
            _ => {}
        }
        if let Ok(Announced::More(due)) = read(&bytes) {
            prop_assert!(due > 0 && bytes.len() + due <= LONGEST_2);
        }
    }
}
