//! What a session does with the contention shield: asks it before an acquire is sent, answers in the acquire's turn, and
//! tells it what is sent that may free a lock, and what the server says. What is known stands in the lock module.

use bytes::{Bytes, BytesMut};

use super::pending::{Expect, Pending, Special};
use super::policy::Witnessed;
use super::requests::{Request, Taken};
use super::{BUFFER_LIMIT, Session, Settled, Stage};
use crate::command::{Role, Row};
use crate::event::{Event, RuleIndex, What};
use crate::lock::call::Call;
use crate::lock::shield::{self, Asker, Held, Spelling, Stake, Verdict};

/// A session that has not heard from the server for so long asks for itself, in microseconds: so its own connection shows
/// now and then that it still lives, and that the server still lets its user in.
const ASKS_ITSELF_AFTER_US: u64 = 10_000_000;

impl Special {
    /// Whether the shield has nothing to say of an acquire behind this. What a lock script may free it has told itself.
    pub(super) fn stirs(&self) -> bool {
        !matches!(self, Special::Script(_) | Special::Shielded(_))
    }
}

impl Session {
    /// Whether the next request waits for what another session is told: [`Session::advance`] is due in a millisecond. One
    /// that is held back waits for the end of that first.
    pub fn waits(&self) -> bool {
        self.waits_since.is_some() && self.stage == Stage::Open && !self.is_held()
    }

    /// Answers an acquire without asking the server, if the shield knows that it would be refused. `None`: it is asked.
    pub(super) fn shielded(&mut self, row: &Row, request: &Request<'_>) -> Option<Taken> {
        if !self.policy.shield.is_on() || !self.may_be_shielded(request) {
            return None;
        }
        let Role::Lock(idiom) = row.role else { return None };
        let spelling = Spelling::of(idiom, request.args)?;
        let key = request.args.get(1).unwrap_or_default();
        let rule = self.policy.rules.find(key)?;
        let window_us = shield::window_us(self.policy.rules.rule(rule))?;
        let first = self.waits_since.unwrap_or(request.now);
        let asker = self.asker(key, spelling);
        match self.policy.shield.judge(&asker, window_us, first, request.now) {
            Verdict::Refuse => {}
            // In a pipeline that would cost a way to the server and back, and those who spin have nothing else under way.
            // Of a client that has said its last everything is sent now.
            Verdict::Wait if self.stage == Stage::Open && self.pending.is_empty() => {
                self.waits_since = Some(first);
                return Some(Taken::NotYet);
            }
            Verdict::Wait | Verdict::Ask => return None,
        }
        self.contended(request, key, rule);
        let expect = Expect::Special(Box::new(Special::Shielded(spelling)));
        self.push(Pending {
            lock: true,
            received: first,
            ..Pending::new(request.id, expect, request.now)
        });
        Some(Taken::Yes)
    }

    fn contended(&mut self, request: &Request<'_>, key: &[u8], rule: RuleIndex) {
        let derived = self.identity.owner(&self.policy.rules, rule);
        let event = Event {
            at: request.now,
            database: self.identity.database,
            key: Bytes::copy_from_slice(key),
            rule,
            owner: derived.owner,
            connection: self.identity.connection.clone(),
            what: What::Contended { shielded: true },
        };
        let bound = derived.bound;
        self.events.push(Witnessed { event, bound });
    }

    /// Whether the server would come to the question whether the lock is held, and now.
    fn may_be_shielded(&self, request: &Request<'_>) -> bool {
        let known_to_server = self.logged_in || self.admitted;
        let heard_lately = request.now.since(self.heard) < ASKS_ITSELF_AFTER_US;
        // A client that does not read what it is told must not be told more for nothing.
        let reads = self.to_downstream.len() < BUFFER_LIMIT;
        let transaction = self.in_transaction || self.transaction.is_open();
        known_to_server && heard_lately && reads && !transaction && !self.monitoring && !self.pending.stirs()
    }

    fn asker<'a>(&'a self, key: &'a [u8], spelling: Spelling) -> Asker<'a> {
        Asker {
            database: self.identity.database,
            key,
            user: &self.identity.user,
            spelling,
        }
    }

    /// The turn of a shielded answer has come.
    pub(super) fn say_shielded(&mut self, spelling: Spelling) {
        let mut answer = BytesMut::new();
        spelling.refusal(self.identity.resp, &mut answer);
        self.say(&answer);
        self.silence.command_over();
        let Some(done) = self.pending.pop() else { return };
        let waited = self.heard.max(done.sent).since(done.received);
        self.settled.push(Settled {
            command: done.command,
            error: false,
            lock: done.lock,
            count: 1,
            request_us: u32::try_from(waited).unwrap_or(u32::MAX),
            upstream_us: 0,
        });
    }

    /// Notes what a call that is about to be sent means to the shield.
    pub(super) fn stake(&self, request: &Request<'_>, call: &mut Call) {
        let shield = &self.policy.shield;
        if !shield.is_on() {
            return;
        }
        let stake = if call.may_free() {
            Stake::Bars {
                _bar: shield.bars(call.locks()),
            }
        } else if call.is_acquire() && !self.in_transaction {
            // (What is queued may be carried out in another database.)
            self.asks(request)
        } else {
            Stake::None
        };
        call.set_stake(stake);
    }

    fn asks(&self, request: &Request<'_>) -> Stake {
        let key = request.args.get(1).unwrap_or_default();
        let rules = &self.policy.rules;
        let window_us = rules.find(key).and_then(|rule| shield::window_us(rules.rule(rule)));
        if window_us.is_none() {
            return Stake::None;
        }
        let asker = self.asker(key, spelling(request));
        Stake::Asks(self.policy.shield.asks(&asker, request.now))
    }

    /// Tells the shield what the server answered to an acquire.
    pub(super) fn learn(&mut self, call: &Call, event: &Event) {
        let Stake::Asks(asked) = call.stake() else { return };
        let held = match &event.what {
            What::Contended { .. } => Held::Contended,
            What::Granted(grant) => Held::Granted(grant.ttl_ms),
            What::AcquireFailed => Held::Failed,
            _ => return,
        };
        self.admitted |= !matches!(held, Held::Failed);
        let asker = self.asker(&event.key, asked.spelling);
        self.policy.shield.answered(&asker, *asked, held, event.at);
    }

    /// Sends a script on that names no lock under an enforce rule. It may free one all the same.
    pub(super) fn forward_script(&mut self, request: &Request<'_>) -> Taken {
        self.to_upstream.extend_from_slice(request.raw);
        self.push(Pending {
            stirs: true,
            ..Pending::new(request.id, Expect::Forward, request.now)
        });
        Taken::Yes
    }
}

/// Of an acquire: `SETNX` has three words, `SET … NX` more.
fn spelling(request: &Request<'_>) -> Spelling {
    match request.args.len() {
        3 => Spelling::SetNx,
        _ => Spelling::Set,
    }
}
