//! Takes typed values out of one table of the tree. Faults are noted and reading goes on, so that all of them are
//! found; what is left in the table at the end is unknown.

use std::path::PathBuf;

use super::address::{self, HostPort, Server};
use super::duration;
use super::fault::{Fault, Origin, shown};
use super::keys;
use super::size;
use super::tree::{self, Entry, Node, Table, Value};

/// One table being read.
pub(super) struct Reader<'f> {
    /// `listen`, `locks[0]`.
    path: String,
    known: &'static [&'static str],
    table: Table,
    /// Which keys were there, and where.
    origins: Origins,
    pub(super) faults: &'f mut Vec<Fault>,
}

/// Where the keys of one table stand.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    path: String,
    whole: Origin,
    keys: Vec<(&'static str, Origin)>,
}

impl Origins {
    /// Of a table that is not there at all.
    pub(super) fn nowhere(path: &str) -> Origins {
        Origins {
            path: path.to_owned(),
            whole: Origin::File,
            keys: Vec::new(),
        }
    }

    /// Whether the key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(name, _)| *name == key)
    }

    /// `listen`, `locks[0]`.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A fault of a key, where it stands, else where its table does.
    pub(super) fn fault(&self, key: &str, text: String) -> Fault {
        let origin = self
            .keys
            .iter()
            .find(|(name, _)| *name == key)
            .map_or(&self.whole, |(_, origin)| origin);
        Fault {
            origin: origin.clone(),
            key: format!("{}.{key}", self.path),
            text,
        }
    }
}

/// The type of a value, for errors. The value itself is not told: it may be a secret on the wrong line.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Text(_) | Value::Raw(_) => "a text",
        Value::Integer(_) => "a number",
        Value::Bool(_) => "true or false",
        Value::List(_) => "a list",
        Value::Table(_) => "a table",
        Value::Other(name) => name,
    }
}

/// What an empty list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    Fine,
    Fault,
}

