//! Who the client is, as far as the server has confirmed it: user, name, database, protocol. Changes only on the
//! server's OK. Checks no password.

use core::net::IpAddr;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::event::{ConnectionId, Owner, RuleIndex};
use crate::lock::owner::{self, Bound, Derived};
use crate::lock::rule::{OwnerPart, Rules};
use crate::resp::Resp;

/// The client's end of the connection, known from its socket.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Over TCP: the address.
    pub address: Option<IpAddr>,
    /// Over a unix socket: the process, if its credentials could be read.
    pub process: Option<Arc<str>>,
}

/// Who the client is.
pub(super) struct Identity {
    pub connection: ConnectionId,
    pub peer: Peer,
    pub user: Bytes,
    pub name: Bytes,
    pub database: u32,
    pub resp: Resp,
    /// What the client logged in with, so that it can get another connection; `None`: it never did.
    pub login: Option<Login>,
    /// One owner for each rule, derived when first needed.
    owners: Vec<Option<Derived>>,
}

/// What a client has logged in with. Shows itself nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub user: Bytes,
    pub password: Bytes,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// What a command will change, once the server has said OK.
#[derive(Debug)]
pub(super) enum Change {
    User(Login),
    Name(Bytes),
    Database(u32),
    Hello {
        resp: Option<Resp>,
        user: Option<Login>,
        name: Option<Bytes>,
        /// How often it says AUTH.
        logins: usize,
    },
    Reset,
}

impl Change {
    /// Whether the server may have let somebody in although it answered with this error: Redis 7.0 does what a HELLO
    /// asks for word by word until it finds one that it does not like; Valkey 9.1 checks first (both measured).
    pub(super) fn leaves_doubt(&self, error: &[u8]) -> bool {
        match self {
            Change::Hello { resp: None, .. } => false,
            Change::Hello { logins, .. } => match error.split(|byte| *byte == b' ').next() {
                Some(b"-ERR") => *logins > 0,
                Some(b"-WRONGPASS") => *logins > 1,
                _ => false,
            },
            Change::User(_) | Change::Name(_) | Change::Database(_) | Change::Reset => false,
        }
    }
}

const DEFAULT_USER: Bytes = Bytes::from_static(b"default");

impl Identity {
    pub(super) fn new(connection: ConnectionId, peer: Peer) -> Self {
        Identity {
            connection,
            peer,
            user: DEFAULT_USER,
            name: Bytes::new(),
            database: 0,
            resp: Resp::Two,
            login: None,
            owners: Vec::new(),
        }
    }

    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::User(login) => self.log_in(login),
            Change::Name(name) => self.name = name,
            Change::Database(database) => self.database = database,
            Change::Hello { resp, user, name, .. } => {
                self.resp = resp.unwrap_or(self.resp);
                if let Some(login) = user {
                    self.log_in(login);
                }
                self.name = name.unwrap_or_else(|| self.name.clone());
            }
            Change::Reset => {
                self.user = DEFAULT_USER;
                self.name = Bytes::new();
                self.database = 0;
                self.resp = Resp::Two;
                self.login = None;
            }
        }
        self.owners.clear();
    }

    fn log_in(&mut self, login: Login) {
        self.user = login.user.clone();
        self.login = Some(login);
    }

    /// Nobody can say which user this is: it must be taken for nobody else, known or not. No user's name has a space.
    pub(super) fn doubt(&mut self) {
        self.user = format!("unknown {}", self.connection).into();
        self.forget_owners();
    }

    /// The rules have changed.
    pub(super) fn forget_owners(&mut self) {
        self.owners.clear();
    }

    /// The owners that end with this connection.
    pub(super) fn bound_owners(&self) -> Vec<Owner> {
        let bound = |derived: &&Derived| derived.bound == Bound::Connection;
        self.owners
            .iter()
            .flatten()
            .filter(bound)
            .map(|derived| derived.owner.clone())
            .collect()
    }

    /// The owner that this client is under a rule.
    pub(super) fn owner(&mut self, rules: &Rules, index: RuleIndex) -> Derived {
        let place = usize::from(index.0);
        if self.owners.len() <= place {
            self.owners.resize_with(place + 1, || None);
        }
        if let Some(Some(known)) = self.owners.get(place) {
            return known.clone();
        }
        let derived = self.derive(&rules.rule(index).owner);
        if let Some(slot) = self.owners.get_mut(place) {
            *slot = Some(derived.clone());
        }
        derived
    }

    fn derive(&self, parts: &[OwnerPart]) -> Derived {
        let who = owner::Identity {
            connection: &self.connection,
            address: self.peer.address,
            process: self.peer.process.as_deref(),
            client_name: &self.name,
            user: &self.user,
        };
        owner::derive(parts, &who)
    }
}
