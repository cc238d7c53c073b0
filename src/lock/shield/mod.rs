//! The contention shield: which locks were found held a moment ago, so that an acquire of one of them can be refused
//! without asking the server again. Shared by all sessions of the process. It can only refuse: it grants nothing, and what
//! it does not know for certain it does not say.
//!
//! A lock is known to be held by the server's last answer to an acquire of the same user, database and command (whoever
//! has no right to it gets no such answer). That knowledge ends with the rule's time, with the lease's own TTL where it
//! was granted here, and at once when a command is sent that may free the lock: while such a command is under way
//! ([`Bar`]) nothing is known of its keys, and an answer to an acquire that was sent before it ended ([`Asked`]) is too
//! old to count. So whoever has heard of a release here is never refused because of what was before it.
//!
//! When that knowledge ends, those who spin do not all run to the server at once: one asks, and the others wait a
//! moment for what it is told ([`Verdict::Wait`]).
//!
//! Memory is fixed: a key that is crowded out is asked for again, and two keys that share a place only cost each other
//! their shields. Without a rule that wants it, nothing is kept at all. Knows no clock, no wire and no scripts.

mod place;
mod spelling;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rule::{Mode, Rule};
use crate::event::{Event, ReleaseOutcome, Time, What};

use place::Place;
pub use spelling::Spelling;

/// Places; a power of two.
const PLACES: usize = 1024;
/// Longer keys (with the user's name), in bytes, have no shield: whoever made them up would have all the memory.
const LONGEST_KEY: usize = 512;
/// A command on more keys than this bars everything.
const MOST_BARRED: usize = 64;
/// So long nobody asks for what another one is asking already, in microseconds.
const LONGEST_WAIT_US: u64 = 5_000;

/// Who asks for which lock, and how.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The lock's database.
    pub database: u32,
    /// The lock key.
    pub key: &'a [u8],
    /// The ACL user.
    pub user: &'a [u8],
    /// The command: a user may have the right to one and not to the other.
    pub spelling: Spelling,
}

impl Asker<'_> {
    fn is_too_long(&self) -> bool {
        self.key.len() + self.user.len() > LONGEST_KEY
    }

    fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.database, self.key, self.user, self.spelling).hash(&mut hasher);
        hasher.finish()
    }
}

/// An acquire that was sent to the server, and what had ended until then.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How it was spelled.
    pub spelling: Spelling,
    ended: u64,
    all_ended: u64,
}

/// What becomes of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is held: it is refused without the server.
    Refuse,
    /// The server is asked.
    Ask,
    /// Somebody is asking the server already: try again in about a millisecond.
    Wait,
}

/// What the server answered to an acquire.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// The lock is held by somebody.
    Contended,
    /// It is held from now on, with a TTL in milliseconds.
    Granted(Option<u64>),
    /// An error: nothing is known.
    Failed,
}

/// A command under way that may free locks. Nothing is known of them before it is dropped.
#[derive(Debug)]
pub struct Bar {
    shield: Arc<Shield>,
    /// `None`: all.
    places: Option<Vec<usize>>,
}

/// What a call under way means to the shield.
#[derive(Debug, Default)]
pub enum Stake {
    /// Nothing.
    #[default]
    None,
    /// Its answer may tell that a lock is held.
    Asks(Asked),
    /// It may free locks.
    Bars {
        /// Until this is dropped.
        _bar: Bar,
    },
}

/// What is known of the locks of this process.
#[derive(Debug, Default)]
pub struct Shield {
    /// None where no rule wants a shield.
    places: Box<[Mutex<Place>]>,
    /// How many commands are under way that may free every lock, and how many have ended. Of the first only whether
    /// there is any matters.
    barring_all: AtomicU64,
    all_ended: AtomicU64,
}

impl Shield {
    /// A shield for these rules. When the rules change, the one there is must stay in use: commands under way refer to it.
    pub fn new(rules: &[Rule]) -> Shield {
        let wanted = rules.iter().any(|rule| window_us(rule).is_some());
        let places = if wanted { PLACES } else { 0 };
        Shield {
            places: (0..places).map(|_| Mutex::default()).collect(),
            ..Shield::default()
        }
    }

    /// Whether any rule wants it.
    pub fn is_on(&self) -> bool {
        !self.places.is_empty()
    }

    /// What becomes of an acquire. It can be refused if the server said within the last `window_us` microseconds that the
    /// lock is held, and nothing is known to have changed since. Once half of that time is over somebody asks again, so
    /// that there is news before it ends. `first` is when this acquire was judged for the first time: it waits for others
    /// only so long.
    pub fn judge(&self, asker: &Asker<'_>, window_us: u64, first: Time, now: Time) -> Verdict {
        let Some(place) = self.place(asker.key).filter(|_| !asker.is_too_long()) else {
            return Verdict::Ask;
        };
        let is_asked = place.is_asked(asker.mark(), now);
        match self.age(&place, asker, now) {
            Some(age) if age < window_us / 2 || (age < window_us && is_asked) => Verdict::Refuse,
            Some(age) if age < window_us => Verdict::Ask,
            _ if is_asked && now.since(first) < LONGEST_WAIT_US => Verdict::Wait,
            _ => Verdict::Ask,
        }
    }

