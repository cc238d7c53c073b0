//! Answers that are not passed on as they are: what the first line of each says, and what becomes of the rest.

use bytes::{Bytes, BytesMut};

use super::answers::{Begun, Elements, NOAUTH, Sink, Whose};
use super::pending::{Databases, Expect, Notice, Script, Special};
use super::silence::Switch;
use super::transaction::Transaction;
use super::{Session, answers::Kept, locks};
use crate::event::Time;
use crate::lock::call::{Answer, Call};
use crate::lock::observe::Reply;
use crate::resp::number::integer;
use crate::resp::reply::ReplyScanner;
use crate::resp::{Resp, encode, frame, texts};
use crate::session::identity::Change;
use crate::session::policy::Observed;

/// Longest first line that is waited for; what is longer is passed on unread.
const LINE_LIMIT: usize = 64 * 1024;
/// So many bytes of a client's name are told to those who show it.
const SHOWN_NAME: usize = 256;

impl Special {
    /// Whether an answer that was read as this is to a question of ours, so that no command of the client is over.
    pub(super) fn is_question_of_ours(&self) -> bool {
        matches!(self, Special::Reconcile(_) | Special::LoginProbe(_) | Special::Ours)
    }

    /// Whether a transaction queues the command instead of doing it at once.
    pub(super) fn can_queue(&self) -> bool {
        match self {
            Special::Multi
            | Special::Exec
            | Special::Discard
            | Special::LastWords(_)
            | Special::Shielded(_)
            | Special::Blank
            | Special::LoginProbe(_)
            | Special::Look(_)
            | Special::Ours => false,
            Special::Identity(change) => !matches!(change, Change::Reset),
            _ => true,
        }
    }
}

/// The first line of a frame without its line end.
fn first_line(rest: &[u8]) -> Option<&[u8]> {
    let window = rest.get(..rest.len().min(LINE_LIMIT)).unwrap_or_default();
    match memchr::memchr(b'\n', window) {
        Some(end) => Some(window.get(..end.saturating_sub(1)).unwrap_or_default()),
        None if rest.len() >= LINE_LIMIT => Some(window),
        None => None,
    }
}

impl Session {
    /// The frame at `rest` answers something special, or perhaps `+QUEUED`.
    pub(super) fn begin_special(&mut self, rest: &[u8], now: Time) -> Begun {
        let Some(line) = first_line(rest) else {
            return Begun::NeedMore;
        };
        if self.front_is_queued() && line == b"+QUEUED" {
            return self.queued();
        }
        let Some(expect) = self.current_mut() else {
            return self.sink_to(Sink::Pass(Whose::Nobody), 0);
        };
        match std::mem::replace(expect, Expect::Forward) {
            Expect::Forward => self.pass(),
            Expect::Special(special) => self.read_special(*special, line, rest, now),
        }
    }

    fn queued(&mut self) -> Begun {
        let Some(expect) = self.current_mut() else {
            return self.sink_to(Sink::Pass(Whose::Nobody), 0);
        };
        let expect = std::mem::replace(expect, Expect::Forward);
        let ours = matches!(&expect, Expect::Special(special) if matches!(**special, Special::Reconcile(_)));
        self.transaction.push(expect);
        if ours { self.drop_front() } else { self.pass() }
    }

    /// The answer to the front goes nowhere.
    pub(super) fn drop_front(&mut self) -> Begun {
        self.sink_to(Sink::Drop(Whose::Front), 0)
    }

    fn read_special(&mut self, special: Special, line: &[u8], rest: &[u8], now: Time) -> Begun {
        match special {
            Special::Script(script) => return self.read_script(script, line, rest, now),
            Special::Reconcile(call) => return self.read_reconcile(call, line, rest, now),
            Special::Exec => return self.read_exec(line),
            Special::Look(look) => return self.looked(&look, line, now),
            Special::Ours => {
                self.put_back(Special::Ours);
                return self.drop_front();
            }
            Special::Filter(listing) if line.first() == Some(&b'*') => {
                return self.sink_to(Sink::Keep(Kept::Listing(listing)), 0);
            }
            Special::Replace { bytes, errors_too } => return self.read_replaced(&bytes, errors_too, line),
            Special::Switch(switch) if line == b"+OK" => return self.read_switch(switch),
            Special::LoginProbe(request) if !self.error => return self.let_in(&request),
            Special::Observed(observation) => {
                self.observed.push(Observed {
                    observation,
                    reply: observe_reply(line),
                });
            }
            Special::Multi => self.read_multi(),
            Special::Identity(change) if self.error => self.refused(&change, line),
            _ if self.error => {}
            Special::Mute => return self.drop_front(),
            // A server whose MULTI has another name; we cannot know.
            Special::Identity(_) if line == b"+QUEUED" => {}
            Special::Identity(change) => self.change(change),
            Special::Discard => self.transaction_over(),
            Special::Monitor => self.monitoring = true,
            Special::Replication => return self.begin_raw(rest),
            Special::Notice(notice) => self.notices.push(notice),
            Special::Flush { command, databases, .. } => {
                let databases = databases.unwrap_or(Databases::One(self.identity.database));
                self.notices.push(Notice::DataFlushed { command, databases });
            }
            Special::Watch(keys) => self.watching(keys),
            Special::Unwatch => self.watches_over(),
            Special::Acknowledge(_)
            | Special::Filter(_)
            | Special::Switch(_)
            | Special::LoginProbe(_)
            | Special::LastWords(_)
            | Special::Shielded(_)
            | Special::Blank => {}
        }
        self.pass()
    }

