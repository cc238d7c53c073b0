//! Commands that change what later commands mean: identity, reply mode, subscriptions, watches, the script cache. Each
//! goes to the server as it came; the session follows when the server has agreed.

use bytes::Bytes;

use super::pending::{Acknowledge, Databases, Expect, Listing, Notice, Special};
use super::requests::{Request, Taken};
use super::silence::Switch;
use super::{ClientEnd, Session};
use crate::command::client::{self, ClientCall, Hello};
use crate::command::{self, Role, Row};
use crate::resp::number::integer;
use crate::resp::{Args, Resp, encode, is_word, texts};
use crate::session::identity::{Change, Login};

impl Session {
    pub(super) fn change_identity(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let change = match role {
            Role::Auth => client::auth_login(request.args).map(|login| Change::User(kept(login))),
            Role::Select => client::selected(request.args).map(Change::Database),
            Role::Reset => Some(Change::Reset),
            _ => {
                let hello = Hello::read(request.args);
                let resp = hello
                    .version
                    .map(|version| if version == 3 { Resp::Three } else { Resp::Two });
                let (user, name) = (hello.login.map(kept), hello.name.map(Bytes::copy_from_slice));
                let logins = request.args.iter().filter(|arg| is_word(arg, b"AUTH")).count();
                Some(Change::Hello {
                    resp,
                    user,
                    name,
                    logins,
                })
            }
        };
        let Some(change) = change else {
            return self.forward(request, false);
        };
        if matches!(change, Change::Reset) {
            // RESET ends a transaction and is not queued.
            self.in_transaction = false;
        }
        self.identify(request, change)
    }

    /// What follows waits: who asks must be known first. Inside a transaction that is when EXEC is answered.
    fn identify(&mut self, request: &Request<'_>, change: Change) -> Taken {
        self.gated = true;
        self.identity_queued |= self.in_transaction;
        self.special(request, Special::Identity(change))
    }

    pub(super) fn client_command(&mut self, request: &Request<'_>) -> Taken {
        match ClientCall::read(request.args) {
            ClientCall::SetName(name) => self.identify(request, Change::Name(Bytes::copy_from_slice(name))),
            ClientCall::ReplyOn => self.switch_replies(Switch::On, request),
            ClientCall::ReplyOff => self.switch_replies(Switch::Off, request),
            ClientCall::ReplySkip => self.switch_replies(Switch::Skip, request),
            ClientCall::MaintNotifications => self.refuse(request, texts::MAINT_NOTIFICATIONS),
            _ => self.forward(request, false),
        }
    }

    pub(super) fn subscription(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let given = request.args.len().saturating_sub(1) as u64;
        let (channels, left) = match role {
            Role::Subscribe(channels) => (channels, Some(given)),
            Role::Unsubscribe(channels) => (channels, (given > 0).then_some(given)),
            _ => return self.forward(request, false),
        };
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
        if row.role == Role::Unwatch {
            return self.special(request, Special::Unwatch);
        }
        let locks: Vec<Bytes> = command::keys(row, request.args)
            .filter_map(|index| request.args.get(index))
            .filter(|key| self.policy.rules.find(key).is_some())
            .map(Bytes::copy_from_slice)
            .collect();
        self.special(request, Special::Watch(locks))
    }

    pub(super) fn quit(&mut self, request: &Request<'_>) -> Taken {
        if self.has_own_line() {
            self.forward(request, false);
        } else {
            // The connection is not the client's to close. The server would have said no other words.
            let words = Special::LastWords(Bytes::from_static(b"+OK\r\n"));
            self.expect(request, Expect::Special(Box::new(words)), false, false);
        }
        self.turn_deaf();
        self.client_ended = ClientEnd::Said;
        Taken::Yes
    }

    /// `ACL`, `CONFIG`: they can change who may come in without a login.
    pub(super) fn rights_admin(&mut self, request: &Request<'_>) -> Taken {
        self.special(request, Special::Notice(Notice::RightsChanged))
    }

    pub(super) fn script_admin(&mut self, request: &Request<'_>) -> Taken {
        let flush = request.args.get(1).is_some_and(|word| is_word(word, b"FLUSH"));
        if flush {
            self.special(request, Special::Notice(Notice::ScriptsFlushed))
        } else {
            self.forward(request, false)
        }
    }

    pub(super) fn flush(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let command = command::name(request.id);
        let database = |index| integer(request.args.get(index)?).and_then(|number| u32::try_from(number).ok());
        let databases = match (role, database(1), database(2)) {
            (Role::SwapDb, Some(one), Some(other)) => Some(Databases::Two(one, other)),
            (Role::Flush, ..) if command.eq_ignore_ascii_case("flushdb") => None,
            _ => Some(Databases::All),
        };
        let _bar = self.policy.shield.bars_all();
        self.special(
            request,
            Special::Flush {
                command,
                databases,
                _bar,
            },
        )
    }

    /// What follows waits, since the server ignores a second `MONITOR` without a word, and `SYNC` likewise: neither is
    /// sent then. (Measured on Redis 7.0.15 and Valkey 9.1.2; inside a transaction both are answered.)
    pub(super) fn monitor(&mut self, request: &Request<'_>) -> Taken {
        if self.monitoring && !self.in_transaction {
            return self.ignored(request);
        }
        self.gated = true;
        self.special(request, Special::Monitor)
    }

    fn ignored(&mut self, request: &Request<'_>) -> Taken {
        self.expect(request, Expect::Special(Box::new(Special::Blank)), false, false);
        Taken::Yes
    }

    /// A replica's connection becomes a stream that is nobody's reply, but only once the server has agreed: a refused
    /// SYNC must not be a way around the rules. `REPLCONF` alone changes nothing.
    pub(super) fn replication(&mut self, request: &Request<'_>) -> Taken {
        if !request.args.get(0).is_some_and(|arg| is_word(arg, b"REPLCONF")) {
            if self.monitoring && !self.in_transaction {
                return self.ignored(request);
            }
            self.gated = true;
            return self.special(request, Special::Replication);
        }
        match unanswered_option(request.args) {
            Some(option) => self.replconf_without_answer(option, request),
            None => self.forward(request, false),
        }
    }

    /// The server stops at `ACK` and `GETACK` and says nothing, unless it refuses the command. So it gets what stands
    /// before them, answers that, and the client hears of a refusal only.
    fn replconf_without_answer(&mut self, option: usize, request: &Request<'_>) -> Taken {
        encode::array(&mut self.to_upstream, option);
        for word in request.args.iter().take(option) {
            encode::bulk(&mut self.to_upstream, word);
        }
        self.expect(request, Expect::Special(Box::new(Special::Mute)), false, false);
        Taken::Yes
    }
}

/// A login as the client sent it, kept for as long as it is in force.
fn kept((user, password): (&[u8], &[u8])) -> Login {
    Login {
        user: Bytes::copy_from_slice(user),
        password: Bytes::copy_from_slice(password),
    }
}

/// Where in a `REPLCONF` the first option stands that is never answered; options and values come in turn, else the
/// server answers with a syntax error.
fn unanswered_option(args: Args<'_>) -> Option<usize> {
    let options = (1..args.len()).step_by(2).filter(|_| args.len() % 2 == 1);
    let unanswered = |arg: &[u8]| is_word(arg, b"ACK") || is_word(arg, b"GETACK");
    options
        .into_iter()
        .find(|option| args.get(*option).is_some_and(unanswered))
}
