//! What a command means for its lock keys, in words: which operations of the decision table it asks for, on which keys,
//! and how a refusal would be answered. The meaning itself comes from `lock::idiom`; nothing is decided here.

use crate::command::Idiom;
use crate::lock::call::Request;
use crate::lock::decision::Column;
use crate::lock::idiom::{Condition, Kind, Many, Meaning, Refusal, Until};
use crate::resp::{Args, is_word, texts};

/// One operation that a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Which column of the table.
    pub column: Column,
    /// On which lock keys: only on the one at this argument, or on all.
    pub argument: Option<usize>,
    /// How its refusal is answered.
    pub refused: Refused,
}

/// How a refusal is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nil.
    Nil,
    /// The old value.
    OldValue,
    /// 0.
    Zero,
    /// Not counted in the sum.
    NotCounted,
    /// `-LOCKHELD …`.
    Held,
    /// `-ERR no such key`.
    NoSuchKey,
    /// `+NOKEY`.
    NoKey,
    /// `-BUSYKEY …`, the server's own.
    Busy,
}

/// A command's meaning in words, and what it asks for.
pub(super) struct Told {
    /// In one word.
    pub word: &'static str,
    /// In one sentence.
    pub text: String,
    /// The operations that are looked up in the decision table.
    pub asked: Vec<Asked>,
}

/// Says what a meaning means. `now_ms`: milliseconds since 1970.
pub(super) fn told(meaning: &Meaning, request: &Request<'_>, now_ms: i64) -> Told {
    let of = |word, text: &str, asked| Told {
        word,
        text: text.to_owned(),
        asked,
    };
    match meaning {
        Meaning::Other => of("other", "no operation on a lease", Vec::new()),
        Meaning::SelfChecked => of(SELF_CHECKED.0, SELF_CHECKED.1, Vec::new()),
        Meaning::Emulate(emulate) => of(
            "self-checked",
            if emulate.set.is_some() {
                "compares before it writes; the server lacks it, so a script does it in its place (emulate = true)"
            } else {
                "compares before it removes; the server lacks it, so a script does it in its place (emulate = true)"
            },
            Vec::new(),
        ),
        Meaning::Acquire => {
            let refused = if request.idiom == Idiom::Set {
                Refused::Nil
            } else {
                Refused::Zero
            };
            of("acquire", ACQUIRE, vec![on(Column::Acquire, refused, None)])
        }
        Meaning::Write(write) => {
            let (word, text, column) = kind(write.kind);
            let refused = match write.kind {
                Kind::Acquire => refused_acquire(request.idiom),
                Kind::Overwrite | Kind::Takeover if write.refused_by_nil => Refused::Nil,
                Kind::Overwrite | Kind::Takeover => Refused::Held,
            };
            of(word, text, vec![on(column, refused, request.target)])
        }
        Meaning::ManyWritten { kind, .. } => many(*kind),
        Meaning::Release => of("release", RELEASE, vec![on(Column::Release, Refused::NotCounted, None)]),
        Meaning::Remove(remove) => Told {
            word: "release",
            text: format!("{RELEASE}{}", condition(remove.condition)),
            asked: vec![on(Column::Release, answer(remove.refusal), None)],
        },
        Meaning::Extend(extend) => match extend.until {
            Until::At(at) if at <= now_ms => of(
                "release",
                "an expiry in the past: gives the lock up",
                vec![on(Column::Release, answer(extend.refusal), None)],
            ),
            Until::In(_) | Until::At(_) => of(
                "extend",
                "changes when the lock expires",
                vec![on(Column::Extend, answer(extend.refusal), None)],
            ),
            Until::Never => of(
                "extend",
                "takes the lock's TTL away",
                vec![on(Column::Extend, answer(extend.refusal), None)],
            ),
        },
        Meaning::Rename => renamed(request.args),
        Meaning::ManyMoved { .. } => of(
            "release",
            "moves the keys to another server: gives up those that are locks",
            vec![on(Column::Release, Refused::NoKey, None)],
        ),
        Meaning::CopyAway { .. } => of(
            "overwrite",
            "writes a lock key of another database: done only if it is free there",
            Vec::new(),
        ),
    }
}

