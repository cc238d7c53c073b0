//! Which acquires the shield may answer: those whose every word the server is sure to accept, so that the only thing left
//! to find out is whether the lock is held. Stricter than the server, never laxer: what is left out is asked for.

use bytes::BytesMut;

use crate::command::Idiom;
use crate::resp::number::integer;
use crate::resp::{Args, Resp, encode, is_word};

/// The longest TTL, in the unit of its option, that any server takes without a look at its clock.
const LONGEST_TTL: i64 = 1_000_000_000_000;

/// How an acquire is spelled, as far as its refusal depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// `SET … NX`.
    Set,
    /// `SETNX`.
    SetNx,
}

impl Spelling {
    /// The spelling of a command with the right number of arguments; `None`: it is none of these, or the server may have
    /// something to say about it.
    pub fn of(idiom: Idiom, args: Args<'_>) -> Option<Spelling> {
        match idiom {
            Idiom::SetNx => Some(Spelling::SetNx),
            Idiom::Set => is_plain(args).then_some(Spelling::Set),
            _ => None,
        }
    }

    /// What the server answers where the lock is held.
    pub fn refusal(self, resp: Resp, out: &mut BytesMut) {
        match self {
            Spelling::Set => encode::null(out, resp),
            Spelling::SetNx => encode::integer(out, 0),
        }
    }
}

/// `NX` once, and at most one good TTL.
fn is_plain(args: Args<'_>) -> bool {
    let (mut nx, mut ttl) = (false, false);
    let mut words = args.iter().skip(3);
    while let Some(word) = words.next() {
        if is_word(word, b"NX") && !nx {
            nx = true;
        } else if (is_word(word, b"EX") || is_word(word, b"PX")) && !ttl {
            ttl = words
                .next()
                .and_then(integer)
                .is_some_and(|time| (1..=LONGEST_TTL).contains(&time));
            if !ttl {
                return false;
            }
        } else {
            return false;
        }
    }
    nx
}
