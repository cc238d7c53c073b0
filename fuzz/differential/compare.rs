//! Whether two sides said the same, where it can be said in more than one way, and where lockward is known to be stricter
//! than a server. What is known stands here and in docs/fuzzing.md, and is counted.

use crate::naive_request::{self, Read, Unsplit};

use crate::cases::Batch;
use crate::samples::Look;
use crate::talk::Said;

/// What Valkey 9.1 says to line ends that Redis takes.
const INVALID_CRLF: &[u8] = b"-ERR Protocol error: invalid CRLF in request\r\n";
/// How lockward begins to refuse what is too large for a client that is not logged in.
const UNAUTHENTICATED: &[u8] = b"-ERR Protocol error: unauthenticated ";
/// How a connection's number is announced.
const ID: &[u8] = b"$2\r\nid\r\n:";
/// Longer lines pass or fail on a server by how they are cut into packets.
const LINE_MAX: usize = 64 * 1024 - 2;

/// Why a batch is not said at all: what lockward and this server are known to read differently is in it.
pub fn set_aside(batch: &Batch, valkey: bool, shared: bool) -> Option<&'static str> {
    if shared
        && batch
            .cases
            .iter()
            .any(|case| matches!(case.name.as_str(), "wait" | "waitaof"))
    {
        return Some("WAIT, before which lockward writes a key of its own on a shared connection");
    }
    let mut rest = &batch.bytes[..];
    loop {
        let line = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(rest, |end| &rest[..end]);
        let inline = rest.first().is_some_and(|byte| *byte != b'*');
        let len = match naive_request::read(rest, true) {
            Read::More if inline && rest.contains(&0) => return None,
            Read::More | Read::Refused(None) => return None,
            Read::Unclear(_) => {
                return Some("a NUL byte in a header line, or a blank behind a quote that Redis alone takes for one");
            }
            Read::Refused(Some(_)) if inline && valkey && splits_differently(line) => {
                return Some("quotes that Valkey joins");
            }
            Read::Refused(Some(_)) => return None,
            Read::Nothing(len) if valkey && shared && !inline && !rest[..len].ends_with(b"\r\n") => {
                return Some("an empty array whose line ends otherwise");
            }
            Read::Nothing(len) => len,
            Read::Request(len, arguments) => {
                if arguments[0].contains(&0) {
                    return Some("a name with a NUL byte");
                }
                if inline && line.len() > LINE_MAX {
                    return Some("a line of 64 KB");
                }
                if inline && valkey && (line.contains(&0xff) || splits_differently(line)) {
                    return Some("an inline 0xff, or quotes, that Valkey reads in its own way");
                }
                len
            }
        };
        rest = &rest[len..];
    }
}

/// Whether Valkey takes, or cuts otherwise, a line with quotes in it that Redis refuses.
fn splits_differently(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let stuck = |pair: &[u8]| matches!(pair[0], b'"' | b'\'') && !matches!(pair[1], b' ' | b'\t' | b'\r');
    naive_request::split(line) == Err(Unsplit::Unbalanced)
        && (line.windows(2).any(stuck) || line.ends_with(b"\\\"") || line.ends_with(b"\\'"))
}

/// How two answers stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// They differ as it is written down.
    Known,
    Differs,
}

/// Numbers of connections, which `HELLO` tells, are nobody's business.
fn without_ids(said: &Said) -> Said {
    let mut bytes = said.bytes.clone();
    let mut from = 0;
    while let Some(at) = memchr_of(&bytes[from..], ID) {
        from += at + ID.len();
        let digits = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        bytes.drain(from..from + digits);
    }
    Said { bytes, left: said.left }
}

pub fn judge(batch: &Batch, [direct, proxied]: &[Said; 2], valkey: bool) -> Verdict {
    let (direct, proxied) = (&without_ids(direct), &without_ids(proxied));
    if direct.left == proxied.left && same(batch, &direct.bytes, &proxied.bytes) {
        return Verdict::Same;
    }
    // Valkey complains of a line end where lockward, which takes Redis' view, waits or complains of something else.
    if valkey && let Some(before) = direct.bytes.strip_suffix(INVALID_CRLF) {
        let (before, rest) = proxied
            .bytes
            .split_at_checked(before.len())
            .map_or((before, None), |(own, rest)| (own, Some(rest)));
        let complains = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-ERR Protocol error"));
        if complains && same(batch, &direct.bytes[..before.len()], before) {
            return Verdict::Known;
        }
    }
    // Who is taken for a browser is closed at once, with the answers to what came before unsent.
    let (short, long) = if direct.bytes.len() < proxied.bytes.len() {
        (direct, proxied)
    } else {
        (proxied, direct)
    };
    if direct.left == proxied.left && is_browser(batch) && long.bytes.starts_with(&short.bytes) {
        return Verdict::Known;
    }
    // Valkey reads several requests before it carries out the first: it knows late who is logged out.
    if valkey
        && proxied.bytes.ends_with(b" length\r\n")
        && proxied
            .bytes
            .windows(UNAUTHENTICATED.len())
            .any(|window| window == UNAUTHENTICATED)
    {
        return Verdict::Known;
    }
    Verdict::Differs
}

