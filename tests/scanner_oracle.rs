//! On sound frames the scanners and the encoder agree with redis-protocol. Its decoder only sees whole frames that were
//! made here: it is quadratic on partial input, overflows the stack on nested input, knows no inline requests, refuses
//! `$-1` in RESP3 and error lines that are not UTF-8.

use bytes::BytesMut;
use lockward::resp::encode::{self, Resp};
use lockward::resp::frame::{bulk, elements};
use lockward::resp::reply::ReplyScanner;
use lockward::resp::request::{RequestScanner, Scanned};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::{resp2, resp3};

fn length_resp2(frame: &[u8]) -> Option<usize> {
    resp2::decode::decode(frame).ok().flatten().map(|(_, length)| length)
}

fn length_resp3(frame: &[u8]) -> Option<usize> {
    resp3::decode::complete::decode(frame)
        .ok()
        .flatten()
        .map(|(_, length)| length)
}

fn bulk_frame(kind: &str, text: &[u8]) -> Vec<u8> {
    let mut frame = format!("{kind}{}\r\n", text.len()).into_bytes();
    frame.extend_from_slice(text);
    frame.extend_from_slice(b"\r\n");
    frame
}

fn aggregate(kind: &str, count: usize, elements: Vec<Vec<u8>>) -> Vec<u8> {
    let mut frame = format!("{kind}{count}\r\n").into_bytes();
    frame.extend(elements.concat());
    frame
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[-+][ -~]{1,20}\r\n",
        any::<i64>().prop_map(|number| format!(":{number}\r\n")),
    ]
    .prop_map(String::into_bytes)
}

fn reply_resp2() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        line(),
        vec(any::<u8>(), 0..30).prop_map(|text| bulk_frame("$", &text)),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        vec(inner, 0..5).prop_map(|frames| aggregate("*", frames.len(), frames))
    })
}

fn reply_resp3() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        line(),
        vec(any::<u8>(), 0..30).prop_map(|text| bulk_frame("$", &text)),
        "[ -~]{1,20}".prop_map(|text| bulk_frame("!", text.as_bytes())),
        "[ -~]{0,20}".prop_map(|text| bulk_frame("=", format!("txt:{text}").as_bytes())),
        Just(b"_\r\n".to_vec()),
        Just(b"#t\r\n".to_vec()),
        Just(b",-1.5\r\n".to_vec()),
        Just(b",inf\r\n".to_vec()),
        "\\([1-9][0-9]{1,30}\r\n".prop_map(String::into_bytes),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = vec(any::<u8>(), 0..9).prop_map(|text| bulk_frame("$", &text));
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|frames| aggregate("*", frames.len(), frames)),
            // A map and a set have no two equal elements, or the decoder refuses them.
            (key, inner).prop_map(|(key, value)| aggregate("%", 1, vec![key, value])),
            "[a-z]{1,9}".prop_map(|text| aggregate("~", 1, vec![bulk_frame("$", text.as_bytes())])),
        ]
    })
}

fn scanned_length(frame: &[u8]) -> Option<usize> {
    let step = ReplyScanner::new().scan(frame).ok()?;
    step.done.then_some(step.taken)
}

/// Walks the elements of an aggregate with the other decoder.
fn element_lengths(frame: &[u8], length: fn(&[u8]) -> Option<usize>) -> Vec<usize> {
    let header = frame
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(frame.len(), |end| end + 1);
    let (mut rest, mut lengths) = (&frame[header..], Vec::new());
    while !rest.is_empty() {
        let element = length(rest).expect("the decoder knows every element");
        lengths.push(element);
        rest = &rest[element..];
    }
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_has_the_same_arguments(args in vec(vec(any::<u8>(), 0..40), 1..8)) {
        let mut request = BytesMut::new();
        encode::command(&mut request, args.iter().map(Vec::as_slice));
        let expected = resp2::types::OwnedFrame::Array(
            args.iter().cloned().map(resp2::types::OwnedFrame::BulkString).collect(),
        );
        prop_assert_eq!(resp2::decode::decode(&request).expect("sound"), Some((expected, request.len())));
        let mut scanner = RequestScanner::new();
        prop_assume!(!args[0].eq_ignore_ascii_case(b"post"));
        prop_assert_eq!(scanner.scan(&request), Ok(Scanned::Request { len: request.len() }));
        let found: Vec<Vec<u8>> = scanner.args(&request).iter().map(<[u8]>::to_vec).collect();
        prop_assert_eq!(found, args);
    }

    #[test]
    fn a_reply_of_resp2_has_the_same_end(frame in reply_resp2(), behind in vec(any::<u8>(), 0..4)) {
        let input = [frame.clone(), behind].concat();
        prop_assert_eq!(length_resp2(&input), Some(frame.len()));
        prop_assert_eq!(scanned_length(&input), Some(frame.len()));
        if let Some(elements) = elements(&frame) {
            let lengths: Vec<usize> = elements.map(<[u8]>::len).collect();
            prop_assert_eq!(lengths, element_lengths(&frame, length_resp2));
        }
    }

    #[test]
    fn a_reply_of_resp3_has_the_same_end(frame in reply_resp3(), behind in vec(any::<u8>(), 0..4)) {
        let input = [frame.clone(), behind].concat();
        prop_assert_eq!(length_resp3(&input), Some(frame.len()));
        prop_assert_eq!(scanned_length(&input), Some(frame.len()));
        if let Some(elements) = elements(&frame) {
            let lengths: Vec<usize> = elements.map(<[u8]>::len).collect();
            prop_assert_eq!(lengths, element_lengths(&frame, length_resp3));
        }
    }

    #[test]
    fn an_encoded_reply_is_read_back(text in vec(any::<u8>(), 0..40), number: i64, word in "[ -~]{1,20}") {
        use resp2::types::OwnedFrame as Frame;
        let mut out = BytesMut::new();
        encode::array(&mut out, 6);
        encode::bulk(&mut out, &text);
        encode::integer(&mut out, number);
        encode::simple(&mut out, &word);
        encode::error(&mut out, word.as_bytes());
        encode::null(&mut out, Resp::Two);
        encode::null_array(&mut out, Resp::Two);
        let expected = Frame::Array(vec![
            Frame::BulkString(text.clone()),
            Frame::Integer(number),
            Frame::SimpleString(word.clone().into_bytes()),
            Frame::Error(word),
            Frame::Null,
            Frame::Null,
        ]);
        prop_assert_eq!(resp2::decode::decode(&out).expect("sound"), Some((expected, out.len())));
        let first = elements(&out).and_then(|mut elements| elements.next());
        prop_assert_eq!(first.and_then(bulk), Some(text.as_slice()));
    }
}

#[test]
fn nulls_of_resp3_are_read_back() {
    let mut out = BytesMut::new();
    encode::null(&mut out, Resp::Three);
    encode::null_array(&mut out, Resp::Three);
    for _ in 0..2 {
        let (frame, length) = resp3::decode::complete::decode(&out).expect("sound").expect("complete");
        assert_eq!(frame, resp3::types::OwnedFrame::Null);
        let _ = out.split_to(length);
    }
    assert!(out.is_empty());
}
