//! The configuration: any text and any variables give settings or faults that name their place, the same ones every
//! time, and none of it depends on blank lines and comments.

use std::path::Path;

use lockward::config::{Config, ConfigErrors, Loaded, Origin, describe};
use lockward::lock::rule::Rules;

/// A text, and behind zero bytes `NAME=value` each, where `LOCKWARD_` stands in front of every name.
pub fn check(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    let variables: Vec<(String, String)> = parts
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (format!("LOCKWARD_{name}"), value.to_owned()))
        .collect();
    match parse(text, &variables) {
        Ok(loaded) => good(text, &variables, &loaded),
        Err(errors) => well_told(text, &variables, &errors),
    }
}

fn parse(text: &str, variables: &[(String, String)]) -> Result<Loaded, ConfigErrors> {
    Config::parse(text, Path::new("t"), variables.iter().cloned())
}

fn good(text: &str, variables: &[(String, String)], loaded: &Loaded) {
    let shown = describe(&loaded.config, &loaded.warnings);
    assert!(shown.ends_with('\n'));
    // A byte order mark is one only at the very beginning.
    let before = if text.starts_with('\u{feff}') { "" } else { "\n" };
    let other = parse(&format!("{before}{text}\n# end"), variables);
    assert_eq!(
        other.map(|other| other.config).as_ref(),
        Ok(&loaded.config),
        "a comment makes a difference"
    );
    let (same, changes) = loaded.config.changed_to(loaded.config.clone());
    assert_eq!(same, loaded.config, "a reload of the same text changes something");
    assert!(
        changes.applied.is_empty() && changes.needs_restart.is_empty(),
        "{changes:?}"
    );
    let rules = &loaded.config.rules;
    assert!(!rules.is_empty(), "no rule");
    for (index, rule) in rules.iter().enumerate() {
        assert!(
            rules[..index].iter().all(|other| other.name != rule.name),
            "two rules of one name"
        );
    }
    let prefix = &loaded.config.records.prefix;
    assert!(
        !prefix.is_empty() && !prefix.contains(['{', '}']),
        "a prefix that makes no record names"
    );
    Rules::new(rules.clone(), prefix.as_bytes()).find(b"lock:a");
}

fn well_told(text: &str, variables: &[(String, String)], errors: &ConfigErrors) {
    assert!(!errors.faults().is_empty(), "refused without a fault");
    for fault in errors.faults() {
        assert!(!fault.text.is_empty(), "a fault without words");
        match &fault.origin {
            Origin::Line(line) => {
                assert!(
                    (1..=1 + text.matches('\n').count()).contains(line),
                    "line {line} is not there"
                );
            }
            Origin::Variable(name) => {
                assert!(variables.iter().any(|(known, _)| known == name), "{name} was not given");
            }
            Origin::File => {}
        }
    }
    let shown = errors.to_string();
    assert_eq!(
        shown.split('\n').count(),
        errors.faults().len(),
        "a fault is not one line: {shown:?}"
    );
    assert!(
        !shown.contains(|c: char| c.is_control() && c != '\n'),
        "control characters: {shown:?}"
    );
}
