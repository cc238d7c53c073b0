//! The short way for the usual frame: an array of bulks with small numbers, or a short reply, that has come whole. Most
//! frames are such, and are found here in a fraction of the work of the scanners. Whatever is unusual in any way gets
//! `None`, and the scanners decide: so this never says more than they would, which `tests/scanner_split` checks.

use super::args::Span;

/// The most digits of a number that is read here.
const DIGITS_MAX: usize = 6;
/// The longest line that is looked through here, in bytes.
const LINE_MAX: usize = 64;
/// The most arguments of a request that is read here.
const ARGUMENTS_MAX: usize = 64;

/// The length of the array of bulks at the start of `input`, and the places of its arguments in `spans`, which is empty.
/// After `None` what is in `spans` means nothing.
#[inline]
pub(super) fn request(input: &[u8], spans: &mut Vec<Span>) -> Option<usize> {
    let (count, mut at) = number(input, 0, b'*')?;
    if count == 0 || count > ARGUMENTS_MAX {
        return None;
    }
    for _ in 0..count {
        let span = bulk(input, at)?;
        spans.push(span);
        at = span.end + 2;
    }
    Some(at)
}

/// So many arguments from `at` on: the place of the first, and where the last one's line ends. Without any, both are `at`.
#[inline]
pub(crate) fn bulks(input: &[u8], at: usize, count: usize) -> Option<(Span, usize)> {
    if count == 0 {
        return Some((Span { start: at, end: at }, at));
    }
    let first = bulk(input, at)?;
    let mut at = first.end + 2;
    for _ in 1..count {
        at = bulk(input, at)?.end + 2;
    }
    Some((first, at))
}

/// The place of the argument whose line begins at `at`.
#[inline(always)]
fn bulk(input: &[u8], at: usize) -> Option<Span> {
    let (length, start) = number(input, at, b'$')?;
    let end = start + length;
    (input.get(end..end + 2)? == b"\r\n").then_some(Span { start, end })
}

/// The length of the reply at the start of `input`: a simple string, a number, a bulk or a RESP2 null.
#[inline]
pub(super) fn reply(input: &[u8]) -> Option<usize> {
    match input.first()? {
        b'$' => match number(input, 0, b'$') {
            Some((length, start)) => (input.len() >= start + length + 2).then_some(start + length + 2),
            None => input.starts_with(b"$-1\r\n").then_some(5),
        },
        b'+' | b':' => {
            let line = input.get(..LINE_MAX).unwrap_or(input);
            let end = line.iter().position(|byte| *byte == b'\n')?;
            (line.get(end.checked_sub(1)?) == Some(&b'\r')).then_some(end + 1)
        }
        _ => None,
    }
}

/// The number of the line at `at`, which begins with `kind`, and where the next line begins.
#[inline(always)]
fn number(input: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let rest = input.get(at..)?;
    // One or two digits: by far the commonest.
    if let [first, digit @ b'0'..=b'9', b'\r', b'\n', ..] = rest {
        return (*first == kind).then_some((usize::from(digit - b'0'), at + 4));
    }
    if let [first, ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] = rest {
        let value = usize::from(ten - b'0') * 10 + usize::from(one - b'0');
        return (*first == kind).then_some((value, at + 5));
    }
    let (first, digits) = rest.split_first()?;
    if *first != kind || digits.first() == Some(&b'0') {
        return None;
    }
    let mut value = 0;
    for (index, byte) in digits.iter().take(DIGITS_MAX + 1).enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if index > 0 && digits.get(index + 1) == Some(&b'\n') => return Some((value, at + index + 3)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(input: &[u8]) -> Option<(usize, Vec<(usize, usize)>)> {
        let mut spans = Vec::new();
        let len = request(input, &mut spans)?;
        Some((len, spans.iter().map(|span| (span.start, span.end)).collect()))
    }

    #[test]
    fn finds_whole_requests() {
        assert_eq!(places(b"*1\r\n$4\r\nPING\r\n*"), Some((14, vec![(8, 12)])));
        assert_eq!(
            places(b"*2\r\n$3\r\nGET\r\n$12\r\nabcdefghijkl\r\n"),
            Some((32, vec![(8, 11), (18, 30)]))
        );
        assert_eq!(
            places(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n"),
            Some((19, vec![(8, 11), (17, 17)]))
        );
    }

    #[test]
    fn leaves_the_unusual_to_the_scanner() {
        for input in [
            &b"PING\r\n"[..],
            b"*0\r\n",
            b"*-1\r\n",
            b"*01\r\n$1\r\na\r\n",
            b"*+1\r\n$1\r\na\r\n",
            b"*1\rX$1\r\na\r\n",
            b"*1\r\n$1\rXa\r\n",
            b"*1\r\n$1\r\naXX",
            b"*1\r\n$01\r\na\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n:1\r\n",
            b"*1\r\n$\r\na\r\n",
            b"*1\r\n$1234567\r\n",
            b"",
            b"*",
            b"*1",
            b"*1\r\n$4\r\nPING\r",
            b"*1\r\n$4\r\nPIN",
        ] {
            assert_eq!(places(input), None, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn finds_whole_replies() {
        for (input, len) in [
            (&b"$3\r\nabc\r\n"[..], 9),
            (b"$0\r\n\r\n+", 6),
            (b"$-1\r\n", 5),
            (b"+OK\r\n+OK\r\n", 5),
            (b":-12\r\n", 6),
        ] {
            assert_eq!(reply(input), Some(len), "{}", input.escape_ascii());
        }
        for input in [
            &b"$3\r\nabc\r"[..],
            b"$-2\r\n",
            b"+OK\n",
            b"+OK\r",
            b"-ERR\r\n",
            b"*1\r\n+a\r\n",
            b"_\r\n",
            b"",
        ] {
            assert_eq!(reply(input), None, "{}", input.escape_ascii());
        }
    }
}
