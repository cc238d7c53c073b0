//! Lock rules: which keys are locks and how they are treated. Built by the configuration; knows no TOML.
//!
//! Every key of every command passes [`Rules::find`], so a key that is no lock costs one look at its first byte, at
//! most a comparison of beginnings. Nothing here allocates after [`Rules::new`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::RuleIndex;
use crate::lock::glob::Glob;

/// How a rule's locks are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Operations are checked and refused.
    Enforce,
    /// Nothing is changed on the wire; what would be refused is counted.
    Observe,
    /// The keys are no locks.
    Off,
}

/// One part of an owner's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// The downstream connection.
    Connection,
    /// The process at the other end of a unix socket; over TCP the connection.
    Process,
    /// The client's IP address.
    Address,
    /// `CLIENT SETNAME`; without a name the connection.
    ClientName,
    /// The ACL user.
    User,
    /// Everybody is one owner.
    Any,
}

/// What happens to locks without a live record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmanaged {
    /// As Redis does it.
    Allow,
    /// Refused.
    Refuse,
}

/// How a refused overwrite is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedWrite {
    /// With `-LOCKHELD`.
    Error,
    /// With nil, where the command can answer nil.
    Nil,
}

/// One rule. Times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The metric label.
    pub name: Arc<str>,
    /// Glob patterns as in `SCAN MATCH`; one must match.
    pub patterns: Vec<Box<[u8]>>,
    /// Enforce, observe or off.
    pub mode: Mode,
    /// All parts must agree. Never empty.
    pub owner: Vec<OwnerPart>,
    /// Locks without a live record.
    pub unmanaged: Unmanaged,
    /// A fencing token with each lease.
    pub fencing: bool,
    /// Answer DELEX, DELIFEQ and SET IFEQ on servers that lack them.
    pub emulate: bool,
    /// The answer to a refused overwrite.
    pub denied_write: DeniedWrite,
    /// TTL for acquires that have none.
    pub default_ttl_ms: Option<u64>,
    /// The longest TTL.
    pub max_ttl_ms: Option<u64>,
    /// How long an owed release is expected; 0 switches debts off.
    pub late_release_window_ms: u64,
    /// Extend leases while their owner is connected.
    pub renew: bool,
    /// Where renewal ends.
    pub max_hold_ms: u64,
    /// Release leases whose owner's last connection closed.
    pub release_on_disconnect: bool,
    /// How long after that.
    pub disconnect_grace_ms: u64,
    /// For how long a lock that was found held is taken for held without asking the server.
    pub contention_shield_ms: Option<u64>,
}

impl Rule {
    /// A rule for one pattern, named by it, with the documented default of everything else.
    pub fn new(pattern: &str) -> Rule {
        Rule {
            name: pattern.into(),
            patterns: vec![pattern.as_bytes().into()],
            mode: Mode::Enforce,
            owner: vec![OwnerPart::Address],
            unmanaged: Unmanaged::Allow,
            fencing: false,
            emulate: false,
            denied_write: DeniedWrite::Error,
            default_ttl_ms: None,
            max_ttl_ms: None,
            late_release_window_ms: 120_000,
            renew: false,
            max_hold_ms: 600_000,
            release_on_disconnect: false,
            disconnect_grace_ms: 5_000,
            contention_shield_ms: None,
        }
    }
}

/// The rules of one configuration in their order, compiled. A rule keeps its place as long as the process lives, by its
/// name: so what is under way when other rules come into force still means what it meant.
#[derive(Clone, Debug)]
pub struct Rules {
    /// By place, with those that were in force once. Shared by all parts.
    list: Arc<[Rule]>,
    /// The places of those in force, in their order; of a part, those that it has.
    order: Vec<RuleIndex>,
    /// Stands in where an index points behind the list.
    off: Rule,
    prefix: Box<[u8]>,
    /// Every pattern of every rule, in order.
    patterns: Vec<(Glob, RuleIndex)>,
    /// For each first byte of a key: where in `patterns` the first one stands that can match. The length: none.
    begin: Box<[usize; 256]>,
    enforce: bool,
    /// For each rule: a command named a key that it matches. Shared by all clones and parts.
    met: Arc<[AtomicBool]>,
}

impl Rules {
    /// Compiles the rules. `prefix` is what the names of lease records begin with. Rules beyond the 65,536th have no
    /// index and are left out (the configuration allows far fewer).
    pub fn new(list: Vec<Rule>, prefix: &[u8]) -> Rules {
        let order = (0..=u16::MAX).zip(&list).map(|(index, _)| RuleIndex(index)).collect();
        let met = unmet(&list);
        Rules::compile(list.into(), order, prefix.into(), met)
    }

