//! `SET` with all its options, and the constant meanings of `SETEX`, `PSETEX` and `GETSET`.

use super::super::features::Features;
use super::super::rule::Rule;
use super::{Emulate, Kind, Meaning, Write, Wrote, at, is, nil_allowed};
use crate::command::Idiom;
use crate::lock::call::Request;
use crate::resp::Args;
use crate::resp::number::integer;

/// The longest TTL of an acquire that counts as plain: some thirty years.
const MOST_PLAIN_TTL_MS: u64 = 1_000_000_000_000;

/// `SETEX`, `PSETEX`.
pub(super) const OVERWRITE: Meaning = write(Kind::Overwrite, false, Wrote::Reply);
/// `GETSET`.
pub(super) const TAKEOVER: Meaning = write(Kind::Takeover, false, Wrote::Always);

pub(super) const fn write(kind: Kind, refused_by_nil: bool, wrote: Wrote) -> Meaning {
    Meaning::Write(Write {
        kind,
        refused_by_nil,
        wrote,
    })
}

/// The options of one `SET`.
#[derive(Default)]
struct Options {
    nx: bool,
    xx: bool,
    get: bool,
    /// Where `IFEQ` stands.
    ifeq: Option<usize>,
    ifdeq: bool,
    /// `IFNE` or `IFDNE`.
    ifne: bool,
    /// With `EX` or one of its sisters.
    ttl: bool,
    /// A word that is not known. What stands behind it may be its value and is not read.
    odd: bool,
}

/// On what condition a `SET` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCondition {
    /// If there is no such key (`NX`).
    Absent {
        /// With a TTL.
        ttl: bool,
    },
    /// If the value is the expected one (`IFEQ`, `IFDEQ`).
    Compared,
}

/// The condition of a `SET` on any key, if it is one of these and the server may take it. For `SET k v EX n` this is a
/// look at the first two bytes of each option.
pub fn condition(args: Args<'_>) -> Option<SetCondition> {
    let telling = |word: &[u8]| matches!(word, [b'n' | b'N', b'x' | b'X', ..] | [b'i' | b'I', b'f' | b'F', ..]);
    if !args.iter().skip(3).any(telling) {
        return None;
    }
    let options = options(args);
    match options {
        Options { odd: true, .. } | Options { ifne: true, .. } => None,
        Options {
            nx: true, xx: false, ..
        } if options.ifeq.is_none() && !options.ifdeq => Some(SetCondition::Absent { ttl: options.ttl }),
        Options {
            nx: false, xx: false, ..
        } if options.ifeq.is_some() || options.ifdeq => Some(SetCondition::Compared),
        _ => None,
    }
}

/// Of an acquire in one of the plainest spellings (`SETNX k v`, `SET k v NX PX n`, `SET k v NX EX n` and these two the
/// other way round), about which the server has nothing to say but yes or no: the argument that is the value, and the
/// TTL in milliseconds.
pub(in crate::lock) fn plain_acquire(request: &Request<'_>) -> Option<(usize, Option<u64>)> {
    let args = request.args;
    let (nx, unit, count) = match (request.idiom, args.len()) {
        (Idiom::SetNx, 3) => return Some((2, None)),
        (Idiom::Set, 6) if is(at(args, 3), "NX") => (at(args, 3), at(args, 4), at(args, 5)),
        (Idiom::Set, 6) => (at(args, 5), at(args, 3), at(args, 4)),
        _ => return None,
    };
    let unit_ms = match unit {
        unit if is(unit, "PX") => 1,
        unit if is(unit, "EX") => 1000,
        _ => return None,
    };
    let count = integer(count).and_then(|count| u64::try_from(count).ok());
    let ttl_ms = count.and_then(|count| count.checked_mul(unit_ms))?;
    (is(nx, "NX") && (1..=MOST_PLAIN_TTL_MS).contains(&ttl_ms)).then_some((2, Some(ttl_ms)))
}

pub(super) fn set(args: Args<'_>, rule: &Rule, features: Features) -> Meaning {
    let options = options(args);
    if options.odd {
        return write(Kind::Overwrite, false, Wrote::Odd);
    }
    if options.ifeq.is_some() || options.ifdeq {
        return compared(&options, rule, features);
    }
    if options.ifne && !features.set_ifne {
        // The server's own syntax error is what clients choose their way by.
        return Meaning::Other;
    }
    let wrote = if options.get { Wrote::Always } else { Wrote::Reply };
    match options {
        Options {
            nx: true,
            ifne: false,
            get: false,
            ..
        } => Meaning::Acquire,
        Options {
            nx: true, ifne: false, ..
        } => write(Kind::Acquire, false, wrote),
        Options { ifne: true, get, .. } => {
            write(Kind::Overwrite, !get, if get { Wrote::Unknown } else { Wrote::Reply })
        }
        Options { xx: true, get, .. } => write(Kind::Overwrite, !get, wrote),
        Options { get: true, .. } => TAKEOVER,
        _ => write(Kind::Overwrite, nil_allowed(rule), wrote),
    }
}

/// `IFEQ`, `IFDEQ`: the server compares, or says that it cannot, or a script does it in its place.
fn compared(options: &Options, rule: &Rule, features: Features) -> Meaning {
    if features.set_ifeq {
        return Meaning::SelfChecked;
    }
    let alone = !(options.nx || options.xx || options.ifne || options.ifdeq);
    match options.ifeq {
        Some(place) if rule.emulate && alone => Meaning::Emulate(Emulate {
            compare: place + 1,
            set: Some((place, options.get)),
        }),
        _ => Meaning::Other,
    }
}

fn options(args: Args<'_>) -> Options {
    let mut options = Options::default();
    let mut words = args.iter().enumerate().skip(3);
    while let Some((place, word)) = words.next() {
        let value = match word {
            word if is(word, "NX") => {
                options.nx = true;
                continue;
            }
            word if is(word, "XX") => {
                options.xx = true;
                continue;
            }
            word if is(word, "GET") => {
                options.get = true;
                continue;
            }
            word if is(word, "KEEPTTL") => continue,
            word if ["EX", "PX", "EXAT", "PXAT"].iter().any(|known| is(word, known)) => {
                options.ttl = true;
                words.next()
            }
            word if is(word, "IFEQ") => {
                options.odd |= options.ifeq.is_some();
                options.ifeq = Some(place);
                words.next()
            }
            word if is(word, "IFDEQ") => {
                options.ifdeq = true;
                words.next()
            }
            word if is(word, "IFNE") || is(word, "IFDNE") => {
                options.ifne = true;
                words.next()
            }
            _ => None,
        };
        if value.is_none() {
            options.odd = true;
            break;
        }
    }
    options
}
