//! The rules held against the keys that are there: an example of a key for each pattern, and what it means that a rule
//! matches none. Asks nobody.

use super::finding::{Finding, quoted};
use crate::cli::shown::{shown, shown_text};
use crate::config::Config;
use crate::lock::glob::Glob;
use crate::lock::rule::{Mode, Rule};

/// What stands in for a star: part of no lock that somebody has.
const STAR: &[u8] = b"lockward-check";
/// What may stand in for one byte.
const ANY: &[u8] = b"xyz0";
/// Letters of a pattern that are not themselves.
const SPECIAL: &[u8] = b"*?[\\";

/// Whether only one key matches the pattern.
pub(super) fn literal(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| SPECIAL.contains(byte))
}

/// A key that the pattern matches. `None` for strange brackets: then nothing is tried.
pub(super) fn example(pattern: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(pattern.len() + STAR.len());
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => key.extend_from_slice(STAR),
            b'?' => key.extend(ANY.first()),
            b'\\' => key.push(bytes.next().unwrap_or(b'\\')),
            b'[' => key.push(member(bytes.by_ref().take_while(|byte| *byte != b']'))?),
            byte => key.push(byte),
        }
    }
    Glob::new(pattern).matches(&key).then_some(key)
}

/// A byte of a class, or outside of one that begins with `^`.
fn member(class: impl Iterator<Item = u8>) -> Option<u8> {
    let class: Vec<u8> = class.collect();
    match class.split_first()? {
        (b'^', others) => ANY.iter().copied().find(|byte| !others.contains(byte)),
        (b'\\', others) => others.first().copied(),
        (first, _) => Some(*first),
    }
}

/// Rules that treat keys as locks now: the enforced ones, else those that observe.
pub(super) fn in_force(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    let enforced = enforced(rules);
    let wanted = if enforced { Mode::Enforce } else { Mode::Observe };
    rules.iter().filter(move |rule| rule.mode == wanted)
}

/// Whether any rule is enforced.
pub(super) fn enforced(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.mode == Mode::Enforce)
}

/// Patterns of all rules in their order, for each listener that has its own: the first that matches there decides.
pub(super) struct Matcher(Vec<Vec<(Glob, usize)>>);

impl Matcher {
    pub(super) fn new(config: &Config) -> Matcher {
        let lists = config.entrances().map(|entrance| {
            let rules = entrance.rules.iter().zip(config.rules_at(entrance));
            let patterns = rules.flat_map(|(index, rule)| {
                let globs = rule.patterns.iter().map(|pattern| Glob::new(pattern));
                globs.map(|glob| (glob, *index))
            });
            patterns.collect()
        });
        Matcher(lists.collect())
    }

    /// Whether this rule decides about the key, at any listener.
    pub(super) fn is_of(&self, index: usize, key: &[u8]) -> bool {
        self.0.iter().any(|list| {
            let found = list.iter().find(|(glob, _)| glob.matches(key));
            found.is_some_and(|(_, decides)| *decides == index)
        })
    }
}

/// What came of a search for a key of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Searched {
    pub(super) found: bool,
    /// About so many keys were looked at; 0: not known.
    pub(super) looked_at: u64,
    /// There were more, and they were not looked at.
    pub(super) cut_short: bool,
}

/// The rules that match something in one line, each of the others in its own.
pub(super) fn judge(searched: &[(&Rule, Searched)]) -> Vec<Finding> {
    let (matching, idle): (Vec<_>, Vec<_>) = searched.iter().partition(|(_, searched)| searched.found);
    let mut findings = Vec::new();
    if !matching.is_empty() {
        let names: Vec<String> = matching
            .iter()
            .map(|(rule, _)| quoted(&shown_text(&rule.name)))
            .collect();
        findings.push(Finding::ok("rules", format!("keys fall under {}", names.join(", "))));
    }
    findings.extend(idle.into_iter().map(|(rule, searched)| idle_rule(rule, searched)));
    findings
}

