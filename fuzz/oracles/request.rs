//! The request scanner: the same requests and errors however the bytes are cut, those that Redis finds, streamed or
//! not, and with the arguments that another decoder finds in them.

use bytes::BytesMut;
use lockward::resp::encode;
use lockward::resp::request::{RequestError, RequestScanner, Scanned};
use redis_protocol::resp2;
use redis_protocol::resp2::types::OwnedFrame;

use super::cuts::Cuts;
use super::naive_request::{self, Read};

/// A request, or nothing, and where it ends.
#[derive(Debug, PartialEq)]
struct Frame {
    end: usize,
    arguments: Vec<Vec<u8>>,
    canonical: bool,
    ambiguous: bool,
    inline: bool,
}

#[derive(Debug, Default, PartialEq)]
struct Found {
    frames: Vec<Frame>,
    error: Option<RequestError>,
}

/// Of a line that is made long, so many bytes at its end are repeated so often: 64 KB less eight bytes, so that each
/// length about the limit is a matter of what stands before them.
const REPEATED: usize = 8;
const TIMES: usize = 8191;

/// Bit 0 of the flags: the client is logged in. Bit 1, if the others are clear: the last line is made long (few are, for
/// they take a hundred times as long to read). The rest is cut into packets.
pub fn check(input: &[u8]) {
    let Some(cuts) = Cuts::read(input) else { return };
    let authenticated = cuts.flags & 1 == 1;
    let long = if cuts.flags >> 1 == 1 {
        with_a_long_line(cuts.bytes)
    } else {
        cuts.bytes.to_vec()
    };
    let cuts = Cuts { bytes: &long, ..cuts };
    let bytes = cuts.bytes;
    let whole = found(authenticated, bytes, core::iter::once(bytes.len()));
    let in_packets = found(authenticated, bytes, cuts.ends());
    assert_eq!(whole, in_packets, "packets make a difference");
    same_as_naive(authenticated, bytes, &whole);
    let mut start = 0;
    for frame in &whole.frames {
        sound(&bytes[start..frame.end], frame);
        start = frame.end;
    }
    let (mut ends, mut error) = streamed(authenticated, bytes, cuts.ends());
    let whole_ends: Vec<usize> = whole.frames.iter().map(|frame| frame.end).collect();
    // A streamed request is past its name, so only the server can tell a browser then: what is read from there on is
    // nobody's.
    if whole.error == Some(RequestError::CrossProtocol) {
        ends.truncate(whole_ends.len());
        error = whole.error;
    }
    assert_eq!((ends, error), (whole_ends, whole.error), "streaming makes a difference");
}

/// The end of the last line that has any text is repeated, its line end is not.
fn with_a_long_line(bytes: &[u8]) -> Vec<u8> {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let begin = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (before, repeated) = text.split_at(begin.max(text.len().saturating_sub(REPEATED)));
    [before, &repeated.repeat(TIMES), &bytes[text.len()..]].concat()
}

fn found(authenticated: bool, bytes: &[u8], ends: impl Iterator<Item = usize>) -> Found {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(authenticated);
    let (mut found, mut at) = (Found::default(), 0);
    for end in ends {
        loop {
            let seen = &bytes[at..end];
            let scanned = scanner.scan(seen);
            assert!(scanner.looked_at() <= seen.len(), "looked at more than there is");
            let len = match scanned {
                Ok(Scanned::NeedMore) => break,
                Ok(Scanned::Empty { len } | Scanned::Request { len }) => len,
                Err(error) => {
                    found.error = Some(error);
                    return found;
                }
            };
            assert!(
                len > 0 && len <= seen.len(),
                "a request of {len} bytes in {}",
                seen.len()
            );
            at += len;
            let mut frame = Frame {
                end: at,
                arguments: Vec::new(),
                canonical: false,
                ambiguous: false,
                inline: false,
            };
            if scanned == Ok(Scanned::Request { len }) {
                frame.arguments = scanner.args(seen).iter().map(<[u8]>::to_vec).collect();
                frame.canonical = scanner.canonical();
                frame.ambiguous = scanner.ambiguous();
                frame.inline = scanner.inline();
                assert_eq!(frame.inline, seen[0] != b'*');
                assert_eq!(
                    scanner.announced(),
                    if frame.inline { 0 } else { frame.arguments.len() }
                );
            }
            scanner.next();
            found.frames.push(frame);
        }
    }
    found
}