    /// These rules in place of the ones that were in force. Those of the same name keep their places, the others get new
    /// ones, and nothing is a lock by a rule that is gone. `None`: there have been 65,536 names already.
    pub fn followed_by(&self, rules: Vec<Rule>) -> Option<Rules> {
        let mut list: Vec<Rule> = self.list.iter().map(gone).collect();
        let mut order = Vec::new();
        for rule in rules {
            let known = list.iter().position(|known| known.name == rule.name);
            let place = known.unwrap_or(list.len());
            order.push(RuleIndex(u16::try_from(place).ok()?));
            match list.get_mut(place) {
                Some(known) => *known = rule,
                None => list.push(rule),
            }
        }
        let met = unmet(&list);
        let next = Rules::compile(list.into(), order, self.prefix.clone(), met);
        for (index, rule) in next.iter() {
            if self.has_met(index) && self.rule(index).patterns == rule.patterns {
                next.met(index);
            }
        }
        Some(next)
    }

    /// Those that stand at these positions in the order: what the clients of one listener go by. They keep their
    /// places, and what one part has met, all know.
    pub fn part(&self, positions: &[usize]) -> Rules {
        let order = positions
            .iter()
            .filter_map(|position| self.order.get(*position).copied());
        let (list, met) = (Arc::clone(&self.list), Arc::clone(&self.met));
        Rules::compile(list, order.collect(), self.prefix.clone(), met)
    }

    fn compile(list: Arc<[Rule]>, order: Vec<RuleIndex>, prefix: Box<[u8]>, met: Arc<[AtomicBool]>) -> Rules {
        let mut patterns = Vec::new();
        for index in &order {
            let rule = list.get(usize::from(index.0));
            let all = rule.map(|rule| rule.patterns.as_slice()).unwrap_or_default();
            patterns.extend(all.iter().map(|pattern| (Glob::new(pattern), *index)));
        }
        let begin = std::array::from_fn(|byte| {
            let first = patterns.iter().position(|(glob, _)| glob.may_begin_with(byte as u8));
            first.unwrap_or(patterns.len())
        });
        let mut in_force = order.iter().filter_map(|index| list.get(usize::from(index.0)));
        let enforce = in_force.any(|rule| rule.mode == Mode::Enforce);
        let off = Rule {
            mode: Mode::Off,
            ..Rule::new("")
        };
        Rules {
            list,
            order,
            off,
            prefix,
            patterns,
            begin: Box::new(begin),
            enforce,
            met,
        }
    }

    /// The rule by which this key is a lock: the first that matches, if its mode is not off. Never one for a record.
    pub fn find(&self, key: &[u8]) -> Option<RuleIndex> {
        match self.first_match(key)? {
            (index, rule) if rule.mode != Mode::Off && !self.is_record(key) => Some(index),
            _ => None,
        }
    }

    /// As [`find`](Self::find), for a key that a client's command names: notes that the rule has got a key, also one
    /// whose mode is off.
    pub fn meet(&self, key: &[u8]) -> Option<RuleIndex> {
        let (index, rule) = self.first_match(key)?;
        if self.is_record(key) {
            return None;
        }
        self.met(index);
        (rule.mode != Mode::Off).then_some(index)
    }

    fn met(&self, index: RuleIndex) {
        if let Some(met) = self.met.get(usize::from(index.0))
            && !met.load(Ordering::Relaxed)
        {
            met.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any client's command that could be a lock operation has named a key of this rule.
    pub fn has_met(&self, index: RuleIndex) -> bool {
        self.met
            .get(usize::from(index.0))
            .is_some_and(|met| met.load(Ordering::Relaxed))
    }

    /// Whether somebody has decided about this key: a rule, in whatever mode, or because it is a record.
    pub fn decides(&self, key: &[u8]) -> bool {
        self.is_record(key) || self.first_match(key).is_some()
    }

    /// The rule at this place. An index that stems from another configuration and points behind the end gets a rule
    /// that is off.
    pub fn rule(&self, index: RuleIndex) -> &Rule {
        self.list.get(usize::from(index.0)).unwrap_or(&self.off)
    }

    /// All rules by their places ([`RuleIndex`]), also those that are in force no more: these are off and match
    /// nothing. Of a part, also those that it does not have.
    pub fn list(&self) -> &[Rule] {
        &self.list
    }

    /// Whether this key begins as lease records do.
    pub fn is_record(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Whether a rule has mode enforce.
    pub fn any_enforce(&self) -> bool {
        self.enforce
    }

    /// Those in force with their places, in order.
    pub fn iter(&self) -> impl Iterator<Item = (RuleIndex, &Rule)> {
        self.order.iter().map(|index| (*index, self.rule(*index)))
    }

    fn first_match(&self, key: &[u8]) -> Option<(RuleIndex, &Rule)> {
        let begin = match key.first() {
            Some(byte) => *self.begin.get(usize::from(*byte))?,
            None => 0,
        };
        let (_, index) = self.patterns.get(begin..)?.iter().find(|(glob, _)| glob.matches(key))?;
        Some((*index, self.list.get(usize::from(index.0))?))
    }
}

fn unmet(list: &[Rule]) -> Arc<[AtomicBool]> {
    list.iter().map(|_| AtomicBool::new(false)).collect()
}

/// A rule that is in force no more. Its name stays with its place.
fn gone(rule: &Rule) -> Rule {
    Rule {
        patterns: Vec::new(),
        mode: Mode::Off,
        renew: false,
        release_on_disconnect: false,
        contention_shield_ms: None,
        ..rule.clone()
    }
}

#[cfg(test)]
mod tests;
