//! `[[locks]]`: one rule for each entry. Whether rules fit together is looked at elsewhere.

use super::conflicts::SitedRule;
use super::fault::Origin;
use super::keys;
use super::reader::{Empty, Origins, Reader, pick};
use super::tree::{Node, Table, Value};
use crate::lock::rule::{DeniedWrite, Mode, OwnerPart, Rule, Unmanaged};

/// The rule that stands for a configuration without any.
const DEFAULT_NAME: &str = "default";
const DEFAULT_PATTERN: &str = "lock:*";
const MOST_RULES: usize = 1000;
const MOST_PATTERNS: usize = 1000;
/// In bytes. Redis itself gives up on patterns with more than a thousand stars.
const LONGEST_PATTERN: usize = 512;
/// In bytes: it is a label of every series.
const LONGEST_NAME: usize = 128;

/// The words for how an owner is derived.
pub(super) const OWNER_PARTS: [(&str, OwnerPart); 6] = [
    ("connection", OwnerPart::Connection),
    ("process", OwnerPart::Process),
    ("address", OwnerPart::Address),
    ("client-name", OwnerPart::ClientName),
    ("user", OwnerPart::User),
    ("any", OwnerPart::Any),
];

/// The words for a rule's mode.
pub(super) const MODES: [(&str, Mode); 3] = [
    ("enforce", Mode::Enforce),
    ("observe", Mode::Observe),
    ("off", Mode::Off),
];

/// Reads the general rules; never none.
pub(super) fn read(top: &mut Reader<'_>) -> Vec<SitedRule> {
    own(top).unwrap_or_else(|| {
        let rule = Rule {
            name: DEFAULT_NAME.into(),
            ..Rule::new(DEFAULT_PATTERN)
        };
        vec![SitedRule {
            rule,
            origins: Origins::nowhere("locks[0]"),
            patterns: vec![Origin::File],
        }]
    })
}

/// Reads the rules that stand in a table. `None`: there are none, or nobody can say what is meant, which is a fault.
pub(super) fn own(reader: &mut Reader<'_>) -> Option<Vec<SitedRule>> {
    let Node { origin, value } = reader.take("locks")?;
    let place = reader.path_of("locks");
    let fault = match value {
        Value::List(entries) if entries.is_empty() => {
            "the list is empty; leave it out for the rules that hold without it, \
             or give one rule with mode = \"off\""
                .to_owned()
        }
        Value::List(entries) if entries.len() > MOST_RULES => {
            format!("more than {MOST_RULES} rules; one rule can have a list of patterns")
        }
        Value::List(entries) => return Some(all(&place, entries, reader)),
        // A table inside of [[listeners]] has its name in front.
        Value::Table(_) => format!(
            "must be written as [[{}]], with two brackets, once for each rule",
            place.replace(|sign: char| sign == '[' || sign == ']' || sign.is_ascii_digit(), "")
        ),
        _ => "must be a list of rules, each written as [[locks]]".to_owned(),
    };
    reader.fault(origin, "locks", fault);
    None
}

fn all(place: &str, entries: Vec<Node>, reader: &mut Reader<'_>) -> Vec<SitedRule> {
    let mut rules = Vec::with_capacity(entries.len());
    for (index, Node { origin, value }) in entries.into_iter().enumerate() {
        match value {
            Value::Table(table) => rules.push(rule(format!("{place}[{index}]"), origin, table, reader)),
            _ => reader.fault(origin, &format!("locks[{index}]"), "must be a table"),
        }
    }
    rules
}