fn idle_rule(rule: &Rule, searched: Searched) -> Finding {
    let patterns: Vec<String> = rule.patterns.iter().map(|pattern| shown(pattern)).collect();
    let looked_at = match (searched.cut_short, searched.looked_at) {
        (true, count) => format!("about {count} keys were looked at, and there are more"),
        (false, 0) => "all keys were looked at".to_owned(),
        (false, 1) => "the only key was looked at".to_owned(),
        (false, count) => format!("all {count} keys were looked at"),
    };
    let name = quoted(&shown_text(&rule.name));
    let patterns = quoted(&patterns.join(" "));
    let named = if name == patterns {
        name
    } else {
        format!("{name} ({patterns})")
    };
    let means = if rule.mode == Mode::Off {
        "that may be as it should; clients may put a prefix before their keys"
    } else {
        "locks exist only while they are held, so that may be as it should; but clients may put a prefix before their keys: \
         what a running lockward has seen tells"
    };
    Finding::note("rules", format!("no key falls under {named} now; {looked_at}"))
        .means(means)
        .paste("lockward suggest")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn an_example_matches_its_pattern() {
        for (pattern, key) in [
            ("lock:*", "lock:lockward-check"),
            ("*:lock", "lockward-check:lock"),
            ("cron:daily", "cron:daily"),
            ("a?[bc]\\*", "axb*"),
            ("[^x]-*", "y-lockward-check"),
            ("[\\]]a", "]a"),
        ] {
            let example = example(pattern.as_bytes()).map(|key| String::from_utf8_lossy(&key).into_owned());
            let expected = (pattern != "[\\]]a").then(|| key.to_owned());
            assert_eq!(example, expected, "{pattern}");
        }
        assert!(literal(b"cron:daily") && !literal(b"lock:*"));
    }

    proptest! {
        #[test]
        fn no_pattern_makes_it_panic(pattern in prop::collection::vec(prop::sample::select(b"a[]^-\\*?".to_vec()), 0..12)) {
            if let Some(key) = example(&pattern) {
                prop_assert!(Glob::new(&pattern).matches(&key));
            }
        }
    }

    #[test]
    fn rules_without_keys_are_noted_one_by_one() {
        let (jobs, cron, seen) = (Rule::new("lock:job:*"), Rule::new("cron:*"), Rule::new("lock:*"));
        let found = Searched {
            found: true,
            ..Searched::default()
        };
        let all = Searched {
            looked_at: 12,
            ..Searched::default()
        };
        let some = Searched {
            cut_short: true,
            looked_at: 200_000,
            ..Searched::default()
        };
        let findings = judge(&[(&jobs, found), (&cron, all), (&seen, some)]);
        let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Note, Level::Note]);
        assert_eq!(
            findings[1].found,
            "no key falls under cron:* now; all 12 keys were looked at"
        );
        assert!(
            findings[2]
                .found
                .contains("about 200000 keys were looked at, and there are more")
        );
    }

    #[test]
    fn the_first_rule_that_matches_decides_at_each_listener() {
        let text = "[[locks]]\npattern = \"lock:job:*\"\n[[locks]]\npattern = \"lock:*\"\n[[listeners]]\nname = \"a\"\n\
                    unix = \"/a\"\n[[listeners.locks]]\nname = \"all\"\npattern = \"lock:*\"\n";
        let loaded = Config::parse(text, Path::new("test.toml"), std::iter::empty()).expect("good");
        let matcher = Matcher::new(&loaded.config);
        let of = |key: &[u8]| (0..3).map(|index| matcher.is_of(index, key)).collect::<Vec<_>>();
        assert_eq!(of(b"lock:job:1"), [true, false, true]);
        assert_eq!(of(b"lock:1"), [false, true, true]);
        assert_eq!(of(b"other"), [false; 3]);
    }
}
