//! Traffic that concerns no lock: the bytes are the same on both sides, whatever the packets, and each request is
//! settled by one answer.

use lockward::session::{Notice, Protocol};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rig::{Rig, command, pipeline, wire};

/// A request in one of the spellings that a server takes.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        Just("PING".to_owned()),
        "(GET|get|GeT) [a-z]{1,9}",
        "APPEND key:[0-9] [a-z]{0,40}",
        "LRANGE l 0 -[1-9]",
        "NOSUCHCOMMAND [a-z]{1,5}",
        "HSET h f [0-9]{1,30}",
        "MGET a b lock:c",
        "SET plain [a-z]{0,300}",
        "GET",
    ];
    words.prop_flat_map(|line| {
        let inline = format!("{line}\r\n").into_bytes();
        prop_oneof![4 => Just(command(&line)), 1 => Just(inline)]
    })
}

/// A reply of any type, nested as servers nest them.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        "\\+[A-Z ]{0,12}\r\n",
        "-ERR [a-z ]{0,12}\r\n",
        ":-?[0-9]{1,9}\r\n",
        Just("$-1\r\n".to_owned()),
        Just("*-1\r\n".to_owned()),
        Just("_\r\n".to_owned()),
        Just("#t\r\n".to_owned()),
        ",[0-9]\\.[0-9]{1,4}\r\n",
        "\\([0-9]{20,40}\r\n",
        "[a-z\r\n]{0,60}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
        "[a-z\r\n]{0,20}".prop_map(|text| format!("={}\r\ntxt:{text}\r\n", text.len() + 4)),
        "[a-z ]{0,20}".prop_map(|text| format!("!{}\r\n{text}\r\n", text.len())),
    ];
    let leaf = leaf.prop_map(String::into_bytes);
    leaf.prop_recursive(3, 24, 5, |inner| {
        let of = |kind: char, per: usize| {
            move |parts: Vec<Vec<u8>>| {
                let count = parts.len() / per;
                let header = format!("{kind}{count}\r\n").into_bytes();
                header
                    .into_iter()
                    .chain(parts.into_iter().take(count * per).flatten())
                    .collect()
            }
        };
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(of('*', 1)),
            vec(inner.clone(), 0..5).prop_map(of('~', 1)),
            vec(inner, 0..6).prop_map(of('%', 2)),
        ]
    })
}

/// A frame that answers nobody.
fn push() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(wire(">2|$10|invalidate|*1|$3|foo|")),
        Just(wire(">3|$7|message|$2|ch|$5|hello|")),
        Just(wire(">2|+something|:1|")),
    ]
}

/// Request, pushes in front of its reply, reply.
type Exchange = (Vec<u8>, Vec<Vec<u8>>, Vec<u8>);

fn exchange() -> impl Strategy<Value = Exchange> {
    (request(), vec(push(), 0..2), reply())
}

/// Plays client and server at random pace; the server answers only what it has got whole. Returns what it got and what
/// the client heard.
fn play(rig: &mut Rig, exchanges: &[Exchange], pace: &[(usize, usize)]) -> (Vec<u8>, Vec<u8>) {
    let requests: Vec<u8> = exchanges.iter().flat_map(|(request, _, _)| request.clone()).collect();
    let (mut sent, mut got, mut heard, mut owed) = (0, Vec::new(), Vec::new(), Vec::new());
    let (mut answered, mut end) = (0, 0);
    for (up, down) in pace.iter().copied().cycle() {
        let piece = &requests[sent..requests.len().min(sent + up)];
        rig.sends_bytes(piece);
        sent += piece.len();
        got.extend(rig.take_upstream());
        while let Some((request, pushes, reply)) = exchanges.get(answered) {
            if got.len() < end + request.len() {
                break;
            }
            end += request.len();
            owed.extend(pushes.iter().flatten().chain(reply));
            answered += 1;
        }
        let piece: Vec<u8> = owed.drain(..owed.len().min(down)).collect();
        rig.server_bytes(&piece);
        heard.extend(rig.take_downstream());
        if sent == requests.len() && owed.is_empty() {
            return (got, heard);
        }
    }
    unreachable!("the pace never ends")
}

