//! Finds lock-shaped traffic on keys that no rule matches: what sessions saw (`sighting`), whose keys are remembered for
//! a while, goes into groups whose patterns are made from the names themselves (`words`, `tree`). Writes no advice and
//! no rule; looks at no answer of the server, so an attempt counts as done; tells databases apart as little as rules do.
//!
//! Bounded by [`MOST_KEYS`] keys of [`LONGEST_KEY`] bytes (in practice about 2 MiB, at worst 6) and [`MOST_GROUPS`]
//! groups. What does not fit is counted.

mod branch;
mod node;
mod sieve;
mod sighting;
mod tree;
mod unmet;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use sieve::{Mark, Sieve};
pub use sighting::{KEYS_LIMIT, LONGEST_KEY, SIGHTINGS_LIMIT, Sight, Sightings};
pub use tree::{Counts, MOST_GROUPS};
pub use unmet::{UNMET_AFTER_MS, Unmet, unmet};

use tree::{Leaf, Pattern, Tree};

/// Keys that are remembered; beyond, the one not acquired for longest is forgotten. Its counts stay in its group.
pub const MOST_KEYS: usize = 8192;
/// Keys of a group that are shown.
const EXAMPLES: usize = 3;
/// Fewer acquires prove nothing.
const LEAST_ACQUIRES: u64 = 3;
/// Of so many keys one at least must have been given up, else they are markers.
const MARKERS_PER_LOCK: usize = 10;

/// What is remembered of a key.
#[derive(Clone, Debug)]
struct Remembered {
    /// The connection that acquired it last.
    connection: u64,
    /// When, as a number that grows.
    acquired: u64,
    /// Somebody gave it up, or kept it alive.
    handled: bool,
    /// The last acquire had no TTL, and none was given since.
    bare: bool,
}

/// What was seen of keys that no rule matches.
#[derive(Debug, Default)]
pub struct Scout {
    keys: BTreeMap<Arc<[u8]>, Remembered>,
    by_acquired: BTreeMap<u64, Arc<[u8]>>,
    tree: Tree,
    acquires: u64,
    dropped: u64,
}

impl Scout {
    /// Takes what a session saw; `connection` is its number.
    pub fn sighted(&mut self, connection: u64, sightings: &Sightings) {
        self.dropped += sightings.missed();
        for (sight, key) in sightings.iter() {
            match sight {
                Sight::Acquire { ttl } => self.acquired(connection, key, ttl),
                Sight::Release | Sight::Extend | Sight::Script => self.handled(connection, key, sight),
            }
        }
    }

    fn acquired(&mut self, connection: u64, key: &[u8], ttl: bool) {
        self.acquires += 1;
        let Some(leaf) = self.tree.reach(&words::steps(key)) else {
            self.dropped += 1;
            return;
        };
        leaf.counts.acquires += 1;
        leaf.counts.without_ttl += u64::from(!ttl);
        leaf.acquired = self.acquires;
        match self.keys.get_mut(key) {
            Some(known) => {
                if let Some(key) = self.by_acquired.remove(&known.acquired) {
                    self.by_acquired.insert(self.acquires, key);
                }
                known.acquired = self.acquires;
                known.connection = connection;
                known.bare = !ttl;
            }
            None => self.remember(connection, key, ttl),
        }
    }

    fn remember(&mut self, connection: u64, key: &[u8], ttl: bool) {
        if self.keys.len() >= MOST_KEYS
            && let Some((_, oldest)) = self.by_acquired.pop_first()
        {
            self.keys.remove(&oldest);
            self.dropped += 1;
        }
        let key: Arc<[u8]> = key.into();
        self.by_acquired.insert(self.acquires, Arc::clone(&key));
        let remembered = Remembered {
            connection,
            acquired: self.acquires,
            handled: false,
            bare: !ttl,
        };
        self.keys.insert(key, remembered);
    }

    fn handled(&mut self, connection: u64, key: &[u8], sight: Sight) {
        let Some(known) = self.keys.get_mut(key) else { return };
        let Some(leaf) = self.tree.find_mut(&words::steps(key)) else {
            return;
        };
        // SETNX and EXPIRE: the first one only completes the acquire, and is what people do for markers too.
        let completes = sight == Sight::Extend && std::mem::take(&mut known.bare);
        known.handled |= !completes;
        match sight {
            Sight::Release => {
                leaf.counts.releases += 1;
                leaf.counts.releases_elsewhere += u64::from(known.connection != connection);
            }
            Sight::Extend => leaf.counts.extends += 1,
            Sight::Script => leaf.counts.scripts += 1,
            Sight::Acquire { .. } => {}
        }
    }

    /// What is known now, to be looked at without holding up those who add to it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            keys: self
                .keys
                .iter()
                .map(|(key, known)| (Arc::clone(key), known.handled))
                .collect(),
            tree: self.tree.clone(),
            dropped: self.dropped,
        }
    }
}

/// What the scout knew at one moment.
#[derive(Debug)]
pub struct Snapshot {
    keys: Vec<(Arc<[u8]>, bool)>,
    tree: Tree,
    dropped: u64,
}

/// Keys with one pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The glob that matches all of them; always text without control characters, at most 128 bytes.
    pub pattern: String,
    /// A word of the pattern means a lock.
    pub names_lock: bool,
    /// What was seen.
    pub counts: Counts,
    /// Keys remembered.
    pub keys: usize,
    /// Of them given up or kept alive at least once.
    pub handled: usize,
    /// Some of the keys.
    pub examples: Vec<Arc<[u8]>>,
}

impl Group {
    /// Whether these are locks: taken often enough, and given up; a marker (a cool-down, an idempotency key) is only
    /// taken. And whether the pattern says more than a wildcard would.
    pub fn looks_like_locks(&self) -> bool {
        let telling = self.names_lock || !self.pattern.starts_with('*');
        telling
            && self.counts.acquires >= LEAST_ACQUIRES
            && self.counts.look_like_locks()
            && self.handled * MARKERS_PER_LOCK >= self.keys
    }
}

impl Snapshot {
    /// All groups, whatever they look like, in the order of their patterns.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<Vec<u8>, Group> = BTreeMap::new();
        let mut patterns = BTreeMap::new();
        for (pattern, leaf) in self.tree.groups() {
            patterns.insert(leaf.id, pattern.text.clone());
            match groups.get_mut(&pattern.text) {
                Some(group) => group.counts.add(&leaf.counts),
                None => {
                    groups.insert(pattern.text.clone(), group(&pattern, &leaf));
                }
            }
        }
        for (key, handled) in &self.keys {
            let leaf = self.tree.find(&words::steps(key));
            let pattern = leaf.and_then(|leaf| patterns.get(&leaf.id));
            let Some(group) = pattern.and_then(|pattern| groups.get_mut(pattern)) else {
                continue;
            };
            group.keys += 1;
            group.handled += usize::from(*handled);
            if group.examples.len() < EXAMPLES {
                group.examples.push(Arc::clone(key));
            }
        }
        groups.into_values().collect()
    }

    /// Keys and groups that were not followed, or forgotten, because there were too many, and keys that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.tree.dropped
    }
}

fn group(pattern: &Pattern, leaf: &Leaf) -> Group {
    Group {
        pattern: String::from_utf8_lossy(&pattern.text).into_owned(),
        names_lock: pattern.names_lock,
        counts: leaf.counts,
        keys: 0,
        handled: 0,
        examples: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
