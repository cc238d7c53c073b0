//! However the bytes are cut into packets, the scanners find the same requests and replies and the same errors, and
//! streaming a request finds the same end as waiting for it. Says nothing of whether what they find is right: that is
//! for `scanner_oracle.rs` and `scanner_server.rs`.

use lockward::resp::reply::ReplyScanner;
use lockward::resp::request::{RequestError, RequestScanner, Scanned};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a scanner made of a client's bytes.
#[derive(Debug, Default, PartialEq)]
struct Found {
    requests: Vec<Vec<Vec<u8>>>,
    /// Where each request and each empty one ends.
    ends: Vec<usize>,
    error: Option<RequestError>,
}

/// Where packets end: cut after cut until the input is used up.
fn packet_ends(length: usize, cuts: &[usize]) -> Vec<usize> {
    let mut ends: Vec<usize> = cuts
        .iter()
        .scan(0, |end, cut| Some(std::mem::replace(end, *end + cut) + cut))
        .collect();
    ends.retain(|end| *end < length);
    ends.push(length);
    ends
}

fn found(authenticated: bool, input: &[u8], cuts: &[usize]) -> Found {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(authenticated);
    let mut found = Found::default();
    let mut at = 0;
    for end in packet_ends(input.len(), cuts) {
        loop {
            let seen = &input[at..end];
            let len = match scanner.scan(seen) {
                Ok(Scanned::NeedMore) => break,
                Ok(Scanned::Empty { len }) => len,
                Ok(Scanned::Request { len }) => {
                    found
                        .requests
                        .push(scanner.args(seen).iter().map(<[u8]>::to_vec).collect());
                    scanner.next();
                    len
                }
                Err(error) => {
                    found.error = Some(error);
                    return found;
                }
            };
            at += len;
            found.ends.push(at);
        }
    }
    found
}

/// The same, but every array is streamed as soon as it is announced and does not come in one packet.
fn found_streaming(input: &[u8], cuts: &[usize]) -> Found {
    let mut scanner = RequestScanner::new();
    let mut found = Found::default();
    let mut at = 0;
    for end in packet_ends(input.len(), cuts) {
        loop {
            let seen = &input[at..end];
            let result = if scanner.streaming() {
                scanner.scan_stream(seen).map(|step| (step.taken, step.done))
            } else {
                scanner.scan(seen).map(|scanned| match scanned {
                    Scanned::NeedMore => {
                        let taken = scanner.looked_at();
                        scanner.stream();
                        (if scanner.streaming() { taken } else { 0 }, false)
                    }
                    Scanned::Empty { len } | Scanned::Request { len } => (len, true),
                })
            };
            match result {
                Ok((taken, done)) => {
                    at += taken;
                    if !done {
                        break;
                    }
                    found.ends.push(at);
                    scanner.next();
                }
                Err(error) => {
                    found.error = Some(error);
                    return found;
                }
            }
        }
    }
    found
}

/// Bytes that mean something to the framing, in any order, between sound requests.
fn client_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => vec(vec(any::<u8>(), 0..12), 1..5).prop_map(|args| {
            let mut request = format!("*{}\r\n", args.len()).into_bytes();
            for arg in args {
                request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
                request.extend_from_slice(&arg);
                request.extend_from_slice(b"\r\n");
            }
            request
        }),
        3 => "[A-Z]{1,5}( [a-z\"'\\\\]{0,4}){0,3}(\r)?\n".prop_map(String::into_bytes),
        2 => "[*$]-?[0-9+]{0,3}\r\n".prop_map(String::into_bytes),
        1 => Just(b"*1\r\n$17000\r\n".iter().copied().chain([b'v'; 17_000]).chain(*b"\r\n").collect()),
        1 => Just(vec![b'1'; 70_000]),
        2 => proptest::sample::select(vec!["*", "$", "\r", "\n", "\r\n", "\0", "*0\r\n", "*-1\r\n", "*2\rX$1\rYaZZ"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Mostly small packets, to hit every place; beyond them the rest comes at once.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        vec(1..4_usize, 0..120),
        vec(1..40_usize, 0..20),
        vec(1000..40_000_usize, 0..8)
    ]
}

/// A reply of any type, nested a little.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        "[-+:_#,(][a-z\n]{0,3}\r?[a-z]{0,3}".prop_map(|line| format!("{line}\r\n").into_bytes()),
        vec(any::<u8>(), 0..20).prop_map(|text| {
            let mut bulk = format!("${}\r\n", text.len()).into_bytes();
            bulk.extend_from_slice(&text);
            bulk.extend_from_slice(b"\r\n");
            bulk
        }),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        Just([&b"+"[..], &[b'\r'; 70_000], b"\n"].concat()),
    ];
    leaf.prop_recursive(3, 30, 4, |inner| {
        (
            proptest::sample::select(vec!["*", "~", ">", "%"]),
            vec((inner.clone(), inner), 0..4),
        )
            .prop_map(|(kind, pairs)| {
                let count = if kind == "%" { pairs.len() } else { 2 * pairs.len() };
                let mut frame = format!("{kind}{count}\r\n").into_bytes();
                pairs
                    .into_iter()
                    .for_each(|(first, second)| frame.extend([first, second].concat()));
                frame
            })
    })
}

/// Where each reply ends, how many bytes were taken in all, and whether the stream was refused.
fn reply_ends(input: &[u8], cuts: &[usize]) -> (Vec<usize>, bool) {
    let mut scanner = ReplyScanner::new();
    let (mut at, mut ends) = (0, Vec::new());
    for end in packet_ends(input.len(), cuts) {
        loop {
            let Ok(step) = scanner.scan(&input[at..end]) else {
                return (ends, true);
            };
            at += step.taken;
            if !step.done {
                break;
            }
            ends.push(at);
            scanner.next();
        }
    }
    (ends, false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_do_not_depend_on_packets(input in client_bytes(), cuts in cuts(), authenticated: bool) {
        prop_assert_eq!(found(authenticated, &input, &cuts), found(authenticated, &input, &[]));
    }

    #[test]
    fn streamed_requests_end_where_others_do(input in client_bytes(), cuts in cuts()) {
        let whole = found(true, &input, &[]);
        // A streamed request is past its name, so only the server can tell a browser then.
        prop_assume!(whole.error != Some(RequestError::CrossProtocol));
        let streamed = found_streaming(&input, &cuts);
        prop_assert_eq!(streamed.ends, whole.ends);
        prop_assert_eq!(streamed.error, whole.error);
    }

    #[test]
    fn replies_do_not_depend_on_packets(
        replies in vec(reply(), 1..4), end in vec(any::<u8>(), 0..3), cuts in cuts()
    ) {
        let input = [replies.concat(), end].concat();
        let (ends, refused) = reply_ends(&input, &[]);
        let in_packets = reply_ends(&input, &cuts);
        prop_assert_eq!(&in_packets.0, &ends);
        prop_assert_eq!(in_packets.1, refused);
        prop_assert!(ends.len() >= replies.len());
    }

    #[test]
    fn no_bytes_upset_the_scanners(input in vec(any::<u8>(), 0..200), cuts in cuts()) {
        found(true, &input, &cuts);
        found_streaming(&input, &cuts);
        reply_ends(&input, &cuts);
        lockward::resp::frame::leading_word(&input);
        lockward::resp::frame::bulk(&input);
        if let Some(elements) = lockward::resp::frame::elements(&input) {
            elements.for_each(drop);
        }
    }
}
