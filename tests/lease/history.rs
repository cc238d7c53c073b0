//! One history: two locks, five connections of two proxies, steps drawn at random, each asked of the server and of the
//! model.

#[path = "oracle.rs"]
mod oracle;

use bytes::Bytes;
use lockward::command;
use lockward::event::{ConnectionId, Event, Owner, RuleIndex, Time, Token};
use lockward::lock::call::{self, Answer, Call, Context, Features, How, Plan, Subject};
use lockward::lock::chore::{Chore, Task, encode_chore, parse_chore};
use lockward::lock::model::{Caller, Model};
use lockward::lock::record::record_name;
use lockward::lock::rule::{DeniedWrite, Unmanaged};
use lockward::resp::{Args, Span};
use uuid::Uuid;

use super::log::Entry;
use super::random::Random;
use super::server::{Connection, Value};
use super::step::{self, Step};
use super::view::View;
use super::world::{CONNECTIONS, RULES, adopt, agrees, close, edge, wall_clock};

const PREFIX: &str = "lockward:";

pub enum Verdict {
    Same,
    /// An expiry fell between two commands of one step.
    GivenUp,
    Different(String),
}

pub struct History {
    random: Random,
    keys: [String; 2],
    plain: String,
    pub models: [Model; 2],
    pub plain_exists: bool,
    rules: [usize; 2],
    asked: Option<Asked>,
    seed: u64,
    log: Vec<Entry>,
    over: bool,
    pub reached: Vec<&'static str>,
}

/// What is on its way to the server.
pub struct Asked {
    pub step: Step,
    pub key: usize,
    pub callers: [Caller; 2],
    pub nil_allowed: bool,
    pub token: Token,
    connection: ConnectionId,
    call: Option<Call>,
    /// A command goes out before the script.
    before: bool,
}

impl Asked {
    /// Which of the two locks the step can change.
    fn touched(&self) -> std::ops::RangeInclusive<usize> {
        match self.step {
            Step::WriteBoth { .. } | Step::RemoveBoth | Step::Rename { .. } => 0..=1,
            _ => self.key..=self.key,
        }
    }
}

/// What came of a step, on one side: the reply, and what is said of each lock.
#[derive(Debug, Default, PartialEq)]
pub struct Came {
    pub reply: String,
    pub said: Vec<String>,
    pub numbers: Vec<i64>,
}

impl History {
    pub fn new(seed: u64) -> History {
        let mut random = Random::new(seed);
        let rules = [random.below(7), random.below(7)];
        History {
            random,
            keys: [format!("lock:{{{seed}}}:a"), format!("lock:{{{seed}}}:b")],
            plain: format!("data:{{{seed}}}"),
            models: Default::default(),
            plain_exists: false,
            rules,
            asked: None,
            seed,
            log: Vec::new(),
            over: false,
            reached: Vec::new(),
        }
    }

    /// Draws a step and appends what is asked of the server.
    pub fn ask(&mut self, connection: &mut Connection) {
        if self.over {
            return;
        }
        let all = CONNECTIONS.with(Clone::clone);
        let (who, mut owner) = all[self.random.below(all.len())].clone();
        if self.random.chance(5) {
            owner = all[self.random.below(all.len())].1.clone();
        }
        if self.random.chance(2) {
            self.rules[self.random.below(2)] = self.random.below(7);
        }
        let key = usize::from(self.random.chance(25));
        let owners = [all[0].1.clone(), all[3].1.clone()];
        let step = step::random(&mut self.random, &self.keys[key], &owners, wall_clock());
        let known = self.models[key]
            .lease
            .as_ref()
            .and_then(|lease| lease.holder.as_ref())
            .map(|holder| holder.token);
        let token = known
            .filter(|_| self.random.chance(85))
            .unwrap_or(Token(Uuid::from_u64_pair(self.random.next(), 7)));
        let callers = [0, 1].map(|key| self.caller(key, &who, &owner));
        let nil_allowed = RULES.with(|rules| rules[self.rules[key]].denied_write == DeniedWrite::Nil);
        self.log.push(Entry::Asked {
            step: step.clone(),
            who: who.clone(),
            owner,
            key,
            rules: self.rules,
        });
        let mut asked = Asked {
            step,
            key,
            callers,
            nil_allowed,
            token,
            connection: who,
            call: None,
            before: false,
        };
        connection.command(&["TIME"]);
        self.put(&mut asked, connection);
        connection.command(&["TIME"]);
        for key in asked.touched().map(|key| &self.keys[key]) {
            let record = record_name(PREFIX, key.as_bytes());
            let record = std::str::from_utf8(&record).expect("text");
            connection.command(&["PEXPIRETIME", key]);
            connection.command(&["HGETALL", record]);
            connection.command(&["PEXPIRETIME", record]);
        }
        connection.command(&["TIME"]);
        self.asked = Some(asked);
    }

