//! Who waits for a lock, and since when: from the first refusal to the grant, by database, key and owner. Bounded by
//! number and by age. It does not know the leases, and a waiter who gives up is only noticed by his silence.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::event::{Event, Owner, RuleIndex, Time};

/// Somebody who has not tried for so long is not waiting any more, in milliseconds (the gauge).
const STILL_WAITING_MS: u64 = 10_000;
/// After so long without a try the next grant says nothing about the wait, in milliseconds.
const FORGET_AFTER_MS: u64 = 600_000;

/// A wait that ended with a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The lock's rule.
    pub rule: RuleIndex,
    /// From the first refusal to the grant, in microseconds.
    pub micros: u64,
}

type Who = (u32, Bytes, Owner);

#[derive(Debug)]
struct Waiter {
    rule: RuleIndex,
    first: Time,
    last: Time,
    number: u64,
}

/// The waiters of one proxy.
#[derive(Debug)]
pub struct Waiters {
    waiters: BTreeMap<Arc<Who>, Waiter>,
    by_last_try: BTreeMap<(Time, u64), Arc<Who>>,
    numbers: u64,
    limit: usize,
}

impl Waiters {
    /// No waiters yet, and never more than `limit`: beyond it the one that tried longest ago is forgotten.
    pub fn new(limit: usize) -> Self {
        Waiters {
            waiters: BTreeMap::new(),
            by_last_try: BTreeMap::new(),
            numbers: 0,
            limit,
        }
    }

    /// Notes a refused acquire.
    pub fn contended(&mut self, event: &Event) {
        let who = (event.database, event.key.clone(), event.owner.clone());
        if let Some((who, waiter)) = self.waiters.remove_entry(&who) {
            self.by_last_try.remove(&(waiter.last, waiter.number));
            let first = if event.at.since(waiter.last) > FORGET_AFTER_MS * 1000 {
                event.at
            } else {
                waiter.first
            };
            let last = event.at.max(waiter.last);
            self.insert(
                who,
                Waiter {
                    rule: event.rule,
                    first,
                    last,
                    ..waiter
                },
            );
            return;
        }
        // The key may be a slice of a whole read buffer, which it would keep alive.
        let who = Arc::new((event.database, Bytes::copy_from_slice(&event.key), event.owner.clone()));
        self.numbers += 1;
        let waiter = Waiter {
            rule: event.rule,
            first: event.at,
            last: event.at,
            number: self.numbers,
        };
        self.insert(who, waiter);
        while self.waiters.len() > self.limit {
            self.forget_oldest();
        }
    }

    /// Ends the wait of whoever was granted, if there was one.
    pub fn granted(&mut self, event: &Event) -> Option<Waited> {
        let waiter = self
            .waiters
            .remove(&(event.database, event.key.clone(), event.owner.clone()))?;
        self.by_last_try.remove(&(waiter.last, waiter.number));
        let forgotten = event.at.since(waiter.last) > FORGET_AFTER_MS * 1000;
        (!forgotten).then(|| Waited {
            rule: event.rule,
            micros: event.at.since(waiter.first),
        })
    }

    /// Drops whoever has not tried for ten minutes.
    pub fn forget_old(&mut self, at: Time) {
        while let Some(((last, _), _)) = self.by_last_try.first_key_value() {
            if at.since(*last) <= FORGET_AFTER_MS * 1000 {
                return;
            }
            self.forget_oldest();
        }
    }

    /// The rules of all who tried within the last ten seconds, one entry for each waiter.
    pub fn waiting(&self, at: Time) -> impl Iterator<Item = RuleIndex> + '_ {
        let recent = self.by_last_try.iter().rev();
        let recent = recent.take_while(move |((last, _), _)| at.since(*last) < STILL_WAITING_MS * 1000);
        recent.filter_map(|(_, who)| self.waiters.get(who).map(|waiter| waiter.rule))
    }

    /// Moves everybody to the rules' new places; those whose rule is gone are forgotten.
    pub fn renumber(&mut self, place: impl Fn(RuleIndex) -> Option<RuleIndex>) {
        self.waiters.retain(|_, waiter| match place(waiter.rule) {
            Some(rule) => {
                waiter.rule = rule;
                true
            }
            None => {
                self.by_last_try.remove(&(waiter.last, waiter.number));
                false
            }
        });
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether nobody is remembered.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    fn insert(&mut self, who: Arc<Who>, waiter: Waiter) {
        self.by_last_try.insert((waiter.last, waiter.number), who.clone());
        self.waiters.insert(who, waiter);
    }

    fn forget_oldest(&mut self) {
        if let Some((_, who)) = self.by_last_try.pop_first() {
            self.waiters.remove(&who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ConnectionId, What};

    fn event(at_ms: u64, key: &str, owner: &str, what: What) -> Event {
        Event {
            at: Time(at_ms * 1000),
            database: 0,
            key: Bytes::copy_from_slice(key.as_bytes()),
            rule: RuleIndex(0),
            owner: owner.into(),
            connection: ConnectionId {
                instance: "i".into(),
                number: 1,
            },
            what,
        }
    }

    #[test]
    fn a_wait_runs_from_the_first_refusal_to_the_grant() {
        let mut waiters = Waiters::new(10);
        waiters.contended(&event(100, "k", "a", What::Contended));
        waiters.contended(&event(900, "k", "a", What::Contended));
        assert_eq!(waiters.waiting(Time(1_000_000)).count(), 1);
        assert_eq!(waiters.waiting(Time(20_000_000)).count(), 0);
        let waited = waiters.granted(&event(1100, "k", "a", What::Contended)).unwrap();
        assert_eq!(waited.micros, 1_000_000);
        assert!(waiters.granted(&event(1200, "k", "a", What::Contended)).is_none());
        assert!(waiters.is_empty());
    }

    #[test]
    fn the_one_that_tried_longest_ago_is_forgotten_first() {
        let mut waiters = Waiters::new(2);
        waiters.contended(&event(1, "k", "a", What::Contended));
        waiters.contended(&event(2, "k", "b", What::Contended));
        waiters.contended(&event(3, "k", "a", What::Contended));
        waiters.contended(&event(4, "k", "c", What::Contended));
        assert!(waiters.granted(&event(5, "k", "b", What::Contended)).is_none());
        assert!(waiters.granted(&event(5, "k", "a", What::Contended)).is_some());
    }

    #[test]
    fn ten_silent_minutes_end_a_wait() {
        let mut waiters = Waiters::new(10);
        waiters.contended(&event(0, "k", "a", What::Contended));
        assert!(waiters.granted(&event(600_001, "k", "a", What::Contended)).is_none());
        waiters.contended(&event(0, "k", "b", What::Contended));
        waiters.forget_old(Time(600_001_000));
        assert!(waiters.is_empty());
        waiters.contended(&event(0, "k", "b", What::Contended));
        waiters.contended(&event(700_000, "k", "b", What::Contended));
        assert_eq!(
            waiters
                .granted(&event(700_001, "k", "b", What::Contended))
                .unwrap()
                .micros,
            1000
        );
    }
}
