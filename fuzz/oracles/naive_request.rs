//! How Redis reads requests (`processMultibulkBuffer`, `processInlineBuffer`, `sdssplitargs`), told once more and
//! straight, over bytes that have all come. Written to be compared with, from the behaviour of Redis 7.0: slow, without
//! state, and without lockward's own strictness, of which it only says where it is due.

/// One reading of the bytes at the start of some input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// Nothing is complete.
    More,
    /// So many bytes mean nothing.
    Nothing(usize),
    /// So many bytes are a request of these arguments.
    Request(usize, Vec<Vec<u8>>),
    /// The server complains with this text behind `Protocol error: ` and closes; without a text it only closes.
    Refused(Option<&'static str>),
    /// Servers differ, so that lockward refuses it in these words.
    Unclear(&'static str),
}

/// Of a line without its end. A server takes a longer one if its end comes in the same packet, lockward never.
const LINE_MAX: usize = 64 * 1024;
const BULK_TOO_BIG: &str = "too big bulk count string";
const INLINE_TOO_BIG: &str = "too big inline request";

/// Reads the first request.
pub fn read(input: &[u8], authenticated: bool) -> Read {
    let read = match input.first() {
        None => Read::More,
        Some(b'*') => array(input, authenticated),
        Some(_) => inline(input),
    };
    match read {
        Read::Request(_, arguments) if is_browser(&arguments[0]) => Read::Refused(None),
        other => other,
    }
}

/// The first word of HTTP, as a C string and in any case.
fn is_browser(name: &[u8]) -> bool {
    let name: Vec<u8> = name
        .iter()
        .take_while(|byte| **byte != 0)
        .map(u8::to_ascii_lowercase)
        .collect();
    name == b"post" || name == b"host:"
}

fn array(input: &[u8], authenticated: bool) -> Read {
    let (count, mut at) = match header(input, "invalid multibulk length", "too big mbulk count string") {
        Ok(found) => found,
        Err(read) => return read,
    };
    match count {
        None => return Read::Refused(Some("invalid multibulk length")),
        Some(count) if count > i64::from(i32::MAX) => return Read::Refused(Some("invalid multibulk length")),
        Some(count) if count > 10 && !authenticated => return Read::Refused(Some("unauthenticated multibulk length")),
        Some(..=0) => return Read::Nothing(at),
        Some(_) => {}
    }
    let mut arguments = Vec::new();
    for _ in 0..count.unwrap_or(0) {
        let rest = &input[at..];
        let (length, size) = match header(rest, "invalid bulk length", BULK_TOO_BIG) {
            Ok(found) => found,
            // A line that is no `$` line is complained of as such, whatever stands in it.
            Err(Read::Unclear(text)) if rest[0] != b'$' && text != BULK_TOO_BIG => {
                return Read::Unclear("expected '$'");
            }
            Err(read) => return read,
        };
        if rest[0] != b'$' {
            return Read::Refused(Some("expected '$'"));
        }
        let length = match length {
            Some(length @ 0..=536_870_912) => length as usize,
            _ => return Read::Refused(Some("invalid bulk length")),
        };
        if length > 16 * 1024 && !authenticated {
            return Read::Refused(Some("unauthenticated bulk length"));
        }
        at += size;
        if input.len() < at + length + 2 {
            return Read::More;
        }
        arguments.push(input[at..at + length].to_vec());
        at += length + 2;
    }
    Read::Request(at, arguments)
}

/// The number of a header line and the length of the line: up to the first `\r` and one byte more. What stands between
/// the first byte and the `\r` is the number, or none. Redis looks for the `\r` with `strchr`: behind a NUL byte it sees
/// none, where Valkey refuses the line at once.
fn header(rest: &[u8], unclear: &'static str, too_big: &'static str) -> Result<(Option<i64>, usize), Read> {
    let end = rest.iter().position(|byte| *byte == b'\r');
    let Some(end) = end else {
        let over = rest.len() > LINE_MAX;
        return Err(if over { Read::Refused(Some(too_big)) } else { Read::More });
    };
    if end > LINE_MAX {
        return Err(Read::Unclear(too_big));
    }
    if end + 1 >= rest.len() {
        return Err(Read::More);
    }
    if rest[..end].contains(&0) {
        return Err(Read::Unclear(unclear));
    }
    Ok((rest.get(1..end).and_then(number), end + 2))
}

/// `string2ll`: the shortest way to write a number of 64 bits, and no other.
fn number(text: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(text).ok()?;
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

fn inline(input: &[u8]) -> Read {
    // `strchr` again: a NUL byte hides what is behind it.
    let Some(end) = input
        .iter()
        .position(|byte| *byte == b'\n' || *byte == 0)
        .filter(|end| input[*end] == b'\n')
    else {
        let over = input.len() > LINE_MAX;
        return if over {
            Read::Refused(Some(INLINE_TOO_BIG))
        } else {
            Read::More
        };
    };
    if end > LINE_MAX {
        return Read::Unclear(INLINE_TOO_BIG);
    }
    let line = &input[..end];
    match split(line.strip_suffix(b"\r").unwrap_or(line)) {
        Err(Unsplit::Unbalanced) => Read::Refused(Some("unbalanced quotes in request")),
        Err(Unsplit::Unclear) => Read::Unclear("unbalanced quotes in request"),
        Ok(arguments) if arguments.is_empty() => Read::Nothing(end + 1),
        Ok(arguments) => Read::Request(end + 1, arguments),
    }
}

/// Why a line has no arguments.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsplit {
    /// A quote does not close, or something touches it from behind.
    Unbalanced,
    /// A vertical tab or a form feed touches a closing quote: Redis takes it, Valkey joins.
    Unclear,
}

/// The state in which `sdssplitargs` reads a byte.
enum State {
    Between,
    Bare,
    Single,
    Double,
}

/// `sdssplitargs`: byte after byte, with the state that it has in C.
pub fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Unsplit> {
    let (mut arguments, mut current, mut state) = (Vec::new(), Vec::new(), State::Between);
    let (mut at, mut unclear) = (0, false);
    // A C string has a NUL byte at its end, and no byte is looked at behind it.
    let byte = |at: usize| line.get(at).copied().unwrap_or(0);
    while at < line.len() {
        let (here, next) = (byte(at), byte(at + 1));
        match state {
            State::Between if is_space(here) => {}
            State::Between => {
                state = State::Bare;
                continue;
            }
            State::Bare => match here {
                b' ' | b'\n' | b'\r' | b'\t' => {
                    arguments.push(core::mem::take(&mut current));
                    state = State::Between;
                }
                b'"' => state = State::Double,
                b'\'' => state = State::Single,
                other => current.push(other),
            },
            State::Single if here == b'\\' && next == b'\'' => {
                current.push(b'\'');
                at += 1;
            }
            State::Double if here == b'\\' && next == b'x' && is_hex(byte(at + 2)) && is_hex(byte(at + 3)) => {
                let digits = [byte(at + 2), byte(at + 3)].map(char::from).iter().collect::<String>();
                current.push(u8::from_str_radix(&digits, 16).unwrap_or(0));
                at += 3;
            }
            State::Double if here == b'\\' && at + 1 < line.len() => {
                current.push(match next {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                at += 1;
            }
            State::Single | State::Double if here == if matches!(state, State::Single) { b'\'' } else { b'"' } => {
                if at + 1 < line.len() && !is_space(next) {
                    return Err(if unclear { Unsplit::Unclear } else { Unsplit::Unbalanced });
                }
                unclear |= matches!(next, 0x0b | 0x0c) && at + 1 < line.len();
                arguments.push(core::mem::take(&mut current));
                state = State::Between;
            }
            State::Single | State::Double => current.push(here),
        }
        at += 1;
    }
    match state {
        State::Single | State::Double => Err(if unclear { Unsplit::Unclear } else { Unsplit::Unbalanced }),
        _ if unclear => Err(Unsplit::Unclear),
        State::Bare => {
            arguments.push(current);
            Ok(arguments)
        }
        State::Between => Ok(arguments),
    }
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}