    fn read_replaced(&mut self, bytes: &[u8], errors_too: bool, line: &[u8]) -> Begun {
        if line.starts_with(NOAUTH) || (self.error && !errors_too) {
            return self.pass();
        }
        self.error = bytes.first() == Some(&b'-');
        self.say(bytes);
        self.drop_front()
    }

    /// The server lets the client in, so its request is taken up again. Nothing behind it was looked at: the gate is
    /// closed until this answer is dealt with.
    fn let_in(&mut self, request: &[u8]) -> Begun {
        self.logged_in = true;
        self.limits();
        self.take_up_again(request)
    }

    /// The question at the front was ours, and the request that it stood for is taken up again.
    pub(super) fn take_up_again(&mut self, request: &[u8]) -> Begun {
        let behind = std::mem::replace(&mut self.requests, BytesMut::from(request));
        self.requests.extend_from_slice(&behind);
        self.put_back(Special::Ours);
        self.drop_front()
    }

    /// Only `ON` has an answer of its own.
    fn read_switch(&mut self, switch: Switch) -> Begun {
        self.silence.switch(switch);
        if switch == Switch::On {
            self.pass()
        } else {
            self.drop_front()
        }
    }

    /// A lock script answered: its report is read and taken off, the rest is the client's own answer.
    fn read_script(&mut self, script: Script, line: &[u8], rest: &[u8], now: Time) -> Begun {
        let Script { call, sent_as_sha } = script;
        if line == b"*2" {
            let found = report(rest, line.len() + 2);
            let Some((report, len, kind)) = found.and_then(|(report, len)| Some((report, len, *rest.get(len)?))) else {
                return self.put_back(Special::Script(Script { call, sent_as_sha }));
            };
            self.witness(&call, Answer::Reported(report), now);
            self.error = matches!(kind, b'-' | b'!');
            self.pass();
            return Begun::Took(len);
        }
        if line.starts_with(b"-NOSCRIPT")
            && let Some(sent) = sent_as_sha
        {
            // Nothing was done, and nothing of this client is under way behind it: the same call again, with its text.
            locks::resend_with_text(&sent, call.script(), &mut self.to_upstream);
            self.asked(1);
            self.put_back(Special::Script(Script {
                call,
                sent_as_sha: None,
            }));
            return self.sink_to(Sink::Drop(Whose::Nobody), 0);
        }
        if let Some((report, reply)) = call.report_alone(line) {
            self.witness(&call, Answer::Reported(report), now);
            self.say(reply);
            return self.drop_front();
        }
        self.witness(&call, Answer::Plain { first_line: line }, now);
        if line.starts_with(b"-ERR Protocol error: unauthenticated") {
            // The server asks for a login since a moment ago, and closes over the length of our script: say the cause.
            let mut said = BytesMut::new();
            encode::error(&mut said, texts::NOAUTH.as_bytes());
            self.say(&said);
            return self.drop_front();
        }
        if line.starts_with(b"-NOPERM") {
            let text = texts::noperm(line.get(1..).unwrap_or_default(), &self.policy.prefix);
            let mut said = BytesMut::new();
            encode::error(&mut said, text.as_bytes());
            self.say(&said);
            return self.drop_front();
        }
        self.pass()
    }

    fn read_reconcile(&mut self, call: Box<Call>, line: &[u8], rest: &[u8], now: Time) -> Begun {
        if line == b"*2" {
            let Some((report, _)) = report(rest, line.len() + 2) else {
                return self.put_back(Special::Reconcile(call));
            };
            self.witness(&call, Answer::Reported(report), now);
        }
        self.put_back(Special::Reconcile(call));
        self.drop_front()
    }

