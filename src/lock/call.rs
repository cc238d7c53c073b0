//! What a session does with a command that names a lock: forward it, forward it with a reconcile behind it, or send a
//! script in its place. Reads arguments and writes requests; it never sees a socket and never decides who may do what
//! (the scripts do, on the server).
//!
//! Every script answers a client's command with either a reply that is no array, which is literally the client's, or
//! an array of two: a report for [`Call::events`], and literally the client's reply. An array costs the server a
//! microsecond, so the commonest release is answered by its report alone ([`Call::report_alone`]).

mod build;
mod report;
mod shortest;

use bytes::{Bytes, BytesMut};

pub use super::features::Features;
use super::idiom::{self, Kind, Meaning, Write};
use super::rule::Rule;
use super::script::Script;
use super::shield::Stake;
use crate::command::Idiom;
use crate::event::{ConnectionId, Event, Owner, RuleIndex, Time, Token};
use crate::resp::{Args, encode, texts};

/// One lock key of a command, with what the rule says about the caller.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which argument of the command the key is.
    pub argument: usize,
    /// The lock key.
    pub key: Bytes,
    /// The rule that matched.
    pub rule: RuleIndex,
    /// The caller's owner under this rule.
    pub owner: Owner,
    /// A fresh owner token, used if the command takes the lock.
    pub token: Token,
}

/// What is the same for every command of a session.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The rules in force; a subject's `rule` points into them.
    pub rules: &'a [Rule],
    /// The downstream connection that asks.
    pub connection: &'a ConnectionId,
    /// What the server can do.
    pub features: Features,
    /// What record keys begin with (`lockward:`).
    pub prefix: &'a str,
    /// The database that the connection has selected.
    pub database: u32,
}

/// A command that can be a lock operation, as the command table reads it. Its arity is right.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// How it spells the operation.
    pub idiom: Idiom,
    /// Its arguments, the name first.
    pub args: Args<'a>,
    /// Which arguments are keys, in order (locks and others).
    pub keys: &'a [usize],
    /// For `Idiom::Store`, `Copy`, `Rename`, `Restore`: the argument that is the key written to.
    pub target: Option<usize>,
}

/// What to send for a command.
#[derive(Debug)]
pub enum Plan {
    /// The raw bytes: it is no operation on a lease, or the server is sure to refuse it.
    Forward,
    /// The raw bytes, and [`Call::reconcile`] for these subjects behind them in the same write.
    SelfChecked(Vec<Subject>),
    /// A script in its place.
    Call(Box<Call>),
    /// An error of ours in its place.
    Refuse(&'static str),
}

/// How a script is named in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With its text: pipelined, queued in MULTI, without reply, or after a NOSCRIPT.
    Eval,
    /// By its SHA1.
    EvalSha,
}

/// The answer to a script, as the session has split it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Anything but an array: it is the client's reply as it stands. `first_line` without CR LF.
    Plain {
        /// The reply's first line, with its type byte.
        first_line: &'a [u8],
    },
    /// The first of the two elements; the second is the client's reply.
    Reported(&'a [u8]),
}

/// A script call in place of a command.
#[derive(Debug)]
pub struct Call {
    script: Script,
    keys: Vec<Piece>,
    argv: Vec<Piece>,
    subjects: Vec<Subject>,
    connection: ConnectionId,
    /// A plain reply that is no error means that the lock is held, unless it is the one of a grant.
    acquires: bool,
    /// The TTL in milliseconds that a plain reply stands for, of a grant or an extend that was done in the shortest way.
    ttl_ms: Option<u64>,
    /// What it means to the contention shield.
    stake: Stake,
}

impl Call {
    /// About how many bytes it takes: for those who keep many.
    pub fn weight(&self) -> usize {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => size_of::<Piece>() + ALLOCATED + text.len(),
            Piece::Word(_) | Piece::Argument(_) => size_of::<Piece>(),
        };
        let pieces: usize = self.keys.iter().chain(&self.argv).map(piece).sum();
        size_of::<Call>() + pieces + self.subjects.iter().map(Subject::weight).sum::<usize>()
    }
}

impl Subject {
    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        size_of::<Subject>() + ALLOCATED + self.key.len()
    }
}

/// One argument of a script.
#[derive(Clone, Debug)]
enum Piece {
    Text(Bytes),
    Word(&'static str),
    /// An argument of the client's command.
    Argument(usize),
}

/// What a piece of memory costs beside its bytes.
const ALLOCATED: usize = 48;

/// Lua passes at most some 8,000 values to one call (`LUAI_MAXCSTACK` of Lua 5.1), and a script adds a few.
const MOST_ARGUMENTS: usize = 7_900;

/// Whether the script does the command in pieces, so that any number of arguments will do.
fn is_cut_up(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::Release | Meaning::ManyWritten { .. })
}

