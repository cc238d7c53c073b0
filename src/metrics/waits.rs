//! How long owners wait for locks: from the first refused acquire to the grant, by owner and key. Bounded: at most
//! [`SHARDS`] times [`SHARD_CAP`] waits at once, each of fixed size (a hash stands for database, key and owner). Not exact by design: beyond the
//! cap, waits are not measured, and whoever has not asked for [`GIVE_UP_US`] has given up.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::event::{Event, Time};

/// Waits are spread over so many locks.
const SHARDS: usize = 16;

/// The most waits that are followed under one lock: 16,384 in all, about 600 KB.
const SHARD_CAP: usize = 1024;

/// Who was refused and has not asked again for so long waits no more, in microseconds.
const GIVE_UP_US: u64 = 60_000_000;

/// The least time between two searches of a full shard for waits given up, in microseconds.
const SWEEP_US: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Wait {
    first: Time,
    last: Time,
    rule: u16,
}

impl Wait {
    fn lives(&self, now: Time) -> bool {
        now.since(self.last) <= GIVE_UP_US
    }
}

#[derive(Debug, Default)]
struct Shard {
    waits: HashMap<u64, Wait>,
    swept: Time,
}

/// All waits going on.
#[derive(Debug, Default)]
pub(super) struct Waits {
    hash: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

impl Waits {
    /// An acquire was refused.
    pub(super) fn refused(&self, event: &Event) {
        let (id, mut shard) = self.find(event);
        let fresh = Wait {
            first: event.at,
            last: event.at,
            rule: event.rule.0,
        };
        if let Some(wait) = shard.waits.get_mut(&id) {
            *wait = if wait.lives(event.at) {
                Wait {
                    first: wait.first,
                    ..fresh
                }
            } else {
                fresh
            };
            return;
        }
        if shard.waits.len() >= SHARD_CAP && event.at.since(shard.swept) >= SWEEP_US {
            shard.swept = event.at;
            shard.waits.retain(|_, wait| wait.lives(event.at));
        }
        if shard.waits.len() < SHARD_CAP {
            shard.waits.insert(id, fresh);
        }
    }

    /// An acquire was granted: how many microseconds its owner waited, `None` if he did not.
    pub(super) fn granted(&self, event: &Event) -> Option<u64> {
        let (id, mut shard) = self.find(event);
        let wait = shard.waits.remove(&id)?;
        wait.lives(event.at).then(|| event.at.since(wait.first))
    }

    /// How many wait now, by position of the rule.
    pub(super) fn count(&self, now: Time, rules: usize) -> Vec<u64> {
        let mut counts = vec![0; rules];
        for shard in &self.shards {
            for wait in lock(shard).waits.values().filter(|wait| wait.lives(now)) {
                if let Some(count) = counts.get_mut(usize::from(wait.rule)) {
                    *count += 1;
                }
            }
        }
        counts
    }

    fn find(&self, event: &Event) -> (u64, MutexGuard<'_, Shard>) {
        let id = self.hash.hash_one((event.database, &event.key, &event.owner));
        let [first, ..] = &self.shards;
        (id, lock(self.shards.get(id as usize % SHARDS).unwrap_or(first)))
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // Nothing panics while it holds the lock.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::event::{ConnectionId, RuleIndex, What};

    fn asked(key: String, owner: &str, ms: u64) -> Event {
        Event {
            at: Time::default().plus_ms(ms),
            database: 0,
            key: Bytes::from(key),
            rule: RuleIndex(1),
            owner: owner.into(),
            connection: ConnectionId {
                instance: "0".into(),
                number: 1,
            },
            what: What::Contended,
        }
    }

    fn at(owner: &str, ms: u64) -> Event {
        asked("lock:a".to_owned(), owner, ms)
    }

    #[test]
    fn a_wait_goes_from_the_first_refusal_to_the_grant() {
        let waits = Waits::default();
        waits.refused(&at("b", 1000));
        waits.refused(&at("b", 1500));
        assert_eq!(waits.count(Time::default().plus_ms(1600), 2), [0, 1]);
        assert_eq!(waits.granted(&at("c", 1700)), None);
        assert_eq!(waits.granted(&at("b", 2000)), Some(1_000_000));
        assert_eq!(waits.granted(&at("b", 2100)), None);
        assert_eq!(waits.count(Time::default().plus_ms(2100), 2), [0, 0]);
    }

    #[test]
    fn who_stops_asking_has_given_up() {
        let waits = Waits::default();
        waits.refused(&at("b", 0));
        assert_eq!(waits.count(Time::default().plus_ms(60_001), 2), [0, 0]);
        assert_eq!(waits.granted(&at("b", 60_001)), None);
        waits.refused(&at("b", 0));
        waits.refused(&at("b", 100_000));
        assert_eq!(waits.granted(&at("b", 100_500)), Some(500_000));
    }

    #[test]
    fn a_flood_of_waits_is_capped_and_makes_room_again() {
        let waits = Waits::default();
        for number in 0..200_000 {
            waits.refused(&asked(format!("lock:{number}"), "b", 0));
        }
        assert_eq!(waits.count(Time::default(), 2), [0, (SHARDS * SHARD_CAP) as u64]);
        waits.refused(&asked("lock:late".to_owned(), "b", 70_000));
        assert_eq!(waits.count(Time::default().plus_ms(70_000), 2), [0, 1]);
    }
}