proptest! {
    #[test]
    fn bytes_are_the_same_on_both_sides(
        exchanges in vec(exchange(), 1..30),
        pace in vec((1_usize..200, 1_usize..200), 1..20),
        enforced in any::<bool>(),
    ) {
        let mut rig = if enforced { Rig::enforce() } else { Rig::plain() };
        let (got, heard) = play(&mut rig, &exchanges, &pace);
        let expected: Vec<u8> = exchanges.iter().flat_map(|(request, _, _)| request.clone()).collect();
        prop_assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
        let expected: Vec<u8> =
            exchanges.iter().flat_map(|(_, pushes, reply)| pushes.iter().flatten().chain(reply).copied()).collect();
        prop_assert_eq!(heard.escape_ascii().to_string(), expected.escape_ascii().to_string());
        prop_assert_eq!(rig.settled().len(), exchanges.len());
    }
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a", "GET b", "GET c"]);
    rig.server_got(&["GET a", "GET b", "GET c"]);
    rig.server(":1|-ERR two|");
    rig.heard(":1|-ERR two|");
    rig.server("*0|");
    rig.heard("*0|");
    assert_eq!(rig.settled(), [("get", false), ("get", true), ("get", false)]);
}

#[test]
fn empty_requests_go_through_and_are_answered_by_nothing() {
    let mut rig = Rig::plain();
    let bytes = [wire("|*0|*-1||"), command("PING")].concat();
    rig.sends_bytes(&bytes);
    assert_eq!(rig.take_upstream(), bytes);
    rig.server("+PONG|");
    rig.heard("+PONG|");
    assert_eq!(rig.settled(), [("ping", false)]);
}

#[test]
fn a_wrong_number_of_arguments_is_the_servers_to_judge() {
    let mut rig = Rig::enforce();
    for line in ["GET", "SET lock:a", "SUBSCRIBE", "SELECT 1 2", "AUTH a b c", "MULTI x"] {
        rig.passes(line, "-ERR wrong number of arguments|");
    }
    rig.is_in_step();
}

#[test]
fn a_large_answer_goes_through_while_it_comes() {
    let mut rig = Rig::plain();
    rig.sends(&["GET big", "PING"]);
    rig.take_upstream();
    rig.server("$300000|begin");
    rig.heard("$300000|begin");
    let rest = [vec![b'x'; 299_995], wire("|+PONG|")].concat();
    rig.server_bytes(&rest);
    let heard = [rig.take_downstream(), rig.take_downstream()].concat();
    assert_eq!(heard.len(), rest.len());
    assert_eq!(rig.settled().len(), 2);
}

#[test]
fn quit_is_answered_after_what_came_before_and_nothing_after_it_is_sent() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a", "QUIT", "SET a 1"]);
    rig.server_got(&["GET a", "QUIT"]);
    rig.server("$-1|");
    rig.goes_on();
    rig.server("+OK|");
    rig.heard("$-1|+OK|");
    rig.is_over();
    assert!(rig.session.was_ended_by_client());
}

#[test]
fn a_broken_protocol_is_told_after_the_answers_due() {
    let mut rig = Rig::plain();
    let bytes = [pipeline(&["GET a", "GET b"]), wire("*1|:3|"), command("GET c")].concat();
    rig.sends_bytes(&bytes);
    rig.server_got(&["GET a", "GET b"]);
    rig.heard("");
    rig.server(":1|");
    rig.heard(":1|");
    rig.goes_on();
    rig.server(":2|");
    rig.heard(":2|-ERR Protocol error: expected '$', got ':'|");
    rig.is_over();
    assert!(!rig.session.was_ended_by_client());
    assert_eq!(rig.settled().len(), 2, "what is no command is not counted as one");
}

#[test]
fn a_broken_protocol_is_told_at_once_if_nothing_is_due() {
    for (sent, told) in [
        ("*x|", "-ERR Protocol error: invalid multibulk length|"),
        ("*1|$-1|", "-ERR Protocol error: invalid bulk length|"),
        ("ECHO \"a|", "-ERR Protocol error: unbalanced quotes in request|"),
        ("POST / HTTP/1.1|", ""),
    ] {
        let mut rig = Rig::plain();
        rig.sends_bytes(&wire(sent));
        rig.heard(told);
        rig.is_over();
        rig.server_got(&[]);
    }
}