    fn caller(&mut self, key: usize, connection: &ConnectionId, owner: &Owner) -> Caller {
        let token = Token(Uuid::from_u64_pair(self.random.next(), self.random.next()));
        RULES.with(|rules| {
            let rule = &rules[self.rules[key]];
            let ms = |ms: u64| i64::try_from(ms).expect("small");
            Caller {
                owner: owner.clone(),
                connection: connection.clone(),
                token,
                allow: rule.unmanaged == Unmanaged::Allow,
                window_ms: ms(rule.late_release_window_ms),
                default_ms: rule.default_ttl_ms.map(ms),
                max_ms: rule.max_ttl_ms.map(ms),
            }
        })
    }

    /// Appends the step itself.
    fn put(&mut self, asked: &mut Asked, connection: &mut Connection) {
        let [a, b] = [self.keys[0].clone(), self.keys[1].clone()];
        let key = self.keys[asked.key].clone();
        let other = self.keys[1 - asked.key].clone();
        let plain = self.plain.clone();
        let chore = |task| Chore {
            database: 0,
            key: Bytes::from(key.clone()),
            task,
        };
        match &asked.step {
            Step::Write { words, .. } | Step::Remove { words, .. } | Step::Extend { words, .. } => {
                let words = words.clone();
                self.script(asked, &words, connection);
            }
            Step::WriteBoth { nx } => {
                let name = if *nx { "MSETNX" } else { "mset" };
                let words = [name, &a, "v", &plain, "v", &b, "v"].map(str::to_owned);
                self.script(asked, &words, connection);
            }
            Step::RemoveBoth => self.script(asked, &["DEL".to_owned(), a.clone(), b, plain, a], connection),
            Step::Rename { nx } => {
                let name = if *nx { "RENAMENX" } else { "RENAME" };
                self.script(asked, &[name.to_owned(), key, other], connection);
            }
            Step::Direct { words } => connection.command(&words.iter().map(String::as_str).collect::<Vec<_>>()),
            Step::SelfChecked { words } => {
                connection.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
                asked.before = true;
                let subject = self.subject(asked, asked.key, 0);
                let call = self.context(asked, |context| Call::reconcile(vec![subject], context));
                call.encode(Args::new(&[], &[]), How::EvalSha, &mut connection.out);
                asked.call = Some(call);
            }
            Step::Fence => {
                let subject = self.subject(asked, asked.key, 0);
                let call = self.context(asked, |context| Call::fence(subject, context));
                call.encode(Args::new(&[], &[]), How::EvalSha, &mut connection.out);
                asked.call = Some(call);
            }
            step => {
                let task = task(step, asked).expect("a chore");
                encode_chore(&chore(task), PREFIX, &mut connection.out);
            }
        }
    }

