//! The arguments of one request, as slices of the bytes that carry them. Owns nothing and copies nothing.

use memchr::memchr;

/// Where one argument stands in the bytes of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

/// The arguments of one request; argument 0 is the command's name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// Joins bytes and the places of the arguments in them. A span that lies outside reads as an empty argument.
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Args { bytes, spans }
    }

    /// How many arguments there are, the command's name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        Some(self.bytes.get(span.start..span.end).unwrap_or_default())
    }

    /// The argument at `index` as the server reads a name or an option; see [`word`].
    pub fn word(&self, index: usize) -> Option<&'a [u8]> {
        self.get(index).map(word)
    }

    /// All arguments in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans
            .iter()
            .map(move |span| bytes.get(span.start..span.end).unwrap_or_default())
    }
}

/// What the server sees of a command's name, a subcommand or an option: all up to the first NUL byte, since it compares
/// them as C strings. Measured on Redis 7.0.15 and Valkey 9.1.2: `SET k v NX\0x` is a SET NX, `CLIENT REPLY SKIP\0x`
/// answers nothing, and `PING\0x` is found where both names happen to fall into one slot of the hash table. Keys, values
/// and numbers are read whole.
pub fn word(argument: &[u8]) -> &[u8] {
    match memchr(0, argument) {
        Some(end) => argument.get(..end).unwrap_or_default(),
        None => argument,
    }
}

/// Whether the server reads an argument as this name or option, in any case; see [`word`].
pub fn is_word(argument: &[u8], name: &[u8]) -> bool {
    word(argument).eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_at_its_first_nul() {
        for (argument, expected) in [(&b"NX"[..], &b"NX"[..]), (b"NX\0zz\0", b"NX"), (b"\0", b""), (b"", b"")] {
            assert_eq!(word(argument), expected);
        }
    }

    #[test]
    fn a_span_outside_reads_as_empty() {
        let spans = [Span { start: 0, end: 2 }, Span { start: 1, end: 9 }];
        let args = Args::new(b"abc", &spans);
        assert_eq!(args.get(0), Some(&b"ab"[..]));
        assert_eq!(args.get(1), Some(&b""[..]));
        assert_eq!(args.word(2), None);
    }
}
