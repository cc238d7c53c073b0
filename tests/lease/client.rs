//! A client of the lock scripts without a session: commands in words, replies in words.

use bytes::Bytes;
use lockward::command;
use lockward::event::{ConnectionId, Event, RuleIndex, Time, Token, What};
use lockward::lock::call::{self, Answer, Context, Features, How, Plan, Subject};
use lockward::lock::rule::Rule;
use lockward::resp::{Args, Span};
use uuid::Uuid;

use super::server::{Connection, Value};

/// The default rule.
pub fn rule() -> Rule {
    Rule::new("lock:*")
}

/// Sends commands as the session of any client would; keys that begin with `lock:` are locks.
pub struct Client {
    pub connection: Connection,
    pub rule: Rule,
    pub features: Features,
    pub database: u32,
    tokens: u64,
}

impl Client {
    pub fn new(connection: Connection) -> Client {
        Client {
            connection,
            rule: rule(),
            features: Features::default(),
            database: 0,
            tokens: 0,
        }
    }

    /// Client A1, A2 … are connections of one owner, B1 … of another. Returns the reply and what is said of it, in words.
    pub fn does(&mut self, who: &str, command: &str) -> String {
        self.asks(who, &command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    pub fn asks(&mut self, who: &str, words: &[String]) -> String {
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for word in words {
            spans.push(Span {
                start: bytes.len(),
                end: bytes.len() + word.len(),
            });
            bytes.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&bytes, &spans);
        let (owner, number) = who.split_at(1);
        let connection = ConnectionId {
            instance: format!("{owner:0>16}").into(),
            number: number.parse().expect("a number"),
        };
        let rules = [self.rule.clone()];
        let context = Context {
            rules: &rules,
            connection: &connection,
            features: self.features,
            prefix: "lockward:",
            database: self.database,
        };
        let (_, row) = command::lookup(words[0].as_bytes());
        let row = row.expect("a known command");
        let command::Role::Lock(idiom) = row.role else {
            panic!("no lock command: {words:?}")
        };
        let keys: Vec<usize> = command::keys(row, args).collect();
        let mut subjects = Vec::new();
        for &argument in keys.iter().filter(|&&at| words[at].starts_with("lock:")) {
            self.tokens += 1;
            let key = Bytes::from(words[argument].clone());
            let token = Token(Uuid::from_u64_pair(7, self.tokens));
            subjects.push(Subject {
                argument,
                key,
                rule: RuleIndex(0),
                owner: owner.into(),
                token,
            });
        }
        let request = call::Request {
            idiom,
            args,
            keys: &keys,
            target: command::target(row, args),
        };
        match call::plan(&request, subjects, &context) {
            Plan::Call(call) => {
                call.encode(args, How::Eval, &mut self.connection.out);
                self.connection.send();
                let reply = self.connection.read();
                let mut events = Vec::new();
                let (report, value) = reply.split(&call);
                let line = first_line(&value);
                let answer = match &report {
                    Some(report) => Answer::Reported(report.as_bytes()),
                    None => Answer::Plain {
                        first_line: line.as_bytes(),
                    },
                };
                call.events(answer, Time(0), self.database, &mut events);
                let said: Vec<String> = events.iter().map(said).collect();
                format!("{} {}", shown(&value), said.join(", ")).trim_end().to_owned()
            }
            plan => {
                let kind = if matches!(plan, Plan::Forward) {
                    "forwarded"
                } else {
                    "self-checked"
                };
                self.connection
                    .command(&words.iter().map(String::as_str).collect::<Vec<_>>());
                self.connection.send();
                format!("{kind} {}", shown(&self.connection.read()))
            }
        }
    }

    /// Past the proxy.
    pub fn direct(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        shown(&self.connection.ask(&words))
    }
}

fn first_line(value: &Value) -> String {
    match value {
        Value::Error(text) => format!("-{text}"),
        Value::Integer(number) => format!(":{number}"),
        Value::Nil => "$-1".to_owned(),
        Value::Bulk(_) => "$1".to_owned(),
        _ => "+OK".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Status(text) => text.clone(),
        Value::Error(text) => format!("!{text}"),
        Value::Integer(number) => number.to_string(),
        Value::Bulk(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
        Value::Nil => "nil".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(" "),
    }
}

fn said(event: &Event) -> String {
    match &event.what {
        What::Granted(grant) if grant.overlap => "granted with overlap".to_owned(),
        What::Granted(_) => "granted".to_owned(),
        What::Contended { .. } => "contended".to_owned(),
        What::AcquireFailed => "failed".to_owned(),
        What::Release(release) => release.outcome.word().to_owned(),
        What::Refused(refusal) => format!("refused {} {}", refusal.operation.word(), refusal.reason.word()),
        What::Extended { .. } => "extended".to_owned(),
        What::Overwritten { .. } => "overwritten".to_owned(),
        What::TakenOver => "taken over".to_owned(),
        What::Expired { .. } => "expired".to_owned(),
        What::DebtsDropped { reason, count } => format!("dropped {count} by {}", reason.word()),
        other => format!("{other:?}").to_lowercase(),
    }
}
