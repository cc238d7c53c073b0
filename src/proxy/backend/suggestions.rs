//! Advice on rules, with names and times for people: rules to paste for what looks like a lock and has none, and what the
//! rules that are there should say. Decides nothing about locks; what looks like one the scout knows.

use super::rules;
use crate::admin::api::{Advice, AdviceKind, Suggestions, Uncovered};
use crate::event::Time;
use crate::lock::glob::Glob;
use crate::lock::rule::{Rule, Rules};
use crate::lock::scout::{Group, UNMET_AFTER_MS, unmet};
use crate::proxy::shared::Shared;

/// The TTL that is proposed where acquires come without one.
const PROPOSED_TTL: &str = "30s";

/// The rule that stands for a configuration without any.
const BUILT_IN: &str = "[[locks]]\nname = \"default\"\npattern = \"lock:*\"\n";

/// All of it.
pub(super) fn all(shared: &Shared) -> Suggestions {
    let policy = shared.policy();
    let snapshot = shared.scouting.snapshot();
    let now = shared.now();
    let mut groups = snapshot.groups();
    leave_out_covered(&policy.rules, &mut groups);
    let uncovered = uncovered(groups, is_built_in(&policy.rules));
    let mut rules = matched_nothing(&policy.rules, &uncovered, shared.clock.age());
    rules.extend(rules::advice(shared));
    Suggestions {
        since_ms: shared.clock.began_unix_ms,
        now_ms: shared.clock.unix_ms(now),
        built_in: is_built_in(&policy.rules).then(|| BUILT_IN.to_owned()),
        uncovered,
        rules,
        dropped_keys: snapshot.dropped(),
    }
}

/// Leaves out what a rule has at another listener, or has since it was seen: a second one of the same keys could not stand
/// behind it.
fn leave_out_covered(rules: &Rules, groups: &mut Vec<Group>) {
    let patterns: Vec<Glob> = rules
        .iter()
        .flat_map(|(_, rule)| &rule.patterns)
        .map(|pattern| Glob::new(pattern))
        .collect();
    groups.retain(|group| {
        let glob = Glob::new(group.pattern.as_bytes());
        !patterns.iter().any(|pattern| pattern.covers(&glob))
    });
}

/// The groups that look like locks, the busiest first; but one that another covers stands before it, since of two rules
/// the first one wins.
fn uncovered(mut groups: Vec<Group>, built_in: bool) -> Vec<Uncovered> {
    groups.retain(Group::looks_like_locks);
    groups.sort_by_key(|group| std::cmp::Reverse(group.counts.acquires));
    let mut ordered: Vec<(Glob, Group)> = Vec::with_capacity(groups.len());
    for group in groups {
        let glob = Glob::new(group.pattern.as_bytes());
        let wider = ordered.iter().position(|(other, _)| other.covers(&glob));
        let place = wider.unwrap_or(ordered.len());
        ordered.insert(place, (glob, group));
    }
    ordered.iter().map(|(_, group)| shown(group, built_in)).collect()
}

fn shown(group: &Group, built_in: bool) -> Uncovered {
    let counts = &group.counts;
    let example = |key: &std::sync::Arc<[u8]>| String::from_utf8_lossy(key).into_owned();
    Uncovered {
        pattern: group.pattern.clone(),
        keys: group.keys as u64,
        acquires: counts.acquires,
        without_ttl: counts.without_ttl,
        releases: counts.releases,
        releases_elsewhere: counts.releases_elsewhere,
        extends: counts.extends,
        scripts: counts.scripts,
        examples: group.examples.iter().map(example).collect(),
        text: sentence(group),
        toml: entry(group, built_in),
    }
}