/// Decides what to send for a command on the lock keys `subjects` (those under an enforce rule, in argument order, a
/// key that is named twice given twice).
pub fn plan(request: &Request<'_>, subjects: Vec<Subject>, context: &Context<'_>) -> Plan {
    let meaning = idiom::read(request, &subjects, context);
    match meaning {
        Meaning::Other => Plan::Forward,
        Meaning::SelfChecked => Plan::SelfChecked(subjects),
        _ if request.args.len() > MOST_ARGUMENTS && !is_cut_up(&meaning) => Plan::Refuse(texts::TOO_MANY_ARGUMENTS),
        _ => {
            let acquires = matches!(
                meaning,
                Meaning::Acquire
                    | Meaning::Write(Write {
                        kind: Kind::Acquire,
                        ..
                    })
            );
            let mut call = build::call(meaning, request, subjects, context);
            call.acquires = acquires;
            Plan::Call(Box::new(call))
        }
    }
}

impl Call {
    /// The reconcile that goes out behind a self-checked command; its answer is only for [`Call::events`].
    pub fn reconcile(subjects: Vec<Subject>, context: &Context<'_>) -> Call {
        build::reconcile(subjects, context)
    }

    /// `LOCKWARD FENCE key`: the answer is the fencing token as an integer, or nil.
    pub fn fence(subject: Subject, context: &Context<'_>) -> Call {
        build::fence(subject, context)
    }

    /// Whether it is `SETNX` or `SET … NX` without `GET`.
    pub fn is_acquire(&self) -> bool {
        self.script == Script::Acquire
    }

    /// Whether it may free a lock: anything may that does not merely take one or look at one.
    pub fn may_free(&self) -> bool {
        !self.acquires && self.script != Script::Fence
    }

    /// The lock keys.
    pub fn locks(&self) -> impl Iterator<Item = &[u8]> {
        self.subjects.iter().map(|subject| &*subject.key)
    }

    /// What it means to the contention shield.
    pub fn stake(&self) -> &Stake {
        &self.stake
    }

    /// Keeps what it means to the contention shield for as long as the call is under way.
    pub fn set_stake(&mut self, stake: Stake) {
        self.stake = stake;
    }

    /// Which script it calls.
    pub fn script(&self) -> Script {
        self.script
    }

    /// Appends the request. `args` are the arguments that [`plan`] saw (not looked at for reconcile and fence).
    pub fn encode(&self, args: Args<'_>, how: How, out: &mut BytesMut) {
        let script = match how {
            How::Eval => ("EVAL", self.script.text()),
            How::EvalSha => ("EVALSHA", self.script.sha1()),
        };
        encode_call(script, &self.keys, &self.argv, args, out);
    }

    /// The report and the client's reply, where this first line of the script's answer is a report that stands for both.
    pub fn report_alone<'a>(&self, first_line: &'a [u8]) -> Option<(&'a [u8], &'static [u8])> {
        let told = first_line.starts_with(b"+released ") || first_line.starts_with(b"+pooled ");
        let alone = self.script == Script::Release && told;
        let report = first_line.strip_prefix(b"+").filter(|_| alone)?;
        Some((report, b":1\r\n"))
    }

    /// Turns the script's answer into events.
    pub fn events(&self, answer: Answer<'_>, at: Time, database: u32, sink: &mut Vec<Event>) {
        report::events(self, answer, at, database, sink);
    }
}

/// Appends an EVAL or EVALSHA.
fn encode_call(script: (&str, &str), keys: &[Piece], argv: &[Piece], args: Args<'_>, out: &mut BytesMut) {
    encode::array(out, 3 + keys.len() + argv.len());
    encode::bulk(out, script.0.as_bytes());
    encode::bulk(out, script.1.as_bytes());
    encode::bulk(out, keys.len().to_string().as_bytes());
    for piece in keys.iter().chain(argv) {
        encode::bulk(
            out,
            match piece {
                Piece::Text(text) => text,
                Piece::Word(word) => word.as_bytes(),
                Piece::Argument(index) => args.get(*index).unwrap_or_default(),
            },
        );
    }
}

/// Appends an EVAL of a script on one lock, for lockward's own connection.
pub(super) fn encode_own(script: Script, prefix: &str, key: &Bytes, argv: &[Bytes], out: &mut BytesMut) {
    let keys = [
        Piece::Text(key.clone()),
        Piece::Text(super::record::record_name(prefix, key)),
    ];
    let argv: Vec<Piece> = argv.iter().cloned().map(Piece::Text).collect();
    encode_call(("EVAL", script.text()), &keys, &argv, Args::new(&[], &[]), out);
}