fn is_browser(batch: &Batch) -> bool {
    let mut rest = &batch.bytes[..];
    loop {
        match naive_request::read(rest, true) {
            Read::Nothing(len) | Read::Request(len, _) => rest = &rest[len..],
            other => return other == Read::Refused(None),
        }
    }
}

fn same(batch: &Batch, direct: &[u8], proxied: &[u8]) -> bool {
    direct == proxied
        || cut(batch, direct, proxied)
            .iter()
            .all(|(look, one, other)| seen(*look, one) == seen(*look, other))
}

/// The looks that the answers to a batch are given, one for each that stands between two markers.
pub fn looks(batch: &Batch, [direct, proxied]: &[Said; 2]) -> impl Iterator<Item = Look> {
    let parts = cut(batch, &direct.bytes, &proxied.bytes);
    parts.into_iter().map(|(look, ..)| look)
}

/// Both answers cut at the markers that both have, each with its case's look. In a transaction all markers come with the
/// last answer, and cut it too; where one is missing, the looser of the looks about it is taken.
fn cut<'a>(batch: &Batch, direct: &'a [u8], proxied: &'a [u8]) -> Vec<(Look, &'a [u8], &'a [u8])> {
    let begun = batch.begun.iter().map(|marker| (Look::Exact, marker));
    let looks = batch.cases.iter().map(|case| case.look);
    let (mut rests, mut look, mut parts) = ([direct, proxied], Look::Exact, Vec::new());
    for (own, marker) in begun.chain(looks.zip(&batch.markers)) {
        look = look.max(own);
        if let [Some(one), Some(other)] = rests.map(|rest| memchr_of(rest, marker)) {
            parts.push((look, &rests[0][..one], &rests[1][..other]));
            rests = [&rests[0][one + marker.len()..], &rests[1][other + marker.len()..]];
            look = Look::Exact;
        }
    }
    parts.push((look, rests[0], rests[1]));
    parts
}

fn memchr_of(text: &[u8], marker: &[u8]) -> Option<usize> {
    text.windows(marker.len()).position(|window| window == marker)
}

/// An answer as it is compared, line by line.
fn seen(look: Look, answer: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = answer.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    match look {
        Look::Exact => {}
        Look::Sorted => lines.sort(),
        Look::Shape => {
            lines.iter_mut().for_each(|line| without_digits(line));
            lines.sort();
        }
    }
    lines
}

/// Digits away, and what is random of a text: only how many lines there are, and of which type.
fn without_digits(line: &mut Vec<u8>) {
    let is_header = line.first().is_some_and(|byte| b"$*:%~,".contains(byte));
    if is_header {
        line.retain(|byte| !byte.is_ascii_digit());
    } else if line.first() != Some(&b'-') {
        line.clear();
    }
}

/// The first answers that differ, as they are compared, from where they differ on.
pub fn excerpt(batch: &Batch, direct: &Said, proxied: &Said) -> String {
    let (direct, proxied) = (without_ids(direct), without_ids(proxied));
    let parts = cut(batch, &direct.bytes, &proxied.bytes);
    let differing = parts
        .iter()
        .map(|(look, one, other)| (seen(*look, one), seen(*look, other)))
        .enumerate()
        .find(|(_, (one, other))| one != other);
    let Some((index, (one, other))) = differing else {
        return "in no answer".to_owned();
    };
    let at = one.iter().zip(&other).position(|(one, other)| one != other);
    let at = at.unwrap_or(one.len().min(other.len())).saturating_sub(1);
    let around = |lines: &[Vec<u8>]| {
        let lines: Vec<&[u8]> = lines.iter().skip(at).take(6).map(Vec::as_slice).collect();
        lines.join(&b'\n').escape_ascii().to_string()
    };
    format!(
        "answer {index}\n    directly          {}\n    through lockward  {}",
        around(&one),
        around(&other)
    )
}
