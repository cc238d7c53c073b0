//! Commands that change what later commands mean: identity, reply mode, subscriptions, watches, the script cache. Each
//! goes to the server as it came; the session follows when the server has agreed.

use bytes::Bytes;

use super::pending::{Acknowledge, Expect, Listing, Notice, Special};
use super::requests::{Request, Taken};
use super::{Session, Stage};
use crate::command::client::{self, ClientCall, Hello};
use crate::command::{self, Role, Row};
use crate::resp::{Resp, encode, is_word, texts};
use crate::session::identity::Change;

impl Session {
    pub(super) fn change_identity(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let change = match role {
            Role::Auth => client::auth_user(request.args).map(|user| Change::User(Bytes::copy_from_slice(user))),
            Role::Select => client::selected(request.args).map(Change::Database),
            Role::Reset => Some(Change::Reset),
            _ => {
                let hello = Hello::read(request.args);
                let resp = hello
                    .version
                    .map(|version| if version == 3 { Resp::Three } else { Resp::Two });
                let (user, name) = (
                    hello.user.map(Bytes::copy_from_slice),
                    hello.name.map(Bytes::copy_from_slice),
                );
                Some(Change::Hello { resp, user, name })
            }
        };
        let Some(change) = change else {
            return self.forward(request, false);
        };
        if matches!(change, Change::Reset) {
            // RESET ends a transaction and switches replies on before it answers.
            self.in_transaction = false;
            self.replies_off = false;
            self.skip_next = false;
        }
        self.gated = true;
        self.special(request, Special::Identity(change))
    }

    pub(super) fn client_command(&mut self, request: &Request<'_>) -> Taken {
        match ClientCall::read(request.args) {
            ClientCall::SetName(name) => {
                self.gated = true;
                self.special(request, Special::Identity(Change::Name(Bytes::copy_from_slice(name))))
            }
            ClientCall::ReplyOn => {
                self.replies_off = false;
                self.skip_next = false;
                self.forward(request, false)
            }
            ClientCall::ReplyOff => self.silence(request, true),
            ClientCall::ReplySkip => self.silence(request, false),
            ClientCall::MaintNotifications => self.refuse(request, texts::MAINT_NOTIFICATIONS),
            _ => self.forward(request, false),
        }
    }

    /// `CLIENT REPLY OFF` and `SKIP` have no answer of their own, so a refusal (no permission, not logged in) could not
    /// be told from success. We ask first with `CLIENT REPLY ON`, which changes nothing and is answered.
    fn silence(&mut self, request: &Request<'_>, off: bool) -> Taken {
        if self.replies_off || self.skip_next || self.in_transaction {
            self.to_upstream.extend_from_slice(request.raw);
            return Taken::Yes;
        }
        encode::command(&mut self.to_upstream, [b"CLIENT".as_slice(), b"REPLY", b"ON"]);
        let special = Special::ReplyProbe {
            request: Bytes::copy_from_slice(request.raw),
            off,
        };
        self.expect(request, Expect::Special(Box::new(special)), false, false);
        self.gated = true;
        Taken::Yes
    }

    pub(super) fn subscription(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let given = request.args.len().saturating_sub(1) as u64;
        let (channels, left) = match role {
            Role::Subscribe(channels) => (channels, Some(given)),
            Role::Unsubscribe(channels) => (channels, (given > 0).then_some(given)),
            _ => return self.forward(request, false),
        };
        if !self.in_transaction && (self.replies_off || self.skip_next) {
            // Acknowledgements come even then; they count by themselves, without an entry.
            self.skip_next = false;
            self.to_upstream.extend_from_slice(request.raw);
            return Taken::Yes;
        }
        self.special(request, Special::Acknowledge(Acknowledge { channels, left }))
    }

    pub(super) fn listing(&mut self, role: Role, request: &Request<'_>) -> Taken {
        if !self.policy.rules.any_enforce() {
            return self.forward(request, false);
        }
        let listing = if role == Role::Keys {
            Listing::Keys
        } else {
            Listing::Scan
        };
        self.special(request, Special::Filter(listing))
    }

    pub(super) fn watch(&mut self, row: &Row, request: &Request<'_>) -> Taken {
        let locks: Vec<Bytes> = command::keys(row, request.args)
            .filter_map(|index| request.args.get(index))
            .filter(|key| self.policy.rules.find(key).is_some())
            .map(Bytes::copy_from_slice)
            .collect();
        if row.role == Role::Watch && locks.is_empty() {
            return self.forward(request, false);
        }
        self.special(request, Special::Watch(locks))
    }

    pub(super) fn quit(&mut self, request: &Request<'_>) -> Taken {
        self.forward(request, false);
        self.deaf = true;
        self.stage = Stage::Draining;
        Taken::Yes
    }

    pub(super) fn script_admin(&mut self, request: &Request<'_>) -> Taken {
        let flush = request
            .args
            .get(1)
            .is_some_and(|word| is_word(word, b"FLUSH"));
        if flush {
            self.special(request, Special::Notice(Notice::ScriptsFlushed))
        } else {
            self.forward(request, false)
        }
    }

    pub(super) fn flush(&mut self, request: &Request<'_>) -> Taken {
        self.special(request, Special::Notice(Notice::DataFlushed(command::name(request.id))))
    }

    /// A replica's connection becomes a stream that is nobody's reply, but only once the server has agreed: a refused
    /// SYNC must not be a way around the rules. `REPLCONF` alone changes nothing, and its ACK is never answered.
    pub(super) fn replication(&mut self, request: &Request<'_>) -> Taken {
        let is = |index: usize, word: &str| {
            request.args.get(index).is_some_and(|arg| is_word(arg, word.as_bytes()))
        };
        if !is(0, "REPLCONF") {
            self.gated = true;
            return self.special(request, Special::Replication);
        }
        if is(1, "ACK") {
            self.to_upstream.extend_from_slice(request.raw);
            return Taken::Yes;
        }
        self.forward(request, false)
    }
}
