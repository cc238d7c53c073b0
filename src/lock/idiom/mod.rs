//! How clients spell lock operations: one file for each family of commands, each reading the arguments as strictly as
//! the server does. Says what a command means for a lock; never who may do it. Never laxer than the server: options
//! that are not understood make a command the strictest thing it could be.

mod copy;
mod delete;
mod expire;
mod many;
mod set;

pub(super) use set::plain_acquire;
pub use set::{SetCondition, condition};

use crate::command::Idiom;
use crate::resp::number::integer;
use crate::resp::{Args, is_word};

use super::call::{Context, Request, Subject};
use super::rule::{DeniedWrite, Rule};

/// What a command means for the lock keys among its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// No operation on a lease, or one that the server is sure to refuse.
    Other,
    /// Taken at its word: it compares, or is a script of the client's.
    SelfChecked,
    /// `SETNX`, `SET … NX` without `GET`.
    Acquire,
    /// One key written, in any other way.
    Write(Write),
    /// `MSET` and its sisters.
    ManyWritten {
        /// On what condition.
        kind: Many,
        /// Where the options begin; up to there keys and values stand by turns.
        options: usize,
    },
    /// `DEL`, `UNLINK`.
    Release,
    /// One key given up by any other command.
    Remove(Remove),
    /// The expiry of one key changed.
    Extend(Extend),
    /// `RENAME`, `RENAMENX` of a lock.
    Rename,
    /// `MIGRATE` of several keys, which begin at this argument.
    ManyMoved {
        /// The first key.
        first: usize,
    },
    /// `COPY … REPLACE` into another database, which stands at this argument.
    CopyAway {
        /// Where the database's number stands.
        database: usize,
    },
    /// A compare command that this server lacks, done by a script.
    Emulate(Emulate),
}

/// What writing does to a lock that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing: the command itself writes only a free key.
    Acquire,
    /// It replaces the value.
    Overwrite,
    /// It replaces the value and answers the old one.
    Takeover,
}

/// One key written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// What it does to a lock that exists.
    pub kind: Kind,
    /// A refusal is answered with nil instead of an error.
    pub refused_by_nil: bool,
    /// How the answer tells whether it wrote.
    pub wrote: Wrote,
}

/// How the server's answer tells whether a command wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// By OK or 1.
    Reply,
    /// Every answer that is no error means so.
    Always,
    /// It does not.
    Unknown,
    /// The options are not understood; as `Reply`.
    Odd,
}

/// On what condition several keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// None may exist.
    Acquire,
    /// No condition.
    Overwrite,
    /// All must exist (`XX`).
    Present,
}

/// One key given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// How a refusal is answered.
    pub refusal: Refusal,
    /// When it would be given up at all.
    pub condition: Condition,
    /// The server lacks the command, `DEL` stands in for it.
    pub emulated: bool,
}

/// What Redis answers to the command when the key is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `:0`.
    Zero,
    /// Nil.
    Nil,
    /// `-ERR no such key`.
    NoSuchKey,
    /// `+NOKEY`.
    NoKey,
}

/// The condition of a command that removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None.
    None,
    /// On the expiry there is.
    Flags(Flags),
    /// The value is not this argument.
    IfNe(usize),
    /// The value's digest is not this argument.
    IfDne(usize),
}

/// The flags of the `EXPIRE` family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Only without expiry.
    pub nx: bool,
    /// Only with one.
    pub xx: bool,
    /// Only if it gets longer.
    pub gt: bool,
    /// Only if it gets shorter.
    pub lt: bool,
}

/// The expiry of one key changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extend {
    /// To what.
    pub until: Until,
    /// On what condition.
    pub flags: Flags,
    /// How a refusal is answered.
    pub refusal: Refusal,
}

/// A new expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// So many milliseconds from now; 0 where the options are not understood.
    In(i64),
    /// At a point of the server's clock, in milliseconds. In the past it is a release.
    At(i64),
    /// None.
    Never,
}

/// A compare command done by a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulate {
    /// The argument to compare with.
    pub compare: usize,
    /// For `SET`: the argument that is the word `IFEQ`, and whether the old value is answered.
    pub set: Option<(usize, bool)>,
}

/// Reads a command on the lock keys `subjects`.
pub fn read(request: &Request<'_>, subjects: &[Subject], context: &Context<'_>) -> Meaning {
    let Some(subject) = subjects.first() else {
        return Meaning::Other;
    };
    let Some(rule) = context.rules.get(usize::from(subject.rule.0)) else {
        return Meaning::Other;
    };
    let args = request.args;
    match request.idiom {
        Idiom::Set => set::set(args, rule, context.features),
        Idiom::SetNx => Meaning::Acquire,
        Idiom::SetEx => set::OVERWRITE,
        Idiom::GetSet => set::TAKEOVER,
        Idiom::MSet => many::mset(args, Many::Overwrite),
        Idiom::MSetNx => many::mset(args, Many::Acquire),
        Idiom::MSetEx => many::msetex(args, request.keys, context.features),
        Idiom::Del => Meaning::Release,
        Idiom::GetDel => delete::plain(Refusal::Nil),
        Idiom::DelEx => delete::delex(args, rule, context.features),
        Idiom::DelIfEq => delete::delifeq(rule, context.features),
        Idiom::Expire => expire::expire(args, 1000, Until::In),
        Idiom::PExpire => expire::expire(args, 1, Until::In),
        Idiom::ExpireAt => expire::expire(args, 1000, Until::At),
        Idiom::PExpireAt => expire::expire(args, 1, Until::At),
        Idiom::Persist => expire::PERSIST,
        Idiom::GetEx => expire::getex(args),
        Idiom::Rename => copy::rename(args, subjects),
        Idiom::Move => delete::plain(Refusal::Zero),
        Idiom::Migrate => copy::migrate(args, request.keys),
        Idiom::Copy => copy::copy(args, subjects, context.database),
        Idiom::Restore => copy::restore(args),
        Idiom::Store => copy::store(request.target, subjects),
    }
}

/// Whether an argument is this word, in any case.
fn is(argument: &[u8], word: &str) -> bool {
    is_word(argument, word.as_bytes())
}

/// How this rule answers a refused overwrite that can be answered with nil.
fn nil_allowed(rule: &Rule) -> bool {
    rule.denied_write == DeniedWrite::Nil
}

/// The argument at `index`, as long as nothing depends on its being there.
fn at(args: Args<'_>, index: usize) -> &[u8] {
    args.get(index).unwrap_or_default()
}