    /// The frame cannot be read yet, or is read once more.
    fn put_back(&mut self, special: Special) -> Begun {
        if let Some(expect) = self.current_mut() {
            *expect = Expect::Special(Box::new(special));
        }
        Begun::NeedMore
    }

    fn read_multi(&mut self) {
        if !self.error {
            self.transaction = Transaction::opened();
            self.logged_in = true;
            self.limits();
        } else if !self.transaction.is_open() {
            // Refused, and not for being the second: what follows is not queued.
            self.pending.unqueue();
        }
    }

    fn read_exec(&mut self, line: &[u8]) -> Begun {
        let total = match line.split_first() {
            Some((b'*', number)) => integer(number).and_then(|number| u64::try_from(number).ok()),
            _ => None,
        };
        if !line.starts_with(b"-ERR EXEC without MULTI") {
            self.watches_over();
        }
        // Redis 7.0 puts messages that the transaction sends to its own client between the elements.
        let between = self.identity.resp == Resp::Three && self.subscriptions.any();
        let plain = self.transaction.is_plain() && !between;
        let Some(total) = total.filter(|total| !plain && *total > 0) else {
            self.transaction = Transaction::default();
            return self.pass();
        };
        if total != self.transaction.count() {
            // The server and we disagree on what was queued: nothing can be paired any more.
            self.end(false);
            return Begun::NeedMore;
        }
        if !self.silence.hush() {
            encode::array(&mut self.to_downstream, (total - self.transaction.swallowed()) as usize);
        }
        let current = self.transaction.take(0).map_or(Expect::Forward, Expect::Special);
        self.elements = Some(Elements {
            position: 0,
            total,
            current,
        });
        Begun::Took(line.len() + 2)
    }

    /// From here on nothing is a request or a reply any more.
    fn begin_raw(&mut self, rest: &[u8]) -> Begun {
        self.raw = true;
        self.pending.clear();
        self.to_downstream.extend_from_slice(rest);
        Begun::Took(rest.len())
    }

    fn transaction_over(&mut self) {
        self.transaction = Default::default();
        self.watches_over();
    }

    fn change(&mut self, change: Change) {
        if matches!(change, Change::Reset) {
            self.monitoring = false;
            self.subscriptions = Default::default();
            self.silence.reset();
            self.transaction_over();
            self.state_is_gone();
        }
        match &change {
            Change::User { .. } | Change::Hello { user: Some(_), .. } => self.logged_in = true,
            Change::Reset => {
                self.logged_in = false;
                self.admitted = false;
            }
            Change::Hello { user: None, .. } | Change::Name(_) | Change::Database(_) => {}
        }
        self.limits();
        self.forget_looks();
        let name = self.identity.name.clone();
        self.identity.apply(change);
        if !self.shares() {
            // Nobody will ever ask for it.
            self.identity.login = None;
        }
        if self.identity.name != name {
            let name = self.identity.name.iter().copied().take(SHOWN_NAME).collect();
            self.notices.push(Notice::Name(name));
        }
        self.tell_owners();
    }

    fn refused(&mut self, change: &Change, line: &[u8]) {
        if change.leaves_doubt(line) {
            self.identity.doubt();
            self.stay_for_ever();
            self.tell_owners();
        }
    }

    /// The client watches keys; these are locks.
    fn watching(&mut self, keys: Vec<Bytes>) {
        self.watches_something();
        let database = self.identity.database;
        for key in keys {
            if self.watches.insert((database, key.clone())) {
                let on = true;
                self.notices.push(Notice::Watching { database, key, on });
            }
        }
    }

    fn watches_over(&mut self) {
        self.watches_no_more();
        for (database, key) in std::mem::take(&mut self.watches) {
            self.notices.push(Notice::Watching {
                database,
                key,
                on: false,
            });
        }
    }
}

/// The report of a two-element answer, and where it ends in `rest`. `None` until it has come whole.
fn report(rest: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let element = rest.get(at..)?;
    let step = ReplyScanner::new().scan(element).ok().filter(|step| step.done)?;
    Some((frame::bulk(element.get(..step.taken)?)?, at + step.taken))
}

/// What the observatory needs to know of an answer.
fn observe_reply(line: &[u8]) -> Reply {
    match line.split_first() {
        Some((b'-' | b'!', _)) => Reply::Error,
        Some((b'+', _)) => Reply::Status,
        Some((b'_', _)) => Reply::Nil,
        Some((b'$' | b'*', b"-1")) => Reply::Nil,
        Some((b':', number)) => integer(number).map_or(Reply::Other, Reply::Integer),
        _ => Reply::Other,
    }
}
