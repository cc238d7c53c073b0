//! Finds where a server's replies end, so that they can be passed on as they come. Flat: nested replies are one
//! counter of elements still to come, so neither depth nor announced lengths cost memory or stack (a script can answer
//! 8,000 arrays deep). No values are built here; `frame` looks into small complete replies.

use memchr::memchr;

use super::{number, whole};

/// The longest line that is held back until it is complete, in bytes; a longer simple string or error streams through.
const LINE_HELD_MAX: usize = 64 * 1024;
/// The longest header of an aggregate or bulk, in bytes: one kind byte, 20 digits and a sign leave room.
const HEADER_MAX: usize = 32;

/// How far one call of [`ReplyScanner::scan`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How many bytes of the input belong to the current reply and were looked at; the rest is to be offered again.
    pub taken: usize,
    /// Whether the reply is complete.
    pub done: bool,
}

/// The server does not speak RESP; its connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A reply or element begins with a byte that stands for no type.
    #[error("the server sent a reply of unknown type {0:#04x}")]
    UnknownType(u8),
    /// The header of an aggregate or bulk is no number, or too long to be one.
    #[error("the server sent a reply with an invalid length")]
    InvalidLength,
    /// More elements than can be counted.
    #[error("the server announced too many elements")]
    TooManyElements,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first line of an element.
    Header,
    /// The rest of a long line of which a part was taken; whether that part ends with `\r`.
    Line { after_return: bool },
    /// This many bytes of a bulk, the two behind it included.
    Bulk(u64),
    /// Nothing: the reply is complete.
    Done,
}

/// An incremental scanner for the replies of one server connection, RESP2 and RESP3; see the top of this file.
#[derive(Debug)]
pub struct ReplyScanner {
    stage: Stage,
    /// Elements still to come, the one at hand included.
    missing: u64,
    /// How many bytes of the line at hand are known to hold no line end.
    searched: usize,
    /// Bytes examined in all, so that a test can show that the work is linear.
    #[cfg(test)]
    examined: usize,
}

impl Default for ReplyScanner {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplyScanner {
    /// Makes a scanner that stands before the first reply.
    pub fn new() -> Self {
        ReplyScanner {
            stage: Stage::Header,
            missing: 1,
            searched: 0,
            #[cfg(test)]
            examined: 0,
        }
    }

    /// Makes the scanner stand before the next reply.
    pub fn next(&mut self) {
        self.stage = Stage::Header;
        self.missing = 1;
        self.searched = 0;
    }

    /// Whether the scanner stands before the first byte of a reply.
    pub fn at_start(&self) -> bool {
        self.stage == Stage::Header && self.missing == 1 && self.searched == 0
    }

    /// Looks on in the current reply. `input` begins behind the bytes that the last call took, and may reach beyond
    /// the end of the reply. The bytes of a bulk are taken as they come, at no cost for each byte; a line is taken only
    /// when it is complete, unless it is a simple string, error or number of more than 64 KB. After a step that is
    /// `done`, [`next`](Self::next) leads on to the next reply.
    pub fn scan(&mut self, input: &[u8]) -> Result<Step, ReplyError> {
        if self.at_start()
            && let Some(taken) = whole::reply(input)
        {
            self.examine(taken);
            self.stage = Stage::Done;
            return Ok(Step { taken, done: true });
        }
        let mut taken = 0;
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            match self.stage {
                Stage::Header => match self.header(rest)? {
                    0 => break,
                    size => taken += size,
                },
                Stage::Line { after_return } => match line_end(rest, after_return) {
                    Some(size) => {
                        taken += size;
                        self.end_element();
                    }
                    None => {
                        taken += rest.len();
                        let after_return = rest.last().map_or(after_return, |byte| *byte == b'\r');
                        self.stage = Stage::Line { after_return };
                        break;
                    }
                },
                Stage::Bulk(size) => {
                    let here = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
                    taken += here;
                    if (here as u64) < size {
                        self.stage = Stage::Bulk(size - here as u64);
                        break;
                    }
                    self.end_element();
                }
                Stage::Done => break,
            }
        }
        Ok(Step {
            taken,
            done: self.stage == Stage::Done,
        })
    }

