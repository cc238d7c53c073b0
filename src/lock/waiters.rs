//! Who waits for a lock, and since when: from the first refusal to the grant, by database, key and owner. Bounded by
//! number and by age. It does not know the leases, and a waiter who gives up is only noticed by his silence.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::event::{ConnectionId, Event, Owner, RuleIndex, Time};

/// Somebody who has not tried for so long is not waiting any more, in milliseconds (the gauge and the lock table).
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

/// Somebody who waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The owner that was refused.
    pub owner: Owner,
    /// The connection of its last try.
    pub connection: ConnectionId,
    /// Its first try.
    pub first: Time,
    /// Its last try.
    pub last: Time,
    /// How often it tried.
    pub tries: u64,
}

/// In this order the waiters of one lock stand together.
type Who = (u32, Bytes, Owner);

#[derive(Debug)]
struct Waiter {
    rule: RuleIndex,
    connection: ConnectionId,
    first: Time,
    last: Time,
    tries: u64,
    number: u64,
}

impl Waiter {
    fn is_waiting(&self, at: Time) -> bool {
        at.since(self.last) < STILL_WAITING_MS * 1000
    }

    fn is_forgotten(&self, at: Time) -> bool {
        at.since(self.last) > FORGET_AFTER_MS * 1000
    }
}

/// The waiters of one proxy.
#[derive(Debug)]
pub struct Waiters {
    waiters: BTreeMap<Arc<Who>, Waiter>,
    /// With the rule, so that the waiters of each can be counted without looking them up.
    by_last_try: BTreeMap<(Time, u64), (RuleIndex, Arc<Who>)>,
    numbers: u64,
    limit: usize,
    dropped: u64,
    /// Stands before every owner.
    nobody: Owner,
}

impl Waiters {
    /// No waiters yet, and never more than `limit`: beyond it the one that tried longest ago is forgotten.
    pub fn new(limit: usize) -> Self {
        Waiters {
            waiters: BTreeMap::new(),
            by_last_try: BTreeMap::new(),
            numbers: 0,
            limit,
            dropped: 0,
            nobody: "".into(),
        }
    }

    /// Notes a refused acquire.
    pub fn contended(&mut self, event: &Event) {
        let who = (event.database, event.key.clone(), event.owner.clone());
        if let Some(waiter) = self.waiters.get_mut(&who) {
            let who = self.by_last_try.remove(&(waiter.last, waiter.number));
            if waiter.is_forgotten(event.at) {
                waiter.first = event.at;
                waiter.tries = 0;
            }
            waiter.rule = event.rule;
            waiter.tries += 1;
            waiter.last = waiter.last.max(event.at);
            if waiter.connection != event.connection {
                waiter.connection = event.connection.clone();
            }
            if let Some((_, who)) = who {
                self.by_last_try
                    .insert((waiter.last, waiter.number), (waiter.rule, who));
            }
            return;
        }
        // The key may be a slice of a whole read buffer, which it would keep alive.
        let who = Arc::new((event.database, Bytes::copy_from_slice(&event.key), event.owner.clone()));
        self.numbers += 1;
        let waiter = Waiter {
            rule: event.rule,
            connection: event.connection.clone(),
            first: event.at,
            last: event.at,
            tries: 1,
            number: self.numbers,
        };
        self.by_last_try
            .insert((waiter.last, waiter.number), (waiter.rule, who.clone()));
        self.waiters.insert(who, waiter);
        while self.waiters.len() > self.limit {
            self.forget_oldest();
            self.dropped += 1;
        }
    }

