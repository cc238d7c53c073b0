//! What is kept of the locks that share one place: those that were found held, who is asking the server, and what may free
//! them and is under way. Decides nothing.

use bytes::Bytes;

use super::{Asked, Asker, LONGEST_WAIT_US, Spelling};
use crate::event::Time;

/// Locks, users and spellings that share a place.
pub(super) const WAYS: usize = 4;

/// One place.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Commands under way that may free a lock here.
    pub(super) barring: u64,
    /// How often such a command began, ended, or something was heard.
    pub(super) ended: u64,
    pub(super) known: [Option<Known>; WAYS],
    asking: [Asking; WAYS],
}

/// Somebody asks the server for a lock.
#[derive(Clone, Copy, Debug, Default)]
struct Asking {
    /// Stands for the asker; who shares it with another waits in vain, and not for long.
    mark: u64,
    /// When; `None`: it is answered.
    since: Option<Time>,
}

/// A lock that was found held.
#[derive(Debug)]
pub(super) struct Known {
    database: u32,
    spelling: Spelling,
    user: Bytes,
    key: Bytes,
    /// When the server said so last.
    pub(super) answered: Time,
    /// When the lease ends by itself, where that is known.
    pub(super) due: Option<Time>,
    pub(super) all_ended: u64,
}

impl Known {
    pub(super) fn is_of(&self, asker: &Asker<'_>) -> bool {
        self.key == asker.key
            && self.user == asker.user
            && self.database == asker.database
            && self.spelling == asker.spelling
    }
}

impl Place {
    pub(super) fn end(&mut self) {
        self.ended += 1;
        self.known = Default::default();
    }

    pub(super) fn is_asked(&self, mark: u64, now: Time) -> bool {
        let lately = |since: Time| now.since(since) < LONGEST_WAIT_US;
        self.asking
            .iter()
            .any(|asking| asking.mark == mark && asking.since.is_some_and(lately))
    }

    pub(super) fn begin(&mut self, mark: u64, now: Time) {
        let own = self.asking.iter().position(|asking| asking.mark == mark);
        let oldest = || (0..WAYS).min_by_key(|way| self.asking.get(*way).map(|asking| asking.since));
        if let Some(asking) = own.or_else(oldest).and_then(|way| self.asking.get_mut(way)) {
            let since = Some(now);
            *asking = Asking { mark, since };
        }
    }

    pub(super) fn finish(&mut self, mark: u64) {
        for asking in self.asking.iter_mut().filter(|asking| asking.mark == mark) {
            asking.since = None;
        }
    }

    /// The server said that the lock is held, until `due` where that is known; if by the lease that is known already, until
    /// its own end.
    pub(super) fn note(&mut self, asker: &Asker<'_>, asked: Asked, due: Option<Time>, same_lease: bool, now: Time) {
        if let Some(known) = self.known.iter_mut().flatten().find(|known| known.is_of(asker)) {
            let same_lease = same_lease && known.all_ended == asked.all_ended;
            known.due = due.or(known.due.filter(|due| same_lease && *due > now));
            known.answered = known.answered.max(now);
            known.all_ended = asked.all_ended;
            return;
        }
        let oldest = |way: &&mut Option<Known>| way.as_ref().map(|known| known.answered);
        if let Some(way) = self.known.iter_mut().min_by_key(oldest) {
            *way = Some(Known {
                database: asker.database,
                spelling: asker.spelling,
                // Either may be a slice of a larger buffer, which it would keep alive.
                user: Bytes::copy_from_slice(asker.user),
                key: Bytes::copy_from_slice(asker.key),
                answered: now,
                due,
                all_ended: asked.all_ended,
            });
        }
    }
}
