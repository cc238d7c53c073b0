//! From what a command means to the keys and arguments of its script. The other half of the first lines of each `.lua`
//! file, which say what it expects.

use bytes::Bytes;

use super::super::idiom::{
    Condition, Emulate, Extend, Flags, Kind, Many, Meaning, Refusal, Remove, Until, Write, Wrote,
};
use super::super::record::{fence_name, record_name};
use super::super::rule::{Rule, Unmanaged};
use super::super::script::Script;
use super::super::shield::Stake;
use super::{Call, Context, Piece, Request, Subject, shortest};

/// The script call for a command that is neither forwarded nor taken at its word.
pub(super) fn call(meaning: Meaning, request: &Request<'_>, subjects: Vec<Subject>, context: &Context<'_>) -> Call {
    let mut call = start(subjects, context);
    match meaning {
        Meaning::Acquire => acquire(&mut call, request, context),
        Meaning::Write(write) => written(&mut call, write, request, context),
        Meaning::ManyWritten { kind, options } => many_written(&mut call, kind, options, request, context),
        Meaning::Release => release(&mut call, request, context),
        Meaning::Remove(remove) => removed(&mut call, remove, request, context),
        Meaning::Extend(extend) => extended(&mut call, extend, request, context),
        Meaning::Rename => renamed(&mut call, request, context),
        Meaning::ManyMoved { first } => many_moved(&mut call, first, request, context),
        Meaning::CopyAway { database } => copied_away(&mut call, database, request, context),
        Meaning::Emulate(emulate) => emulated(&mut call, emulate, request, context),
        // Never asked for; a reconcile changes nothing that is in line.
        Meaning::Other | Meaning::SelfChecked => call.pairs(context),
    }
    call
}

pub(super) fn reconcile(subjects: Vec<Subject>, context: &Context<'_>) -> Call {
    let mut call = start(subjects, context);
    call.pairs(context);
    call.argv = call.subjects.iter().map(|subject| caller(subject, context)).collect();
    call
}

pub(super) fn fence(subject: Subject, context: &Context<'_>) -> Call {
    let mut call = start(vec![subject], context);
    call.script = Script::Fence;
    call.pairs(context);
    call.argv = call.subjects.iter().map(|subject| caller(subject, context)).collect();
    call
}

fn start(subjects: Vec<Subject>, context: &Context<'_>) -> Call {
    Call {
        script: Script::Reconcile,
        keys: Vec::new(),
        argv: Vec::new(),
        subjects,
        connection: context.connection.clone(),
        acquires: false,
        ttl_ms: None,
        stake: Stake::None,
    }
}

impl Call {
    /// Each lock key and its record.
    fn pairs(&mut self, context: &Context<'_>) {
        for subject in &self.subjects {
            self.keys.push(Piece::Text(subject.key.clone()));
            self.keys.push(record(subject, context));
        }
    }

    /// The keys of the command that are none of its lock keys.
    fn plain_keys(&mut self, request: &Request<'_>) {
        let mut locks = self.subjects.iter().map(|subject| subject.argument).peekable();
        for &index in request.keys {
            while locks.next_if(|lock| *lock < index).is_some() {}
            if locks.peek() != Some(&index) {
                self.keys.push(Piece::Argument(index));
            }
        }
    }

    fn word(&mut self, word: &'static str) {
        self.argv.push(Piece::Word(word));
    }

    fn number(&mut self, number: usize) {
        self.argv.push(text(number.to_string()));
    }

    fn caller(&mut self, index: usize, context: &Context<'_>) {
        let piece = self.subjects.get(index).map(|subject| caller(subject, context));
        self.argv.extend(piece);
    }

    fn arguments(&mut self, range: std::ops::Range<usize>) {
        self.argv.extend(range.map(Piece::Argument));
    }

    fn command(&mut self, request: &Request<'_>) {
        self.arguments(0..request.args.len());
    }
}

pub(super) fn text(text: String) -> Piece {
    Piece::Text(Bytes::from(text))
}

fn record(subject: &Subject, context: &Context<'_>) -> Piece {
    Piece::Text(record_name(context.prefix, &subject.key))
}