    /// Ends the wait of whoever was granted, if there was one.
    pub fn granted(&mut self, event: &Event) -> Option<Waited> {
        let waiter = self
            .waiters
            .remove(&(event.database, event.key.clone(), event.owner.clone()))?;
        self.by_last_try.remove(&(waiter.last, waiter.number));
        (!waiter.is_forgotten(event.at)).then(|| Waited {
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
        recent.map(|(_, (rule, _))| *rule)
    }

    /// Whoever tried to get this lock within the last ten seconds: how many, and the `most` of them who have waited
    /// longest, the longest first.
    pub fn of_lock(&self, database: u32, key: &Bytes, at: Time, most: usize) -> (usize, Vec<Waiting>) {
        let first = (database, key.clone(), self.nobody.clone());
        let behind = self
            .waiters
            .range::<Who, _>((Bound::Included(&first), Bound::Unbounded));
        let same_lock = behind.take_while(|(who, _)| who.0 == database && who.1 == *key);
        let mut waiting: Vec<_> = same_lock.filter(|(_, waiter)| waiter.is_waiting(at)).collect();
        let count = waiting.len();
        let longest = |(_, waiter): &(&Arc<Who>, &Waiter)| (waiter.first, waiter.number);
        if count > most {
            waiting.select_nth_unstable_by_key(most, longest);
            waiting.truncate(most);
        }
        waiting.sort_unstable_by_key(longest);
        let shown = waiting.into_iter().map(|(who, waiter)| Waiting {
            owner: who.2.clone(),
            connection: waiter.connection.clone(),
            first: waiter.first,
            last: waiter.last,
            tries: waiter.tries,
        });
        (count, shown.collect())
    }

    /// Every lock that somebody tried to get within the last ten seconds, and how many did.
    pub fn by_lock(&self, at: Time) -> Vec<((u32, Bytes), usize)> {
        let mut locks: Vec<((u32, Bytes), usize)> = Vec::new();
        for (who, _) in self.waiters.iter().filter(|(_, waiter)| waiter.is_waiting(at)) {
            match locks.last_mut() {
                Some(((database, key), count)) if *database == who.0 && *key == who.1 => *count += 1,
                _ => locks.push(((who.0, who.1.clone()), 1)),
            }
        }
        locks
    }

    /// Moves everybody to the rules' new places; those whose rule is gone are forgotten.
    pub fn renumber(&mut self, place: impl Fn(RuleIndex) -> Option<RuleIndex>) {
        self.waiters.retain(|_, waiter| match place(waiter.rule) {
            Some(rule) => {
                waiter.rule = rule;
                if let Some((noted, _)) = self.by_last_try.get_mut(&(waiter.last, waiter.number)) {
                    *noted = rule;
                }
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

    /// How many were forgotten because of the limit, since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn forget_oldest(&mut self) {
        if let Some((_, (_, who))) = self.by_last_try.pop_first() {
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
        waiters.contended(&event(100, "k", "a", What::Contended { shielded: false }));
        waiters.contended(&event(900, "k", "a", What::Contended { shielded: false }));
        assert_eq!(waiters.waiting(Time(1_000_000)).count(), 1);
        assert_eq!(waiters.waiting(Time(20_000_000)).count(), 0);
        let waited = waiters
            .granted(&event(1100, "k", "a", What::Contended { shielded: false }))
            .unwrap();
        assert_eq!(waited.micros, 1_000_000);
        assert!(
            waiters
                .granted(&event(1200, "k", "a", What::Contended { shielded: false }))
                .is_none()
        );
        assert!(waiters.is_empty());
    }

    #[test]
    fn the_one_that_tried_longest_ago_is_forgotten_first() {
        let mut waiters = Waiters::new(2);
        waiters.contended(&event(1, "k", "a", What::Contended { shielded: false }));
        waiters.contended(&event(2, "k", "b", What::Contended { shielded: false }));
        waiters.contended(&event(3, "k", "a", What::Contended { shielded: false }));
        waiters.contended(&event(4, "k", "c", What::Contended { shielded: false }));
        assert!(
            waiters
                .granted(&event(5, "k", "b", What::Contended { shielded: false }))
                .is_none()
        );
        assert!(
            waiters
                .granted(&event(5, "k", "a", What::Contended { shielded: false }))
                .is_some()
        );
    }

    #[test]
    fn ten_silent_minutes_end_a_wait() {
        let mut waiters = Waiters::new(10);
        waiters.contended(&event(0, "k", "a", What::Contended { shielded: false }));
        assert!(
            waiters
                .granted(&event(600_001, "k", "a", What::Contended { shielded: false }))
                .is_none()
        );
        waiters.contended(&event(0, "k", "b", What::Contended { shielded: false }));
        waiters.forget_old(Time(600_001_000));
        assert!(waiters.is_empty());
        waiters.contended(&event(0, "k", "b", What::Contended { shielded: false }));
        waiters.contended(&event(700_000, "k", "b", What::Contended { shielded: false }));
        assert_eq!(
            waiters
                .granted(&event(700_001, "k", "b", What::Contended { shielded: false }))
                .unwrap()
                .micros,
            1000
        );
    }

    fn by(mut event: Event, number: u64) -> Event {
        event.connection.number = number;
        event
    }

    fn owners(found: &(usize, Vec<Waiting>)) -> (usize, Vec<&str>) {
        (found.0, found.1.iter().map(|waiting| &*waiting.owner).collect())
    }

    #[test]
    fn the_waiters_of_one_lock_are_those_of_no_other() {
        let mut waiters = Waiters::new(100);
        for (at_ms, key, owner) in [
            (5, "k", "b"),
            (1, "k", "c"),
            (3, "k", "a"),
            (2, "ka", "a"),
            (2, "", "a"),
        ] {
            waiters.contended(&event(at_ms, key, owner, What::Contended { shielded: false }));
        }
        let elsewhere = Event {
            database: 1,
            ..event(4, "k", "d", What::Contended { shielded: false })
        };
        waiters.contended(&elsewhere);
        let of = |database, key: &'static str, most| waiters.of_lock(database, &key.into(), Time(6000), most);
        assert_eq!(owners(&of(0, "k", 9)), (3, vec!["c", "a", "b"]));
        assert_eq!(owners(&of(0, "k", 2)), (3, vec!["c", "a"]));
        assert_eq!(owners(&of(0, "k", 0)), (3, vec![]));
        assert_eq!(owners(&of(1, "k", 9)), (1, vec!["d"]));
        assert_eq!(owners(&of(0, "", 9)), (1, vec!["a"]));
        assert_eq!(owners(&of(0, "kb", 9)), (0, vec![]));
        let lock = |database, key: &'static str| (database, Bytes::from(key));
        let by_lock = [
            (lock(0, ""), 1),
            (lock(0, "k"), 3),
            (lock(0, "ka"), 1),
            (lock(1, "k"), 1),
        ];
        assert_eq!(waiters.by_lock(Time(6000)), by_lock);
        assert_eq!(waiters.by_lock(Time(11_000_000)), []);
    }

    #[test]
    fn tries_are_counted_and_the_last_connection_is_known() {
        let mut waiters = Waiters::new(10);
        waiters.contended(&by(event(1, "k", "a", What::Contended { shielded: false }), 7));
        waiters.contended(&by(event(2, "k", "a", What::Contended { shielded: false }), 8));
        let (_, found) = waiters.of_lock(0, &"k".into(), Time(3000), 9);
        assert_eq!((found[0].tries, found[0].connection.number), (2, 8));
        assert_eq!((found[0].first, found[0].last), (Time(1000), Time(2000)));
        waiters.contended(&by(event(700_000, "k", "a", What::Contended { shielded: false }), 9));
        let (_, found) = waiters.of_lock(0, &"k".into(), Time(700_000_000), 9);
        assert_eq!((found[0].tries, found[0].first), (1, Time(700_000_000)), "a new wait");
    }

    #[test]
    fn whoever_is_silent_for_ten_seconds_is_not_shown_but_may_come_again() {
        let mut waiters = Waiters::new(10);
        waiters.contended(&event(0, "k", "a", What::Contended { shielded: false }));
        assert_eq!(waiters.of_lock(0, &"k".into(), Time(9_999_999), 9).0, 1);
        assert_eq!(waiters.of_lock(0, &"k".into(), Time(10_000_000), 9).0, 0);
        waiters.contended(&event(20_000, "k", "a", What::Contended { shielded: false }));
        let (_, found) = waiters.of_lock(0, &"k".into(), Time(20_000_000), 9);
        assert_eq!((found[0].tries, found[0].first), (2, Time(0)));
    }

    #[test]
    fn a_waiter_counts_for_the_rule_of_its_last_try_wherever_that_stands() {
        let mut waiters = Waiters::new(10);
        let under = |rule, event| Event {
            rule: RuleIndex(rule),
            ..event
        };
        waiters.contended(&under(0, event(1, "k", "a", What::Contended { shielded: false })));
        waiters.contended(&under(1, event(2, "k", "a", What::Contended { shielded: false })));
        waiters.contended(&under(0, event(3, "k", "b", What::Contended { shielded: false })));
        let rules = |waiters: &Waiters| waiters.waiting(Time(4000)).map(|rule| rule.0).collect::<Vec<_>>();
        assert_eq!(rules(&waiters), [0, 1]);
        waiters.renumber(|rule| (rule.0 == 1).then_some(RuleIndex(7)));
        assert_eq!(rules(&waiters), [7]);
    }

    #[test]
    fn what_was_forgotten_for_the_limit_is_counted() {
        let mut waiters = Waiters::new(3);
        for number in 0..100 {
            waiters.contended(&event(
                number,
                &format!("k{number}"),
                "a",
                What::Contended { shielded: false },
            ));
            assert!(waiters.len() <= 3);
        }
        assert_eq!(waiters.dropped(), 97);
        waiters.forget_old(Time(u64::MAX));
        assert_eq!((waiters.len(), waiters.dropped()), (0, 97), "their time had come");
    }
}
