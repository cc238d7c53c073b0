//! Keys that go somewhere else or come from somewhere else: `RENAME`, `MIGRATE`, `COPY`, `RESTORE` and all commands that
//! store their result.

use super::set::write;
use super::{Condition, Kind, Meaning, Refusal, Remove, Wrote, at, integer, is};
use crate::lock::call::Subject;
use crate::resp::Args;

/// `RENAME source target`, `RENAMENX source target`.
pub(super) fn rename(args: Args<'_>, subjects: &[Subject]) -> Meaning {
    if at(args, 1) == at(args, 2) {
        return Meaning::Other;
    }
    if subjects.iter().any(|subject| subject.argument == 1) {
        return Meaning::Rename;
    }
    let kind = if is(at(args, 0), "RENAMENX") {
        Kind::Acquire
    } else {
        Kind::Overwrite
    };
    write(kind, false, Wrote::Reply)
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH p | AUTH2 u p] [KEYS key …]`.
pub(super) fn migrate(args: Args<'_>, keys: &[usize]) -> Meaning {
    let mut words = args.iter().skip(6);
    while let Some(word) = words.next() {
        if is(word, "COPY") {
            return Meaning::Other;
        } else if is(word, "AUTH") {
            words.next();
        } else if is(word, "AUTH2") {
            words.nth(1);
        } else if !is(word, "REPLACE") {
            break;
        }
    }
    match keys {
        [] => Meaning::Other,
        [3] => Meaning::Remove(Remove {
            refusal: Refusal::NoKey,
            condition: Condition::None,
            emulated: false,
        }),
        [first, ..] => Meaning::ManyMoved { first: *first },
    }
}

/// `COPY source target [DB number] [REPLACE]`. The target may lie in another database than the selected one.
pub(super) fn copy(args: Args<'_>, subjects: &[Subject], selected: u32) -> Meaning {
    if !subjects.iter().any(|subject| subject.argument == 2) {
        return Meaning::Other;
    }
    let (mut replace, mut away) = (false, None);
    let mut words = args.iter().enumerate().skip(3);
    while let Some((_, word)) = words.next() {
        if is(word, "REPLACE") {
            replace = true;
        } else if is(word, "DB") {
            let Some((place, text)) = words.next() else {
                return Meaning::Other;
            };
            let Some(database) = integer(text) else {
                return Meaning::Other;
            };
            away = (database != i64::from(selected)).then_some(place);
        } else {
            return write(Kind::Overwrite, false, Wrote::Reply);
        }
    }
    match (replace, away) {
        (true, Some(database)) => Meaning::CopyAway { database },
        (false, Some(_)) => Meaning::Other,
        (true, None) => write(Kind::Overwrite, false, Wrote::Reply),
        (false, None) => write(Kind::Acquire, false, Wrote::Reply),
    }
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME s] [FREQ n]`.
pub(super) fn restore(args: Args<'_>) -> Meaning {
    let mut kind = Kind::Acquire;
    let mut words = args.iter().skip(4);
    while let Some(word) = words.next() {
        if is(word, "IDLETIME") || is(word, "FREQ") {
            words.next();
        } else if !is(word, "ABSTTL") {
            kind = Kind::Overwrite;
        }
    }
    write(kind, false, Wrote::Reply)
}

/// A command that stores its result at `target`.
pub(super) fn store(target: Option<usize>, subjects: &[Subject]) -> Meaning {
    match target {
        Some(target) if subjects.iter().any(|subject| subject.argument == target) => {
            write(Kind::Overwrite, false, Wrote::Always)
        }
        _ => Meaning::Other,
    }
}
