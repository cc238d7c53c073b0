//! The histories of the locks, so many and no more bytes than so many: the one touched longest ago makes room. Finds a lock
//! without allocating. It does not know what the histories say.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use super::spans::Spans;

/// What a lock costs besides its key and its rings, in bytes, roughly: its place in the maps and in the list.
const OVERHEAD: usize = 256;
/// Stands for no place.
const NOWHERE: usize = usize::MAX;

/// What happened to one lock.
#[derive(Debug, Default)]
pub(super) struct History {
    /// What happened, the oldest first.
    pub entries: VecDeque<Entry>,
    /// Older entries that made room.
    pub dropped: u64,
    /// Its leases.
    pub spans: Spans,
}

impl History {
    pub(super) fn push(&mut self, entry: Entry, most: usize) {
        // First, or else the ring doubles its room for one entry more.
        while self.entries.len() >= most.max(1) {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(entry);
    }

    /// Bytes in use; owners are counted once for each entry and span, though they share them.
    pub(super) fn bytes(&self) -> usize {
        let owners: usize = self.entries.iter().map(|entry| entry.owner.len()).sum();
        self.entries.capacity() * size_of::<Entry>() + owners + self.spans.bytes()
    }
}

#[derive(Debug)]
struct Slot {
    database: u32,
    key: Arc<[u8]>,
    history: History,
    bytes: usize,
    newer: usize,
    older: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Shelf {
    places: HashMap<u32, HashMap<Arc<[u8]>, usize>>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
    bytes: usize,
    most_locks: usize,
    most_bytes: usize,
    dropped: u64,
}

impl Shelf {
    pub(super) fn new(most_locks: usize, most_bytes: usize) -> Shelf {
        Shelf {
            places: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NOWHERE,
            oldest: NOWHERE,
            bytes: 0,
            most_locks: most_locks.max(1),
            most_bytes,
            dropped: 0,
        }
    }

    /// What is known of this lock.
    pub(super) fn history(&self, database: u32, key: &[u8]) -> Option<&History> {
        let place = *self.places.get(&database)?.get(key)?;
        self.slot(place).map(|slot| &slot.history)
    }

    /// Where this lock stands, touched last now; new if it was not known. Room for one more is made first.
    pub(super) fn touch(&mut self, database: u32, key: &[u8]) -> usize {
        let known = self.places.get(&database).and_then(|keys| keys.get(key)).copied();
        if let Some(place) = known {
            if place != self.newest {
                self.unlink(place);
                self.link(place);
            }
            return place;
        }
        while self.len() >= self.most_locks {
            self.forget_oldest();
        }
        let key: Arc<[u8]> = key.into();
        let slot = Slot {
            database,
            bytes: OVERHEAD + key.len(),
            key: Arc::clone(&key),
            history: History::default(),
            newer: NOWHERE,
            older: NOWHERE,
        };
        self.bytes += slot.bytes;
        let place = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = Some(slot),
            None => self.slots.push(Some(slot)),
        }
        self.places.entry(database).or_default().insert(key, place);
        self.link(place);
        place
    }

    pub(super) fn at(&mut self, place: usize) -> Option<&mut History> {
        self.slot_mut(place).map(|slot| &mut slot.history)
    }

    /// The history at this place may have grown: it is measured, and others make room. Itself it stays.
    pub(super) fn grown(&mut self, place: usize) {
        let Some(slot) = self.slot_mut(place) else { return };
        let bytes = OVERHEAD + slot.key.len() + slot.history.bytes();
        let before = std::mem::replace(&mut slot.bytes, bytes);
        self.bytes = (self.bytes + bytes).saturating_sub(before);
        while self.bytes > self.most_bytes && self.oldest != place && self.oldest != NOWHERE {
            self.forget_oldest();
        }
    }

    /// How many locks have a history.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.slots.capacity() * size_of::<Option<Slot>>()
    }

    /// Locks whose history made room for others.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn forget_oldest(&mut self) {
        let place = self.oldest;
        self.unlink(place);
        let Some(slot) = self.slots.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.free.push(place);
        self.bytes = self.bytes.saturating_sub(slot.bytes);
        self.dropped += 1;
        if let Some(keys) = self.places.get_mut(&slot.database) {
            keys.remove(&slot.key);
            if keys.is_empty() {
                self.places.remove(&slot.database);
            }
        }
    }

    fn slot(&self, place: usize) -> Option<&Slot> {
        self.slots.get(place).and_then(Option::as_ref)
    }

    fn slot_mut(&mut self, place: usize) -> Option<&mut Slot> {
        self.slots.get_mut(place).and_then(Option::as_mut)
    }

    /// Puts it at the new end of the list.
    fn link(&mut self, place: usize) {
        let newest = self.newest;
        if let Some(slot) = self.slot_mut(place) {
            (slot.newer, slot.older) = (NOWHERE, newest);
        }
        match self.slot_mut(newest) {
            Some(slot) => slot.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }

    /// Takes it out of the list.
    fn unlink(&mut self, place: usize) {
        let Some((newer, older)) = self.slot(place).map(|slot| (slot.newer, slot.older)) else {
            return;
        };
        match self.slot_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slot_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(shelf: &Shelf, keys: &[&[u8]]) -> Vec<bool> {
        keys.iter().map(|key| shelf.history(0, key).is_some()).collect()
    }

    #[test]
    fn the_one_touched_longest_ago_makes_room() {
        let mut shelf = Shelf::new(2, usize::MAX);
        shelf.touch(0, b"a");
        shelf.touch(0, b"b");
        shelf.touch(0, b"a");
        shelf.touch(0, b"c");
        assert_eq!(known(&shelf, &[b"a", b"b", b"c"]), [true, false, true]);
        assert_eq!((shelf.len(), shelf.dropped()), (2, 1));
        // The middle of three, the newest and the oldest touched again.
        let mut shelf = Shelf::new(3, usize::MAX);
        for key in [b"a", b"b", b"c", b"b", b"b", b"a", b"d"] {
            shelf.touch(0, key);
        }
        assert_eq!(known(&shelf, &[b"a", b"b", b"c", b"d"]), [true, true, false, true]);
    }

    #[test]
    fn databases_are_told_apart_and_forgotten_with_their_last_lock() {
        let mut shelf = Shelf::new(2, usize::MAX);
        shelf.touch(0, b"a");
        shelf.touch(1, b"a");
        assert_eq!(shelf.len(), 2);
        shelf.touch(2, b"a");
        assert!(shelf.history(0, b"a").is_none() && shelf.history(1, b"a").is_some());
        assert_eq!(shelf.places.len(), 2);
    }

    #[test]
    fn long_keys_make_room_by_their_bytes() {
        let mut shelf = Shelf::new(100, 10_000);
        for number in 0..100u8 {
            let place = shelf.touch(0, &[number; 2000]);
            shelf.grown(place);
            assert!(shelf.bytes <= 10_000, "{}", shelf.bytes);
        }
        assert_eq!(shelf.len(), 4);
        // A single one that is too large stays: it is the one being looked at.
        let place = shelf.touch(0, &[0; 20_000]);
        shelf.grown(place);
        assert_eq!(shelf.len(), 1);
    }
}
