//! Leaves record keys out of what lists keys: the answers to KEYS and SCAN, and tracking invalidations. Works on whole
//! frames; knows no requests.

use bytes::BytesMut;

use super::pending::Listing;
use crate::resp::{Resp, encode, frame};

/// How the message that carries an invalidation in RESP2 begins.
const REDIRECTED: &[u8] = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

/// Whether the frame at `rest` is an invalidation redirected to a RESP2 subscriber; `None` if that cannot be told yet.
pub(super) fn is_redirected_invalidation(rest: &[u8]) -> Option<bool> {
    if rest.len() >= REDIRECTED.len() {
        return Some(rest.starts_with(REDIRECTED));
    }
    if REDIRECTED.starts_with(rest) {
        None
    } else {
        Some(false)
    }
}

/// Appends the answer to KEYS or SCAN without the keys that `hidden` names.
pub(super) fn listing(listing: Listing, frame: &[u8], hidden: impl Fn(&[u8]) -> bool, out: &mut BytesMut) {
    match listing {
        Listing::Keys => array(frame, hidden, out),
        Listing::Scan => {
            let Some(mut elements) = frame::elements(frame) else {
                return out.extend_from_slice(frame);
            };
            let (Some(cursor), Some(keys), None) = (elements.next(), elements.next(), elements.next()) else {
                return out.extend_from_slice(frame);
            };
            encode::array(out, 2);
            out.extend_from_slice(cursor);
            array(keys, hidden, out);
        }
    }
}

/// Appends an invalidation without the keys that `hidden` names; nothing if it names no others.
pub(super) fn invalidation(frame: &[u8], hidden: impl Fn(&[u8]) -> bool, out: &mut BytesMut) {
    let Some(elements) = frame::elements(frame) else {
        return out.extend_from_slice(frame);
    };
    let parts: Vec<&[u8]> = elements.collect();
    let Some((keys, before)) = parts.split_last() else {
        return out.extend_from_slice(frame);
    };
    // The keys are the last part: an array, or nil after a flush.
    if keys.first() != Some(&b'*') || !names_any(keys, &hidden) {
        return out.extend_from_slice(frame);
    }
    let mut kept = BytesMut::new();
    array(keys, hidden, &mut kept);
    if kept.starts_with(b"*0\r\n") {
        return;
    }
    let header = memchr::memchr(b'\n', frame).map_or(0, |end| end + 1);
    out.extend_from_slice(frame.get(..header).unwrap_or_default());
    for part in before {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&kept);
}

/// Appends an invalidation of everything, as the server sends it after FLUSHALL.
pub(super) fn invalidate_all(resp: Resp, out: &mut BytesMut) {
    match resp {
        Resp::Two => {
            out.extend_from_slice(REDIRECTED);
            encode::null_array(out, resp);
        }
        Resp::Three => {
            out.extend_from_slice(b">2\r\n$10\r\ninvalidate\r\n");
            encode::null(out, resp);
        }
    }
}

fn names_any(keys: &[u8], hidden: &impl Fn(&[u8]) -> bool) -> bool {
    frame::elements(keys).is_some_and(|mut all| all.any(|key| frame::bulk(key).is_some_and(hidden)))
}

fn array(frame: &[u8], hidden: impl Fn(&[u8]) -> bool, out: &mut BytesMut) {
    if !names_any(frame, &hidden) {
        return out.extend_from_slice(frame);
    }
    let shown = |key: &&[u8]| !frame::bulk(key).is_some_and(&hidden);
    let count = frame::elements(frame).into_iter().flatten().filter(shown).count();
    // Keys come as arrays in RESP2 and RESP3 alike; a set would keep its kind.
    match frame.first() {
        Some(b'~') => out.extend_from_slice(format!("~{count}\r\n").as_bytes()),
        _ => encode::array(out, count),
    }
    for key in frame::elements(frame).into_iter().flatten().filter(shown) {
        out.extend_from_slice(key);
    }
}
