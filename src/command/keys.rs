//! Where the keys of one request stand. Reads the arguments as the server does when it executes the command, which is
//! now and then stricter than its `COMMAND GETKEYS`. Allocates nothing, and no arguments can make it panic. It does not
//! say whether the request is right: a request that the server will refuse may have keys here or none.

use crate::resp::number::integer;
use crate::resp::{Args, is_word};

use super::role::{Idiom, Role};
use super::row::{Keys, Row, Subcommand, arity_ok};

/// The places of a request's keys: at most one that stands by itself, then a row of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    alone: Option<usize>,
    first: usize,
    /// Behind the last one.
    end: usize,
    step: usize,
}

impl Places {
    const NOWHERE: Places = Places {
        alone: None,
        first: 0,
        end: 0,
        step: 1,
    };

    fn one(place: usize) -> Places {
        Places {
            alone: Some(place),
            ..Places::NOWHERE
        }
    }

    /// The source, and the target if there is one.
    fn source_and_target(source: usize, target: Option<usize>) -> Places {
        let (first, end) = target.map_or((0, 0), |place| (place, place.saturating_add(1)));
        Places {
            alone: Some(source),
            first,
            end,
            step: 1,
        }
    }
}

/// The indices in `args` of all keys of this request, each below `args.len()`, in the order in which they stand (the
/// target of `SORT` and `GEORADIUS` last). A key that is named twice comes twice. Arguments that the server will refuse
/// (a bad number of keys, no `STREAMS`) give none.
pub fn keys(row: &Row, args: Args<'_>) -> impl Iterator<Item = usize> + use<> {
    let places = places(row, args);
    let count = args.len();
    let alone = places.alone.filter(|place| *place < count);
    alone
        .into_iter()
        .chain((places.first..places.end.min(count)).step_by(places.step.max(1)))
}

/// The key of a command that has exactly one, as its first argument: most have. `None` for all others.
#[inline]
pub fn only_key<'a>(row: &Row, args: Args<'a>) -> Option<&'a [u8]> {
    match row.keys {
        Keys::Range { first: 1, last: 1, .. } => args.get(1),
        _ => None,
    }
}

/// The index of the key that the request writes whatever was there before, for the idioms `Store`, `Copy`, `Restore`
/// and `Rename`; always one of [`keys`]. `None` for all other commands, and where none is written (`SORT` without
/// `STORE`). The target of `COPY … DB n` lies in another database.
pub fn target(row: &Row, args: Args<'_>) -> Option<usize> {
    let Role::Lock(idiom) = row.role else { return None };
    let place = match idiom {
        Idiom::Restore => 1,
        Idiom::Copy | Idiom::Rename => 2,
        Idiom::Store => match row.keys {
            Keys::Range { first, .. } => usize::from(first),
            Keys::Sort => sort_target(args)?,
            Keys::GeoRadius { options } => geo_target(args, usize::from(options))?,
            Keys::TargetNumKeys => places(row, args).alone?,
            _ => return None,
        },
        _ => return None,
    };
    (place < args.len()).then_some(place)
}

/// Whether all keys of a request of `announced` arguments are already among those complete so far, so that what
/// follows (the huge value of a `SET` or `APPEND`) need not be kept. Says so only of commands whose one key comes first
/// and of those without keys that are merely forwarded; `false` wherever it is not sure.
pub fn early(row: &Row, args_so_far: Args<'_>, announced: usize) -> bool {
    if args_so_far.len() > announced || !arity_ok(row, announced) {
        return false;
    }
    match (row.keys, row.role) {
        (Keys::None, Role::Forward) => !args_so_far.is_empty(),
        (Keys::Range { first: 1, last: 1, .. }, Role::Forward | Role::Lock(_)) => args_so_far.len() >= 2,
        _ => false,
    }
}

fn places(row: &Row, args: Args<'_>) -> Places {
    match row.keys {
        Keys::None => Places::NOWHERE,
        Keys::Range { first, last, step } => range(first, last, step, args.len()),
        Keys::NumKeys { at, step } => numbered(args, at.into(), step.into()).unwrap_or(Places::NOWHERE),
        Keys::TargetNumKeys => match numbered(args, 2, 1) {
            // The server refuses 0 sources, so the target is not written either.
            Some(sources) if sources.first < sources.end => Places {
                alone: Some(1),
                ..sources
            },
            _ => Places::NOWHERE,
        },
        Keys::Sort => Places::source_and_target(1, sort_target(args)),
        Keys::GeoRadius { options } => Places::source_and_target(1, geo_target(args, options.into())),
        Keys::Migrate => migrate(args),
        Keys::Streams => streams(args).unwrap_or(Places::NOWHERE),
        Keys::Subcommands(list) => match subcommand(list, args) {
            Some(found) => range(found.first, found.last, 1, args.len()),
            None => Places::NOWHERE,
        },
    }
}

