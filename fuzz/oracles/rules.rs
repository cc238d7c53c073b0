//! The compiled rules: the first rule that has a matching pattern decides, whatever the first byte of the key, also after
//! a change of rules and in a part of them.

use lockward::lock::glob::Glob;
use lockward::lock::rule::{Mode, Rule, Rules};

const PREFIX: &[u8] = b"lockward:";
/// More rules and patterns than these find nothing new.
const RULES_MAX: usize = 6;
const PATTERNS_MAX: usize = 4;

/// One rule a line: its first byte is the mode, the rest are patterns with commas between them. The last line is a key.
pub fn check(input: &[u8]) {
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let Some(key) = lines.pop() else { return };
    lines.truncate(RULES_MAX);
    let list: Vec<Rule> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| rule(index, line))
        .collect();
    let rules = Rules::new(list.clone(), PREFIX);
    agrees(&rules, &list, key);
    let part: Vec<usize> = (0..list.len()).step_by(2).collect();
    let listed: Vec<Rule> = part.iter().map(|at| list[*at].clone()).collect();
    agrees(&rules.part(&part), &listed, key);
    // Other rules in another order, two of them gone.
    let next: Vec<Rule> = list.into_iter().skip(2).rev().collect();
    let followed = rules.followed_by(next.clone()).expect("few names");
    agrees(&followed, &next, key);
}

fn rule(index: usize, line: &[u8]) -> Rule {
    let (mode, patterns) = line.split_first().map_or((0, line), |(mode, rest)| (*mode, rest));
    let patterns = patterns.split(|byte| *byte == b',').take(PATTERNS_MAX);
    Rule {
        name: format!("{index}").into(),
        patterns: patterns.map(Into::into).collect(),
        mode: [Mode::Enforce, Mode::Observe, Mode::Off][usize::from(mode) % 3],
        ..Rule::new("")
    }
}

fn agrees(rules: &Rules, list: &[Rule], key: &[u8]) {
    let matching = list
        .iter()
        .find(|rule| rule.patterns.iter().any(|pattern| Glob::new(pattern).matches(key)));
    let record = key.starts_with(PREFIX);
    assert_eq!(rules.is_record(key), record);
    assert_eq!(rules.decides(key), record || matching.is_some(), "decides");
    let expected = matching.filter(|rule| rule.mode != Mode::Off && !record);
    for found in [rules.find(key), rules.meet(key)] {
        assert_eq!(
            found.map(|index| &rules.rule(index).name),
            expected.map(|rule| &rule.name),
            "another rule"
        );
    }
    let met = rules.iter().filter(|(index, _)| rules.has_met(*index)).count();
    assert!(met <= list.len());
    if let Some(index) = expected.and_then(|_| rules.find(key)) {
        assert!(rules.has_met(index), "met and forgotten");
    }
    assert_eq!(rules.any_enforce(), list.iter().any(|rule| rule.mode == Mode::Enforce));
    assert!(
        rules.iter().map(|(_, rule)| rule).eq(list),
        "the rules in force are others"
    );
}
