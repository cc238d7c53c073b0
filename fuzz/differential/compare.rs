//! Whether two sides said the same, where it can be said in more than one way, and where lockward is known to be stricter
//! than a server. What is known stands here and in docs/fuzzing.md, and is counted.

use crate::naive_request::{self, Read, Unsplit};

use crate::cases::Batch;
use crate::samples::Look;
use crate::talk::{Left, Said};

/// What Valkey 9.1 says to line ends that Redis takes.
const INVALID_CRLF: &[u8] = b"-ERR Protocol error: invalid CRLF in request\r\n";
/// How a fault of framing is complained of.
const COMPLAINT: &[u8] = b"-ERR Protocol error: ";
/// How a TLS hello begins, to which lockward closes in the clear.
const TLS_HELLO: &[u8] = b"\x16\x03";
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
            Read::Unclear(text) if text.starts_with("too big") => return Some("a line of 64 KB"),
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
                // `CLUSTER INFO` read as lines, behind a value that is too short.
                if arguments[0].eq_ignore_ascii_case(b"INFO") {
                    return Some("INFO, which tells times");
                }
                if valkey && lists_functions_by_lines(&arguments) {
                    return Some("FUNCTION LIST with a line end, which Valkey answers with an error of two lines");
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

/// Valkey 9.1 repeats an option that it does not know as it is, so that the rest of its error is read as a reply more.
fn lists_functions_by_lines(arguments: &[Vec<u8>]) -> bool {
    let [name, subcommand, options @ ..] = arguments else {
        return false;
    };
    name.eq_ignore_ascii_case(b"FUNCTION")
        && subcommand.eq_ignore_ascii_case(b"LIST")
        && options
            .iter()
            .any(|option| option.contains(&b'\r') || option.contains(&b'\n'))
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
    /// They differ as it is written down, for this reason.
    Known(&'static str),
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
    if valkey && is_another_line_end(batch, direct, proxied) {
        return Verdict::Known("a line end that Valkey alone complains of");
    }
    if valkey && is_complained_of_twice(batch, direct, proxied) {
        return Verdict::Known("a line end that Valkey complains of, and a fault behind it that lockward does");
    }
    // It names another protocol, but only at the very beginning: later it is the beginning of a line.
    if begins_as_tls(batch) && proxied.bytes.is_empty() && proxied.left == Left::Closed {
        return Verdict::Known("a TLS hello as a connection's first bytes");
    }
    if is_browser(batch, direct, proxied) {
        return Verdict::Known("a browser, whose answers due are left open");
    }
    Verdict::Differs
}

/// Whether a connection begins with it: to lockward nothing else of the batch is said then.
pub fn begins_as_tls(batch: &Batch) -> bool {
    batch.fresh && batch.bytes.starts_with(TLS_HELLO)
}

/// Valkey complains of a line end where lockward, which takes Redis' view, waits for more, finds a browser, or complains
/// once of something else. What was answered before is the same.
fn is_another_line_end(batch: &Batch, direct: &Said, proxied: &Said) -> bool {
    let (own, complaint) = last_complaint(&proxied.bytes);
    let fits = match complaint {
        Some(_) => proxied.left == Left::Closed,
        None => proxied.left == Left::Silent || browser(batch).is_some(),
    };
    let before = direct.bytes.strip_suffix(INVALID_CRLF);
    fits && before.is_some_and(|before| same(batch, before, own))
}

/// What Valkey says to such a line end is to lockward the answer to a request; behind it, lockward has found a fault itself.
/// Behind an empty array no answer is due, so that lockward's words come first there.
fn is_complained_of_twice(batch: &Batch, direct: &Said, proxied: &Said) -> bool {
    let (own, second) = last_complaint(&proxied.bytes);
    let (own, first) = last_complaint(own);
    let before = direct.bytes.strip_suffix(INVALID_CRLF);
    first.is_some()
        && second.is_some()
        && [first, second].contains(&Some(INVALID_CRLF))
        && [direct.left, proxied.left] == [Left::Closed; 2]
        && before.is_some_and(|before| same(batch, before, own))
}

/// Who is taken for a browser is closed at once: which of the answers due come before it is open, but none comes behind it.
fn is_browser(batch: &Batch, direct: &Said, proxied: &Said) -> bool {
    let Some(at) = browser(batch) else { return false };
    let (short, long) = if direct.bytes.len() < proxied.bytes.len() {
        (direct, proxied)
    } else {
        (proxied, direct)
    };
    let behind = batch.ends.iter().zip(&batch.markers).filter(|(end, _)| **end > at);
    let answers_behind = behind.map(|(_, marker)| marker).chain([&batch.end]);
    [direct.left, proxied.left] == [Left::Closed; 2]
        && long.bytes.starts_with(&short.bytes)
        && answers_behind
            .filter(|marker| memchr_of(&long.bytes, marker).is_some())
            .count()
            == 0
}

/// Where the request begins that servers take for a browser's.
fn browser(batch: &Batch) -> Option<usize> {
    let mut at = 0;
    loop {
        match naive_request::read(&batch.bytes[at..], !batch.logged_out) {
            Read::Nothing(len) | Read::Request(len, _) => at += len,
            other => return (other == Read::Refused(None)).then_some(at),
        }
    }
}

/// All but the last line, and the last line if it complains of framing; else all.
fn last_complaint(said: &[u8]) -> (&[u8], Option<&[u8]>) {
    let text = said.strip_suffix(b"\r\n").unwrap_or(said);
    let begin = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (before, last) = said.split_at(begin);
    if last.starts_with(COMPLAINT) {
        (before, Some(last))
    } else {
        (said, None)
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
    let mut lines: Vec<Vec<u8>> = match look {
        Look::Exact | Look::Sorted => answer.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(),
        Look::Shape => shape(answer),
    };
    if look != Look::Exact {
        lines.sort();
    }
    lines
}

/// Digits away, and what is random of a text, which may have lines of its own: only how many replies there are, and of
/// which type.
fn shape(answer: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut lines) = (answer, Vec::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if let [b'$' | b'=', length @ .., b'\r'] = line
            && let Some(length) = str::from_utf8(length).ok().and_then(|text| text.parse::<usize>().ok())
        {
            rest = rest.get(length + 2..).unwrap_or_default();
        }
        lines.push(line.to_vec());
    }
    lines.push(rest.to_vec());
    lines.iter_mut().for_each(without_digits);
    lines
}

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
