//! The leases that one process leaves to the one that takes its place: what it knows of each, and how the other takes it
//! in. What is taken in proves nothing: the server is asked about it at once.

use std::sync::Arc;

use bytes::Bytes;

use super::lease::{Elsewhere, Lease, LeaseId};
use super::{Bound, Keeper};
use crate::event::{ConnectionId, Event, Grant, Owner, RuleIndex, Time, Token, What};

/// A lease that holds its lock. Spans of time, since two processes have two clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The database.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    /// The name of the rule.
    pub rule: Arc<str>,
    /// Whose it is.
    pub owner: Owner,
    /// What that owner is bound to.
    pub bond: Bound,
    /// Through which connection it was acquired.
    pub connection: ConnectionId,
    /// Its owner token.
    pub token: Token,
    /// Its fencing token, where the rule asks for one.
    pub fence: Option<u64>,
    /// The full TTL as last set, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// What is left of it, in milliseconds.
    pub left_ms: Option<u64>,
    /// For how long it has been held, in milliseconds.
    pub held_ms: u64,
    /// When it is to be released because its owner has disconnected, in milliseconds from now.
    pub leave_ms: Option<u64>,
}

impl Keeper {
    /// The leases that hold their locks, as far as this process knows. Those that are only observed have no record that
    /// another process could ask about.
    pub fn held(&self, at: Time) -> Vec<Held> {
        let leases = self.book.leases();
        leases.filter_map(|(_, lease)| self.written_down(lease, at)).collect()
    }

    /// Those that the process which takes this one's place was not told of. From here on it was: that one sees what
    /// becomes of them, and releases them on disconnect.
    pub fn bequeath(&mut self, at: Time) -> Vec<Held> {
        self.companion = Elsewhere::After;
        let untold = self.book.leases();
        let untold = untold.filter(|(_, lease)| lease.elsewhere != Elsewhere::After);
        let untold: Vec<(LeaseId, Held)> = untold
            .filter_map(|(id, lease)| Some((id, self.written_down(lease, at)?)))
            .collect();
        for (id, _) in &untold {
            self.book.change(*id, |lease| {
                lease.elsewhere = Elsewhere::After;
                lease.leave_at = None;
            });
            self.plan(*id);
        }
        untold.into_iter().map(|(_, held)| held).collect()
    }

    fn written_down(&self, lease: &Lease, at: Time) -> Option<Held> {
        if !lease.is_held() || lease.is_observed() {
            return None;
        }
        Some(Held {
            database: lease.database,
            key: lease.key.clone(),
            rule: Arc::clone(&self.rule(lease.rule)?.name),
            owner: Arc::clone(&lease.owner),
            bond: lease.bond,
            connection: lease.connection.clone(),
            token: lease.token,
            fence: lease.fence,
            ttl_ms: lease.ttl_ms,
            left_ms: lease.due.map(|due| due.since(at) / 1000),
            held_ms: lease.held_ms(at),
            leave_ms: lease.leave_at.map(|leave_at| leave_at.since(at) / 1000),
        })
    }

    /// The process whose place this one takes is there yet.
    pub fn accompanied(&mut self) {
        if self.companion == Elsewhere::Nowhere {
            self.companion = Elsewhere::Before;
        }
    }

    /// It has ended, so each lease that it may know of is asked about, and those that are still there are this process'
    /// alone; unless another one takes its place by now.
    pub fn alone(&mut self, at: Time) {
        if self.companion != Elsewhere::Before {
            return;
        }
        self.companion = Elsewhere::Nowhere;
        let shared = self.book.leases();
        let shared = shared.filter(|(_, lease)| lease.elsewhere == Elsewhere::Before && !lease.is_observed());
        for id in shared.map(|(id, _)| id).collect::<Vec<_>>() {
            self.ask(id, at);
        }
    }

    /// Takes a lease over from another process, unless this one knows it, or a younger one on that lock, or has no such
    /// rule in force, or one that is off. It is renewed, where the rule says so, as soon as its owner has a connection
    /// here.
    pub fn inherit(&mut self, at: Time, held: &Held) {
        let lock = (held.database, held.key.clone());
        let mut rules = self.rules.iter();
        let rule = rules.position(|rule| rule.name == held.rule && !rule.off);
        let Some(rule) = rule.and_then(|place| u16::try_from(place).ok()).map(RuleIndex) else {
            return;
        };
        let granted = Time(at.0.saturating_sub(held.held_ms.saturating_mul(1000)));
        let known = |lease: &Lease| lease.token == held.token || lease.granted >= granted;
        if self.book.on_lock(&lock).any(|(_, lease)| known(lease)) {
            return;
        }
        self.supersede(&lock, granted);
        if self.is_too_long(&held.key) || !self.make_room(rule, held.key.len()) {
            self.dropped.leases += 1;
            return;
        }
        let grant = Grant {
            token: held.token,
            fence: held.fence,
            ttl_ms: held.ttl_ms,
            ttl_injected: false,
            ttl_reduced: false,
            overlap: false,
        };
        let event = Event {
            at: granted,
            database: held.database,
            key: held.key.clone(),
            rule,
            owner: Arc::clone(&held.owner),
            connection: held.connection.clone(),
            what: What::Granted(grant.clone()),
        };
        let mut lease = Lease::new(&event, &grant, held.bond);
        lease.due = held.left_ms.map(|left| at.plus_ms(left));
        lease.endless_look_at = lease.next_endless_look(at);
        lease.renew_at = self.rule(rule).filter(|rule| rule.renew).map(|_| at);
        lease.elsewhere = Elsewhere::Before;
        let (id, _) = self.book.insert(lease);
        self.leaves(id, held.leave_ms.map(|left| at.plus_ms(left)));
        self.ask(id, at);
    }

    /// Its owner was gone from the process before: unless it has come here, the lease is released at `leave_at`.
    fn leaves(&mut self, id: LeaseId, leave_at: Option<Time>) {
        let Some(lease) = self.book.lease(id) else { return };
        let releases = self.rule(lease.rule).is_some_and(|rule| rule.release_on_disconnect);
        if releases && !self.book.is_here(lease.owner_id) {
            self.book.change(id, |lease| lease.leave_at = leave_at);
        }
    }
}