fn range(first: u16, last: i16, step: u16, count: usize) -> Places {
    let distance = usize::from(last.unsigned_abs());
    let end = if last < 0 {
        (count + 1).saturating_sub(distance)
    } else {
        distance + 1
    };
    Places {
        alone: None,
        first: first.into(),
        end,
        step: step.into(),
    }
}

/// The keys behind the number at `at`. The server refuses a number that is not one, is negative, or promises more
/// arguments than there are.
fn numbered(args: Args<'_>, at: usize, step: usize) -> Option<Places> {
    let number = usize::try_from(integer(args.get(at)?)?).ok()?;
    let first = at.checked_add(1)?;
    let end = first.checked_add(number.checked_mul(step)?)?;
    (end <= args.len()).then_some(Places {
        alone: None,
        first,
        end,
        step,
    })
}

/// The target of `SORT`: behind the last `STORE`. Options with values are stepped over as the command itself does it,
/// so that a target that is called `limit` is not taken for the option.
fn sort_target(args: Args<'_>) -> Option<usize> {
    let mut target = None;
    let mut at = 2;
    while let Some(option) = args.get(at) {
        let left = args.len() - at - 1;
        if is_word(option, b"store") && left >= 1 {
            target = Some(at + 1);
            at += 1;
        } else if is_word(option, b"limit") && left >= 2 {
            at += 2;
        } else if (is_word(option, b"by") || is_word(option, b"get")) && left >= 1 {
            at += 1;
        }
        at += 1;
    }
    target
}

/// The target of `GEORADIUS`: behind the last `STORE` or `STOREDIST`.
fn geo_target(args: Args<'_>, options: usize) -> Option<usize> {
    let mut target = None;
    let mut at = options;
    while let Some(option) = args.get(at) {
        let stores = is_word(option, b"store") || is_word(option, b"storedist");
        if stores && at + 1 < args.len() {
            target = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    target
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH p | AUTH2 u p] [KEYS key …]`. The server refuses `KEYS`
/// beside a key at 3.
fn migrate(args: Args<'_>) -> Places {
    let single = args.get(3).is_some_and(|key| !key.is_empty());
    let mut at = 6;
    while let Some(option) = args.get(at) {
        if is_word(option, b"keys") {
            if single {
                return Places::NOWHERE;
            }
            return Places {
                alone: None,
                first: at + 1,
                end: args.len(),
                step: 1,
            };
        }
        at += match option {
            option if is_word(option, b"auth") => 2,
            option if is_word(option, b"auth2") => 3,
            _ => 1,
        };
    }
    Places::one(3)
}

/// The keys of `XREAD` and `XREADGROUP`: the first half of what stands behind `STREAMS`. A stream may be called like an
/// option, so each option is stepped over with its values, and the first word that is none ends the search.
fn streams(args: Args<'_>) -> Option<Places> {
    const WITH_ONE_VALUE: [&[u8]; 5] = [b"block", b"count", b"claim", b"maxcount", b"maxsize"];
    let mut at = 1;
    loop {
        let option = args.get(at)?;
        at += if is_word(option, b"streams") {
            let behind = args.len() - at - 1;
            let even = behind > 0 && behind.is_multiple_of(2);
            return even.then_some(Places {
                alone: None,
                first: at + 1,
                end: at + 1 + behind / 2,
                step: 1,
            });
        } else if is_word(option, b"group") {
            3
        } else if is_word(option, b"noack") {
            1
        } else if WITH_ONE_VALUE.iter().any(|name| is_word(option, name)) {
            2
        } else {
            return None;
        };
    }
}

fn subcommand(list: &'static [Subcommand], args: Args<'_>) -> Option<&'static Subcommand> {
    let name = args.get(1)?;
    list.iter().find(|sub| is_word(name, sub.name.as_bytes()))
}

#[cfg(test)]
mod tests;
