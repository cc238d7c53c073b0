//! The `EXPIRE` family, `PERSIST` and `GETEX`.

use super::{Condition, Extend, Flags, Meaning, Refusal, Remove, Until, at, integer, is};
use crate::resp::Args;

/// `PERSIST`.
pub(super) const PERSIST: Meaning = Meaning::Extend(Extend {
    until: Until::Never,
    flags: Flags {
        nx: false,
        xx: false,
        gt: false,
        lt: false,
    },
    refusal: Refusal::Zero,
});

/// `EXPIRE key number [NX | XX | GT | LT …]` and its sisters; one unit is so many milliseconds.
pub(super) fn expire(args: Args<'_>, unit_ms: i64, until: fn(i64) -> Until) -> Meaning {
    // What is no number, or too large a one, the server refuses before it looks at the key.
    let Some(ms) = integer(at(args, 2)).and_then(|units| units.checked_mul(unit_ms)) else {
        return Meaning::Other;
    };
    let refusal = Refusal::Zero;
    let Some(flags) = flags(args) else {
        return Meaning::Extend(Extend {
            until: Until::In(0),
            flags: Flags::default(),
            refusal,
        });
    };
    match until(ms) {
        Until::In(ms) if ms <= 0 => {
            let condition = if flags == Flags::default() {
                Condition::None
            } else {
                Condition::Flags(flags)
            };
            Meaning::Remove(Remove {
                refusal,
                condition,
                emulated: false,
            })
        }
        until => Meaning::Extend(Extend { until, flags, refusal }),
    }
}

/// `None` if the flags are unknown or contradict each other.
fn flags(args: Args<'_>) -> Option<Flags> {
    let mut flags = Flags::default();
    for word in args.iter().skip(3) {
        let flag = match word {
            word if is(word, "NX") => &mut flags.nx,
            word if is(word, "XX") => &mut flags.xx,
            word if is(word, "GT") => &mut flags.gt,
            word if is(word, "LT") => &mut flags.lt,
            _ => return None,
        };
        *flag = true;
    }
    let Flags { nx, xx, gt, lt } = flags;
    (!(nx && (xx || gt || lt)) && !(gt && lt)).then_some(flags)
}

/// `GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]`.
pub(super) fn getex(args: Args<'_>) -> Meaning {
    let extend = |until| {
        Meaning::Extend(Extend {
            until,
            flags: Flags::default(),
            refusal: Refusal::Nil,
        })
    };
    let word = at(args, 2);
    let (unit_ms, until): (i64, fn(i64) -> Until) = match args.len() {
        2 => return Meaning::Other,
        3 if is(word, "PERSIST") => return extend(Until::Never),
        4 if is(word, "EX") => (1000, Until::In),
        4 if is(word, "PX") => (1, Until::In),
        4 if is(word, "EXAT") => (1000, Until::At),
        4 if is(word, "PXAT") => (1, Until::At),
        _ => return extend(Until::In(0)),
    };
    match integer(at(args, 3)).and_then(|units| units.checked_mul(unit_ms)) {
        // `GETEX` takes no expiry of 0 or less, not even as a point in time.
        Some(ms) if ms > 0 => extend(until(ms)),
        _ => Meaning::Other,
    }
}
