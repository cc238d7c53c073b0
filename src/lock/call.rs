//! What a session does with a command that names a lock: forward it, forward it with a reconcile behind it, or send a
//! script in its place. Reads arguments and writes requests; it never sees a socket and never decides who may do what
//! (the scripts do, on the server).

use bytes::{Bytes, BytesMut};

use crate::command::Idiom;
use crate::event::{ConnectionId, Event, Owner, RuleIndex, Time, Token};
use crate::resp::Args;

use super::rule::Rule;
use super::script::Script;

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

pub use super::features::Features;

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

/// A command that can be a lock operation, as the command table reads it.
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
    /// The raw bytes: the arity is wrong, or it is no operation on a lease.
    Forward,
    /// The raw bytes, and [`Call::reconcile`] behind them in the same write.
    SelfChecked,
    /// A script in its place.
    Call(Box<Call>),
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
}

/// Decides what to send for a command on the lock keys `subjects` (those under an enforce rule, in argument order, a
/// key that is named twice given twice).
pub fn encode_chore(_: &super::chore::Chore, _: &str, _: &mut BytesMut) {}
/// x
pub fn parse_chore(_: &super::chore::Task, _: &[u8]) -> Option<super::chore::Done> { None }
/// plan
pub fn plan(request: &Request<'_>, subjects: Vec<Subject>, context: &Context<'_>) -> Plan {
    let _ = (request, subjects, context);
    Plan::Forward
}

impl Call {
    /// The reconcile that goes out behind a self-checked command; its answer is only for [`Call::events`].
    pub fn reconcile(subjects: Vec<Subject>, context: &Context<'_>) -> Call {
        let _ = (subjects, context);
        Call {
            script: Script::Reconcile,
        }
    }

    /// `LOCKWARD FENCE key`: the answer is the fencing token as an integer, or nil.
    pub fn fence(subject: Subject, context: &Context<'_>) -> Call {
        let _ = (subject, context);
        Call { script: Script::Fence }
    }

    /// Which script it calls.
    pub fn script(&self) -> Script {
        self.script
    }

    /// Appends the request. `args` are the arguments that [`plan`] saw (empty for reconcile and fence).
    pub fn encode(&self, args: Args<'_>, how: How, out: &mut BytesMut) {
        let _ = (args, how, out);
    }

    /// Turns the script's answer into events.
    pub fn events(&self, answer: Answer<'_>, at: Time, database: u32, sink: &mut Vec<Event>) {
        let _ = (answer, at, database, sink);
    }
}