pub(super) fn rule<'a>(subject: &Subject, context: &Context<'a>) -> Option<&'a Rule> {
    context.rules.get(usize::from(subject.rule.0))
}

/// The key of the fencing tokens, where the rule asks for them.
fn fence_key(subject: &Subject, context: &Context<'_>) -> Option<Piece> {
    rule(subject, context)
        .filter(|rule| rule.fencing)
        .map(|_| Piece::Text(fence_name(context.prefix, &subject.key)))
}

/// The caller in one argument, as `who.lua` reads it.
fn caller(subject: &Subject, context: &Context<'_>) -> Piece {
    let (allow, window, default, max) = match rule(subject, context) {
        Some(rule) => (
            u8::from(rule.unmanaged == Unmanaged::Allow),
            rule.late_release_window_ms,
            rule.default_ttl_ms.unwrap_or(0),
            rule.max_ttl_ms.unwrap_or(0),
        ),
        None => (0, 0, 0, 0),
    };
    let (token, connection, owner) = (subject.token.0, context.connection, &subject.owner);
    text(format!("{allow} {window} {default} {max} {token} {connection} {owner}"))
}

fn acquire(call: &mut Call, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Acquire;
    call.pairs(context);
    let fence = call.subjects.first().and_then(|subject| fence_key(subject, context));
    call.keys.extend(fence);
    if let Some(grant) = shortest::grant(call, request, context) {
        call.ttl_ms = grant.ttl_ms;
        call.argv = vec![
            grant.makings,
            Piece::Argument(grant.value),
            grant.ttl_ms.map_or(Piece::Word(""), |ttl| text(ttl.to_string())),
            grant.owner,
        ];
        return;
    }
    call.word("");
    call.caller(0, context);
    call.command(request);
}

fn written(call: &mut Call, write: Write, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Write;
    // Of several lock keys only the target is meant; the others are read.
    if let Some(target) = request.target {
        call.subjects.retain(|subject| subject.argument == target);
    }
    call.subjects.truncate(1);
    call.pairs(context);
    let fence = call.subjects.first().and_then(|subject| fence_key(subject, context));
    call.keys.extend(fence.clone());
    call.plain_keys(request);
    call.caller(0, context);
    call.word(match write.kind {
        Kind::Acquire => "acquire",
        Kind::Overwrite => "overwrite",
        Kind::Takeover => "takeover",
    });
    call.word(if write.refused_by_nil { "nil" } else { "held" });
    call.word(match write.wrote {
        Wrote::Reply => "reply",
        Wrote::Always => "always",
        Wrote::Unknown => "unknown",
        Wrote::Odd => "odd",
    });
    call.word(if fence.is_some() { "3" } else { "0" });
    call.command(request);
}

fn many_written(call: &mut Call, kind: Many, options: usize, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::MultiWrite;
    let count = request.keys.len();
    call.keys = request.keys.iter().copied().map(Piece::Argument).collect();
    call.keys
        .extend(call.subjects.iter().map(|subject| record(subject, context)));
    call.number(call.subjects.len());
    call.number(count);
    call.word(match kind {
        Many::Acquire => "acquire",
        Many::Overwrite => "overwrite",
        Many::Present => "present",
    });
    call.argv.push(Piece::Argument(0));
    call.number(request.args.len() - options.min(request.args.len()));
    for index in 0..call.subjects.len() {
        let Some(subject) = call.subjects.get(index) else { break };
        let place = request
            .keys
            .binary_search(&subject.argument)
            .map_or(0, |place| place + 1);
        let fence = fence_key(subject, context);
        call.number(place);
        match fence {
            Some(fence) => {
                call.keys.push(fence);
                call.number(call.keys.len());
            }
            None => call.word("0"),
        }
        call.caller(index, context);
    }
    call.argv
        .extend(request.keys.iter().map(|key| Piece::Argument(key + 1)));
    call.arguments(options..request.args.len());
}

