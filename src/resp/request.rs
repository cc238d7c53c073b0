//! Finds the requests in a client's bytes, with the framing of the server itself, and where their arguments stand. It
//! keeps a cursor between calls, so the work is linear in the bytes whatever the size of the packets. It does not keep
//! bytes, does not know what a command means, and never allocates by an announced length.
//!
//! Where it disagreed with the server a request could be smuggled past the lock rules. So the rules are those of
//! `processMultibulkBuffer` and `processInlineBuffer` in networking.c, tried on Redis 7.0.15 and Valkey 9.1.2
//! (`tests/scanner_server`). Where the two differ:
//!
//! - Redis takes any byte behind the `\r` of a header and any two bytes behind a bulk; Valkey's patch releases answer
//!   `invalid CRLF in request` and close. Taken here: the frames are Redis', and a Valkey refuses them by itself.
//! - A NUL byte in a header line makes Redis wait for 64 KB and then close; Valkey refuses it at once, and so does
//!   this. In an inline line both wait, and so does this.
//! - A line longer than 64 KB passes or fails on a server by the way it is cut into packets; here it always fails.
//! - Inline arguments that touch a closing quote are refused, a line with a raw byte 0xff is read as Redis reads it and
//!   has to be sent on as an array ([`RequestScanner::ambiguous`]): see `inline`.

mod headers;
mod line;
mod verdict;

pub(crate) use super::whole::bulks;
pub use verdict::{RequestError, Scanned, Streamed};

use verdict::refuse_cross_protocol;

use super::args::{Args, Span};
use super::whole;

/// How many spans, and how many bytes of unescaped inline text, an idle scanner may keep.
const KEPT_SPANS: usize = 256;
const KEPT_TEXT: usize = 4096;

/// What the scanner looks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first byte of a request.
    Start,
    /// The end of an inline line.
    Inline,
    /// The line `*<count>`.
    Count,
    /// The line `$<length>` of the next argument.
    Length,
    /// This many bytes of an argument, the two behind it included.
    Bulk(usize),
    /// Nothing: the request is complete.
    Done,
}

/// An incremental scanner for the requests of one client; see the top of this file.
///
/// Call [`scan`](Self::scan) with the bytes from the start of the current request on, again and again as more arrive;
/// after a [`Scanned::Request`] use [`args`](Self::args), then call [`next`](Self::next). An error is final.
#[derive(Debug)]
pub struct RequestScanner {
    stage: Stage,
    authenticated: bool,
    streaming: bool,
    /// Offset of what `stage` looks for: the start of the line or of the argument.
    at: usize,
    /// How many bytes of the line at `at` are known to hold no line end.
    searched: usize,
    /// The length of the input in the last call, from which [`Self::looked_at`] is taken.
    seen: usize,
    announced: usize,
    missing: usize,
    inline: bool,
    ambiguous: bool,
    /// Every byte of the framing so far is as every server reads it.
    canonical: bool,
    spans: Vec<Span>,
    text: Vec<u8>,
    /// Bytes examined in all, so that a test can show that the work is linear.
    #[cfg(test)]
    examined: usize,
}

impl Default for RequestScanner {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestScanner {
    /// Makes a scanner that stands before the first request.
    pub fn new() -> Self {
        RequestScanner {
            stage: Stage::Start,
            authenticated: true,
            streaming: false,
            at: 0,
            searched: 0,
            seen: 0,
            announced: 0,
            missing: 0,
            inline: false,
            ambiguous: false,
            canonical: true,
            spans: Vec::new(),
            text: Vec::new(),
            #[cfg(test)]
            examined: 0,
        }
    }

    /// Says whether the client may send requests of full size: `false` while the server asks for AUTH and has not got
    /// it. Then at most 10 arguments of 16 KiB are taken. Decides for the headers that are read from now on.
    pub fn set_authenticated(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
    }

    /// Looks for one request at the start of `input`, going on where the last call stopped. The input must begin with
    /// the same bytes as in the last call until the request is complete and [`next`](Self::next) was called.
    pub fn scan(&mut self, input: &[u8]) -> Result<Scanned, RequestError> {
        if self.streaming {
            return Ok(Scanned::NeedMore);
        }
        self.seen = input.len();
        self.usual(input);
        loop {
            match self.stage {
                Stage::Start => match input.first() {
                    None => return Ok(Scanned::NeedMore),
                    Some(b'*') => self.stage = Stage::Count,
                    Some(_) => self.stage = Stage::Inline,
                },
                Stage::Inline => match self.inline_line(input)? {
                    None => return Ok(Scanned::NeedMore),
                    Some(0) => return Ok(self.empty()),
                    Some(_) => {
                        self.inline = true;
                        self.stage = Stage::Done;
                    }
                },
                Stage::Count => match self.count_line(input)? {
                    None => return Ok(Scanned::NeedMore),
                    Some(0) => return Ok(self.empty()),
                    Some(count) => {
                        self.announced = count;
                        self.missing = count;
                        self.stage = Stage::Length;
                    }
                },
                Stage::Length => match self.length_line(input)? {
                    None => return Ok(Scanned::NeedMore),
                    Some(length) => self.stage = Stage::Bulk(length + 2),
                },
                Stage::Bulk(size) => {
                    if input.len() - self.at.min(input.len()) < size {
                        return Ok(Scanned::NeedMore);
                    }
                    self.spans.push(Span {
                        start: self.at,
                        end: self.at + size - 2,
                    });
                    self.at += size;
                    self.canonical &= input.get(self.at - 2..self.at) == Some(b"\r\n");
                    self.end_argument();
                }
                Stage::Done => {
                    refuse_cross_protocol(self.args(input))?;
                    return Ok(Scanned::Request { len: self.at });
                }
            }
        }
    }

