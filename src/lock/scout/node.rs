//! One place in the tree of names, and what may follow there. Decides when words that stand in one place become one that
//! varies, and puts together what was counted under each of them.

use super::branch::{Branch, Name, Takes};
use super::tree::{Leaf, Pattern};
use super::words::{Step, Word, escape};

/// Different words in one place of a name, beyond which the place varies.
const MOST_WORDS: usize = 5;
/// The same for numbers that may be constant.
const MOST_CONSTANTS: usize = 2;
/// Branches of one place; beyond, everything below is one group.
const MOST_BRANCHES: usize = 32;
/// Beginnings of names.
const MOST_BEGINNINGS: usize = 64;

/// How the tree has grown.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Groups there are.
    pub leaves: usize,
    last_id: u64,
}

impl Growth {
    fn leaf<'n>(&mut self, leaf: &'n mut Option<Leaf>) -> &'n mut Leaf {
        leaf.get_or_insert_with(|| {
            self.leaves += 1;
            self.last_id += 1;
            Leaf {
                id: self.last_id,
                ..Leaf::default()
            }
        })
    }

    /// Puts two groups together.
    fn join(&mut self, leaf: &mut Option<Leaf>, other: Option<Leaf>) {
        match (leaf.as_mut(), other) {
            (Some(leaf), Some(other)) => {
                leaf.add(&other);
                self.leaves = self.leaves.saturating_sub(1);
            }
            (None, other) => *leaf = other,
            (Some(_), None) => {}
        }
    }
}

/// One place.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The keys that end here.
    leaf: Option<Leaf>,
    branches: Vec<Branch>,
    /// Everything that follows is this one group.
    below: Option<Leaf>,
    /// At the beginning of names: no other gets a branch of its own.
    crowded: bool,
}

