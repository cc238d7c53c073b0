//! `LOCKWARD FENCE`, `WHOAMI`, `HELP`: the one command that lockward has of its own on the data port. It rides on a
//! command of the server, so that it needs AUTH where the server asks for it, and queues where the server queues.

use bytes::{Bytes, BytesMut};

use super::Session;
use super::pending::{Expect, Special};
use super::requests::{Request, Taken};
use crate::lock::call::{Call, Subject};
use crate::lock::rule::Mode;
use crate::resp::{encode, texts};

impl Session {
    pub(super) fn own_command(&mut self, request: &Request<'_>) -> Taken {
        let word = request.args.word(1).unwrap_or_default();
        match (word.to_ascii_uppercase().as_slice(), request.args.len()) {
            (b"FENCE", 3) => self.fence(request),
            (b"WHOAMI", 2) => {
                let answer = self.who_am_i();
                self.ride(request, answer)
            }
            (b"HELP", 2) => {
                let mut answer = BytesMut::new();
                encode::array(&mut answer, texts::OWN_HELP.len());
                for line in texts::OWN_HELP {
                    encode::simple(&mut answer, line);
                }
                self.ride(request, answer.freeze())
            }
            _ => self.refuse(request, texts::OWN_USAGE),
        }
    }

    /// Sends PING; its answer, unless it is an error, is replaced by ours.
    fn ride(&mut self, request: &Request<'_>, bytes: Bytes) -> Taken {
        encode::command(&mut self.to_upstream, [b"PING".as_slice()]);
        let special = Special::Replace {
            bytes,
            errors_too: false,
        };
        self.expect(request, Expect::Special(Box::new(special)), false, false);
        Taken::Yes
    }

    fn fence(&mut self, request: &Request<'_>) -> Taken {
        let key = request.args.get(2).unwrap_or_default();
        let found = self
            .policy
            .rules
            .find(key)
            .filter(|rule| self.policy.rules.rule(*rule).mode == Mode::Enforce);
        let Some(rule) = found else {
            return self.refuse(request, texts::FENCE_NO_RULE);
        };
        let owner = self.identity.owner(&self.policy.rules, rule).owner;
        let token = (self.policy.mint)();
        let subject = Subject {
            argument: 2,
            key: Bytes::copy_from_slice(key),
            rule,
            owner,
            token,
        };
        let call = Call::fence(subject, &self.context());
        self.call(request, Box::new(call))
    }

    /// A flat list of names and values: the connection, then the owner under each rule.
    fn who_am_i(&mut self) -> Bytes {
        let mut fields = vec![("connection".to_owned(), self.identity.connection.to_string())];
        for (index, rule) in self.policy.rules.iter() {
            let owner = self.identity.owner(&self.policy.rules, index).owner;
            fields.push((format!("owner under rule {}", rule.name), owner.to_string()));
        }
        let mut answer = BytesMut::new();
        encode::array(&mut answer, fields.len() * 2);
        for (name, value) in fields {
            encode::bulk(&mut answer, name.as_bytes());
            encode::bulk(&mut answer, value.as_bytes());
        }
        answer.freeze()
    }
}
