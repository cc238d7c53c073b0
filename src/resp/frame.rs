//! Looks into replies that are at hand as bytes: the first word of a push or message, the elements of one small
//! complete aggregate. Builds no values, does not descend, and is not meant for replies that are still coming.

use super::reply::{ReplyScanner, number_line};

/// The longest first word that [`leading_word`] looks for, in bytes.
const WORD_MAX: i64 = 32;

/// What stands at the start of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading<'a> {
    /// The bytes do not say it yet.
    NeedMore,
    /// An array or push whose first element is a simple string or a short bulk string.
    Word {
        /// `*` or `>`.
        kind: u8,
        /// How many elements it announces.
        count: u64,
        /// The first element's text.
        word: &'a [u8],
    },
    /// Anything else, be it another type or malformed.
    Other {
        /// The first byte.
        kind: u8,
    },
}

/// Tells what kind of reply begins at the start of `input`, and its first word if it is an array or push: pub/sub
/// messages, acknowledgements and invalidations are told by it.
pub fn leading_word(input: &[u8]) -> Leading<'_> {
    let Some(&kind) = input.first() else {
        return Leading::NeedMore;
    };
    let other = Leading::Other { kind };
    if !matches!(kind, b'*' | b'>') {
        return other;
    }
    let (size, number) = match number_line(input) {
        Ok(Some(header)) => header,
        Ok(None) => return Leading::NeedMore,
        Err(_) => return other,
    };
    let (Ok(count @ 1..), Some(first)) = (u64::try_from(number), input.get(size..)) else {
        return other;
    };
    match first_word(first) {
        Word::NeedMore => Leading::NeedMore,
        Word::Found(word) => Leading::Word { kind, count, word },
        Word::None => other,
    }
}

enum Word<'a> {
    NeedMore,
    Found(&'a [u8]),
    None,
}

fn first_word(element: &[u8]) -> Word<'_> {
    match element.first() {
        None => Word::NeedMore,
        Some(b'$') => match number_line(element) {
            Ok(None) => Word::NeedMore,
            Ok(Some((size, length @ 0..=WORD_MAX))) => match element.get(size..size + length as usize) {
                Some(word) => Word::Found(word),
                None => Word::NeedMore,
            },
            _ => Word::None,
        },
        Some(b'+') => {
            let text = element.get(1..).unwrap_or_default();
            match text.iter().take(WORD_MAX as usize + 1).position(|byte| *byte == b'\r') {
                Some(end) => Word::Found(text.get(..end).unwrap_or_default()),
                None if text.len() <= WORD_MAX as usize => Word::NeedMore,
                None => Word::None,
            }
        }
        Some(_) => Word::None,
    }
}

/// The top-level elements of one aggregate, each as the bytes of its whole frame; of a map, keys and values in turn.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    kind: u8,
    count: u64,
    left: u64,
    rest: &'a [u8],
}

impl Elements<'_> {
    /// The first byte of the aggregate: `*`, `~`, `>` or `%`.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The number in its header: how many elements, of a map how many pairs.
    pub fn announced(&self) -> u64 {
        self.count
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let step = ReplyScanner::new().scan(self.rest).ok().filter(|step| step.done)?;
        let (element, rest) = self.rest.split_at_checked(step.taken)?;
        self.rest = rest;
        Some(element)
    }
}

/// The elements of `frame`; `None` unless it is exactly one complete aggregate. A null array has no elements and is
/// none; attributes in front of an aggregate are not looked behind.
pub fn elements(frame: &[u8]) -> Option<Elements<'_>> {
    let kind = *frame.first()?;
    if !matches!(kind, b'*' | b'~' | b'>' | b'%') {
        return None;
    }
    let step = ReplyScanner::new().scan(frame).ok()?;
    if !step.done || step.taken != frame.len() {
        return None;
    }
    let (size, number) = number_line(frame).ok()??;
    let count = u64::try_from(number).ok()?;
    let left = if kind == b'%' { count.checked_mul(2)? } else { count };
    Some(Elements {
        kind,
        count,
        left,
        rest: frame.get(size..)?,
    })
}

/// The text of a complete bulk string, simple string or integer; `None` for any other element, null included.
pub fn bulk(element: &[u8]) -> Option<&[u8]> {
    match element.first()? {
        b'+' | b':' => element.get(1..)?.strip_suffix(b"\r\n"),
        b'$' => {
            let (size, length) = number_line(element).ok()??;
            let text = element.get(size..)?.strip_suffix(b"\r\n")?;
            (u64::try_from(length) == Ok(text.len() as u64)).then_some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