#[test]
fn last_words_wait_for_the_end_of_a_push_under_way() {
    let mut rig = Rig::plain();
    rig.server(">2|+something|$10|inva");
    rig.sends_bytes(&wire("*x|"));
    rig.server("lidate|");
    rig.heard(">2|+something|$10|invalidate|-ERR Protocol error: invalid multibulk length|");
    rig.is_over();
}

#[test]
fn what_is_no_resp_is_shown_and_ends_the_connection() {
    let mut rig = Rig::plain();
    rig.sends(&["GET a"]);
    rig.server("HTTP/1.1 400 Bad Request|");
    rig.heard("HTTP/1.1 400 Bad Request|");
    rig.is_over();
}

#[test]
fn tls_at_its_beginning_is_no_request_whatever_its_packets() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03a\nb\r\nPING\r\n";
    for first in [hello.len(), 1, 2, 3] {
        let mut rig = Rig::enforce();
        rig.sends_bytes(&hello[..first]);
        rig.sends_bytes(&hello[first..]);
        rig.is_over();
        rig.server_got(&[]);
        rig.heard("");
        assert_eq!(rig.notices(), [Notice::Foreign(Protocol::Tls)], "{first}");
    }
}

#[test]
fn the_header_of_a_load_balancer_is_no_request_whatever_its_packets() {
    let second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x09\x02\x01\x04\x03*1\r\n$4\r\nPING\r\n";
    for header in [
        &b"PROXY TCP4 192.0.2.1 192.0.2.9 1 2\r\nPING\r\n"[..],
        b"PROXY UNKNOWN\r\nPING\r\n",
        second,
    ] {
        for first in 1..=header.len() {
            let mut rig = Rig::enforce();
            rig.sends_bytes(&header[..first]);
            rig.sends_bytes(&header[first..]);
            rig.is_over();
            rig.server_got(&[]);
            rig.heard("");
            assert_eq!(rig.notices(), [Notice::Foreign(Protocol::ProxyHeader)], "{first}");
        }
    }
}

#[test]
fn what_only_begins_like_such_a_header_is_the_servers_business() {
    let mut rig = Rig::plain();
    rig.sends_bytes(b"\r\n");
    rig.sends_bytes(b"\r\nPING\r\n");
    assert_eq!(rig.take_upstream(), b"\r\n\r\nPING\r\n");
    // Who leaves in the middle of it leaves nothing behind.
    let mut rig = Rig::plain();
    rig.sends_bytes(b"\r\n\r\n\0");
    let now = rig.now();
    rig.session.downstream_ended(now);
    rig.is_over();
    assert_eq!(rig.take_upstream(), b"");
    for line in [&b"PROXY LIST\r\n"[..], b"proxy UNKNOWN\r\n"] {
        let mut rig = Rig::plain();
        rig.sends_bytes(line);
        assert_eq!(rig.take_upstream(), line);
        assert_eq!(rig.notices(), []);
    }
    let mut rig = Rig::plain();
    rig.passes("PING", "+PONG|");
    rig.sends_bytes(b"PROXY UNKNOWN\r\n");
    assert_eq!(rig.take_upstream(), b"PROXY UNKNOWN\r\n");
}

#[test]
fn the_same_bytes_later_are_the_servers_business() {
    let mut rig = Rig::plain();
    rig.passes("PING", "+PONG|");
    rig.sends_bytes(b"\x16\x03 x\r\n");
    assert_eq!(rig.take_upstream(), b"\x16\x03 x\r\n");
    assert_eq!(rig.notices(), []);
}

#[test]
fn http_is_told_of() {
    let mut rig = Rig::plain();
    rig.sends_bytes(b"POST / HTTP/1.1\r\n");
    rig.is_over();
    assert_eq!(rig.notices(), [Notice::Foreign(Protocol::Http)]);
}