    /// So many microseconds ago the server said that the lock is held; `None`: nothing is known.
    fn age(&self, place: &Place, asker: &Asker<'_>, now: Time) -> Option<u64> {
        if place.barring > 0 || self.is_barred() {
            return None;
        }
        let all_ended = self.all_ended.load(Ordering::SeqCst);
        let known = place.known.iter().flatten().find(|known| known.is_of(asker))?;
        let ended = known.all_ended != all_ended || known.due.is_some_and(|due| now >= due);
        (!ended).then(|| now.since(known.answered))
    }

    /// Notes that an acquire is about to be sent to the server.
    pub fn asks(&self, asker: &Asker<'_>, now: Time) -> Asked {
        let ended = self.place(asker.key).map_or(0, |mut place| {
            place.begin(asker.mark(), now);
            place.ended
        });
        Asked {
            spelling: asker.spelling,
            ended,
            all_ended: self.all_ended.load(Ordering::SeqCst),
        }
    }

    /// Notes the server's answer to such an acquire, unless something may have changed since that was sent.
    pub fn answered(&self, asker: &Asker<'_>, asked: Asked, held: Held, now: Time) {
        let Some(mut place) = self.place(asker.key) else { return };
        place.finish(asker.mark());
        let same = place.ended == asked.ended && self.all_ended.load(Ordering::SeqCst) == asked.all_ended;
        if !same || place.barring > 0 || self.is_barred() || asker.is_too_long() {
            return;
        }
        let granted = match held {
            Held::Granted(ttl_ms) => ttl_ms.map(|ttl| now.plus_ms(ttl)),
            Held::Contended => None,
            Held::Failed => return,
        };
        let same_lease = matches!(held, Held::Contended);
        place.note(asker, asked, granted, same_lease, now);
    }

    /// A command is about to be sent that may free these locks, in whatever database.
    pub fn bars<'k>(self: &Arc<Self>, keys: impl Iterator<Item = &'k [u8]>) -> Bar {
        let places: Vec<usize> = keys.map(place_of).take(MOST_BARRED + 1).collect();
        if places.len() > MOST_BARRED {
            return self.bars_all();
        }
        for index in &places {
            if let Some(mut place) = self.place_at(*index) {
                place.barring += 1;
                place.end();
            }
        }
        Bar {
            shield: Arc::clone(self),
            places: Some(places),
        }
    }

    /// A command is about to be sent that may free every lock.
    pub fn bars_all(self: &Arc<Self>) -> Bar {
        self.barring_all.fetch_add(1, Ordering::SeqCst);
        Bar {
            shield: Arc::clone(self),
            places: None,
        }
    }

    /// Something happened to a lock. Of what a session's command did the shield knows already.
    pub fn heard(&self, event: &Event) {
        if self.is_on()
            && may_free(&event.what)
            && let Some(mut place) = self.place(&event.key)
        {
            place.end();
        }
    }

    fn is_barred(&self) -> bool {
        self.barring_all.load(Ordering::SeqCst) > 0
    }

    fn place(&self, key: &[u8]) -> Option<MutexGuard<'_, Place>> {
        // Hashed only if there are places.
        if self.is_on() {
            self.place_at(place_of(key))
        } else {
            None
        }
    }

    fn place_at(&self, index: usize) -> Option<MutexGuard<'_, Place>> {
        let place = self.places.get(index)?;
        Some(place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let Some(places) = &self.places else {
            // In this order: what was known before must have ended when the bar is gone.
            self.shield.all_ended.fetch_add(1, Ordering::SeqCst);
            self.shield.barring_all.fetch_sub(1, Ordering::SeqCst);
            return;
        };
        for index in places {
            if let Some(mut place) = self.shield.place_at(*index) {
                place.barring = place.barring.saturating_sub(1);
                place.end();
            }
        }
    }
}

/// For how long this rule's locks are shielded, in microseconds.
pub fn window_us(rule: &Rule) -> Option<u64> {
    let shield = rule.contention_shield_ms.filter(|_| rule.mode == Mode::Enforce);
    shield.map(|ms| ms.saturating_mul(1000))
}

/// The database is left out: a command may be carried out in another one than where it was sent (`SELECT` in a
/// transaction, `MOVE`, a script that selects).
fn place_of(key: &[u8]) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() as usize & (PLACES - 1)
}

/// Whether the lock may be free behind something that was no command of a session: those have told before.
fn may_free(what: &What) -> bool {
    match what {
        What::Release(release) => matches!(release.outcome, ReleaseOutcome::Disconnect | ReleaseOutcome::Forced),
        What::Expired { .. } | What::Ended => true,
        What::Granted(_)
        | What::Contended { .. }
        | What::AcquireFailed
        | What::Refused(_)
        | What::Extended { .. }
        | What::Overwritten { .. }
        | What::TakenOver
        | What::Renewal(_)
        | What::DebtsDropped { .. } => false,
    }
}

#[cfg(test)]
mod tests;
