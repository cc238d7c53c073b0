//! The variables `LOCKWARD_SECTION__KEY`, `LOCKWARD_LOCKS__0__KEY` and `LOCKWARD_LISTENERS__0__KEY`, laid over the
//! tree of the file. Only names with two underscores behind the prefix are settings: Kubernetes injects others into
//! every pod beside a service called lockward. Values are not read here.

use std::ffi::OsString;

use super::fault::{Fault, Origin};
use super::keys::{self, LISTEN_TLS, LISTENERS, LOCKS, SECTIONS, TLS};
use super::tree::{Entry, Node, Table, Value};

const PREFIX: &str = "LOCKWARD_";

/// This process' variables that can be settings. Bytes that are not UTF-8 are replaced, so that such a value is
/// refused where it matters instead of ending the program.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    let lossy = |text: OsString| text.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(move |(name, value)| (lossy(name), lossy(value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
}

/// What a variable sets. The order is that in which they are applied, so rules and listeners are appended by rising
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Key { section: &'static str, key: &'static str },
    Tls { section: &'static str, key: &'static str },
    Lock { index: usize, key: &'static str },
    Listener { index: usize, set: OfListener },
}

/// What of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OfListener {
    Key(&'static str),
    Tls(&'static str),
    Lock { index: usize, key: &'static str },
}

impl Target {
    fn name(self) -> String {
        let name = match self {
            Target::Key { section, key } => format!("{PREFIX}{section}__{key}"),
            Target::Tls { section, key } => format!("{PREFIX}{section}__tls__{key}"),
            Target::Lock { index, key } => format!("{PREFIX}locks__{index}__{key}"),
            Target::Listener { index, set } => {
                let listener = format!("{PREFIX}listeners__{index}__");
                match set {
                    OfListener::Key(key) => format!("{listener}{key}"),
                    OfListener::Tls(key) => format!("{listener}tls__{key}"),
                    OfListener::Lock { index, key } => format!("{listener}locks__{index}__{key}"),
                }
            }
        };
        name.to_ascii_uppercase()
    }

    /// Everything a variable can set, with this number for the rule or the listener, and with `rule` for one of its
    /// rules.
    fn all(index: usize, rule: usize) -> impl Iterator<Item = Target> {
        let keys = SECTIONS
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(|key| Target::Key { section, key }));
        // TLS is a table: its keys are set, not it.
        let keys = keys.filter(|target| !matches!(target, Target::Key { key: "tls", .. }));
        let tls = TLS
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(|key| Target::Tls { section, key }));
        let plain = LISTENERS.iter().filter(|key| !matches!(**key, "tls" | "locks"));
        let listener = plain
            .map(|key| OfListener::Key(key))
            .chain(LISTEN_TLS.iter().map(|key| OfListener::Tls(key)))
            .chain(LOCKS.iter().map(move |key| OfListener::Lock { index: rule, key }));
        keys.chain(tls)
            .chain(LOCKS.iter().map(move |key| Target::Lock { index, key }))
            .chain(listener.map(move |set| Target::Listener { index, set }))
    }
}

/// Lays the variables over the tree; those that name no setting are faults.
pub(super) fn overlay(tree: &mut Table, env: impl Iterator<Item = (String, String)>, faults: &mut Vec<Fault>) {
    let mut settings = Vec::new();
    for (name, value) in env {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if !rest.contains("__") {
            continue;
        }
        let number = |place| rest.split("__").nth(place).and_then(|number| number.parse().ok());
        let (index, rule) = (number(1).unwrap_or(0), number(3).unwrap_or(0));
        match Target::all(index, rule).find(|target| target.name() == name) {
            Some(target) => settings.push((target, name, value)),
            None => faults.push(unknown(name, index, rule)),
        }
    }
    settings.sort();
    for (target, name, value) in settings {
        let node = Node {
            origin: Origin::Variable(name),
            value: Value::Raw(value),
        };
        match target {
            Target::Key { section, key } => {
                if let Some(table) = table(tree, section, &node.origin) {
                    set_key(table, section == "listen", key, node);
                }
            }
            Target::Tls { section, key } => {
                if let Some(table) = table(tree, section, &node.origin) {
                    set_tls(table, key, node);
                }
            }
            Target::Lock { index, key } => {
                if let Some(lock) = entry(tree, ("locks", "rules"), index, &node.origin, faults) {
                    lock.set(key, node);
                }
            }
            Target::Listener { index, set } => set_listener(tree, index, set, node, faults),
        }
    }
}

