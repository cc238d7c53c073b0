//! What a row of the command table holds, and the words that the rows are written in. No table and no logic.

use super::role::{Idiom, Role};

/// One command.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name in lower case, as `COMMAND` lists it.
    pub name: &'static str,
    /// How many arguments, the name counted: exactly so many, or if negative at least so many (`COMMAND INFO`).
    pub arity: i16,
    /// Where the keys stand.
    pub keys: Keys,
    /// What the session has to know of it.
    pub role: Role,
}

/// Where the keys of a command stand among its arguments; argument 0 is the name.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// There is none. Channels are no keys.
    None,
    /// Every `step`-th argument from `first` to `last`, both included.
    Range {
        /// The first key.
        first: u16,
        /// The last key; negative: counted from the end, -1 is the last argument.
        last: i16,
        /// From one key to the next.
        step: u16,
    },
    /// A number stands at `at`, so many keys follow directly behind it, each `step` from the one before
    /// (`EVAL`, `LMPOP`, `MSETEX`).
    NumKeys {
        /// The argument that holds the number.
        at: u16,
        /// From one key to the next.
        step: u16,
    },
    /// The target at 1, a number at 2, so many source keys behind it (`ZUNIONSTORE`).
    TargetNumKeys,
    /// `SORT`: the source at 1, the target behind the last `STORE`. Keys read through `BY` and `GET` patterns are not
    /// told: the pattern names them only when the server runs it.
    Sort,
    /// `GEORADIUS`: the source at 1, the target behind the last `STORE` or `STOREDIST`.
    GeoRadius {
        /// The first argument that can be an option.
        options: u16,
    },
    /// `MIGRATE`: the key at 3, or if that is empty everything behind `KEYS`.
    Migrate,
    /// `XREAD`: the first half of what stands behind `STREAMS`.
    Streams,
    /// A command of subcommands (`OBJECT`, `XGROUP`): argument 1 says where the keys stand. One that is not listed has
    /// no keys.
    Subcommands(&'static [Subcommand]),
}

/// A subcommand that has keys.
#[derive(Clone, Copy, Debug)]
pub struct Subcommand {
    /// The name in lower case.
    pub name: &'static str,
    /// The first key, counted from the command's own name.
    pub first: u16,
    /// The last key; negative: counted from the end.
    pub last: i16,
}

/// Whether `argc` arguments, the name counted, are a number that the server accepts for this command.
pub fn arity_ok(row: &Row, argc: usize) -> bool {
    let wanted = usize::from(row.arity.unsigned_abs());
    if row.arity < 0 { argc >= wanted } else { argc == wanted }
}

// The words of the rows.

pub(super) const NONE: Keys = Keys::None;
/// The first argument.
pub(super) const ONE: Keys = range(1, 1, 1);
/// The first two arguments.
pub(super) const TWO: Keys = range(1, 2, 1);
/// Every argument.
pub(super) const ALL: Keys = range(1, -1, 1);
/// Every argument but the last, which is a timeout or a path.
pub(super) const ALL_BUT_LAST: Keys = range(1, -2, 1);
/// Keys and values by turns.
pub(super) const PAIRS: Keys = range(1, -1, 2);

pub(super) const fn range(first: u16, last: i16, step: u16) -> Keys {
    Keys::Range { first, last, step }
}

/// So many keys behind the number at `at`.
pub(super) const fn numkeys(at: u16) -> Keys {
    Keys::NumKeys { at, step: 1 }
}

/// A subcommand with one key, at argument 2.
pub(super) const fn sub(name: &'static str) -> Subcommand {
    Subcommand {
        name,
        first: 2,
        last: 2,
    }
}

/// A command that is only forwarded.
pub(super) const fn plain(name: &'static str, arity: i16, keys: Keys) -> Row {
    Row {
        name,
        arity,
        keys,
        role: Role::Forward,
    }
}

/// A command whose reply may be long in coming.
pub(super) const fn blocking(name: &'static str, arity: i16, keys: Keys) -> Row {
    Row {
        name,
        arity,
        keys,
        role: Role::Blocking,
    }
}

/// A command that can be a lock operation.
pub(super) const fn lock(name: &'static str, arity: i16, keys: Keys, idiom: Idiom) -> Row {
    Row {
        name,
        arity,
        keys,
        role: Role::Lock(idiom),
    }
}

/// A command that the session has to know.
pub(super) const fn known(name: &'static str, arity: i16, keys: Keys, role: Role) -> Row {
    Row {
        name,
        arity,
        keys,
        role,
    }
}