fn sentence(group: &Group) -> String {
    let counts = &group.counts;
    let mut ends = Vec::new();
    if counts.releases > 0 {
        let elsewhere = match counts.releases_elsewhere {
            0 => String::new(),
            all if all == counts.releases => " (on another connection than they were taken)".to_owned(),
            some => format!(" ({some} of them on another connection than they were taken)"),
        };
        ends.push(format!("given up by DEL {}{elsewhere}", times(counts.releases)));
    }
    if counts.scripts > 0 {
        ends.push(format!(
            "named by a script or compare command {}",
            times(counts.scripts)
        ));
    }
    if counts.extends > 0 {
        ends.push(format!("given a new expiry {}", times(counts.extends)));
    }
    let ttl = match counts.without_ttl {
        0 => "always with a TTL".to_owned(),
        all if all == counts.acquires => "never with a TTL".to_owned(),
        some => format!("without a TTL {}", times(some)),
    };
    let doubt = if group.names_lock {
        ""
    } else {
        "; no word in the names means a lock, so look whether the pattern covers other keys too"
    };
    format!(
        "Looks like locks: tried to take by SET NX or SETNX {}, {ttl}; {}{doubt}.",
        times(counts.acquires),
        ends.join(", ")
    )
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// A rule to paste. The words in front are comments, which hold nothing that a client has sent.
fn entry(group: &Group, built_in: bool) -> String {
    let counts = &group.counts;
    let mut lines = vec!["observe changes nothing on the wire; \"enforce\" once its figures look right".to_owned()];
    if counts.releases_elsewhere * 2 > counts.releases {
        lines.push(
            "most releases come on another connection than the acquire: owner = \"connection\" would refuse them"
                .to_owned(),
        );
    } else if counts.releases > 0 && counts.releases_elsewhere == 0 {
        lines.push(
            "all releases came on the connection of the acquire: owner = \"connection\" is possible, and stricter"
                .to_owned(),
        );
    }
    let bare = counts.without_ttl > 0;
    if bare {
        lines.push(format!(
            "{} of {} acquires had no TTL; default_ttl must be longer than the longest hold",
            counts.without_ttl, counts.acquires
        ));
    }
    if built_in {
        lines.push(
            "a file without any [[locks]] has a rule for \"lock:*\" built in, which this entry replaces".to_owned(),
        );
    }
    let comments: String = lines.iter().map(|line| format!("# {line}\n")).collect();
    let mut entry = format!(
        "{comments}[[locks]]\npattern = {}\nmode = \"observe\"\nowner = \"address\"\n",
        quoted(&group.pattern)
    );
    if bare {
        entry.push_str(&format!("default_ttl = {PROPOSED_TTL:?}\n"));
    }
    entry
}

/// A text as a basic string of TOML, which has JSON's escapes. What would turn or hide what stands beside it (the
/// direction of writing, characters without width) is escaped too: a pattern has to be what it looks like.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for character in json.chars() {
        let plain = matches!(character, ' '..='~') || character.escape_debug().len() == 1;
        if plain {
            quoted.push(character);
        } else {
            quoted.push_str(&format!("\\U{:08X}", u32::from(character)));
        }
    }
    quoted
}

/// Whether the only rule is the one that stands for a configuration without any (or one that says the same).
fn is_built_in(rules: &Rules) -> bool {
    let built_in = Rule {
        name: "default".into(),
        ..Rule::new("lock:*")
    };
    rules.iter().map(|(_, rule)| rule).eq([&built_in])
}