impl Node {
    /// The group of a key, made if there is none.
    fn reach(&mut self, steps: &[Step<'_>], growth: &mut Growth) -> &mut Leaf {
        let Some((step, rest)) = steps.split_first() else {
            return growth.leaf(&mut self.leaf);
        };
        let place = self.place(step).or_else(|| self.make_room(step, growth));
        match place.and_then(|place| self.branches.get_mut(place)) {
            Some(branch) => branch.node.reach(rest, growth),
            None => growth.leaf(&mut self.below),
        }
    }

    /// The same at the beginning of names: a literal beginning is what makes a pattern good, so it is kept as long as
    /// there is room, whatever others there are.
    pub(super) fn reach_from_root(&mut self, steps: &[Step<'_>], growth: &mut Growth) -> Option<&mut Leaf> {
        let (step, rest) = steps.split_first()?;
        let own = self.branches.iter().position(|branch| branch.is(step));
        let place = own.or_else(|| self.make_room_at_root(step, growth))?;
        Some(self.branches.get_mut(place)?.node.reach(rest, growth))
    }

    fn make_room_at_root(&mut self, step: &Step<'_>, growth: &mut Growth) -> Option<usize> {
        if self.branches.len() >= MOST_BEGINNINGS && !self.crowded {
            self.clear_beginnings(growth);
        }
        let is_constant = matches!(step.word, Word::Constant(_));
        let known = self.branches.iter().position(|branch| branch.takes(step));
        if self.branches.len() >= MOST_BEGINNINGS || is_constant && known.is_some() {
            return known;
        }
        let place = self.push(step);
        if !is_constant {
            return Some(place);
        }
        self.settle_constants(growth);
        self.place(step)
    }

    /// The group of a key. A word that has a branch of its own again may have been counted among all words before.
    pub(super) fn find(&self, steps: &[Step<'_>]) -> Option<&Leaf> {
        let Some((step, rest)) = steps.split_first() else {
            return self.leaf.as_ref();
        };
        let own = self.branches.iter().filter(|branch| branch.is(step));
        let all = self.branches.iter().filter(|branch| branch.takes(step));
        own.chain(all)
            .find_map(|branch| branch.node.find(rest))
            .or(self.below.as_ref())
    }

    pub(super) fn find_mut(&mut self, steps: &[Step<'_>]) -> Option<&mut Leaf> {
        let id = self.find(steps)?.id;
        self.with_id(id, steps)
    }

    fn with_id(&mut self, id: u64, steps: &[Step<'_>]) -> Option<&mut Leaf> {
        let is_it = |leaf: &&mut Leaf| leaf.id == id;
        let Some((step, rest)) = steps.split_first() else {
            return self.leaf.as_mut().filter(is_it);
        };
        self.branches
            .iter_mut()
            .filter(|branch| branch.is(step) || branch.takes(step))
            .find_map(|branch| branch.node.with_id(id, rest))
            .or(self.below.as_mut().filter(is_it))
    }

    fn place(&self, step: &Step<'_>) -> Option<usize> {
        let own = self.branches.iter().position(|branch| branch.is(step));
        own.or_else(|| self.branches.iter().position(|branch| branch.takes(step)))
    }

    /// Where a new word goes: to a branch of its own, or to that of all words, or to the group of everything below.
    fn make_room(&mut self, step: &Step<'_>, growth: &mut Growth) -> Option<usize> {
        if self.below.is_some() {
            return None;
        }
        self.push(step);
        self.settle(growth);
        self.place(step)
    }

    fn push(&mut self, step: &Step<'_>) -> usize {
        self.branches.push(Branch::new(step));
        self.branches.len() - 1
    }

    /// Makes a place vary where too many words stand in it.
    fn settle(&mut self, growth: &mut Growth) {
        let words = Takes {
            plain: true,
            constants: true,
        };
        while let Some(separator) = self.crowded_by(|name| matches!(name, Name::Plain(_)), MOST_WORDS) {
            self.vary(&separator, words, growth);
        }
        self.settle_constants(growth);
        if self.branches.len() > MOST_BRANCHES {
            self.flatten(growth);
        }
    }

    fn settle_constants(&mut self, growth: &mut Growth) {
        let constants = Takes {
            plain: false,
            constants: true,
        };
        while let Some(separator) = self.crowded_by(|name| matches!(name, Name::Constant(_)), MOST_CONSTANTS) {
            self.vary(&separator, constants, growth);
        }
    }

    /// A separator behind which more than so many such words stand.
    fn crowded_by(&self, such: fn(&Name) -> bool, most: usize) -> Option<Box<[u8]>> {
        let mut found = self.branches.iter().filter(|branch| such(&branch.name));
        found.find_map(|branch| {
            let alike = |other: &&Branch| such(&other.name) && other.separator == branch.separator;
            (self.branches.iter().filter(alike).count() > most).then(|| branch.separator.clone())
        })
    }

    /// Puts the branches of such words behind this separator together.
    fn vary(&mut self, separator: &[u8], takes: Takes, growth: &mut Growth) {
        let goes = |branch: &Branch| *branch.separator == *separator && takes.word(branch.name.word());
        self.merge_into_any(separator, takes, goes, growth);
    }

    fn merge_into_any(&mut self, separator: &[u8], takes: Takes, goes: impl Fn(&Branch) -> bool, growth: &mut Growth) {
        let gone: Vec<Branch> = self.branches.extract_if(.., |branch| goes(branch)).collect();
        let step = Step {
            separator,
            word: Word::Any,
        };
        let place = match self.branches.iter().position(|branch| branch.is(&step)) {
            Some(place) => place,
            None => self.push(&step),
        };
        let Some(any) = self.branches.get_mut(place) else {
            return;
        };
        if let Name::Any(already) = &mut any.name {
            *already = already.and(takes);
        }
        for branch in gone {
            any.node.merge(branch.node, growth);
        }
    }

    /// Makes room among the beginnings: those that do not look like locks, and those that stand for a single name, are
    /// put together.
    fn clear_beginnings(&mut self, growth: &mut Growth) {
        let separators: Vec<Box<[u8]>> = self.branches.iter().map(|branch| branch.separator.clone()).collect();
        let takes = Takes {
            plain: true,
            constants: true,
        };
        for separator in separators {
            let goes = |branch: &Branch| {
                *branch.separator == *separator
                    && takes.word(branch.name.word())
                    && !(branch.node.varies() && branch.node.looks_like_locks())
            };
            if self.branches.iter().any(goes) {
                self.merge_into_any(&separator, takes, goes, growth);
            }
        }
        self.crowded = self.branches.len() > MOST_BEGINNINGS * 3 / 4;
    }

    fn varies(&self) -> bool {
        let varies = |branch: &Branch| matches!(branch.name, Name::Any(_)) || branch.node.varies();
        self.below.is_some() || self.branches.iter().any(varies)
    }

    fn looks_like_locks(&self) -> bool {
        let mut some = false;
        self.each(&mut |leaf| some |= leaf.counts.look_like_locks());
        some
    }

    fn merge(&mut self, other: Node, growth: &mut Growth) {
        growth.join(&mut self.leaf, other.leaf);
        growth.join(&mut self.below, other.below);
        for branch in other.branches {
            match self.branches.iter_mut().find(|own| own.is(&branch.step())) {
                Some(own) => {
                    if let (Name::Any(takes), Name::Any(more)) = (&mut own.name, &branch.name) {
                        *takes = takes.and(*more);
                    }
                    own.node.merge(branch.node, growth);
                }
                None => self.branches.push(branch),
            }
        }
        if self.below.is_some() {
            self.flatten(growth);
        }
        // What one of the two had put together already belongs there now.
        let varying: Vec<(Box<[u8]>, Takes)> = self
            .branches
            .iter()
            .filter_map(|branch| match branch.name {
                Name::Any(takes) => Some((branch.separator.clone(), takes)),
                _ => None,
            })
            .collect();
        for (separator, takes) in varying {
            self.vary(&separator, takes, growth);
        }
        self.settle(growth);
    }

    /// Makes one group of everything below.
    fn flatten(&mut self, growth: &mut Growth) {
        for branch in std::mem::take(&mut self.branches) {
            let mut node = branch.node;
            node.flatten(growth);
            growth.join(&mut self.below, node.leaf);
            growth.join(&mut self.below, node.below);
        }
    }

    pub(super) fn each(&self, told: &mut impl FnMut(&Leaf)) {
        self.leaf.iter().chain(&self.below).for_each(&mut *told);
        self.branches.iter().for_each(|branch| branch.node.each(told));
    }

    /// Keeps only these groups, and no branch without any.
    pub(super) fn retain(&mut self, keeps: &impl Fn(&Leaf) -> bool) {
        self.leaf.take_if(|leaf| !keeps(leaf));
        self.below.take_if(|leaf| !keeps(leaf));
        self.branches.iter_mut().for_each(|branch| branch.node.retain(keeps));
        self.branches.retain(|branch| {
            branch.node.leaf.is_some() || branch.node.below.is_some() || !branch.node.branches.is_empty()
        });
        self.crowded = false;
    }

    /// Tells every group below with its pattern. `after_any`: the pattern so far ends with a star.
    pub(super) fn visit(&self, pattern: &mut Pattern, after_any: bool, told: &mut impl FnMut(&Pattern, &Leaf)) {
        if let Some(leaf) = &self.leaf {
            told(pattern, leaf);
        }
        let here = pattern.clone();
        if let Some(leaf) = &self.below {
            if !after_any {
                pattern.text.push(b'*');
            }
            told(pattern, leaf);
        }
        for branch in &self.branches {
            pattern.clone_from(&here);
            let is_any = matches!(branch.name, Name::Any(_));
            // One star stands for two words that vary as well, with what is between them.
            if !(is_any && after_any) {
                escape(&branch.separator, &mut pattern.text);
            }
            match &branch.name {
                Name::Any(_) if after_any => {}
                Name::Any(_) => pattern.text.push(b'*'),
                Name::Lock(text) | Name::Plain(text) | Name::Constant(text) => escape(text, &mut pattern.text),
            }
            pattern.names_lock |= matches!(branch.name, Name::Lock(_));
            branch.node.visit(pattern, is_any, told);
        }
        pattern.clone_from(&here);
    }
}
