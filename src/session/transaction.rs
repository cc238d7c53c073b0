//! MULTI and EXEC: which queued commands are to be read specially when the EXEC array comes. The server decides what is
//! queued (`+QUEUED`); this only remembers it, in order.

use std::collections::VecDeque;

use super::Session;
use super::pending::{Expect, Special};
use super::requests::{Request, Taken};
use crate::command::Role;

/// What the server has queued.
#[derive(Default)]
pub(super) struct Transaction {
    /// The server has agreed to MULTI, and queues.
    open: bool,
    /// How many commands.
    count: u64,
    /// Those that are not read as they are, by position.
    specials: VecDeque<(u64, Box<Special>)>,
    /// About how many bytes these keep.
    weight: usize,
}

impl Transaction {
    pub(super) fn opened() -> Self {
        Transaction {
            open: true,
            ..Transaction::default()
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn push(&mut self, expect: Expect) {
        if let Expect::Special(special) = expect {
            self.weight += special.weight();
            self.specials.push_back((self.count, special));
        }
        self.count += 1;
    }

    /// About how many bytes are kept to read the answer to EXEC by.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn is_plain(&self) -> bool {
        self.specials.is_empty()
    }

    /// How many elements of the array are ours and not the client's.
    pub(super) fn swallowed(&self) -> u64 {
        self.specials
            .iter()
            .filter(|(_, special)| matches!(**special, Special::Reconcile(_)))
            .count() as u64
    }

    /// The element at `position`, if it is special. Positions are asked for in order.
    pub(super) fn take(&mut self, position: u64) -> Option<Box<Special>> {
        match self.specials.front() {
            Some((at, _)) if *at == position => self.specials.pop_front().map(|(_, special)| special),
            _ => None,
        }
    }
}

impl Session {
    pub(super) fn open_transaction(&mut self, request: &Request<'_>) -> Taken {
        self.to_upstream.extend_from_slice(request.raw);
        self.expect(request, Expect::Special(Box::new(Special::Multi)), false, false);
        self.in_transaction = true;
        self.identity_queued = false;
        Taken::Yes
    }

    pub(super) fn close_transaction(&mut self, role: Role, request: &Request<'_>) -> Taken {
        let special = if role == Role::Exec {
            Special::Exec
        } else {
            Special::Discard
        };
        self.to_upstream.extend_from_slice(request.raw);
        self.expect(request, Expect::Special(Box::new(special)), false, false);
        self.in_transaction = false;
        // Who the client is decides what becomes of everything behind.
        self.gated |= std::mem::take(&mut self.identity_queued) && role == Role::Exec;
        Taken::Yes
    }
}
