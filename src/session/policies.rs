//! What the sessions of all listeners go by: one table of rules, and for each listener a policy that sees those of
//! them that hold there. Everything else they have in common. Replaced as a whole.

use std::fmt;
use std::sync::Arc;

use super::Policy;
use crate::event::Token;
use crate::lock::call::Features;
use crate::lock::rule::Rule;

/// The rules of one configuration, listener by listener.
#[derive(Clone, Debug)]
pub struct Ruled {
    /// All of them; no two have one name.
    pub rules: Vec<Rule>,
    /// For each listener, the main one first: which of `rules` hold there, in their order.
    pub listeners: Vec<Vec<usize>>,
}

/// The policies of one process.
pub struct Policies {
    /// The rules of all listeners: for whoever looks at locks, and not at a client.
    pub whole: Arc<Policy>,
    /// The main listener's.
    main: Arc<Policy>,
    /// Those of the others.
    further: Vec<Arc<Policy>>,
    listeners: Vec<Vec<usize>>,
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies")
            .field("whole", &self.whole)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

impl Policies {
    /// Policies for a server of which nothing is known yet; see [`Policy::new`].
    pub fn new(ruled: Ruled, prefix: &str, mint: impl Fn() -> Token + Send + Sync + 'static) -> Policies {
        Policies::of(Policy::new(ruled.rules, prefix, mint), ruled.listeners)
    }

    fn of(whole: Policy, listeners: Vec<Vec<usize>>) -> Policies {
        let mut made: Vec<Arc<Policy>> = Vec::new();
        for (number, rules) in listeners.iter().enumerate() {
            // Most have the general rules.
            let alike = listeners.iter().take(number).position(|earlier| earlier == rules);
            let known = alike.and_then(|place| made.get(place).cloned());
            made.push(known.unwrap_or_else(|| Arc::new(whole.part(rules))));
        }
        let whole = Arc::new(whole);
        let mut made = made.into_iter();
        Policies {
            main: made.next().unwrap_or_else(|| Arc::clone(&whole)),
            further: made.collect(),
            whole,
            listeners,
        }
    }

    /// What the clients of a listener go by; 0 is the main one.
    pub fn at(&self, listener: usize) -> &Arc<Policy> {
        let further = listener.checked_sub(1).and_then(|place| self.further.get(place));
        further.unwrap_or(&self.main)
    }

    /// The same for a server that can do this.
    pub fn with(&self, features: Features) -> Policies {
        Policies::of(self.whole.with(features), self.listeners.clone())
    }

    /// The same with these rules in place of its own. `None`: there have been too many, see
    /// [`Rules::followed_by`](crate::lock::rule::Rules::followed_by).
    pub fn with_rules(&self, ruled: Ruled) -> Option<Policies> {
        Some(Policies::of(self.whole.with_rules(ruled.rules)?, ruled.listeners))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RuleIndex;
    use crate::lock::rule::Mode;

    fn ruled(rules: &[(&str, &str, Mode)], listeners: &[&[usize]]) -> Ruled {
        let rule = |(name, pattern, mode): &(&str, &str, Mode)| Rule {
            name: (*name).into(),
            mode: *mode,
            ..Rule::new(pattern)
        };
        Ruled {
            rules: rules.iter().map(rule).collect(),
            listeners: listeners.iter().map(|places| places.to_vec()).collect(),
        }
    }

    fn policies(ruled: Ruled) -> Policies {
        Policies::new(ruled, "lockward:", || Token(uuid::Uuid::nil()))
    }

    fn found(policies: &Policies, listener: usize, key: &str) -> Option<String> {
        let rules = &policies.at(listener).rules;
        rules
            .find(key.as_bytes())
            .map(|index| rules.rule(index).name.to_string())
    }

    #[test]
    fn each_listener_has_its_rules_and_all_have_their_places() {
        let all = [
            ("jobs", "job:*", Mode::Enforce),
            ("locks", "lock:*", Mode::Enforce),
            ("watched", "lock:*", Mode::Observe),
        ];
        let policies = policies(ruled(&all, &[&[0, 1], &[2], &[0, 1]]));
        for (listener, key, rule) in [
            (0, "lock:a", Some("locks")),
            (0, "job:a", Some("jobs")),
            (1, "lock:a", Some("watched")),
            (1, "job:a", None),
            (2, "lock:a", Some("locks")),
            (9, "lock:a", Some("locks")),
        ] {
            assert_eq!(found(&policies, listener, key).as_deref(), rule, "{listener} {key}");
        }
        let watched = &policies.at(1).rules;
        assert_eq!(watched.find(b"lock:a"), Some(RuleIndex(2)));
        assert_eq!(watched.list().len(), 3);
        assert_eq!(watched.iter().map(|(index, _)| index.0).collect::<Vec<_>>(), [2]);
        assert!(!watched.any_enforce() && policies.at(0).rules.any_enforce());
        assert!(Arc::ptr_eq(policies.at(0), policies.at(2)));
        // What one has met, all know.
        watched.meet(b"lock:a");
        assert!(policies.whole.rules.has_met(RuleIndex(2)) && !policies.whole.rules.has_met(RuleIndex(1)));
    }

    #[test]
    fn places_stay_when_other_rules_come() {
        let before = policies(ruled(
            &[("a", "a:*", Mode::Enforce), ("b", "b:*", Mode::Observe)],
            &[&[0], &[1]],
        ));
        let next = ruled(
            &[
                ("new", "b:*", Mode::Enforce),
                ("a", "a:*", Mode::Enforce),
                ("b", "b:*", Mode::Enforce),
            ],
            &[&[0, 1], &[2]],
        );
        let after = before.with_rules(next).expect("few rules");
        assert_eq!(after.at(1).rules.find(b"b:1"), Some(RuleIndex(1)));
        assert_eq!(after.at(0).rules.find(b"b:1"), Some(RuleIndex(2)));
        assert_eq!(after.at(0).rules.find(b"a:1"), Some(RuleIndex(0)));
        let order: Vec<u16> = after.at(0).rules.iter().map(|(index, _)| index.0).collect();
        assert_eq!(order, [2, 0]);
        let features = Features {
            delex: true,
            ..Features::default()
        };
        let known = after.with(features);
        assert_eq!(known.at(1).features, features);
        assert_eq!(known.at(1).rules.find(b"b:1"), Some(RuleIndex(1)));
    }
}
