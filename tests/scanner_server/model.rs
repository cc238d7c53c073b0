//! What a server must answer to some bytes if it frames them as the scanner does. Knows PING, ECHO and the server's
//! words for a command that it does not know, which quote the arguments. Where a server is known to differ from the
//! scanner, and only there, more than one answer fits.

use std::fmt;

use bytes::BytesMut;
use lockward::resp::request::{RequestError, RequestScanner, Scanned};
use lockward::resp::{Args, encode};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flavour {
    /// Redis 7.0: lenient in line ends, deaf behind a NUL byte in a line.
    Redis,
    /// Valkey 9.1: strict in line ends; joins inline arguments that touch a closing quote.
    Valkey,
}

const INVALID_CRLF: &[u8] = b"-ERR Protocol error: invalid CRLF in request\r\n";

/// The answer as far as it is certain, and how it may end.
pub struct Expected {
    certain: Vec<u8>,
    ends: Vec<Vec<u8>>,
    /// The server is known to split the next line differently, without complaint.
    anything: bool,
}

impl Expected {
    pub fn fits(&self, answer: &[u8]) -> bool {
        let Some(end) = answer.strip_prefix(self.certain.as_slice()) else {
            return false;
        };
        self.anything || self.ends.iter().any(|expected| expected == end)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends: Vec<String> = self.ends.iter().map(|end| end.escape_ascii().to_string()).collect();
        write!(f, "{} then one of {ends:?}", self.certain.escape_ascii())
    }
}

/// What the answer to `input` must be; `None` where that cannot be told (see [`is_telling`]).
pub fn expect(flavour: Flavour, authenticated: bool, input: &[u8]) -> Option<Expected> {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(authenticated);
    let mut expected = Expected {
        certain: Vec::new(),
        ends: Vec::new(),
        anything: false,
    };
    let mut rest = input;
    loop {
        let scanned = scanner.scan(rest);
        let (len, sound) = match scanned {
            Ok(Scanned::NeedMore) => {
                expected.ends.push(Vec::new());
                may_be_bad_crlf(flavour, rest, &mut expected);
                return Some(expected);
            }
            Err(error) => {
                error_ends(flavour, &scanner, rest, error, &mut expected);
                return error.reply().map(|_| expected);
            }
            Ok(Scanned::Empty { len }) => (len, rest[..len].ends_with(b"\r\n") || !rest.starts_with(b"*")),
            Ok(Scanned::Request { len }) => (len, scanner.inline() || canonical(scanner.args(rest)) == rest[..len]),
        };
        if flavour == Flavour::Valkey && !sound {
            expected.ends.push(INVALID_CRLF.to_vec());
            return Some(expected);
        }
        if matches!(scanned, Ok(Scanned::Request { .. })) {
            let args = scanner.args(rest);
            // Valkey drops the byte 0xff of an inline line, so such a line is sent on as an array.
            if !is_telling(args) || (flavour == Flavour::Valkey && scanner.ambiguous()) {
                return None;
            }
            expected.certain.extend(reply(flavour, args, authenticated));
        }
        scanner.next();
        rest = &rest[len..];
    }
}

/// How many requests the scanner finds, and the error that ends them.
pub fn scan(authenticated: bool, input: &[u8]) -> (usize, Option<RequestError>) {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(authenticated);
    let (mut rest, mut requests) = (input, 0);
    loop {
        let len = match scanner.scan(rest) {
            Ok(Scanned::NeedMore) => return (requests, None),
            Ok(Scanned::Empty { len }) => len,
            Ok(Scanned::Request { len }) => {
                requests += 1;
                len
            }
            Err(error) => return (requests, Some(error)),
        };
        scanner.next();
        rest = &rest[len..];
    }
}

/// A name with a NUL byte may or may not be found: Redis hashes all of it and compares up to the NUL.
fn is_telling(args: Args<'_>) -> bool {
    args.get(0).is_some_and(|name| !name.contains(&0))
}

