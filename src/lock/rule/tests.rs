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

#[test]
fn rules_keep_their_places_by_name() {
    let old = rules(&[("a:*", Mode::Observe), ("b:*", Mode::Enforce)]);
    assert_eq!(old.meet(b"a:1"), Some(RuleIndex(0)));
    assert_eq!(old.meet(b"b:1"), Some(RuleIndex(1)));
    let b = Rule {
        patterns: vec![b"b:*"[..].into(), b"bb:*"[..].into()],
        ..Rule::new("b:*")
    };
    let next = old.followed_by(vec![Rule::new("c:*"), b, Rule::new("*")]).unwrap();
    let order: Vec<_> = next.iter().map(|(index, rule)| (index.0, &*rule.name)).collect();
    assert_eq!(order, [(2, "c:*"), (1, "b:*"), (3, "*")]);
    for (key, place) in [(&b"bb:1"[..], 1), (b"c:1", 2), (b"a:1", 3)] {
        assert_eq!(next.find(key), Some(RuleIndex(place)), "{}", key.escape_ascii());
    }
    assert_eq!(next.rule(RuleIndex(0)).mode, Mode::Off, "gone, and its place with it");
    assert_eq!(&*next.rule(RuleIndex(0)).name, "a:*");
    assert!(!next.has_met(RuleIndex(1)), "its patterns are others");
    let again = next.followed_by(vec![Rule::new("a:*"), Rule::new("*")]).unwrap();
    let order: Vec<_> = again.iter().map(|(index, _)| index.0).collect();
    assert_eq!(order, [0, 3]);
    assert_eq!(again.find(b"a:1"), Some(RuleIndex(0)));
}

#[test]
fn places_can_run_out() {
    let names = |from: u32, to: u32| (from..to).map(|number| Rule::new(&number.to_string())).collect();
    let full = Rules::new(names(0, 65_536), b"lockward:");
    assert!(full.followed_by(names(65_000, 65_536)).is_some());
    assert!(full.followed_by(names(65_000, 65_537)).is_none());
}