    fn context<T>(&self, asked: &Asked, with: impl FnOnce(&Context<'_>) -> T) -> T {
        RULES.with(|rules| {
            let connection = &asked.connection;
            with(&Context {
                rules,
                connection,
                features: Features::default(),
                prefix: PREFIX,
                database: 0,
            })
        })
    }

    fn subject(&self, asked: &Asked, key: usize, argument: usize) -> Subject {
        let caller = &asked.callers[key];
        Subject {
            argument,
            key: Bytes::from(self.keys[key].clone()),
            rule: RuleIndex(u16::try_from(self.rules[key]).expect("few rules")),
            owner: caller.owner.clone(),
            token: caller.token,
        }
    }

    /// Plans a client's command as a session does.
    fn script(&mut self, asked: &mut Asked, words: &[String], connection: &mut Connection) {
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
        let (_, row) = command::lookup(words[0].as_bytes());
        let row = row.expect("a known command");
        let command::Role::Lock(idiom) = row.role else {
            panic!("no lock command: {words:?}")
        };
        let keys: Vec<usize> = command::keys(row, args).collect();
        let subjects = keys
            .iter()
            .filter_map(|&at| Some(self.subject(asked, self.keys.iter().position(|key| *key == words[at])?, at)))
            .collect();
        let request = call::Request {
            idiom,
            args,
            keys: &keys,
            target: command::target(row, args),
        };
        let Plan::Call(call) = self.context(asked, |context| call::plan(&request, subjects, context)) else {
            panic!("no script for {words:?}")
        };
        call.encode(args, How::EvalSha, &mut connection.out);
        asked.call = Some(*call);
    }

    /// Reads the server's answers and holds them against the model.
    pub fn check(&mut self, connection: &mut Connection) -> Verdict {
        let Some(asked) = self.asked.take() else {
            return Verdict::Same;
        };
        let start = connection.read().milliseconds();
        if asked.before {
            connection.read();
        }
        let reply = connection.read();
        let end = connection.read().milliseconds();
        let views: Vec<(usize, View)> = asked
            .touched()
            .map(|key| {
                let parts = [connection.read(), connection.read(), connection.read()];
                (key, View::read(&parts[0], &parts[1], &parts[2]))
            })
            .collect();
        let last = connection.read().milliseconds();
        let real = self.came(&asked, &reply);
        let slack = end - start + 2;
        let mut moments = vec![start];
        if end != start {
            moments.push(end);
        }
        let mut told = Vec::new();
        let mut last_told = Vec::new();
        for now in moments {
            let (mut models, mut plain_exists) = (self.models.clone(), self.plain_exists);
            let came = oracle::tell(&mut models, &mut plain_exists, &asked, &views, now);
            let same = came.reply == real.reply && came.said == real.said && close(&came.numbers, &real.numbers, slack);
            let agrees = |(key, view): &(usize, View)| agrees(&models[*key], view, end, last, slack);
            if same && views.iter().all(agrees) {
                for word in &came.said {
                    self.reached.push(oracle::word(word));
                }
                views.iter().for_each(|(key, view)| adopt(&mut models[*key], view));
                self.models = models;
                self.plain_exists = plain_exists;
                self.log.push(Entry::Came { start, end, came: real });
                return Verdict::Same;
            }
            told.push((now, came));
            last_told = models.to_vec();
        }
        self.over = true;
        let seen: Vec<_> = views.iter().map(|(_, view)| view.model()).collect();
        // A busy machine may pause within a step: then what one moment decides on both sides is decided by two.
        let paused = last - start > 3;
        let models = self.models.iter().chain(&seen).chain(&last_told);
        if paused || models.into_iter().any(|model| edge(model, start - 3, last + 3)) {
            return Verdict::GivenUp;
        }
        let log: String = self.log.iter().map(Entry::to_string).collect();
        Verdict::Different(format!(
            "seed {}\n{log}  {start}..{end}: {real:?}\nmodel: {told:?}\n{last_told:?}\nserver ({last}): {seen:?}\nbefore: {:?}",
            self.seed, self.models
        ))
    }

    /// What the server says came of it.
    fn came(&self, asked: &Asked, reply: &Value) -> Came {
        let mut came = Came::default();
        let (report, value) = match &asked.call {
            Some(call) => reply.split(call),
            None => (None, reply.clone()),
        };
        came.reply = match &value {
            Value::Error(text) => text.split(" '").next().unwrap_or_default().to_owned(),
            Value::Bulk(_) if asked.call.is_some() => "bulk".to_owned(),
            Value::Status(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Nil => "nil".to_owned(),
            other => other.text(),
        };
        if let Some(task) = task(&asked.step, asked) {
            let text = reply.text();
            let done = parse_chore(&task, format!("${}\r\n{text}\r\n", text.len()).as_bytes());
            oracle::done(&done.expect("a chore's answer"), &mut came);
        } else if let Step::Direct { .. } = asked.step {
            came.reply = String::new();
        } else if let Some(call) = &asked.call {
            let line = match &value {
                Value::Error(text) => format!("-{text}"),
                Value::Integer(number) => format!(":{number}"),
                Value::Nil => "$-1".to_owned(),
                _ => "+".to_owned(),
            };
            let answer = match &report {
                Some(report) => Answer::Reported(report.as_bytes()),
                None => Answer::Plain {
                    first_line: line.as_bytes(),
                },
            };
            let mut events: Vec<Event> = Vec::new();
            call.events(answer, Time(0), 0, &mut events);
            for event in &events {
                let key = usize::from(event.key == self.keys[1].as_bytes());
                oracle::say(key, event, &mut came);
            }
        }
        came
    }
}

fn task(step: &Step, asked: &Asked) -> Option<Task> {
    Some(match step {
        Step::Gone => Task::Gone {
            connection: asked.connection.clone(),
        },
        Step::DropDebts { owner } => Task::DropDebts { owner: owner.clone() },
        Step::Renew { ttl } => Task::Renew {
            token: asked.token,
            ttl_ms: u64::try_from(*ttl).expect("positive"),
        },
        Step::Free { by_force } => Task::Free {
            token: (!by_force).then_some(asked.token),
        },
        Step::Check => Task::Check { token: asked.token },
        _ => return None,
    })
}