/// The rules that have got no key in the time that they were given.
fn matched_nothing(rules: &Rules, uncovered: &[Uncovered], now: Time) -> Vec<Advice> {
    if now < Time(0).plus_ms(UNMET_AFTER_MS) {
        return Vec::new();
    }
    let minutes = now.0 / 60_000_000;
    let advice = |index| {
        let rule = rules.rule(index);
        let patterns: Vec<String> = rule
            .patterns
            .iter()
            .map(|pattern| String::from_utf8_lossy(pattern).into_owned())
            .collect();
        let longer: Vec<&str> = uncovered
            .iter()
            .map(|group| group.pattern.as_str())
            .filter(|pattern| {
                patterns
                    .iter()
                    .any(|own| own.len() > 1 && pattern.ends_with(own.as_str()))
            })
            .collect();
        let mut text = format!(
            "No lock command has named a key of {} in the {minutes} minutes since the start.",
            patterns
                .iter()
                .map(|pattern| format!("{pattern:?}"))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let mut toml = None;
        if !longer.is_empty() {
            text.push_str(" Keys with something in front of it look like locks.");
            let list: Vec<toml::Value> = patterns
                .iter()
                .map(String::as_str)
                .chain(longer)
                .map(toml::Value::from)
                .collect();
            toml = Some(format!("pattern = {}", toml::Value::Array(list)));
        }
        Advice {
            rule: rule.name.to_string(),
            kind: AdviceKind::MatchedNothing,
            text,
            toml,
        }
    };
    unmet(rules).map(advice).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;
    use crate::lock::rule::{Mode, OwnerPart};
    use crate::lock::scout::{Scout, Sight, Sightings};

    /// Groups of keys that were each taken three times and given up by another connection.
    fn groups(keys: &[&[u8]], ttl: bool) -> Vec<Group> {
        let mut scout = Scout::default();
        for key in keys {
            for (connection, sight) in [(1, Sight::Acquire { ttl }), (2, Sight::Release)].repeat(3) {
                let mut sightings = Sightings::default();
                sightings.push(sight, key);
                scout.sighted(connection, &sightings);
            }
        }
        scout.snapshot().groups()
    }

    fn loaded(text: &str) -> Config {
        match Config::parse(text, Path::new("pasted.toml"), std::iter::empty()) {
            Ok(loaded) => loaded.config,
            Err(errors) => panic!("{errors}\n{text}"),
        }
    }

    #[test]
    fn what_is_suggested_can_be_pasted() {
        let keys: [&[u8]; 9] = [
            b":1:lock:order:17",
            b"app:mutex:42",
            "größe:\"x\"\\y's:lock".as_bytes(),
            b"a*b?[c]:lock:7",
            b"lock \xff\x00\n:mutex:1",
            b"# no comment = [[\"]]:lock:1",
            b"'''\"\"\":lock",
            b"import:1",
            b"import:mutex:1",
        ];
        let suggested = uncovered(groups(&keys, false), true);
        assert_eq!(suggested.len(), keys.len(), "{suggested:?}");
        for one in &suggested {
            let rule = &loaded(&one.toml).rules[0];
            assert_eq!(*rule.patterns[0], *one.pattern.as_bytes());
            assert_eq!(
                (rule.mode, rule.owner.as_slice()),
                (Mode::Observe, &[OwnerPart::Address][..])
            );
            assert_eq!(rule.default_ttl_ms, Some(30_000));
        }
        // All of them together too, behind a rule that is there already.
        let all: String = suggested.iter().map(|one| one.toml.as_str()).collect();
        let rules = Rules::new(
            loaded(&format!("[[locks]]\npattern = \"lock:*\"\n{all}")).rules,
            b"lockward:",
        );
        for key in keys {
            assert!(rules.find(key).is_some(), "{}", key.escape_ascii());
        }
    }

    #[test]
    fn the_text_says_what_was_seen() {
        let suggested = uncovered(groups(&[b"app:mutex:1", b"app:mutex:2"], true), false);
        let [one] = suggested.as_slice() else {
            panic!("{suggested:?}")
        };
        assert_eq!(
            one.text,
            "Looks like locks: tried to take by SET NX or SETNX 6 times, always with a TTL; given up by DEL 6 times (on \
             another connection than they were taken)."
        );
        assert_eq!(
            one.toml,
            "# observe changes nothing on the wire; \"enforce\" once its figures look right\n\
             # most releases come on another connection than the acquire: owner = \"connection\" would refuse them\n\
             [[locks]]\npattern = \"app:mutex:*\"\nmode = \"observe\"\nowner = \"address\"\n"
        );
        let doubtful = uncovered(groups(&[b"import:1"], false), false);
        assert!(doubtful[0].text.contains("never with a TTL") && doubtful[0].text.contains("no word in the names"));
    }

    #[test]
    fn what_another_listener_has_a_rule_for_is_not_suggested() {
        let rules = Rules::new(vec![Rule::new("app:*")], b"lockward:");
        let mut groups = groups(&[b"app:mutex:1", b"app:mutex:2", b":1:lock:order:17"], true);
        leave_out_covered(&rules, &mut groups);
        let patterns: Vec<&str> = groups.iter().map(|group| group.pattern.as_str()).collect();
        assert_eq!(patterns, [":1:lock:*"]);
    }

    #[test]
    fn a_rule_without_a_key_is_advised_of_what_may_be_meant() {
        let rules = Rules::new(vec![Rule::new("lock:*"), Rule::new("x:*")], b"lockward:");
        let uncovered = uncovered(groups(&[b":1:lock:order:17"], true), false);
        assert_eq!(matched_nothing(&rules, &uncovered, Time(599_999_999)), []);
        let advice = matched_nothing(&rules, &uncovered, Time(600_000_000));
        assert_eq!(advice.len(), 2);
        assert_eq!(advice[0].toml.as_deref(), Some("pattern = [\"lock:*\", \":1:lock:*\"]"));
        assert_eq!(
            advice[1].text,
            "No lock command has named a key of \"x:*\" in the 10 minutes since the start."
        );
        rules.meet(b"lock:1");
        assert_eq!(matched_nothing(&rules, &uncovered, Time(600_000_000)).len(), 1);
    }

    #[test]
    fn a_pattern_is_what_it_looks_like() {
        let suggested = uncovered(groups(&["\u{202e}fdp:\u{feff}mutex:1".as_bytes()], true), false);
        assert!(suggested[0].toml.is_ascii(), "{}", suggested[0].toml);
        let rule = &loaded(&suggested[0].toml).rules[0];
        assert_eq!(*rule.patterns[0], *suggested[0].pattern.as_bytes());
    }

    #[test]
    fn the_built_in_rule_is_known() {
        assert!(is_built_in(&Rules::new(loaded(BUILT_IN).rules, b"lockward:")));
        assert!(is_built_in(&Rules::new(loaded("").rules, b"lockward:")));
        assert!(!is_built_in(&Rules::new(
            loaded("[[locks]]\npattern = \"lock:*\"\n").rules,
            b"lockward:"
        )));
    }
}
