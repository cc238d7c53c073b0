//! Everything that is said of one command, put together. What the command is comes from the command table, what it means
//! from the idioms, what becomes of it from the decision table and the lease model, and the bytes from a session.

use bytes::Bytes;
use serde::Serialize;
use uuid::Uuid;

use super::callers::{Case, cases};
use super::keys::{Key, key};
use super::meaning::{self, Asked, Told, told};
use super::notes;
use super::read::Command;
use super::sent::{self, Sent, Upstream};
use crate::command::{self, Role, Row};
use crate::event::{ConnectionId, Token};
use crate::lock::call::{Context, Request, Subject};
use crate::lock::features::Features;
use crate::lock::idiom::{self, Meaning};
use crate::lock::rule::{Mode, Rule, Rules};
use crate::metrics::printable;
use crate::resp::{Args, word};

/// What there is to say of one command.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// Its arguments, escaped.
    pub command: Vec<String>,
    /// The command table has a row for it.
    pub known: bool,
    /// What the row says.
    pub about: String,
    /// Its keys.
    pub keys: Vec<Key>,
    /// What lockward does: `enforce`, `observe`, or `forward`.
    pub treatment: &'static str,
    /// In one word, for a command on a lock.
    pub meaning: Option<&'static str>,
    /// In one sentence.
    pub meaning_text: Option<String>,
    /// What becomes of it.
    pub operations: Vec<Operation>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// lockward itself answers this.
    pub answered: Option<String>,
    /// What goes to the server.
    pub sent: Vec<Sent>,
    /// The first of it is what the client sent, to the byte.
    pub untouched: bool,
}

/// One operation on the lock keys of one rule.
#[derive(Debug, Serialize)]
pub(super) struct Operation {
    /// `acquire`, `release`, `extend`, `overwrite` or `takeover`.
    pub operation: &'static str,
    /// The lock keys, escaped.
    pub keys: Vec<String>,
    /// Their rule.
    pub rule: String,
    /// What is done, by who asks. In observe mode: what enforce would do.
    pub callers: Vec<Case>,
    /// What the client hears when it is refused.
    pub refused_with: String,
}

/// By what a command is explained.
pub(super) struct Ground<'a> {
    /// The rules in force.
    pub rules: &'a Rules,
    /// What record keys begin with.
    pub prefix: &'a str,
    /// What the server can do.
    pub features: Features,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// Explains a command.
///
/// # Errors
///
/// The command has not as many arguments as the server asks for.
pub(super) fn explain(command: &Command, ground: &Ground<'_>) -> Result<Explanation, String> {
    let args = command.args();
    let name = args.get(0).unwrap_or_default();
    let row = command::lookup(word(name)).1;
    if let Some(row) = row.filter(|row| !command::arity_ok(row, args.len())) {
        return Err(wrong_arity(row, args.len()));
    }
    let upstream = sent::ask(&command.raw, ground.rules, ground.prefix, ground.features, false);
    let Upstream {
        untouched,
        requests,
        own_answer,
    } = upstream;
    let mut explanation = Explanation {
        command: args.iter().map(printable).collect(),
        known: row.is_some(),
        about: row.map_or_else(|| "unknown: forwarded untouched".to_owned(), notes::about),
        keys: Vec::new(),
        treatment: "forward",
        meaning: None,
        meaning_text: None,
        operations: Vec::new(),
        notes: Vec::new(),
        answered: own_answer,
        sent: requests,
        untouched,
    };
    let Some(row) = row else {
        if !untouched {
            "unknown: forwarded".clone_into(&mut explanation.about);
            explanation.notes.push(notes::AS_ARRAY.to_owned());
        }
        return Ok(explanation);
    };
    let places: Vec<usize> = command::keys(row, args).collect();
    explanation.keys = places
        .iter()
        .filter_map(|place| Some(key(args.get(*place)?, *place, ground.rules)))
        .collect();
    if let Some(mode) = strictest(args, &places, ground.rules) {
        concerned(&mut explanation, command, row, &places, mode, ground);
    }
    Ok(explanation)
}

fn wrong_arity(row: &Row, count: usize) -> String {
    let wanted = row.arity.unsigned_abs();
    let least = if row.arity < 0 { "at least " } else { "" };
    format!(
        "{} takes {least}{wanted} arguments, its own name counted, and here are {count}: lockward would forward it as it \
         is, and the server answer with an error",
        row.name.to_ascii_uppercase()
    )
}