fn unknown(name: String, index: usize, rule: usize) -> Fault {
    let names: Vec<String> = Target::all(index, rule).map(Target::name).collect();
    let text = match keys::nearest(&name, names.iter().map(String::as_str)) {
        Some(near) => format!("unknown variable; did you mean {near}?"),
        None => "unknown variable; settings are called LOCKWARD_SECTION__KEY or LOCKWARD_LOCKS__0__KEY".to_owned(),
    };
    Fault {
        origin: Origin::Variable(name),
        key: String::new(),
        text,
    }
}

/// The table at `key`, made if there is none. `None` if the file has something else there: that is its own fault.
fn table<'t>(tree: &'t mut Table, key: &str, origin: &Origin) -> Option<&'t mut Table> {
    if tree.get_mut(key).is_none() {
        tree.set(
            key,
            Node {
                origin: origin.clone(),
                value: Value::Table(Table::default()),
            },
        );
    }
    match &mut tree.get_mut(key)?.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn set_key(table: &mut Table, listens: bool, key: &str, node: Node) {
    // A variable that says where to listen stands in place of the file's other way to say it.
    let other = match key {
        "address" if listens => "unix",
        "unix" if listens => "address",
        _ => "",
    };
    table
        .0
        .retain(|Entry { key, origin, .. }| key != other || matches!(origin, Origin::Variable(_)));
    table.set(key, node);
}

fn set_tls(section: &mut Table, key: &str, node: Node) {
    if let Some(tls) = table(section, "tls", &node.origin) {
        tls.set(key, node);
    }
}

fn set_listener(tree: &mut Table, index: usize, set: OfListener, node: Node, faults: &mut Vec<Fault>) {
    let Some(listener) = entry(tree, ("listeners", "listeners"), index, &node.origin, faults) else {
        return;
    };
    match set {
        OfListener::Key(key) => set_key(listener, true, key, node),
        OfListener::Tls(key) => set_tls(listener, key, node),
        OfListener::Lock { index, key } => {
            if let Some(lock) = entry(listener, ("locks", "rules"), index, &node.origin, faults) {
                lock.set(key, node);
            }
        }
    }
}

/// The table of this number in the list at `key`, made if it is the next one; faults call its entries by a word.
/// `None` if the file has something else there: that is its own fault.
fn entry<'t>(
    tree: &'t mut Table,
    (key, word): (&str, &str),
    index: usize,
    origin: &Origin,
    faults: &mut Vec<Fault>,
) -> Option<&'t mut Table> {
    let new = |value: Value| Node {
        origin: origin.clone(),
        value,
    };
    if tree.get_mut(key).is_none() {
        tree.set(key, new(Value::List(Vec::new())));
    }
    let Value::List(entries) = &mut tree.get_mut(key)?.value else {
        return None;
    };
    let count = entries.len();
    if index == count {
        entries.push(new(Value::Table(Table::default())));
    }
    match entries.get_mut(index) {
        Some(Node {
            value: Value::Table(entry),
            ..
        }) => Some(entry),
        Some(_) => None,
        None => {
            let text = format!("there are {count} {word} before it; the next one has number {count}");
            faults.push(Fault {
                origin: origin.clone(),
                key: String::new(),
                text,
            });
            None
        }
    }
}
