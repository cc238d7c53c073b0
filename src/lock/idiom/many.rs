//! `MSET`, `MSETNX`, `MSETEX`: several keys written at once.

use super::super::features::Features;
use super::{Many, Meaning, is};
use crate::resp::Args;

/// `MSET key value …`; an odd one out is the server's business.
pub(super) fn mset(args: Args<'_>, kind: Many) -> Meaning {
    if args.len() < 3 || args.len().is_multiple_of(2) {
        return Meaning::Other;
    }
    Meaning::ManyWritten {
        kind,
        options: args.len(),
    }
}

/// `MSETEX numkeys key value … [NX | XX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`.
pub(super) fn msetex(args: Args<'_>, keys: &[usize], features: Features) -> Meaning {
    let Some(last) = keys.last().filter(|_| features.msetex) else {
        return Meaning::Other;
    };
    let options = last + 2;
    let mut kind = Many::Overwrite;
    let mut words = args.iter().skip(options);
    while let Some(word) = words.next() {
        match word {
            word if is(word, "NX") => kind = Many::Acquire,
            word if is(word, "XX") && kind == Many::Overwrite => kind = Many::Present,
            word if ["EX", "PX", "EXAT", "PXAT"].iter().any(|known| is(word, known)) => {
                words.next();
            }
            word if is(word, "XX") || is(word, "KEEPTTL") => {}
            // What stands behind an unknown word may be its value.
            _ => {
                kind = Many::Overwrite;
                break;
            }
        }
    }
    Meaning::ManyWritten { kind, options }
}
