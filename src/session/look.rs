//! A look before an acquire that was refused the last time: a client that tries again and again asks with a plain
//! `EXISTS`, which costs the server what a refused `SET NX` does, and only when the lock is free is its acquire sent. It
//! can only refuse. What the lock's record says does not matter for that: `SET NX` asks for nothing but the key.

use bytes::{Bytes, BytesMut};

use super::Session;
use super::answers::Begun;
use super::pending::{Expect, Special};
use super::requests::{Request, Taken};
use crate::command::{Role, Row};
use crate::event::{Event, Time, What};
use crate::lock::shield::{self, Spelling};
use crate::resp::encode;

/// A longer key is not remembered, in bytes.
const LONGEST_KEY: usize = 512;

/// What is known of the client's last acquire.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The lock that it did not get.
    refused: Option<Bytes>,
    /// The server does not let this user look.
    forbidden: bool,
}

/// An acquire that waits for a look.
pub(super) struct Look {
    /// As it came.
    request: Bytes,
    spelling: Spelling,
    key: Bytes,
}

impl Look {
    /// How many bytes it keeps.
    pub(super) fn weight(&self) -> usize {
        self.request.len() + self.key.len()
    }
}

impl Session {
    /// Looks first whether the lock is still held, where the client's last acquire was refused it.
    pub(super) fn look_first(&mut self, row: &Row, request: &Request<'_>) -> Option<Taken> {
        let refused = self.looks.refused.as_ref().filter(|_| !self.looks.forbidden)?;
        let key = request.args.get(1).filter(|key| *key == refused.as_ref())?;
        let lone = self.pending.is_empty() && !request.more && !self.in_transaction;
        let Role::Lock(idiom) = row.role else { return None };
        let spelling = Spelling::of(idiom, request.args).filter(|_| lone)?;
        let rule = self.policy.rules.find(key)?;
        if shield::window_us(self.policy.rules.rule(rule)).is_some() {
            // Where there is a shield those who spin seldom get here, and it learns from the acquires that do.
            return None;
        }
        encode::command(&mut self.to_upstream, [b"EXISTS".as_slice(), key]);
        let look = Look {
            request: Bytes::copy_from_slice(request.raw),
            spelling,
            key: refused.clone(),
        };
        self.expect(request, Expect::Special(Box::new(Special::Look(look))), false, true);
        self.gated = true;
        Some(Taken::Yes)
    }

    /// The look was answered. A lock that is free, or that this user may not look at, is asked for as it came.
    pub(super) fn looked(&mut self, look: &Look, line: &[u8], now: Time) -> Begun {
        let rule = self.policy.rules.find(&look.key);
        let Some(rule) = rule.filter(|_| line == b":1") else {
            self.looks.refused = None;
            self.looks.forbidden |= line.starts_with(b"-NOPERM");
            return self.take_up_again(&look.request);
        };
        let derived = self.identity.owner(&self.policy.rules, rule);
        let event = Event {
            at: now,
            database: self.identity.database,
            key: look.key.clone(),
            rule,
            owner: derived.owner,
            connection: self.identity.connection.clone(),
            what: What::Contended { shielded: false },
        };
        self.events.push(super::Witnessed {
            event,
            bound: derived.bound,
        });
        let mut refusal = BytesMut::new();
        look.spelling.refusal(self.identity.resp, &mut refusal);
        self.say(&refusal);
        self.drop_front()
    }

    /// What an acquire came to.
    pub(super) fn remember(&mut self, event: &Event) {
        match event.what {
            What::Contended { .. } if event.key.len() <= LONGEST_KEY => self.looks.refused = Some(event.key.clone()),
            What::Granted(_) => self.looks.refused = None,
            _ => {}
        }
    }

    /// Who the client is has changed.
    pub(super) fn forget_looks(&mut self) {
        self.looks = Looks::default();
    }
}