impl<'f> Reader<'f> {
    pub(super) fn new(
        path: String,
        whole: Origin,
        known: &'static [&'static str],
        table: Table,
        faults: &'f mut Vec<Fault>,
    ) -> Self {
        let origins = Origins {
            path: path.clone(),
            whole,
            keys: Vec::new(),
        };
        Reader {
            path,
            known,
            table,
            origins,
            faults,
        }
    }

    /// Takes the value of a key, whatever its type.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Node> {
        debug_assert!(self.known.contains(&key), "{key} is missing in the list of keys");
        let Entry { origin, node, .. } = self.table.take(key)?;
        self.origins.keys.push((key, origin));
        Some(node)
    }

    /// Whether the key is there and was not taken yet.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.0.iter().any(|entry| entry.key == key)
    }

    /// Whether a key that was probably meant to be this one is there.
    pub(super) fn has_slip_of(&self, key: &str) -> bool {
        let known = || self.known.iter().copied();
        self.table
            .0
            .iter()
            .any(|entry| entry.key != key && keys::nearest(&entry.key, known()) == Some(key))
    }

    /// Notes a fault of a key.
    pub(super) fn fault(&mut self, origin: Origin, key: &str, text: impl Into<String>) {
        let key = self.path_of(key);
        self.faults.push(Fault {
            origin,
            key,
            text: text.into(),
        });
    }

    /// Notes a fault of a key that is not there, where its table stands.
    pub(super) fn whole_fault(&mut self, key: &str, text: impl Into<String>) {
        self.fault(self.origins.whole.clone(), key, text);
    }

    /// Notes a fault of a key that was taken, where it stands.
    pub(super) fn taken_fault(&mut self, key: &str, text: impl Into<String>) {
        let fault = self.origins.fault(key, text.into());
        self.faults.push(fault);
    }

    /// The whole name of a key of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// A value that `read` makes of a text.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let Node { origin, value } = self.take(key)?;
        let result = match &value {
            Value::Text(text) | Value::Raw(text) => read(text),
            other => Err(format!("must be {expected}, not {}", kind(other))),
        };
        result.map_err(|text| self.fault(origin, key, text)).ok()
    }

    /// Milliseconds, at least `least`.
    pub(super) fn milliseconds(&mut self, key: &'static str, least: u64) -> Option<u64> {
        self.parsed(
            key,
            "a time in quotes with its unit, like \"30s\"",
            |text| match duration::parse(text)? {
                time if time < least => Err(format!("must be at least \"{}\"", duration::text(least))),
                time => Ok(time),
            },
        )
    }

    /// Bytes, at least `least`.
    pub(super) fn bytes(&mut self, key: &'static str, least: u64) -> Option<u64> {
        self.parsed(key, "a size in quotes, like \"16MB\"", |text| {
            match size::parse(text)? {
                size if size < least => Err(format!("must be at least \"{}\"", size::text(least))),
                size => Ok(size),
            }
        })
    }

    pub(super) fn address(&mut self, key: &'static str) -> Option<HostPort> {
        self.parsed(key, "host:port in quotes", address::host_port)
    }

    pub(super) fn socket_path(&mut self, key: &'static str) -> Option<PathBuf> {
        self.parsed(key, "a path in quotes", address::socket_path)
    }

    pub(super) fn server(&mut self, key: &'static str) -> Option<Server> {
        self.parsed(key, "a URL in quotes", address::server)
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(key, &one_of(words), |text| pick(text, words))
    }

    pub(super) fn bool(&mut self, key: &'static str) -> Option<bool> {
        let Node { origin, value } = self.take(key)?;
        match &value {
            Value::Bool(bool) => return Some(*bool),
            Value::Raw(text) if text == "true" => return Some(true),
            Value::Raw(text) if text == "false" => return Some(false),
            Value::Text(text) if text == "true" || text == "false" => {
                self.fault(origin, key, "must be true or false without quotes");
            }
            other => self.fault(origin, key, format!("must be true or false, not {}", kind(other))),
        }
        None
    }

    /// A whole number in a range.
    pub(super) fn integer(&mut self, key: &'static str, least: u32, most: u32) -> Option<u32> {
        let Node { origin, value } = self.take(key)?;
        let (Value::Integer(digits) | Value::Raw(digits)) = &value else {
            let text = format!("must be a whole number without quotes, not {}", kind(&value));
            self.fault(origin, key, text);
            return None;
        };
        let number = digits
            .parse::<u32>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.fault(origin, key, format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// One text or a list of them, each with the place where it stands; in a variable separated by commas, or as TOML
    /// writes a list. `None` if the key is not there; what is wrong in the list is left out of it.
    pub(super) fn texts(&mut self, key: &'static str, empty: Empty) -> Option<Vec<(String, Origin)>> {
        let Node { origin, value } = self.take(key)?;
        let items = match value {
            Value::List(items) => items,
            Value::Raw(text) => match raw_list(&text, &origin) {
                Ok(items) => items,
                Err(error) => {
                    self.fault(origin, key, format!("no list as in TOML: {error}"));
                    return Some(Vec::new());
                }
            },
            single => vec![Node {
                origin: origin.clone(),
                value: single,
            }],
        };
        if items.is_empty() && empty == Empty::Fault {
            self.fault(origin, key, "the list is empty");
        }
        let mut texts = Vec::new();
        for Node { origin, value } in items {
            match value {
                Value::Text(text) => texts.push((text, origin)),
                other => {
                    let text = format!("must be a text in quotes or a list of them, not {}", kind(&other));
                    self.fault(origin, key, text);
                }
            }
        }
        Some(texts)
    }

    /// Notes what is left as unknown; gives back where the keys stand.
    pub(super) fn finish(self) -> Origins {
        let Reader {
            path,
            known,
            table,
            origins,
            faults,
        } = self;
        for Entry { key, origin, .. } in table.0 {
            let text = keys::unknown(&key, known);
            let key = shown(&key);
            let key = if path.is_empty() { key } else { format!("{path}.{key}") };
            faults.push(Fault { origin, key, text });
        }
        origins
    }
}

/// A variable's list: `["a", "b"]` or `a,b`. A glob can begin with a bracket too, but not with a bracket and a quote.
fn raw_list(text: &str, origin: &Origin) -> Result<Vec<Node>, String> {
    let inner = text.trim().strip_prefix('[').map(str::trim_start);
    if inner.is_some_and(|inner| inner.starts_with(['"', '\'']) || inner == "]") {
        return tree::parse_list(text.trim(), origin);
    }
    let item = |text: &str| Node {
        origin: origin.clone(),
        value: Value::Text(text.trim().to_owned()),
    };
    Ok(text.split(',').map(item).collect())
}

/// Finds a word among some.
pub(super) fn pick<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let hint = keys::nearest(text, words.iter().map(|(word, _)| *word));
    let hint = hint.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    Err(format!("must be {}, not \"{}\"{hint}", one_of(words), shown(text)))
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