/// The meaning of compare commands and scripts, in one word and in one sentence.
pub(super) const SELF_CHECKED: (&str, &str) = (
    "self-checked",
    "compares, or is a script of the client's: taken at its word, and the lease record is brought in line behind it",
);
const ACQUIRE: &str = "takes the lock if it is free";
const RELEASE: &str = "gives the lock up";

fn on(column: Column, refused: Refused, argument: Option<usize>) -> Asked {
    Asked {
        column,
        argument,
        refused,
    }
}

fn kind(kind: Kind) -> (&'static str, &'static str, Column) {
    match kind {
        Kind::Acquire => ("acquire", ACQUIRE, Column::Acquire),
        Kind::Overwrite => (
            "overwrite",
            "replaces the value whoever holds the lock; on a free lock it is an acquire",
            Column::Overwrite,
        ),
        Kind::Takeover => (
            "takeover",
            "replaces the value and learns the old one (the old timestamp recipe); on a free lock it is an acquire",
            Column::Takeover,
        ),
    }
}

/// The command's own refusal, since the key is there.
fn refused_acquire(idiom: Idiom) -> Refused {
    match idiom {
        // Without GET it is no `Write`.
        Idiom::Set => Refused::OldValue,
        Idiom::Restore => Refused::Busy,
        // RENAMENX, COPY.
        _ => Refused::Zero,
    }
}

fn many(kind: Many) -> Told {
    let (word, text, column, refused) = match kind {
        Many::Acquire => (
            "acquire",
            "takes all of the keys if none of them exists",
            Column::Acquire,
            Refused::Zero,
        ),
        Many::Overwrite => (
            "overwrite",
            "writes all of the keys; one refused lock refuses all, and nothing is written",
            Column::Overwrite,
            Refused::Held,
        ),
        Many::Present => (
            "overwrite",
            "writes all of the keys if all exist; one refused lock refuses all, and nothing is written",
            Column::Overwrite,
            Refused::Zero,
        ),
    };
    Told {
        word,
        text: text.to_owned(),
        asked: vec![on(column, refused, None)],
    }
}

fn renamed(args: Args<'_>) -> Told {
    let nx = args.word(0).is_some_and(|name| is_word(name, b"RENAMENX"));
    let target = if nx {
        on(Column::Acquire, Refused::Zero, Some(2))
    } else {
        on(Column::Overwrite, Refused::Held, Some(2))
    };
    Told {
        word: "release",
        text: "gives the lock up, and takes or overwrites the new name if that is a lock too".to_owned(),
        asked: vec![on(Column::Release, Refused::NoSuchKey, Some(1)), target],
    }
}

fn condition(condition: Condition) -> &'static str {
    match condition {
        Condition::None => "",
        Condition::Flags(_) => ", if its condition on the expiry holds",
        Condition::IfNe(_) | Condition::IfDne(_) => ", if its value is another",
    }
}

fn answer(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Zero => Refused::Zero,
        Refusal::Nil => Refused::Nil,
        Refusal::NoSuchKey => Refused::NoSuchKey,
        Refusal::NoKey => Refused::NoKey,
    }
}

impl Refused {
    /// What the client hears.
    pub(super) fn words(self, key: &str) -> String {
        match self {
            Refused::Nil => "nil, as where the command has done nothing".to_owned(),
            Refused::OldValue => "the value that is there, as the command itself answers".to_owned(),
            Refused::Zero => "0, as where the command has done nothing".to_owned(),
            Refused::NotCounted => "not counted in the number of keys removed (0 for this key alone)".to_owned(),
            Refused::Held => format!("-{}", texts::LOCK_HELD.replace("%s", key)),
            Refused::NoSuchKey => "-ERR no such key".to_owned(),
            Refused::NoKey => "NOKEY, if no key may go".to_owned(),
            Refused::Busy => "-BUSYKEY, as the server itself says it".to_owned(),
        }
    }
}
