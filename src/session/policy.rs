//! What a session goes by and does not decide itself: the rules, what the server can do, where owner tokens come from.
//! Shared by all sessions of a listener, replaced as a whole.

use std::fmt;
use std::sync::Arc;

use crate::event::{Event, RuleIndex, Token};
use crate::lock::call::Features;
use crate::lock::observe::{Observation, Reply};
use crate::lock::owner::Bound;
use crate::lock::rule::{Mode, Rule, Rules};
use crate::lock::scout::Sieve;
use crate::lock::shield::Shield;

/// What a session goes by.
pub struct Policy {
    /// The lock rules.
    pub rules: Rules,
    /// What record keys begin with; the same as in `rules`.
    pub prefix: Box<str>,
    /// What the server can do.
    pub features: Features,
    /// Which keys without a rule were acquired of late, by any session.
    pub sieve: Arc<Sieve>,
    /// Which locks were found held a moment ago, by any session.
    pub shield: Arc<Shield>,
    /// Draws a fresh owner token. Randomness lives in the shell.
    pub mint: Arc<dyn Fn() -> Token + Send + Sync>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("rules", &self.rules)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// A policy for a server of which nothing is known yet. `prefix` is what the names of lease records begin with.
    pub fn new(rules: Vec<Rule>, prefix: &str, mint: impl Fn() -> Token + Send + Sync + 'static) -> Policy {
        let shield = Shield::new(&rules);
        Policy {
            rules: Rules::new(rules, prefix.as_bytes()),
            prefix: prefix.into(),
            features: Features::default(),
            sieve: Arc::default(),
            shield: Arc::new(shield),
            mint: Arc::new(mint),
        }
    }

    /// The same policy for a server that can do this. What was seen of keys stays known.
    pub fn with(&self, features: Features) -> Policy {
        Policy {
            rules: self.rules.clone(),
            prefix: self.prefix.clone(),
            features,
            sieve: Arc::clone(&self.sieve),
            shield: Arc::clone(&self.shield),
            mint: Arc::clone(&self.mint),
        }
    }

    /// The same policy with these rules in place of its own. `None`: there have been too many, see [`Rules::followed_by`].
    pub fn with_rules(&self, rules: Vec<Rule>) -> Option<Policy> {
        let rules = self.rules.followed_by(rules)?;
        // Commands under way refer to the shield that is there; to one that nobody wanted until now, none does.
        let shield = if self.shield.is_on() {
            Arc::clone(&self.shield)
        } else {
            Arc::new(Shield::new(rules.list()))
        };
        Some(Policy {
            rules,
            shield,
            ..self.with(self.features)
        })
    }

    /// The same policy for those of its rules that stand at these positions in their order.
    pub(super) fn part(&self, places: &[usize]) -> Policy {
        Policy {
            rules: self.rules.part(places),
            ..self.with(self.features)
        }
    }

    /// The rules that ask whether their locks' owners are connected.
    pub(super) fn attentive_rules(&self) -> impl Iterator<Item = RuleIndex> + '_ {
        let attentive = |rule: &Rule| rule.mode == Mode::Enforce && (rule.renew || rule.release_on_disconnect);
        self.rules
            .iter()
            .filter(move |(_, rule)| attentive(rule))
            .map(|(index, _)| index)
    }
}

/// An event and what its owner is bound to.
#[derive(Clone, Debug)]
pub struct Witnessed {
    /// What happened.
    pub event: Event,
    /// Whether the owner ends with its connection or process.
    pub bound: Bound,
}

/// A command under an observe rule, and what the server answered.
#[derive(Debug)]
pub struct Observed {
    /// What was asked.
    pub observation: Arc<Observation>,
    /// What came back.
    pub reply: Reply,
}