fn canonical(args: Args<'_>) -> Vec<u8> {
    let args: Vec<&[u8]> = args.iter().collect();
    let mut out = BytesMut::new();
    encode::command(&mut out, args);
    out.to_vec()
}

/// In a request that is never completed, the scanner need not have come by what Valkey complains of.
fn may_be_bad_crlf(flavour: Flavour, rest: &[u8], expected: &mut Expected) {
    if flavour == Flavour::Valkey && rest.starts_with(b"*") {
        expected.ends.push(INVALID_CRLF.to_vec());
    }
}

fn error_ends(flavour: Flavour, scanner: &RequestScanner, rest: &[u8], error: RequestError, expected: &mut Expected) {
    expected.ends.extend(error.reply().map(|line| line.to_vec()));
    may_be_bad_crlf(flavour, rest, expected);
    let at = &rest[scanner.looked_at()..];
    let line = &at[..at.iter().position(|byte| *byte == b'\r').unwrap_or(at.len())];
    match error {
        RequestError::UnbalancedQuotes => {
            let line = &rest[..rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())];
            expected.anything = splits_differently(flavour, line.strip_suffix(b"\r").unwrap_or(line));
        }
        // Redis waits for ever, which the end of the stream makes an empty answer.
        _ if flavour == Flavour::Redis && line.contains(&0) => expected.ends = vec![Vec::new()],
        _ => {}
    }
}

/// Whether this server takes a line that the scanner refuses, since not every server reads the same in it.
fn splits_differently(flavour: Flavour, line: &[u8]) -> bool {
    let stuck = |pair: &[u8]| matches!(pair[0], b'"' | b'\'') && !matches!(pair[1], b' ' | b'\t' | b'\r');
    match flavour {
        Flavour::Redis => line
            .windows(2)
            .any(|pair| stuck(pair) && matches!(pair[1], 0x0b | 0x0c)),
        Flavour::Valkey => line.windows(2).any(stuck) || line.ends_with(b"\\\"") || line.ends_with(b"\\'"),
    }
}

fn reply(flavour: Flavour, args: Args<'_>, authenticated: bool) -> Vec<u8> {
    let name = args.get(0).unwrap_or_default().to_ascii_lowercase();
    let mut out = BytesMut::new();
    match (name.as_slice(), args.len()) {
        _ if !authenticated && flavour == Flavour::Valkey => {
            encode::error(&mut out, b"NOAUTH Authentication required.")
        }
        (b"ping", _) | (b"echo", 2) if !authenticated => encode::error(&mut out, b"NOAUTH Authentication required."),
        (b"ping", 1) => encode::simple(&mut out, "PONG"),
        (b"ping" | b"echo", 2) => encode::bulk(&mut out, args.get(1).unwrap_or_default()),
        (b"ping" | b"echo", _) => {
            let name = String::from_utf8_lossy(&name).into_owned();
            let text = format!("ERR wrong number of arguments for '{name}' command");
            encode::error(&mut out, text.as_bytes());
        }
        _ => encode::error(&mut out, &unknown_command(args)),
    }
    out.to_vec()
}

/// `commandCheckExistence` in the server's server.c: arguments are quoted up to a NUL byte, 128 bytes in all.
fn unknown_command(args: Args<'_>) -> Vec<u8> {
    let text =
        |arg: &[u8], most: usize| -> Vec<u8> { arg.iter().copied().take_while(|byte| *byte != 0).take(most).collect() };
    let mut quoted = Vec::new();
    for arg in args.iter().skip(1) {
        if quoted.len() >= 128 {
            break;
        }
        let arg = text(arg, 128 - quoted.len());
        quoted.extend([&b"'"[..], &arg, b"' "].concat());
    }
    let name = text(args.get(0).unwrap_or_default(), 128);
    [
        &b"ERR unknown command '"[..],
        &name,
        b"', with args beginning with: ",
        &quoted,
    ]
    .concat()
}
