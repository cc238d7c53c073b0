//! The leases that one process leaves to the one that takes its place: what it knows of each, and how the other takes it
//! in. What is taken in proves nothing: the server is asked about it at once.

use std::sync::Arc;

use bytes::Bytes;

use super::lease::Lease;
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
}

impl Keeper {
    /// The leases that hold their locks, as far as this process knows. Those that are only observed have no record that
    /// another process could ask about.
    pub fn held(&self, at: Time) -> Vec<Held> {
        let held = self.book.leases().map(|(_, lease)| lease);
        held.filter(|lease| lease.is_held() && !lease.is_observed())
            .filter_map(|lease| {
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
                })
            })
            .collect()
    }

    /// Takes a lease over from another process, unless this one knows it, or a younger one on that lock, or has no such
    /// rule in force. It is renewed, where the rule says so, as soon as its owner has a connection here.
    pub fn inherit(&mut self, at: Time, held: &Held) {
        let lock = (held.database, held.key.clone());
        let rule = self.rules.iter().position(|rule| rule.name == held.rule);
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
        let (id, _) = self.book.insert(lease);
        self.ask(id, at);
    }
}
