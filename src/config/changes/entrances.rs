//! What a reload does to the places where clients come in: which there are waits for a restart, and what holds there
//! comes into force at once.

use crate::config::{Config, Entrance};
use crate::lock::rule::Rule;

/// The places of `old`, with what comes into force there at once, and the rules of all of them.
pub(super) fn next(old: &Config, new: &Config) -> (Entrance, Vec<Entrance>, Vec<Rule>) {
    let mut rules: Vec<Rule> = new.rules_at(&new.listen.entrance).cloned().collect();
    let general: Vec<usize> = (0..rules.len()).collect();
    let main = with(&old.listen.entrance, Some(&new.listen.entrance), general.clone());
    let own = |entrance: &Entrance, config: &Config| config.has_own_rules(entrance).then(|| entrance.rules.clone());
    let mut listeners: Vec<Entrance> = Vec::new();
    for listener in &old.listeners {
        let named = find(new, listener);
        let rules_there = match named {
            Some(named) if own(named, new).is_some() => {
                let first = rules.len();
                rules.extend(new.rules_at(named).cloned());
                (first..rules.len()).collect()
            }
            // Of those that are gone from the file, below.
            _ => general.clone(),
        };
        listeners.push(with(listener, named, rules_there));
    }
    // Until the restart they go on, by the rules that they had. A rule that has moved means what it means now.
    for (listener, next) in old.listeners.iter().zip(&mut listeners) {
        if find(new, listener).is_none() && own(listener, old).is_some() {
            let place = |rule: &Rule| {
                let known = rules.iter().position(|other| other.name == rule.name);
                known.unwrap_or_else(|| {
                    rules.push(rule.clone());
                    rules.len() - 1
                })
            };
            next.rules = old.rules_at(listener).map(place).collect();
        }
    }
    (main, listeners, rules)
}

fn find<'c>(config: &'c Config, listener: &Entrance) -> Option<&'c Entrance> {
    config.entrances().find(|other| other.name == listener.name)
}

/// An entrance that stays where it is, with other papers, and other load balancers to believe.
fn with(old: &Entrance, new: Option<&Entrance>, rules: Vec<usize>) -> Entrance {
    let mut next = Entrance { rules, ..old.clone() };
    if let Some(new) = new {
        if next.tls.is_some() && new.tls.is_some() {
            next.tls.clone_from(&new.tls);
        }
        if next.trusted.is_some() && new.trusted.is_some() {
            next.trusted.clone_from(&new.trusted);
        }
    }
    next
}

/// How the file calls a key of an entrance.
fn key(entrance: &Entrance, key: &str) -> String {
    format!("{}.{key}", entrance.section())
}

/// A line for each thing that comes into force at once, besides the rules themselves; `next` are the settings then.
pub(super) fn at_once(old: &Config, next: &Config, lines: &mut Vec<String>) {
    for (before, after) in old.entrances().zip(next.entrances()) {
        if before.tls != after.tls {
            lines.push(format!("{}: other files", key(before, "tls")));
        }
        if let (Some(was), Some(is)) = (&before.trusted, &after.trusted)
            && was != is
        {
            lines.push(format!("{}: {was} -> {is}", key(before, "trusted_proxies")));
        }
        let words = |own: bool| if own { "its own" } else { "the general ones" };
        let (was, is) = (old.has_own_rules(before), next.has_own_rules(after));
        if was != is {
            let name = &before.name;
            lines.push(format!(
                "the rules of listener \"{name}\": {} -> {}",
                words(was),
                words(is)
            ));
        }
    }
}

/// The keys that wait for a restart.
pub(super) fn after_a_restart(old: &Config, new: &Config) -> Vec<String> {
    let mut keys = Vec::new();
    for before in old.entrances() {
        let Some(after) = find(new, before) else {
            keys.push(before.section());
            continue;
        };
        let compared = [
            ("address", before.place != after.place),
            ("unix_mode", before.rights.mode != after.rights.mode),
            ("unix_group", before.rights.group != after.rights.group),
            ("tls", before.tls.is_some() != after.tls.is_some()),
            ("proxy_protocol", before.trusted.is_some() != after.trusted.is_some()),
        ];
        let changed = compared.into_iter().filter(|(_, changed)| *changed);
        keys.extend(changed.map(|(name, _)| key(before, name)));
    }
    let added = new.listeners.iter().filter(|listener| find(old, listener).is_none());
    keys.extend(added.map(Entrance::section));
    keys
}
