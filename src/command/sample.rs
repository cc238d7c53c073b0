//! A request made of words, for the tests of this module. It does not know the wire.

use crate::resp::{Args, Span};

/// The bytes of a request and where its arguments stand in them.
pub(super) struct Sample {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Sample {
    /// The words of `line`; `""` stands for an empty argument.
    pub(super) fn line(line: &str) -> Sample {
        let words: Vec<&[u8]> = line
            .split_whitespace()
            .map(|word| if word == "\"\"" { "" } else { word }.as_bytes())
            .collect();
        Sample::of(&words)
    }

    pub(super) fn of<A: AsRef<[u8]>>(arguments: &[A]) -> Sample {
        let mut sample = Sample {
            bytes: Vec::new(),
            spans: Vec::new(),
        };
        for argument in arguments {
            let start = sample.bytes.len();
            sample.bytes.extend_from_slice(argument.as_ref());
            sample.spans.push(Span {
                start,
                end: sample.bytes.len(),
            });
        }
        sample
    }

    pub(super) fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }
}
