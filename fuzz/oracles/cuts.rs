//! Where the packets of a fuzzed input end. The input itself says it, in front of the bytes that are cut. Cuts and
//! reads nothing else.

/// Control bits, the sizes of the packets, and the bytes that they carry.
pub struct Cuts<'a> {
    /// The bits that are free for the oracle.
    pub flags: u8,
    pub sizes: &'a [u8],
    /// What is cut.
    pub bytes: &'a [u8],
}

impl<'a> Cuts<'a> {
    /// The first byte holds flags and, in its lowest three bits, how many sizes follow. `None`: too short.
    pub fn read(input: &'a [u8]) -> Option<Cuts<'a>> {
        let (first, rest) = input.split_first()?;
        let (sizes, bytes) = rest.split_at_checked(usize::from(first & 7))?;
        Some(Cuts {
            flags: first >> 3,
            sizes,
            bytes,
        })
    }

    /// How many bytes have come after each packet. The sizes are used again and again, a size of 0 is all that is left;
    /// without sizes there is one packet.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        let (length, mut at) = (self.bytes.len(), 0);
        let mut sizes = self.sizes.iter().cycle();
        let mut over = false;
        core::iter::from_fn(move || {
            if over {
                return None;
            }
            at = match sizes.next() {
                Some(0) | None => length,
                Some(size) => length.min(at + usize::from(*size)),
            };
            over = at == length;
            Some(at)
        })
    }
}
