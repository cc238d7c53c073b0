//! Splits an inline request (`SET lock:a "some value" NX`) into its arguments as the server does (`sdssplitargs` in
//! its sds.c). Finds no line ends and knows no limits: the request scanner hands it one complete line.
//!
//! A line that servers split differently could carry a key past the lock rules:
//!
//! - The byte 0xff: Valkey (9.1.2) drops it, quoted or not, Redis keeps it. Such a line must be sent on as an array, so
//!   that there is one reading of it ([`is_ambiguous`]). Written as `"\xff"` it is an ordinary byte to both.
//! - What stands behind a closing quote: Redis (measured on 7.0.15) refuses `"a"b` and reads `"a"\vb` as two arguments;
//!   Valkey (9.1.2) reads one argument from either. It is refused here: a closing quote must be
//!   followed by a blank, a tab, a carriage return or the end of the line.

use memchr::memchr;

use super::args::Span;

/// The line has a quote that never closes, or something that servers read differently.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// Whether servers read the line differently, though each of them reads it.
pub(super) fn is_ambiguous(line: &[u8]) -> bool {
    memchr(0xff, line).is_some()
}

/// Appends the unescaped arguments of `line` to `text` and their places in it to `spans`. The line holds neither its
/// own end nor a NUL byte. After an error both may hold a part of the arguments.
pub(super) fn split(line: &[u8], text: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), Unbalanced> {
    let mut rest = line;
    loop {
        rest = skip_blanks(rest);
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len();
        rest = argument(rest, text)?;
        spans.push(Span { start, end: text.len() });
    }
}

/// C's `isspace`, which is wider between arguments than what ends a bare one.
fn skip_blanks(line: &[u8]) -> &[u8] {
    let blanks = line
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    line.get(blanks..).unwrap_or_default()
}

/// Reads one argument, quoted, bare, or bare up to a quote, and returns what is left of the line.
fn argument<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        match rest {
            [] => return Ok(rest),
            [b' ' | b'\t' | b'\n' | b'\r', left @ ..] => return Ok(left),
            [b'"', left @ ..] => return after_quote(double_quoted(left, text)?),
            [b'\'', left @ ..] => return after_quote(single_quoted(left, text)?),
            [byte, left @ ..] => {
                text.push(*byte);
                rest = left;
            }
        }
    }
}

/// Demands a separator behind a closing quote; see the top of this file for what it is stricter in.
fn after_quote(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest {
        [] | [b' ' | b'\t' | b'\n' | b'\r', ..] => Ok(rest),
        _ => Err(Unbalanced),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, left @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text.push(hex(*high) << 4 | hex(*low));
                left
            }
            [b'\\', escaped, left @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                left
            }
            [b'"', left @ ..] => return Ok(left),
            [byte, left @ ..] => {
                text.push(*byte);
                left
            }
            [] => return Err(Unbalanced),
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'\\', b'\'', left @ ..] => {
                text.push(b'\'');
                left
            }
            [b'\'', left @ ..] => return Ok(left),
            [byte, left @ ..] => {
                text.push(*byte);
                left
            }
            [] => return Err(Unbalanced),
        }
    }
}

/// The value of a hex digit; any other byte counts as 0.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split(line, &mut text, &mut spans).ok()?;
        Some(spans.iter().map(|span| text[span.start..span.end].to_vec()).collect())
    }

    #[track_caller]
    fn reads(line: &[u8], expected: &[&[u8]]) {
        let expected: Vec<Vec<u8>> = expected.iter().map(|arg| arg.to_vec()).collect();
        assert_eq!(args(line), Some(expected), "{}", line.escape_ascii());
    }

    #[test]
    fn bare_words_end_at_blanks_only() {
        reads(b"  SET\tk \x0b\x0c 1\r ", &[b"SET", b"k", b"1"]);
        reads(b"ECHO a\x0bb", &[b"ECHO", b"a\x0bb"]);
        reads(b"ECHO a\rb", &[b"ECHO", b"a", b"b"]);
        reads(b"ECHO a\\x41", &[b"ECHO", b"a\\x41"]);
        reads(b"ECHO \x85 \xa0", &[b"ECHO", b"\x85", b"\xa0"]);
        reads(b" \t\x0b\x0c\r", &[]);
    }

    #[test]
    fn quotes_and_escapes() {
        reads(
            b"ECHO \"\\x41\\x4g\\xZZ\\n\\r\\t\\b\\a\\q\\\"\"",
            &[b"ECHO", b"Ax4gxZZ\n\r\t\x08\x07q\""],
        );
        reads(b"ECHO 'a\\'b\\n'", &[b"ECHO", b"a'b\\n"]);
        reads(b"ECHO a\"b c\" ''", &[b"ECHO", b"ab c", b""]);
        reads(b"\"\" a", &[b"", b"a"]);
        reads(b"ECHO \"\\x00\"", &[b"ECHO", b"\0"]);
        reads(b"ECHO \"\\xff\"", &[b"ECHO", b"\xff"]);
    }

    #[test]
    fn an_open_quote_is_unbalanced() {
        for line in [
            &b"ECHO \"a"[..],
            b"ECHO 'a",
            b"ECHO \"a\\",
            b"ECHO \"a\\\"",
            b"ECHO 'a\\'",
            b"\"",
        ] {
            assert_eq!(args(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn what_servers_split_differently_is_refused() {
        for line in [
            &b"DEL \"a\"b"[..],
            b"DEL 'a'b",
            b"DEL \"a\"\x0block:x",
            b"DEL 'a'\x0clock:x",
            b"DEL \"a\"'b'",
        ] {
            assert_eq!(args(line), None, "{}", line.escape_ascii());
        }
    }
}
