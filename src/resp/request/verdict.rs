//! What the request scanner can say of a client's bytes, and the server's own words for what is wrong with them.

use crate::resp::{Args, word};

/// What a call of [`RequestScanner::scan`](super::RequestScanner::scan) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// The request is not complete.
    NeedMore,
    /// `len` bytes that the server reads and answers nothing to: `*0`, `*-1` or a blank line.
    Empty {
        /// How many bytes of the input it takes.
        len: usize,
    },
    /// A complete request; its arguments can be asked for until [`RequestScanner::next`](super::RequestScanner::next).
    Request {
        /// How many bytes of the input it takes.
        len: usize,
    },
}

/// What a call of [`RequestScanner::scan_stream`](super::RequestScanner::scan_stream) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// How many bytes of the input belong to the request and were looked at; the rest is to be offered again.
    pub taken: usize,
    /// Whether the request is complete.
    pub done: bool,
}

/// The client broke the protocol: one variant for each complaint of the server. The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The number behind `*` is none, or too large.
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    /// More than 10 arguments before AUTH.
    #[error("unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// 64 KB behind `*` without a line end.
    #[error("too big mbulk count string")]
    MultibulkCountTooBig,
    /// The number behind `$` is none, negative, or too large.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// An argument of more than 16 KiB before AUTH.
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// 64 KB where a `$` line should be, without a line end.
    #[error("too big bulk count string")]
    BulkCountTooBig,
    /// An argument begins with this byte instead of `$`.
    #[error("expected '$', got byte {0}")]
    ExpectedDollar(u8),
    /// An inline request of more than 64 KB.
    #[error("too big inline request")]
    InlineTooBig,
    /// The quotes of an inline request do not fit.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The first word is `POST` or `Host:`: a browser is being abused. The server closes without an answer.
    #[error("an HTTP request")]
    CrossProtocol,
}

impl RequestError {
    /// The server's own error line, with its end; `None` where the server closes without a word.
    pub fn reply(&self) -> Option<Vec<u8>> {
        match self {
            RequestError::CrossProtocol => None,
            RequestError::ExpectedDollar(got) => {
                // The byte itself, which need not be UTF-8. The server maps line ends to blanks, since they would end
                // the error.
                let got = if matches!(got, b'\r' | b'\n') { b' ' } else { *got };
                Some([b"-ERR Protocol error: expected '$', got '", &[got][..], b"'\r\n"].concat())
            }
            other => Some(format!("-ERR Protocol error: {other}\r\n").into_bytes()),
        }
    }
}

/// Refuses what the server takes for a browser that was tricked: a first word `POST` or `Host:`, in any case
/// (`processCommand` in server.c).
pub(super) fn refuse_cross_protocol(args: Args<'_>) -> Result<(), RequestError> {
    let name = args.get(0).unwrap_or_default();
    // Spares every other command the search for a NUL byte.
    if !matches!(name.first(), Some(b'p' | b'P' | b'h' | b'H')) {
        return Ok(());
    }
    let name = word(name);
    if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
        return Err(RequestError::CrossProtocol);
    }
    Ok(())
}
