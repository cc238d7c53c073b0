//! The lines of a request before its arguments, and the inline request, with the server's limits on them. Knows nothing of
//! what comes behind a line.

use memchr::{memchr, memchr2};

use super::line::Line;
use super::{RequestError, RequestScanner};
use crate::resp::inline;

/// The longest inline request or header line, without its end, in bytes (`PROTO_INLINE_MAX_SIZE`).
pub(super) const LINE_MAX: usize = 64 * 1024;
/// The most arguments of one request (measured on 7.0.15 and 9.1.2; it was 1024 * 1024 up to Redis 6.2).
const ARGUMENTS_MAX: i64 = i32::MAX as i64;
/// The longest argument, in bytes (the default of `proto-max-bulk-len`).
const BULK_MAX: i64 = 512 * 1024 * 1024;
/// The most arguments before AUTH.
const ARGUMENTS_MAX_UNAUTHENTICATED: i64 = 10;
/// The longest argument before AUTH, in bytes.
const BULK_MAX_UNAUTHENTICATED: i64 = 16 * 1024;

impl RequestScanner {
    /// Reads the line `*<count>`. A count of 0 or less is 0.
    pub(super) fn count_line(&mut self, input: &[u8]) -> Result<Option<usize>, RequestError> {
        let Some(line) = self.line(input, b'*', RequestError::MultibulkCountTooBig)? else {
            return Ok(None);
        };
        let count = line.number.ok_or(RequestError::InvalidMultibulkLength)?;
        if count > ARGUMENTS_MAX {
            return Err(RequestError::InvalidMultibulkLength);
        }
        if count > ARGUMENTS_MAX_UNAUTHENTICATED && !self.authenticated {
            return Err(RequestError::UnauthenticatedMultibulkLength);
        }
        self.pass(line.size);
        Ok(Some(usize::try_from(count).unwrap_or(0)))
    }

    /// Reads the line `$<length>`.
    pub(super) fn length_line(&mut self, input: &[u8]) -> Result<Option<usize>, RequestError> {
        let Some(line) = self.line(input, b'$', RequestError::BulkCountTooBig)? else {
            return Ok(None);
        };
        if line.first != b'$' {
            return Err(RequestError::ExpectedDollar(line.first));
        }
        let length = line
            .number
            .filter(|length| *length <= BULK_MAX)
            .ok_or(RequestError::InvalidBulkLength)?;
        let size = usize::try_from(length).map_err(|_| RequestError::InvalidBulkLength)?;
        if length > BULK_MAX_UNAUTHENTICATED && !self.authenticated {
            return Err(RequestError::UnauthenticatedBulkLength);
        }
        self.pass(line.size);
        Ok(Some(size))
    }

    fn pass(&mut self, size: usize) {
        self.at += size;
        self.searched = 0;
    }

    /// Reads the header line at `at`; `None` while it is incomplete. The line ends with the byte behind the first
    /// `\r`, whichever that is.
    #[inline]
    fn line(&mut self, input: &[u8], kind: u8, too_big: RequestError) -> Result<Option<Line>, RequestError> {
        let rest = input.get(self.at..).unwrap_or_default();
        match Line::short(rest, kind) {
            Some(line) => {
                self.examine(line.size);
                self.canonical &= rest.get(line.size - 1) == Some(&b'\n');
                Ok(Some(line))
            }
            None => {
                let line = self.searched_line(rest, too_big)?;
                self.canonical &= line.is_none();
                Ok(line)
            }
        }
    }

    fn searched_line(&mut self, rest: &[u8], too_big: RequestError) -> Result<Option<Line>, RequestError> {
        let found = memchr(b'\r', self.unsearched(rest));
        match found.map(|offset| self.searched + offset) {
            Some(end) => {
                // If the line is incomplete still, its end is found again at once.
                self.searched = end;
                Ok(Line::ending_at(rest, end))
            }
            None if rest.len() > LINE_MAX => Err(too_big),
            None => {
                self.searched = rest.len();
                Ok(None)
            }
        }
    }

    /// The bytes of `rest` in which the end of a line is still to be looked for.
    fn unsearched<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let rest = rest.get(..=LINE_MAX).unwrap_or(rest);
        let unsearched = rest.get(self.searched..).unwrap_or_default();
        self.examine(unsearched.len());
        unsearched
    }

    /// Looks for the end of an inline line and reads its arguments; their number, or `None` while the line is
    /// incomplete. As on the server, a NUL byte hides everything behind it.
    pub(super) fn inline_line(&mut self, input: &[u8]) -> Result<Option<usize>, RequestError> {
        let found = memchr2(b'\n', 0, self.unsearched(input)).map(|offset| self.searched + offset);
        match found.and_then(|end| input.split_at_checked(end)) {
            Some((line, [b'\n', ..])) => {
                let bare = line.strip_suffix(b"\r").unwrap_or(line);
                self.text.clear();
                self.spans.clear();
                inline::split(bare, &mut self.text, &mut self.spans).map_err(|_| RequestError::UnbalancedQuotes)?;
                self.ambiguous = inline::is_ambiguous(bare);
                self.pass(line.len() + 1);
                Ok(Some(self.spans.len()))
            }
            _ if input.len() > LINE_MAX => Err(RequestError::InlineTooBig),
            _ => {
                self.searched = found.unwrap_or(input.len());
                Ok(None)
            }
        }
    }
}