/// As the session finds it: one enforced lock among the keys, and observed ones are only carried along.
fn strictest(args: Args<'_>, places: &[usize], rules: &Rules) -> Option<Mode> {
    let modes = places
        .iter()
        .filter_map(|place| Some(rules.rule(rules.find(args.get(*place)?)?).mode));
    modes.fold(None, |strictest, mode| match (strictest, mode) {
        (Some(Mode::Enforce), _) | (_, Mode::Enforce) => Some(Mode::Enforce),
        (_, Mode::Observe) | (Some(Mode::Observe), _) => Some(Mode::Observe),
        (strictest, Mode::Off) => strictest,
    })
}

/// A command with a lock among its keys.
fn concerned(
    explanation: &mut Explanation,
    command: &Command,
    row: &Row,
    places: &[usize],
    mode: Mode,
    ground: &Ground<'_>,
) {
    let concerns = match row.role {
        Role::Lock(idiom) => {
            let request = Request {
                idiom,
                args: command.args(),
                keys: places,
                target: command::target(row, command.args()),
            };
            operation(explanation, &request, mode, ground)
        }
        Role::Eval => {
            let (word, text) = meaning::SELF_CHECKED;
            explanation.meaning = Some(word);
            explanation.meaning_text = Some(text.to_owned());
            true
        }
        _ => {
            explanation.notes.extend(notes::of_others(row));
            false
        }
    };
    if !concerns || explanation.answered.is_some() {
        return;
    }
    if mode == Mode::Enforce {
        explanation.treatment = "enforce";
        let queued = sent::ask(&command.raw, ground.rules, ground.prefix, ground.features, true);
        explanation.notes.push(notes::of_transactions(&queued));
    } else {
        explanation.treatment = "observe";
        let rules = subjects(command.args(), places, mode, ground.rules);
        let rule = rules.first().map(|subject| ground.rules.rule(subject.rule));
        explanation.notes.extend(rule.map(notes::of_observe));
    }
}

/// A command that can be an operation on a lock, with a lock among its keys. Whether it is one.
fn operation(explanation: &mut Explanation, request: &Request<'_>, mode: Mode, ground: &Ground<'_>) -> bool {
    let subjects = subjects(request.args, request.keys, mode, ground.rules);
    let connection = ConnectionId {
        instance: "0000000000000000".into(),
        number: 1,
    };
    let read = |features| {
        let context = Context {
            rules: ground.rules.list(),
            connection: &connection,
            features,
            prefix: ground.prefix,
            database: 0,
        };
        idiom::read(request, &subjects, &context)
    };
    let meaning = read(ground.features);
    let Told { word, text, asked } = told(&meaning, request, ground.now_ms);
    if explanation.answered.is_none() {
        explanation.operations = operations(&asked, &subjects, ground.rules);
    }
    explanation.meaning = Some(word);
    explanation.meaning_text = Some(text);
    let newer = read(notes::EVERYTHING);
    if newer != meaning {
        let Told { word, text, .. } = told(&newer, request, ground.now_ms);
        explanation.notes.push(notes::of_newer(word, &text));
    }
    if let Some(subject) = subjects.first() {
        let rule = ground.rules.rule(subject.rule);
        let notes = notes::of_rule(&meaning, request, rule, ground.now_ms);
        explanation.notes.extend(notes);
    }
    meaning != Meaning::Other
}

/// The lock keys under a rule of this mode.
fn subjects(args: Args<'_>, places: &[usize], mode: Mode, rules: &Rules) -> Vec<Subject> {
    let subject = |place: &usize| {
        let key = args.get(*place)?;
        let rule = rules.find(key)?;
        (rules.rule(rule).mode == mode).then(|| Subject {
            argument: *place,
            key: Bytes::copy_from_slice(key),
            rule,
            owner: "".into(),
            token: Token(Uuid::nil()),
        })
    };
    places.iter().filter_map(subject).collect()
}

/// One for each rule that has keys in it.
fn operations(asked: &[Asked], subjects: &[Subject], rules: &Rules) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    for asked in asked {
        let meant = subjects
            .iter()
            .filter(|subject| asked.argument.is_none_or(|argument| argument == subject.argument));
        for subject in meant {
            let rule: &Rule = rules.rule(subject.rule);
            let (shown, name) = (printable(&subject.key), printable(rule.name.as_bytes()));
            let operation = asked.column.words();
            let same = operations
                .iter_mut()
                .find(|other| other.rule == name && other.operation == operation);
            match same {
                Some(other) if other.keys.contains(&shown) => {}
                Some(other) => other.keys.push(shown),
                None => operations.push(Operation {
                    operation,
                    callers: cases(asked.column, rule),
                    refused_with: asked.refused.words(&shown),
                    keys: vec![shown],
                    rule: name,
                }),
            }
        }
    }
    operations
}
