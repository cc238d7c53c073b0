//! The arguments of one request, as slices of the bytes that carry them. Owns nothing and copies nothing.

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

    /// All arguments in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans
            .iter()
            .map(move |span| bytes.get(span.start..span.end).unwrap_or_default())
    }
}