fn release(call: &mut Call, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Release;
    call.pairs(context);
    call.plain_keys(request);
    call.argv.push(Piece::Argument(0));
    call.argv.push(shortest::first_lease(context));
    let rule_of_first = call.subjects.first().and_then(|subject| rule(subject, context));
    let window_ms = rule_of_first.map_or(0, |rule| rule.late_release_window_ms);
    call.argv.push(text(window_ms.to_string()));
    for subject in &call.subjects {
        let allow = rule(subject, context).is_some_and(|rule| rule.unmanaged == Unmanaged::Allow);
        call.argv.push(text(format!("{}{}", u8::from(allow), subject.owner)));
    }
}

fn removed(call: &mut Call, remove: Remove, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Remove;
    call.pairs(context);
    call.caller(0, context);
    call.word(refusal(remove.refusal));
    match remove.condition {
        Condition::None => {
            call.word("-");
            call.word("");
        }
        Condition::Flags(flags) => {
            call.argv.push(letters(flags));
            call.word("");
        }
        Condition::IfNe(value) => {
            call.word("ifne");
            call.argv.push(Piece::Argument(value));
        }
        Condition::IfDne(value) => {
            call.word("ifdne");
            call.argv.push(Piece::Argument(value));
        }
    }
    if remove.emulated {
        call.word("DEL");
        call.argv.push(Piece::Argument(1));
    } else {
        call.command(request);
    }
}

fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Zero => "zero",
        Refusal::Nil => "nil",
        Refusal::NoSuchKey => "nokey",
        Refusal::NoKey => "NOKEY",
    }
}

fn letters(flags: Flags) -> Piece {
    let mut letters = String::new();
    for (letter, set) in [('n', flags.nx), ('x', flags.xx), ('g', flags.gt), ('l', flags.lt)] {
        if set {
            letters.push(letter);
        }
    }
    if letters.is_empty() {
        Piece::Word("-")
    } else {
        text(letters)
    }
}

fn extended(call: &mut Call, extend: Extend, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Extend;
    call.pairs(context);
    call.caller(0, context);
    let shortest = shortest::extend(call, extend, context);
    let (kind, ms) = match extend.until {
        Until::In(ms) if shortest => ("for", ms),
        Until::In(ms) => ("in", ms),
        Until::At(ms) => ("at", ms),
        Until::Never => ("keep", 0),
    };
    call.word(kind);
    call.argv.push(text(ms.to_string()));
    if shortest {
        call.ttl_ms = u64::try_from(ms).ok();
        call.argv.push(shortest::first_lease(context));
    } else {
        call.argv.push(letters(extend.flags));
    }
    call.word(refusal(extend.refusal));
    call.command(request);
}

fn renamed(call: &mut Call, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Rename;
    let mut pieces = Vec::new();
    for subject in &call.subjects {
        pieces.push(Piece::Text(subject.key.clone()));
        pieces.push(record(subject, context));
    }
    match call.subjects.get(1) {
        Some(target) => pieces.extend(fence_key(target, context)),
        None => pieces.push(Piece::Argument(2)),
    }
    call.keys = pieces;
    call.caller(0, context);
    if call.subjects.len() > 1 {
        call.caller(1, context);
    } else {
        call.word("-");
    }
    call.command(request);
}

fn many_moved(call: &mut Call, first: usize, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Migrate;
    call.pairs(context);
    call.plain_keys(request);
    call.number(call.subjects.len());
    for index in 0..call.subjects.len() {
        call.caller(index, context);
    }
    call.arguments(0..first);
}

fn copied_away(call: &mut Call, database: usize, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::CopyAway;
    call.subjects.retain(|subject| subject.argument == 2);
    call.keys = vec![Piece::Argument(2), Piece::Argument(1)];
    call.argv.push(Piece::Argument(database));
    call.number(usize::try_from(context.database).unwrap_or(0));
    call.command(request);
}

fn emulated(call: &mut Call, emulate: Emulate, request: &Request<'_>, context: &Context<'_>) {
    call.script = Script::Emulate;
    call.pairs(context);
    call.caller(0, context);
    call.word(if emulate.set.is_some() { "set" } else { "delete" });
    call.argv.push(Piece::Argument(emulate.compare));
    let Some((condition, get)) = emulate.set else {
        call.word("-");
        return;
    };
    call.word(if get { "get" } else { "-" });
    call.arguments(0..condition);
    call.arguments(condition + 2..request.args.len());
}
