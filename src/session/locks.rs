//! Commands on lock keys: who asks, under which rule, and what is sent in place of the command. What an operation means
//! and how it is decided stands in the lock module; this only hands it over and notes what will come back.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::Session;
use super::pending::{Expect, Script, Special};
use super::policy::Witnessed;
use super::requests::{Request, Taken};
use crate::command::{self, Role, Row};
use crate::event::{Time, What};
use crate::lock::call::{self, Answer, Call, Context, How, Plan, Subject};
use crate::lock::observe::{self, Observation};
use crate::lock::owner::Bound;
use crate::lock::rule::Mode;
use crate::lock::script;
use crate::resp::{Resp, encode};

impl Session {
    /// A command that can be a lock operation.
    pub(super) fn lock_command(&mut self, row: &Row, request: &Request<'_>) -> Taken {
        let Some(mode) = self.strictest(row, request) else {
            self.sight(row, request);
            return self.forward(request, false);
        };
        let keys: Vec<usize> = command::keys(row, request.args).collect();
        let Some(spelled) = spelled(row, request, &keys) else {
            return self.forward(request, false);
        };
        if mode == Mode::Observe {
            let subjects = self.subjects(row, request, mode);
            let observation = observe::observe(&spelled, subjects, &self.context());
            return self.observed(request, observation);
        }
        if let Some(taken) = self.first_of_all(request) {
            return taken;
        }
        if let Some(taken) = self.shielded(row, request) {
            return taken;
        }
        if let Some(taken) = self.look_first(row, request) {
            return taken;
        }
        let subjects = self.subjects(row, request, mode);
        match call::plan(&spelled, subjects, &self.context()) {
            Plan::Forward => self.forward(request, false),
            Plan::SelfChecked(subjects) => self.self_checked(request, subjects),
            Plan::Call(call) => self.call(request, call),
            Plan::Refuse(text) => self.refuse(request, text),
        }
    }

    /// A script of the client with lock keys among its keys: taken at its word, and the records brought in line.
    pub(super) fn script_command(&mut self, row: &Row, request: &Request<'_>) -> Taken {
        match self.strictest(row, request) {
            Some(Mode::Enforce) => {}
            Some(Mode::Observe) => {
                let subjects = self.subjects(row, request, Mode::Observe);
                let observation = observe::observe_script(subjects, &self.context());
                return self.observed(request, observation);
            }
            Some(Mode::Off) | None => {
                self.sight(row, request);
                return self.forward_script(request);
            }
        }
        if let Some(taken) = self.first_of_all(request) {
            return taken;
        }
        let subjects = self.subjects(row, request, Mode::Enforce);
        self.self_checked(request, subjects)
    }

    /// What comes before a lock operation is thought of: will the server take such a command from this client at all?
    fn first_of_all(&mut self, request: &Request<'_>) -> Option<Taken> {
        if self.pending.subscribes() {
            // That is not known before the server has answered.
            return Some(Taken::NotYet);
        }
        if self.listens_only() {
            return Some(self.forward(request, false));
        }
        let unknown = self.asks_login && !self.logged_in;
        unknown.then(|| self.probe_login(request))
    }

    /// Before its login a client gets small limits, which a script's text would break; and to send its command as it is
    /// would be a way around the rules, should the server let it in meanwhile.
    fn probe_login(&mut self, request: &Request<'_>) -> Taken {
        if self.in_transaction {
            // The answer to MULTI tells as well, and a PING would be queued.
            return Taken::NotYet;
        }
        encode::command(&mut self.to_upstream, [b"PING".as_slice()]);
        let special = Special::LoginProbe(Bytes::copy_from_slice(request.raw));
        self.expect(request, Expect::Special(Box::new(special)), false, true);
        self.gated = true;
        Taken::Yes
    }

    /// In RESP2 a subscribed client may not do much else; the server says so better than we could.
    fn listens_only(&self) -> bool {
        self.identity.resp == Resp::Two && self.subscriptions.any()
    }

    /// The strictest mode among the command's lock keys; `None` without lock keys.
    fn strictest(&self, row: &Row, request: &Request<'_>) -> Option<Mode> {
        let rules = &self.policy.rules;
        let mut found = None;
        for index in command::keys(row, request.args) {
            let rule = request.args.get(index).and_then(|key| rules.meet(key));
            match rule.map(|rule| rules.rule(rule).mode) {
                Some(Mode::Enforce) => return Some(Mode::Enforce),
                Some(Mode::Observe) => found = Some(Mode::Observe),
                Some(Mode::Off) | None => {}
            }
        }
        found
    }

