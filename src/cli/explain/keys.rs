//! Which of a command's keys are locks, under which rule, and which rules do not match. The rules themselves find; this
//! only tells, rule by rule, what each pattern said.

use serde::Serialize;

use crate::config::check::{mode_word, owner_words};
use crate::lock::glob::Glob;
use crate::lock::rule::{Rule, Rules};
use crate::metrics::printable;

/// So many rules that do not match are named.
const MOST_PASSED: usize = 8;

/// One key of the command.
#[derive(Debug, Serialize)]
pub(super) struct Key {
    /// The key, escaped.
    pub key: String,
    /// Which argument of the command it is.
    pub argument: usize,
    /// The first rule that matches it.
    pub rule: Option<String>,
    /// The pattern by which it does.
    pub pattern: Option<String>,
    /// That rule's mode.
    pub mode: Option<&'static str>,
    /// Who is one owner under it.
    pub owner: Option<String>,
    /// The rules before it, which do not match, with their patterns.
    pub passed: Vec<String>,
    /// It has the name of a lease record.
    pub record: bool,
}

/// Looks at one key.
pub(super) fn key(key: &[u8], argument: usize, rules: &Rules) -> Key {
    let mut passed = Vec::new();
    let mut found = None;
    for rule in rules.list() {
        match pattern(rule, key) {
            Some(pattern) => {
                found = Some((rule, pattern));
                break;
            }
            None => passed.push(rule),
        }
    }
    Key {
        key: printable(key),
        argument,
        rule: found.map(|(rule, _)| printable(rule.name.as_bytes())),
        pattern: found.map(|(_, pattern)| printable(pattern)),
        mode: found.map(|(rule, _)| mode_word(rule)),
        owner: found.map(|(rule, _)| owner_words(rule)),
        passed: named(&passed),
        record: rules.is_record(key),
    }
}

fn pattern<'r>(rule: &'r Rule, key: &[u8]) -> Option<&'r [u8]> {
    let matching = rule.patterns.iter().find(|pattern| Glob::new(pattern).matches(key));
    matching.map(|pattern| &**pattern)
}

fn named(passed: &[&Rule]) -> Vec<String> {
    let mut names: Vec<String> = passed.iter().take(MOST_PASSED).map(|rule| name(rule)).collect();
    if passed.len() > MOST_PASSED {
        names.push(format!("and {} more", passed.len() - MOST_PASSED));
    }
    names
}

/// A rule's name, and its patterns where the name is not the pattern.
fn name(rule: &Rule) -> String {
    let patterns: Vec<String> = rule.patterns.iter().map(|pattern| printable(pattern)).collect();
    let (name, patterns) = (printable(rule.name.as_bytes()), patterns.join(" "));
    if name == patterns {
        format!("\"{name}\"")
    } else {
        format!("\"{name}\" ({patterns})")
    }
}
