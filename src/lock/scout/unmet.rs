//! When to say that a rule got no key: once, after it has had the time. Says nothing itself and reads no clock.

use crate::event::{RuleIndex, Time};
use crate::lock::rule::Rules;

/// How long a rule may go without a key before that is said, in milliseconds.
pub const UNMET_AFTER_MS: u64 = 10 * 60 * 1000;

/// Remembers that it was said.
#[derive(Debug, Default)]
pub struct Unmet {
    said: bool,
}

impl Unmet {
    /// The rules to speak of now: those without a key when the time has come, and never again. `now` counts from the
    /// start.
    pub fn due(&mut self, now: Time, rules: &Rules) -> Vec<RuleIndex> {
        if self.said || now < Time(0).plus_ms(UNMET_AFTER_MS) {
            return Vec::new();
        }
        self.said = true;
        unmet(rules).collect()
    }
}

/// The rules that have got no key.
pub fn unmet(rules: &Rules) -> impl Iterator<Item = RuleIndex> + '_ {
    rules
        .iter()
        .map(|(index, _)| index)
        .filter(|index| !rules.has_met(*index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::rule::{Mode, Rule};

    #[test]
    fn it_is_said_once_and_only_of_rules_without_a_key() {
        let off = Rule {
            mode: Mode::Off,
            ..Rule::new("off:*")
        };
        let rules = Rules::new(
            vec![Rule::new("a:*"), Rule::new("b:*"), off, Rule::new("c:*")],
            b"lockward:",
        );
        let shared = rules.clone();
        let mut unmet = Unmet::default();
        assert_eq!(unmet.due(Time(0), &rules), []);
        assert_eq!(shared.meet(b"b:1"), Some(RuleIndex(1)));
        assert_eq!(shared.meet(b"off:1"), None);
        assert_eq!(shared.find(b"c:1"), Some(RuleIndex(3)));
        let almost = Time(UNMET_AFTER_MS * 1000 - 1);
        assert_eq!(unmet.due(almost, &rules), []);
        let then = Time(UNMET_AFTER_MS * 1000);
        assert_eq!(unmet.due(then, &rules), [RuleIndex(0), RuleIndex(3)]);
        assert_eq!(unmet.due(then, &rules), []);
    }
}