/// The same, but every array is streamed as soon as it is announced and has not come whole.
fn streamed(
    authenticated: bool,
    bytes: &[u8],
    packets: impl Iterator<Item = usize>,
) -> (Vec<usize>, Option<RequestError>) {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(authenticated);
    let (mut ends, mut at) = (Vec::new(), 0);
    for end in packets {
        loop {
            let seen = &bytes[at..end];
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
            let (taken, done) = match result {
                Ok(step) => step,
                Err(error) => return (ends, Some(error)),
            };
            assert!(taken <= seen.len(), "took more than there is");
            at += taken;
            if !done {
                break;
            }
            ends.push(at);
            scanner.next();
        }
    }
    (ends, None)
}

fn same_as_naive(authenticated: bool, bytes: &[u8], found: &Found) {
    let (mut at, mut frames) = (0, found.frames.iter());
    loop {
        let read = naive_request::read(&bytes[at..], authenticated);
        let frame = frames.next();
        match (read, frame) {
            (Read::Request(len, arguments), Some(frame)) => {
                assert_eq!(
                    (at + len, &arguments),
                    (frame.end, &frame.arguments),
                    "Redis reads another request"
                );
            }
            (Read::Nothing(len), Some(frame)) => {
                assert_eq!(
                    (at + len, true),
                    (frame.end, frame.arguments.is_empty()),
                    "Redis reads nothing here"
                );
            }
            (Read::More, None) => {
                assert_eq!(found.error, None, "Redis waits at byte {at}");
                return;
            }
            (Read::Refused(text), None) => {
                let ours = found.error.as_ref().and_then(RequestError::reply);
                let text = text.map(|text| format!("-ERR Protocol error: {text}"));
                let fits = match (&text, &ours) {
                    (Some(text), Some(ours)) => ours.starts_with(text.as_bytes()),
                    (None, None) => found.error.is_some(),
                    _ => false,
                };
                assert!(fits, "Redis says {text:?} at byte {at}, lockward {:?}", found.error);
                return;
            }
            (Read::Unclear(text), None) => {
                let ours = found.error.map(|error| error.to_string()).unwrap_or_default();
                assert!(ours.starts_with(text), "at byte {at} {ours:?} instead of {text:?}");
                return;
            }
            (read, frame) => panic!(
                "at byte {at} Redis reads {read:?}, lockward {frame:?}, {:?}",
                found.error
            ),
        }
        at = frame.map_or(at, |frame| frame.end);
    }
}

/// One frame and the bytes that it was made of.
fn sound(bytes: &[u8], frame: &Frame) {
    if frame.arguments.is_empty() {
        assert!(!frame.canonical);
        return;
    }
    let mut again = BytesMut::new();
    encode::command(&mut again, frame.arguments.iter().map(Vec::as_slice));
    let same = &again[..] == bytes;
    // Long numbers are read the long way, which does not call itself canonical.
    let short = frame.arguments.iter().all(|argument| argument.len() < 100_000_000);
    assert_eq!(frame.canonical, same && short, "canonical, or not?");
    assert_eq!(
        frame.ambiguous,
        frame.inline && bytes.contains(&0xff),
        "ambiguous, or not?"
    );
    if frame.canonical {
        let array = frame.arguments.iter().cloned().map(OwnedFrame::BulkString).collect();
        let decoded = resp2::decode::decode(bytes).expect("a sound frame");
        assert_eq!(
            decoded,
            Some((OwnedFrame::Array(array), bytes.len())),
            "another decoder reads another request"
        );
    }
    // What is sent on in place of this one is it again.
    let mut scanner = RequestScanner::new();
    assert_eq!(scanner.scan(&again), Ok(Scanned::Request { len: again.len() }));
    assert!(
        scanner
            .args(&again)
            .iter()
            .eq(frame.arguments.iter().map(Vec::as_slice)),
        "encoded, it is another"
    );
}