    /// The lock keys of the command whose rules have this mode, and who asks for each.
    fn subjects(&mut self, row: &Row, request: &Request<'_>, mode: Mode) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for index in command::keys(row, request.args) {
            let Some(key) = request.args.get(index) else { continue };
            let Some(rule) = self.policy.rules.find(key) else {
                continue;
            };
            if self.policy.rules.rule(rule).mode != mode {
                continue;
            }
            let owner = self.identity.owner(&self.policy.rules, rule).owner;
            let token = (self.policy.mint)();
            subjects.push(Subject {
                argument: index,
                key: Bytes::copy_from_slice(key),
                rule,
                owner,
                token,
            });
        }
        subjects
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            rules: self.policy.rules.list(),
            connection: &self.identity.connection,
            features: self.policy.features,
            prefix: &self.policy.prefix,
            database: self.identity.database,
        }
    }

    /// Sends a lock script in place of the command.
    pub(super) fn call(&mut self, request: &Request<'_>, mut call: Box<Call>) -> Taken {
        self.stake(request, &mut call);
        // A lone command goes by the script's hash and holds back what follows; anything else goes with the text, so
        // that the server cannot answer NOSCRIPT in the middle of a pipeline.
        let lone = self.pending.is_empty() && !request.more && !self.in_transaction;
        let sent_as_sha = if lone {
            let mut bytes = BytesMut::new();
            call.encode(request.args, How::EvalSha, &mut bytes);
            self.to_upstream.extend_from_slice(&bytes);
            self.gated = true;
            Some(bytes.freeze())
        } else {
            call.encode(request.args, How::Eval, &mut self.to_upstream);
            None
        };
        let special = Special::Script(Script { call, sent_as_sha });
        self.expect(request, Expect::Special(Box::new(special)), false, true);
        Taken::Yes
    }

    /// Sends the command as it came, and right behind it a reconcile whose answer nobody sees.
    fn self_checked(&mut self, request: &Request<'_>, subjects: Vec<Subject>) -> Taken {
        self.to_upstream.extend_from_slice(request.raw);
        self.expect(request, Expect::Forward, false, true);
        let mut call = Call::reconcile(subjects, &self.context());
        self.stake(request, &mut call);
        call.encode(request.args, How::Eval, &mut self.to_upstream);
        self.expect(
            request,
            Expect::Special(Box::new(Special::Reconcile(Box::new(call)))),
            false,
            true,
        );
        Taken::Yes
    }

    fn observed(&mut self, request: &Request<'_>, observation: Option<Arc<Observation>>) -> Taken {
        let Some(observation) = observation else {
            return self.forward(request, false);
        };
        // What is queued is carried out with EXEC only.
        if observation.gives_up() && !self.in_transaction {
            self.releasing.push(Arc::clone(&observation));
        }
        self.to_upstream.extend_from_slice(request.raw);
        let special = Special::Observed(observation);
        self.expect(request, Expect::Special(Box::new(special)), false, true);
        Taken::Yes
    }

    /// A lock script's answer, told to everybody who wants to know.
    pub(super) fn witness(&mut self, call: &Call, answer: Answer<'_>, now: Time) {
        let mut events = Vec::new();
        call.events(answer, now, self.identity.database, &mut events);
        for event in events {
            self.learn(call, &event);
            self.remember(&event);
            // An owner derived under an identity that has changed since cannot be told to end with its connection.
            let derived = self.identity.owner(&self.policy.rules, event.rule);
            let bound = if derived.owner == event.owner {
                derived.bound
            } else {
                Bound::Free
            };
            if matches!(event.what, What::Granted(_)) && !self.silence.hush() {
                self.unheard.push(self.to_downstream.len(), &event);
            }
            self.events.push(Witnessed { event, bound });
        }
    }
}

/// The request as the lock module reads it; `None` if its command is no lock operation.
fn spelled<'r>(row: &Row, request: &Request<'r>, keys: &'r [usize]) -> Option<call::Request<'r>> {
    let Role::Lock(idiom) = row.role else { return None };
    Some(call::Request {
        idiom,
        args: request.args,
        keys,
        target: command::target(row, request.args),
    })
}

/// The same call again, with the script's text in place of its hash. `sent` is what [`Session::call`] sent.
pub(super) fn resend_with_text(sent: &[u8], script: script::Script, out: &mut BytesMut) {
    // `*N\r\n`, then `$7\r\nEVALSHA\r\n$40\r\n` and the hash with its line end, then what stays as it is.
    const BEHIND_HEADER: usize = 13 + 5 + 42;
    let header = memchr::memchr(b'\n', sent).map_or(0, |end| end + 1);
    out.extend_from_slice(sent.get(..header).unwrap_or_default());
    encode::bulk(out, b"EVAL");
    encode::bulk(out, script.text().as_bytes());
    out.extend_from_slice(sent.get(header + BEHIND_HEADER..).unwrap_or_default());
}
