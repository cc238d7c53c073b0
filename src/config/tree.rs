//! A configuration as a tree in which every key and value remembers where it was written. Knows TOML; does not know
//! which keys there are.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Origin};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// An integer as written, without its underscores; with `0x` and the like in front.
    Integer(String),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
    /// A float or a date, which no key takes: its type's name.
    Other(&'static str),
    /// The text of a variable; its type is that of the key.
    Raw(String),
}

/// Keys in the order of the file's lines are of no use here; they are looked up by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Where the key stands, which for a table can be another line than its value's.
    pub(super) origin: Origin,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }

    /// Puts a value in place of what the key had.
    pub(super) fn set(&mut self, key: &str, node: Node) {
        self.0.retain(|entry| entry.key != key);
        self.0.push(Entry {
            key: key.to_owned(),
            origin: node.origin.clone(),
            node,
        });
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.swap_remove(index))
    }
}

/// Parses the text of a file. With faults of TOML itself there is no tree: what was meant behind them is a guess.
pub(super) fn parse(text: &str, faults: &mut Vec<Fault>) -> Option<Table> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(lines.table(table.into_inner()));
    }
    let mut last_line = None;
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = lines.of(&span);
        // What follows on the same line is most often the same slip.
        if last_line.replace(line) != Some(line) {
            let text = error.message().replace('\n', "; ");
            faults.push(Fault {
                origin: Origin::Line(line),
                key: lines.key_at(line),
                text,
            });
        }
    }
    None
}

/// Parses a list that a variable holds in TOML's form.
pub(super) fn parse_list(text: &str, origin: &Origin) -> Result<Vec<Node>, String> {
    let value = DeValue::parse(text).map_err(|error| error.message().replace('\n', "; "))?;
    let lines = Lines::new(text);
    match value.into_inner() {
        DeValue::Array(array) => Ok(array
            .into_iter()
            .map(|item| Node {
                origin: origin.clone(),
                value: lines.node(item).value,
            })
            .collect()),
        _ => Err("not a list".to_owned()),
    }
}

/// Finds lines by offset.
struct Lines<'a> {
    text: &'a str,
    /// The offset behind each line end.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines {
            text,
            starts: ends.map(|(at, _)| at + 1).collect(),
        }
    }

    /// The line on which a span begins, from 1.
    fn of(&self, span: &Range<usize>) -> usize {
        1 + self.starts.partition_point(|start| *start <= span.start)
    }

    /// The key that a line seems to set, to name it where TOML could not be read.
    fn key_at(&self, line: usize) -> String {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let key = text.split_once('=').map_or("", |(key, _)| key.trim());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if key.len() <= 100 && key.bytes().all(plain) {
            key.to_owned()
        } else {
            String::new()
        }
    }

    fn table(&self, table: DeTable<'_>) -> Table {
        let entries = table.into_iter().map(|(key, value)| Entry {
            origin: Origin::Line(self.of(&key.span())),
            key: key.into_inner().into_owned(),
            node: self.node(value),
        });
        Table(entries.collect())
    }

    /// The parser bounds how deep values nest, so this recursion is bounded.
    fn node(&self, value: Spanned<DeValue<'_>>) -> Node {
        let origin = Origin::Line(self.of(&value.span()));
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(integer) => Value::Integer(integer.to_string()),
            DeValue::Float(_) => Value::Other("a number with a point"),
            DeValue::Boolean(bool) => Value::Bool(bool),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(array) => Value::List(array.into_iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { origin, value }
    }
}
