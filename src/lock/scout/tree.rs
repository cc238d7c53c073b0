//! The names seen, as a tree of their steps: where too many words stand in one place they become one that varies. Each
//! leaf is a group of keys with one pattern, which matches every key that was counted there. Bounded in leaves, not in
//! what is counted. Keeps no keys.

use super::node::{Growth, Node};
use super::words::Step;

/// Groups at most; beyond, those that do not look like locks go first, then those not acquired for longest.
pub const MOST_GROUPS: usize = 256;
/// So many groups go at once when there are too many.
const GROUPS_DROPPED: usize = 32;

/// What was seen of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquires.
    pub acquires: u64,
    /// Of them without a TTL.
    pub without_ttl: u64,
    /// Releases.
    pub releases: u64,
    /// Of them from another connection than the last acquire's.
    pub releases_elsewhere: u64,
    /// Extends.
    pub extends: u64,
    /// Scripts and compare commands.
    pub scripts: u64,
}

impl Counts {
    /// Whether somebody gave such a key up, or kept it alive. An `EXPIRE` for each acquire without a TTL only completes
    /// these, as people do for markers too.
    pub fn look_like_locks(&self) -> bool {
        self.releases > 0 || self.scripts > 0 || self.extends > self.without_ttl
    }

    pub(super) fn add(&mut self, other: &Counts) {
        self.acquires += other.acquires;
        self.without_ttl += other.without_ttl;
        self.releases += other.releases;
        self.releases_elsewhere += other.releases_elsewhere;
        self.extends += other.extends;
        self.scripts += other.scripts;
    }
}

/// One group.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// Tells it from the others; 0: from before it was counted.
    pub id: u64,
    pub counts: Counts,
    /// When it was acquired last, as a number that grows.
    pub acquired: u64,
}

impl Leaf {
    pub(super) fn add(&mut self, other: &Leaf) {
        self.counts.add(&other.counts);
        self.acquired = self.acquired.max(other.acquired);
    }
}

/// A group's pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub text: Vec<u8>,
    /// A word in it means a lock.
    pub names_lock: bool,
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    root: Node,
    growth: Growth,
    /// Groups that had to go.
    pub dropped: u64,
}

impl Tree {
    /// The group of a key, made if there is none. `None` if its beginning is one too many.
    pub(super) fn reach(&mut self, steps: &[Step<'_>]) -> Option<&mut Leaf> {
        if self.growth.leaves >= MOST_GROUPS {
            self.drop_some();
        }
        self.root.reach_from_root(steps, &mut self.growth)
    }

    /// The group of a key that was counted before.
    pub(super) fn find(&self, steps: &[Step<'_>]) -> Option<&Leaf> {
        self.root.find(steps)
    }

    /// The same, to count more.
    pub(super) fn find_mut(&mut self, steps: &[Step<'_>]) -> Option<&mut Leaf> {
        self.root.find_mut(steps)
    }

    /// Every group with its pattern.
    pub(super) fn groups(&self) -> Vec<(Pattern, Leaf)> {
        let mut groups = Vec::new();
        let mut pattern = Pattern {
            text: Vec::new(),
            names_lock: false,
        };
        let after_any = false;
        self.root.visit(&mut pattern, after_any, &mut |pattern, leaf| {
            groups.push((pattern.clone(), leaf.clone()));
        });
        groups
    }

    fn drop_some(&mut self) {
        let mut leaves = Vec::new();
        self.root
            .each(&mut |leaf| leaves.push((leaf.counts.look_like_locks(), leaf.acquired, leaf.id)));
        leaves.sort_unstable();
        let ids: Vec<u64> = leaves.iter().take(GROUPS_DROPPED).map(|(.., id)| *id).collect();
        self.root.retain(&|leaf| !ids.contains(&leaf.id));
        let mut left = 0;
        self.root.each(&mut |_| left += 1);
        self.dropped += self.growth.leaves.saturating_sub(left) as u64;
        self.growth.leaves = left;
    }
}
