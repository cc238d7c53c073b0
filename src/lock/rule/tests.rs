//! Which rule a key finds, and that records find none.

use super::*;

fn rules(list: &[(&str, Mode)]) -> Rules {
    let list = list
        .iter()
        .map(|(pattern, mode)| Rule {
            mode: *mode,
            ..Rule::new(pattern)
        })
        .collect();
    Rules::new(list, b"lockward:")
}

#[test]
fn the_first_matching_rule_wins() {
    let rules = rules(&[
        ("lock:a*", Mode::Observe),
        ("lock:*", Mode::Enforce),
        ("*:lock", Mode::Enforce),
    ]);
    assert_eq!(rules.find(b"lock:ab"), Some(RuleIndex(0)));
    assert_eq!(rules.find(b"lock:b"), Some(RuleIndex(1)));
    assert_eq!(rules.find(b"x:lock"), Some(RuleIndex(2)));
    assert_eq!(rules.find(b"l:lock"), Some(RuleIndex(2)));
    assert_eq!(rules.find(b"user:7"), None);
    assert_eq!(rules.find(b""), None);
    assert!(rules.any_enforce());
}

#[test]
fn a_rule_that_is_off_matches_and_ends_the_search() {
    let rules = rules(&[("lock:seen:*", Mode::Off), ("lock:*", Mode::Observe)]);
    assert_eq!(rules.find(b"lock:seen:1"), None);
    assert_eq!(rules.find(b"lock:1"), Some(RuleIndex(1)));
    assert!(!rules.any_enforce());
}

#[test]
fn records_are_never_locks() {
    let rules = rules(&[("*", Mode::Enforce)]);
    for record in [
        &b"lockward:{lock:a}"[..],
        b"lockward::{a}b",
        b"lockward:{t}=",
        b"lockward:",
    ] {
        assert!(rules.is_record(record));
        assert_eq!(rules.find(record), None);
    }
    assert_eq!(rules.find(b"lockwar"), Some(RuleIndex(0)));
    assert_eq!(
        rules.find(b""),
        Some(RuleIndex(0)),
        "a single star matches the empty key"
    );
}

#[test]
fn a_rule_of_another_configuration_is_off() {
    assert_eq!(rules(&[]).rule(RuleIndex(3)).mode, Mode::Off);
    assert_eq!(rules(&[]).find(b"lock:a"), None);
}
