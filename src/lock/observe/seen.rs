//! What an observed command asks for, in the model's terms. Where the server's clock would be needed (a point in time)
//! the expiry is taken as unknown.

use super::super::call::Request;
use super::super::idiom::{Condition, Extend, Flags, Kind, Many, Meaning, Until, Write, Wrote};
use crate::command::Idiom;
use crate::resp::number::integer;
use crate::resp::{Args, is_word};

/// A point in time before this (2017) is in the past on any server's clock.
const SURELY_PAST_MS: i64 = 1_500_000_000_000;

/// What an observed command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// A key written; the answer tells whether it was.
    Write { kind: Kind, told: Told, ttl: Ttl },
    /// Several keys written.
    WriteMany { kind: Many },
    /// Keys given up. `certain`: the answer is about whether they were there.
    Release { certain: bool, conditional: bool },
    /// The expiry changed.
    Extend { ttl: Ttl, conditional: bool, repairs: bool },
    /// `RENAME`; the first subject is the source.
    Rename,
    /// It compares, or is a script.
    Unknown,
}

/// How the answer tells that it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// OK or 1.
    Done,
    /// By nil: the key was free (`SET … NX GET`).
    NilIsDone,
    /// Any answer but an error.
    Always,
    /// Not at all.
    Never,
}

/// The expiry that a command leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// As it was.
    Keep,
    /// None, or one that is not known here.
    Never,
    /// So many milliseconds from now.
    In(i64),
}

pub(super) fn ask(meaning: Meaning, request: &Request<'_>) -> Ask {
    match meaning {
        Meaning::Acquire => Ask::Write {
            kind: Kind::Acquire,
            told: Told::Done,
            ttl: written_ttl(request),
        },
        Meaning::Write(write) => written(write, request),
        Meaning::ManyWritten { kind, .. } => Ask::WriteMany { kind },
        Meaning::Release => Ask::Release {
            certain: true,
            conditional: false,
        },
        Meaning::Remove(remove) => Ask::Release {
            certain: request.idiom != Idiom::Migrate,
            conditional: remove.condition != Condition::None,
        },
        Meaning::ManyMoved { .. } => Ask::Release {
            certain: false,
            conditional: false,
        },
        Meaning::Extend(extend) => extended(extend, request.idiom),
        Meaning::Rename => Ask::Rename,
        Meaning::Other | Meaning::SelfChecked | Meaning::CopyAway { .. } | Meaning::Emulate(_) => Ask::Unknown,
    }
}

fn written(write: Write, request: &Request<'_>) -> Ask {
    let told = match (write.kind, write.wrote) {
        (Kind::Acquire, Wrote::Always) => Told::NilIsDone,
        (_, Wrote::Always) => Told::Always,
        (_, Wrote::Reply | Wrote::Odd) => Told::Done,
        (_, Wrote::Unknown) => Told::Never,
    };
    Ask::Write {
        kind: write.kind,
        told,
        ttl: written_ttl(request),
    }
}

/// The TTL that a command which writes one key gives it.
pub fn written_ttl(request: &Request<'_>) -> Ttl {
    let args = request.args;
    let in_units = |index: usize, unit_ms: i64| {
        let units = args.get(index).and_then(integer);
        units
            .and_then(|units| units.checked_mul(unit_ms))
            .map_or(Ttl::Never, Ttl::In)
    };
    match request.idiom {
        Idiom::SetEx if args.get(0).is_some_and(|name| is_word(name, b"SETEX")) => in_units(2, 1000),
        Idiom::SetEx => in_units(2, 1),
        Idiom::Restore => match in_units(2, 1) {
            Ttl::In(0) => Ttl::Never,
            ttl => ttl,
        },
        Idiom::Set => option(args).map_or(Ttl::Never, |(index, unit_ms)| match unit_ms {
            0 => Ttl::Keep,
            _ => in_units(index, unit_ms),
        }),
        _ => Ttl::Never,
    }
}

/// Where the TTL of a `SET` stands, and its unit in milliseconds; unit 0: `KEEPTTL`.
fn option(args: Args<'_>) -> Option<(usize, i64)> {
    args.iter().enumerate().skip(3).find_map(|(index, word)| match word {
        word if is_word(word, b"EX") => Some((index + 1, 1000)),
        word if is_word(word, b"PX") => Some((index + 1, 1)),
        word if is_word(word, b"KEEPTTL") => Some((index, 0)),
        _ => None,
    })
}

fn extended(extend: Extend, idiom: Idiom) -> Ask {
    let conditional = extend.flags != Flags::default();
    let ttl = match extend.until {
        Until::At(at) if at < SURELY_PAST_MS => {
            return Ask::Release {
                certain: true,
                conditional,
            };
        }
        Until::In(ms) if ms > 0 => Ttl::In(ms),
        Until::In(_) => return Ask::Unknown,
        Until::Never | Until::At(_) => Ttl::Never,
    };
    Ask::Extend {
        ttl,
        conditional,
        repairs: idiom != Idiom::GetEx,
    }
}
