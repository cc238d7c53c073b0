//! `GETDEL`, `MOVE`, `DELEX`, `DELIFEQ`: one key given up.

use super::super::features::Features;
use super::super::rule::Rule;
use super::{Condition, Emulate, Meaning, Refusal, Remove, at, is};
use crate::resp::Args;

/// Given up without a condition.
pub(super) fn plain(refusal: Refusal) -> Meaning {
    Meaning::Remove(Remove {
        refusal,
        condition: Condition::None,
        emulated: false,
    })
}

/// `DELEX key [IFEQ | IFNE | IFDEQ | IFDNE value]`.
pub(super) fn delex(args: Args<'_>, rule: &Rule, features: Features) -> Meaning {
    if !features.delex && !rule.emulate {
        return Meaning::Other;
    }
    let emulated = !features.delex;
    let remove = |condition| {
        Meaning::Remove(Remove {
            refusal: Refusal::Zero,
            condition,
            emulated,
        })
    };
    let word = at(args, 2);
    match args.len() {
        2 => remove(Condition::None),
        4 if is(word, "IFNE") => remove(Condition::IfNe(3)),
        4 if is(word, "IFDNE") && !emulated => remove(Condition::IfDne(3)),
        4 if is(word, "IFEQ") && emulated => Meaning::Emulate(Emulate { compare: 3, set: None }),
        4 if (is(word, "IFEQ") || is(word, "IFDEQ")) && !emulated => Meaning::SelfChecked,
        _ if emulated => Meaning::Other,
        // What the server may know and we do not: done for who may give the lock up anyway.
        _ => remove(Condition::None),
    }
}

/// `DELIFEQ key value`.
pub(super) fn delifeq(rule: &Rule, features: Features) -> Meaning {
    match (features.delifeq, rule.emulate) {
        (true, _) => Meaning::SelfChecked,
        (false, true) => Meaning::Emulate(Emulate { compare: 2, set: None }),
        (false, false) => Meaning::Other,
    }
}