    fn end_element(&mut self) {
        self.missing -= 1;
        self.stage = if self.missing == 0 { Stage::Done } else { Stage::Header };
    }

    /// Reads the first line of an element and returns how many bytes of it were taken: 0 if it is incomplete.
    fn header(&mut self, rest: &[u8]) -> Result<usize, ReplyError> {
        let Some(kind) = rest.first() else {
            return Ok(0);
        };
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok(self.text_line(rest)),
            b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|' => {
                let Some((size, number)) = number_line(rest)? else {
                    return Ok(0);
                };
                self.examine(size);
                self.begin(*kind, number)?;
                Ok(size)
            }
            unknown => Err(ReplyError::UnknownType(*unknown)),
        }
    }

    /// Takes a line that is an element by itself, if it is complete or too long to wait for.
    fn text_line(&mut self, rest: &[u8]) -> usize {
        let unsearched = rest.get(self.searched..).unwrap_or_default();
        self.examine(unsearched.len());
        if let Some(size) = line_end(unsearched, false) {
            let size = self.searched + size;
            self.searched = 0;
            self.end_element();
            return size;
        }
        if rest.len() > LINE_HELD_MAX {
            self.searched = 0;
            self.stage = Stage::Line {
                after_return: rest.last() == Some(&b'\r'),
            };
            return rest.len();
        }
        // A `\r` at the very end is to be seen again together with what follows.
        self.searched = rest.len() - usize::from(rest.last() == Some(&b'\r'));
        0
    }

    /// Begins what the header announces.
    fn begin(&mut self, kind: u8, number: i64) -> Result<(), ReplyError> {
        let count = match (kind, number) {
            // Nulls of RESP2.
            (b'$' | b'*', -1) => 0,
            (_, ..0) => return Err(ReplyError::InvalidLength),
            (b'$' | b'=' | b'!', length) => {
                self.stage = Stage::Bulk(length.unsigned_abs().saturating_add(2));
                return Ok(());
            }
            (b'%' | b'|', pairs) => pairs.unsigned_abs().saturating_mul(2),
            (_, count) => count.unsigned_abs(),
        };
        self.missing = self.missing.checked_add(count).ok_or(ReplyError::TooManyElements)?;
        // Attributes stand before the reply that they belong to and are no element themselves.
        if kind != b'|' {
            self.end_element();
        }
        Ok(())
    }

    #[cfg(test)]
    fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
    }

    #[cfg(not(test))]
    #[inline(always)]
    fn examine(&mut self, _bytes: usize) {}
}

/// The length of the usual reply at the start of `input`, if it has come whole; `None`: a scanner has to look.
#[inline]
pub fn usual(input: &[u8]) -> Option<usize> {
    whole::reply(input)
}

/// How many bytes it is to behind the first `\r\n`; `after_return`: the byte before `rest` is a `\r`.
fn line_end(rest: &[u8], after_return: bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + memchr(b'\n', rest.get(from..)?)?;
        let before = match end.checked_sub(1) {
            Some(before) => rest.get(before) == Some(&b'\r'),
            None => after_return,
        };
        from = end + 1;
        if before {
            return Some(from);
        }
    }
}

/// Reads a line of a kind byte and a number: its length with its end, and the number. `None` while it is incomplete.
pub(super) fn number_line(rest: &[u8]) -> Result<Option<(usize, i64)>, ReplyError> {
    let window = rest.get(..HEADER_MAX).unwrap_or(rest);
    let Some(end) = window.iter().position(|byte| *byte == b'\r') else {
        return if window.len() < HEADER_MAX {
            Ok(None)
        } else {
            Err(ReplyError::InvalidLength)
        };
    };
    match (rest.get(1..end).and_then(number::integer), rest.get(end + 1)) {
        (Some(number), Some(b'\n')) => Ok(Some((end + 2, number))),
        (Some(_), None) => Ok(None),
        _ => Err(ReplyError::InvalidLength),
    }
}

#[cfg(test)]
mod tests;
