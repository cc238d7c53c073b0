//! One header line of a request, `*<count>` or `$<length>`, read but not judged.

use crate::resp::number;

/// Numbers of up to this many digits are read without a search for the line's end.
const SHORT_DIGITS: usize = 8;

/// A complete header line.
pub(super) struct Line {
    /// Its first byte.
    pub(super) first: u8,
    /// The number behind the first byte, if it is one.
    pub(super) number: Option<i64>,
    /// Its length with the `\r` and the byte behind it.
    pub(super) size: usize,
}

impl Line {
    /// Reads the usual line, `kind` and a few digits, without a search; `None` if it is another one or incomplete.
    #[inline]
    pub(super) fn short(rest: &[u8], kind: u8) -> Option<Line> {
        let (first, digits) = rest.split_first()?;
        if *first != kind {
            return None;
        }
        let mut value = 0;
        for (index, byte) in digits.iter().take(SHORT_DIGITS + 1).enumerate() {
            match byte {
                b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
                b'\r' => {
                    let sound = index == 1 || (index > 1 && digits.first() != Some(&b'0'));
                    let size = index + 3;
                    return (sound && rest.len() >= size).then_some(Line {
                        first: kind,
                        number: Some(value),
                        size,
                    });
                }
                _ => return None,
            }
        }
        None
    }

    /// Reads the line whose `\r` stands at `end`; `None` while the byte behind that is missing.
    pub(super) fn ending_at(rest: &[u8], end: usize) -> Option<Line> {
        let size = end + 2;
        let (first, number) = match rest.get(..size)? {
            [b'\r', _] => (b'\r', None),
            [first, digits @ .., b'\r', _] => (*first, number::integer(digits)),
            _ => return None,
        };
        Some(Line { first, number, size })
    }
}