fn rule(path: String, origin: Origin, table: Table, top: &mut Reader<'_>) -> SitedRule {
    let mut reader = Reader::new(path, origin.clone(), keys::LOCKS, table, top.faults);
    let patterns = patterns(&mut reader, origin.clone());
    let names: Vec<&str> = patterns.iter().map(|(pattern, _)| pattern.as_str()).collect();
    let named = Rule::new(&names.join(","));
    let read = &mut reader;
    let rule = Rule {
        name: name(read, &named.name, origin).into(),
        patterns: names.iter().map(|pattern| pattern.as_bytes().into()).collect(),
        mode: read.choice("mode", &MODES).unwrap_or(named.mode),
        owner: owner(read).unwrap_or(named.owner),
        unmanaged: read
            .choice(
                "unmanaged",
                &[("allow", Unmanaged::Allow), ("refuse", Unmanaged::Refuse)],
            )
            .unwrap_or(named.unmanaged),
        fencing: read.bool("fencing").unwrap_or(named.fencing),
        emulate: read.bool("emulate").unwrap_or(named.emulate),
        denied_write: read
            .choice(
                "denied_write",
                &[("error", DeniedWrite::Error), ("nil", DeniedWrite::Nil)],
            )
            .unwrap_or(named.denied_write),
        default_ttl_ms: read.milliseconds("default_ttl", 1).or(named.default_ttl_ms),
        max_ttl_ms: read.milliseconds("max_ttl", 1).or(named.max_ttl_ms),
        late_release_window_ms: read
            .milliseconds("late_release_window", 0)
            .unwrap_or(named.late_release_window_ms),
        renew: read.bool("renew").unwrap_or(named.renew),
        max_hold_ms: read.milliseconds("max_hold", 0).unwrap_or(named.max_hold_ms),
        release_on_disconnect: read
            .bool("release_on_disconnect")
            .unwrap_or(named.release_on_disconnect),
        disconnect_grace_ms: read
            .milliseconds("disconnect_grace", 0)
            .unwrap_or(named.disconnect_grace_ms),
        contention_shield_ms: read.milliseconds("contention_shield", 1).or(named.contention_shield_ms),
    };
    let patterns = patterns.into_iter().map(|(_, origin)| origin).collect();
    SitedRule {
        rule,
        origins: reader.finish(),
        patterns,
    }
}

/// The name in the file, else the patterns.
fn name(reader: &mut Reader<'_>, patterns: &str, rule: Origin) -> String {
    let good = |text: &str| text.len() <= LONGEST_NAME && !text.chars().any(char::is_control);
    let bad = format!("must be 1 to {LONGEST_NAME} bytes without control characters");
    let name = reader.parsed("name", "a text in quotes", |text| {
        match good(text) && !text.is_empty() {
            true => Ok(text.to_owned()),
            false => Err(bad),
        }
    });
    match name {
        Some(name) => name,
        None if good(patterns) => patterns.to_owned(),
        None => {
            let text = format!(
                "missing; the patterns cannot be the name, with more than {LONGEST_NAME} bytes or control characters"
            );
            reader.fault(rule, "name", text);
            patterns.to_owned()
        }
    }
}

/// The good ones among the patterns, with the place of each.
fn patterns(reader: &mut Reader<'_>, rule: Origin) -> Vec<(String, Origin)> {
    let Some(mut patterns) = reader.texts("pattern", Empty::Fault) else {
        // A misspelt key is told as such, which says enough.
        if !reader.has_slip_of("pattern") {
            reader.fault(
                rule,
                "pattern",
                "missing; say which keys are locks, like pattern = \"lock:*\"",
            );
        }
        return Vec::new();
    };
    if patterns.len() > MOST_PATTERNS {
        reader.fault(
            rule,
            "pattern",
            format!("more than {MOST_PATTERNS} patterns in one rule"),
        );
        return Vec::new();
    }
    patterns.retain(|(pattern, origin)| {
        let bad = match pattern.len() {
            0 => "must not be empty; for all keys write \"*\"".to_owned(),
            1..=LONGEST_PATTERN => return true,
            _ => format!("longer than {LONGEST_PATTERN} bytes"),
        };
        reader.fault(origin.clone(), "pattern", bad);
        false
    });
    patterns
}

fn owner(reader: &mut Reader<'_>) -> Option<Vec<OwnerPart>> {
    let texts = reader.texts("owner", Empty::Fault)?;
    let single = texts.len() == 1;
    let mut parts = Vec::new();
    for (text, origin) in texts {
        match pick(&text, &OWNER_PARTS) {
            Ok(OwnerPart::Any) if !single => {
                reader.fault(
                    origin,
                    "owner",
                    "\"any\" makes everybody one owner and cannot stand with others",
                );
            }
            Ok(part) if parts.contains(&part) => {
                reader.fault(origin, "owner", format!("\"{text}\" stands there twice"))
            }
            Ok(part) => parts.push(part),
            Err(text) => reader.fault(origin, "owner", text),
        }
    }
    (!parts.is_empty()).then_some(parts)
}