    /// Finds a usual request at the start of `input` if it has come whole: the short way of [`scan`](Self::scan), which
    /// finds the same.
    #[inline]
    pub fn usual(&mut self, input: &[u8]) -> bool {
        if !self.between() {
            return false;
        }
        match whole::request(input, &mut self.spans) {
            Some(len) => {
                self.announced = self.spans.len();
                self.at = len;
                self.stage = Stage::Done;
                self.examine(len);
                true
            }
            None => {
                self.spans.clear();
                false
            }
        }
    }

    /// Whether it stands before a request, of a client that may send some of full size.
    pub fn between(&self) -> bool {
        self.stage == Stage::Start && self.authenticated && !self.streaming
    }

    /// The bytes in front of the second argument of the request found by [`usual`](Self::usual).
    pub fn head<'a>(&self, input: &'a [u8]) -> Option<&'a [u8]> {
        input.get(..self.spans.first()?.end + 2)
    }

    /// The arguments found by [`scan`](Self::scan) in the same `input`: all of them after [`Scanned::Request`]; those
    /// that are complete so far after [`Scanned::NeedMore`], of arrays only.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        let bytes = if self.inline { &self.text } else { input };
        Args::new(bytes, &self.spans)
    }

    /// How many arguments the array at hand announced; 0 as long as that is unknown, and for an inline request.
    pub fn announced(&self) -> usize {
        self.announced
    }

    /// Whether the complete request is an inline one, whose arguments stand unescaped in the scanner and not in the
    /// input.
    pub fn inline(&self) -> bool {
        self.inline
    }

    /// Whether the complete request is an inline one that servers read differently; as an array it has one reading.
    pub fn ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Whether the complete request is an array whose framing has one reading only, in any server: numbers of the usual
    /// length, `\r\n` behind each and behind each argument.
    pub fn canonical(&self) -> bool {
        self.canonical && !self.inline
    }

    /// Makes the scanner stand before the next request and gives memory back that an unusual one took.
    pub fn next(&mut self) {
        self.stage = Stage::Start;
        self.streaming = false;
        self.at = 0;
        self.searched = 0;
        self.seen = 0;
        self.announced = 0;
        self.missing = 0;
        self.inline = false;
        self.ambiguous = false;
        self.canonical = true;
        self.spans.clear();
        self.text.clear();
        if self.spans.capacity() > KEPT_SPANS {
            self.spans.shrink_to(KEPT_SPANS);
        }
        if self.text.capacity() > KEPT_TEXT {
            self.text.shrink_to(KEPT_TEXT);
        }
    }

    /// How many bytes of the last input of [`scan`](Self::scan) are looked at for good: what may be forwarded when
    /// streaming begins, so ask before [`stream`](Self::stream). An incomplete header line does not count, the bytes of
    /// an incomplete argument do.
    pub fn looked_at(&self) -> usize {
        match self.stage {
            Stage::Bulk(size) => self.seen.min(self.at + size),
            _ => self.at,
        }
    }

    /// Begins to stream the request at hand: spans are not kept any more, and the input of
    /// [`scan_stream`](Self::scan_stream) begins as many bytes into the last one as [`looked_at`](Self::looked_at) said
    /// before. Does nothing before an array is announced, since an inline request is never larger than 64 KB.
    pub fn stream(&mut self) {
        if self.streaming || self.announced == 0 {
            return;
        }
        if let Stage::Bulk(size) = self.stage {
            self.stage = Stage::Bulk(self.at + size - self.looked_at());
        }
        self.streaming = true;
        self.at = 0;
        self.spans = Vec::new();
    }

    /// Whether the request at hand is being streamed.
    pub fn streaming(&self) -> bool {
        self.streaming
    }

    /// Goes on with a streamed request. `input` begins behind the bytes that the last call took. A header line is
    /// taken only when it is complete, the bytes of an argument as they come, at no cost for each byte. Takes nothing
    /// unless [`stream`](Self::stream) was called.
    pub fn scan_stream(&mut self, input: &[u8]) -> Result<Streamed, RequestError> {
        if !self.streaming {
            return Ok(Streamed { taken: 0, done: false });
        }
        self.at = 0;
        loop {
            match self.stage {
                Stage::Length => match self.length_line(input)? {
                    None => break,
                    Some(length) => self.stage = Stage::Bulk(length + 2),
                },
                Stage::Bulk(size) => {
                    let here = size.min(input.len() - self.at.min(input.len()));
                    self.at += here;
                    if here < size {
                        self.stage = Stage::Bulk(size - here);
                        break;
                    }
                    self.end_argument();
                }
                Stage::Start | Stage::Inline | Stage::Count | Stage::Done => break,
            }
        }
        Ok(Streamed {
            taken: self.at,
            done: self.stage == Stage::Done,
        })
    }

    fn empty(&mut self) -> Scanned {
        let len = self.at;
        self.next();
        Scanned::Empty { len }
    }

    fn end_argument(&mut self) {
        self.missing -= 1;
        self.stage = if self.missing == 0 { Stage::Done } else { Stage::Length };
    }

    #[cfg(test)]
    fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
    }

    #[cfg(not(test))]
    fn examine(&mut self, _bytes: usize) {}
}

#[cfg(test)]
mod tests;
