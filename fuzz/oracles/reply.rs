//! The reply scanner: the same ends however the bytes are cut, those of a naive reader, and those of another decoder
//! where it finds any. What looks into whole replies finds their elements.

use lockward::resp::frame::{Leading, bulk, elements, leading_word};
use lockward::resp::reply::{ReplyError, ReplyScanner, usual};
use redis_protocol::{resp2, resp3};

use super::cuts::Cuts;
use super::naive_reply::{Read, read};

/// The other decoder calls itself for each level, so it only sees what is not deep; and it is slow.
const DEEPEST_FOR_OTHERS: usize = 8;

/// Everything is cut into packets.
pub fn check(input: &[u8]) {
    let Some(cuts) = Cuts::read(input) else { return };
    let whole = ends(cuts.bytes, core::iter::once(cuts.bytes.len()));
    assert_eq!(whole, ends(cuts.bytes, cuts.ends()), "packets make a difference");
    let mut at = 0;
    for end in &whole.0 {
        let mut announced = 0;
        match read(cuts.bytes, at, 0, &mut announced) {
            Read::Deep => {}
            other => assert_eq!(other, Read::End(*end), "the naive reader, from byte {at}"),
        }
        look_into(&cuts.bytes[at..*end]);
        at = *end;
    }
    let mut announced = 0;
    let rest = &cuts.bytes[at..];
    match (read(cuts.bytes, at, 0, &mut announced), whole.1) {
        (Read::Deep, _) | (Read::More, None) => {}
        (Read::More | Read::Wrong, Some(ReplyError::TooManyElements)) => {
            assert!(
                announced > u128::from(u64::MAX) - rest.len() as u128,
                "only {announced} elements"
            );
        }
        (Read::Wrong, Some(ReplyError::UnknownType(_) | ReplyError::InvalidLength)) => {}
        (naive, ours) => panic!("from byte {at} the naive reader says {naive:?}, lockward {ours:?}"),
    }
    leading_word(rest);
    bulk(rest);
    assert!(elements(rest).is_none(), "elements of what is not whole");
}

/// Where replies end, and what ends them all.
fn ends(bytes: &[u8], packets: impl Iterator<Item = usize>) -> (Vec<usize>, Option<ReplyError>) {
    let mut scanner = ReplyScanner::new();
    let (mut at, mut ends) = (0, Vec::new());
    for end in packets {
        loop {
            let seen = &bytes[at..end];
            let begins = scanner.at_start();
            let step = match scanner.scan(seen) {
                Ok(step) => step,
                Err(error) => return (ends, Some(error)),
            };
            assert!(step.taken <= seen.len(), "took more than there is");
            if begins && let Some(size) = usual(seen) {
                assert_eq!((step.taken, step.done), (size, true), "the short way goes elsewhere");
            }
            at += step.taken;
            if !step.done {
                break;
            }
            ends.push(at);
            scanner.next();
        }
    }
    (ends, None)
}

/// One whole reply.
fn look_into(frame: &[u8]) {
    if let Some(elements) = elements(frame) {
        let (kind, announced) = (elements.kind(), elements.announced());
        let all: Vec<&[u8]> = elements.collect();
        let due = if kind == b'%' { announced * 2 } else { announced };
        assert_eq!(all.len() as u64, due, "another number of elements");
        assert!(frame.ends_with(&all.concat()), "other elements");
        if let Leading::Word {
            kind: other,
            count,
            word,
        } = leading_word(frame)
        {
            assert_eq!((other, count), (kind, announced));
            // Only `bulk` asks what stands behind a text, and takes a `\r` that ends no line for a part of it.
            let text = all.first().and_then(|first| bulk(first)).unwrap_or(word);
            let until_return = text.split(|byte| *byte == b'\r').next();
            assert!(text == word || until_return == Some(word), "another first word");
        }
    }
    if let Some(text) = bulk(frame) {
        assert!(frame.ends_with(&[text, b"\r\n"].concat()));
    }
    if !frame.is_empty() && depth_at_most(frame, DEEPEST_FOR_OTHERS) {
        if let Ok(Some((_, length))) = resp2::decode::decode(frame) {
            assert_eq!(length, frame.len(), "the RESP2 of another decoder ends elsewhere");
        }
        if let Ok(Some((_, length))) = resp3::decode::complete::decode(frame) {
            assert_eq!(length, frame.len(), "the RESP3 of another decoder ends elsewhere");
        }
    }
}

/// A bound that is quick to see: no more headers of aggregates than this.
fn depth_at_most(frame: &[u8], most: usize) -> bool {
    let headers = frame
        .iter()
        .filter(|byte| matches!(byte, b'*' | b'~' | b'>' | b'%' | b'|'));
    headers.count() <= most
}
