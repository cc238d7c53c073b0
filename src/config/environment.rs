//! The variables `LOCKWARD_SECTION__KEY` and `LOCKWARD_LOCKS__0__KEY`, laid over the tree of the file. Only names with
//! two underscores behind the prefix are settings: Kubernetes injects others into every pod beside a service called
//! lockward. Values are not read here.

use std::ffi::OsString;

use super::fault::{Fault, Origin};
use super::keys::{self, LOCKS, SECTIONS, TLS};
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

/// What a variable sets. The order is that in which they are applied, so rules are appended by rising numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Key { section: &'static str, key: &'static str },
    Tls { section: &'static str, key: &'static str },
    Lock { index: usize, key: &'static str },
}

impl Target {
    fn name(self) -> String {
        let name = match self {
            Target::Key { section, key } => format!("{PREFIX}{section}__{key}"),
            Target::Tls { section, key } => format!("{PREFIX}{section}__tls__{key}"),
            Target::Lock { index, key } => format!("{PREFIX}locks__{index}__{key}"),
        };
        name.to_ascii_uppercase()
    }

    /// Everything a variable can set, with this number for the rule.
    fn all(index: usize) -> impl Iterator<Item = Target> {
        let keys = SECTIONS
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(|key| Target::Key { section, key }));
        // TLS is a table: its keys are set, not it.
        let keys = keys.filter(|target| !matches!(target, Target::Key { key: "tls", .. }));
        let tls = TLS
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(|key| Target::Tls { section, key }));
        keys.chain(tls)
            .chain(LOCKS.iter().map(move |key| Target::Lock { index, key }))
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
        let index = rest
            .split("__")
            .nth(1)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        match Target::all(index).find(|target| target.name() == name) {
            Some(target) => settings.push((target, name, value)),
            None => faults.push(unknown(name, index)),
        }
    }
    settings.sort();
    for (target, name, value) in settings {
        let node = Node {
            origin: Origin::Variable(name),
            value: Value::Raw(value),
        };
        match target {
            Target::Key { section, key } => set_key(tree, section, key, node),
            Target::Tls { section, key } => set_tls(tree, section, key, node),
            Target::Lock { index, key } => set_lock(tree, index, key, node, faults),
        }
    }
}

fn unknown(name: String, index: usize) -> Fault {
    let names: Vec<String> = Target::all(index).map(Target::name).collect();
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

fn set_key(tree: &mut Table, section: &str, key: &str, node: Node) {
    let Some(table) = table(tree, section, &node.origin) else {
        return;
    };
    // A variable that says where to listen stands in place of the file's other way to say it.
    let other = match (section, key) {
        ("listen", "address") => "unix",
        ("listen", "unix") => "address",
        _ => "",
    };
    table
        .0
        .retain(|Entry { key, origin, .. }| key != other || matches!(origin, Origin::Variable(_)));
    table.set(key, node);
}

fn set_tls(tree: &mut Table, section: &str, key: &str, node: Node) {
    let tls = table(tree, section, &node.origin).and_then(|section| table(section, "tls", &node.origin));
    if let Some(tls) = tls {
        tls.set(key, node);
    }
}

fn set_lock(tree: &mut Table, index: usize, key: &str, node: Node, faults: &mut Vec<Fault>) {
    if tree.get_mut("locks").is_none() {
        tree.set(
            "locks",
            Node {
                origin: node.origin.clone(),
                value: Value::List(Vec::new()),
            },
        );
    }
    let Some(Node {
        value: Value::List(locks),
        ..
    }) = tree.get_mut("locks")
    else {
        return;
    };
    let count = locks.len();
    if index == count {
        locks.push(Node {
            origin: node.origin.clone(),
            value: Value::Table(Table::default()),
        });
    }
    match locks.get_mut(index) {
        Some(Node {
            value: Value::Table(lock),
            ..
        }) => lock.set(key, node),
        Some(_) => {}
        None => {
            let text = format!("there are {count} rules before it; the next one has number {count}");
            faults.push(Fault {
                origin: node.origin,
                key: String::new(),
                text,
            });
        }
    }
}
