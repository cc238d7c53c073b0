//! `[[listeners]]`: further places where clients come in, each perhaps with rules of its own. Opens none of them.

use super::conflicts::SitedRule;
use super::entrance::{self, Entrance};
use super::fault::Origin;
use super::keys;
use super::reader::{Origins, Reader};
use super::rules;
use super::tree::{Node, Table, Value};

/// The key at the top.
const KEY: &str = "listeners";
/// Besides `[listen]`.
const MOST_LISTENERS: usize = 32;

/// A listener, its own rules if it has any, and where its keys stand.
type Sited = (Entrance, Option<Vec<SitedRule>>, Origins);

/// Reads all of them, often none.
pub(super) fn read(top: &mut Reader<'_>) -> Vec<Sited> {
    let Some(Node { origin, value }) = top.take(KEY) else {
        return Vec::new();
    };
    let Value::List(entries) = value else {
        let text = "must be written as [[listeners]], with two brackets, once for each of them";
        top.fault(origin, KEY, text);
        return Vec::new();
    };
    if entries.len() > MOST_LISTENERS {
        top.fault(origin, KEY, format!("more than {MOST_LISTENERS} listeners"));
        return Vec::new();
    }
    let mut listeners = Vec::with_capacity(entries.len());
    for (index, Node { origin, value }) in entries.into_iter().enumerate() {
        let path = format!("{KEY}[{index}]");
        match value {
            Value::Table(table) => listeners.push(listener(path, origin, table, top)),
            _ => top.fault(origin, &path, "must be a table"),
        }
    }
    listeners
}

fn listener(path: String, origin: Origin, table: Table, top: &mut Reader<'_>) -> Sited {
    let mut reader = Reader::new(path, origin, keys::LISTENERS, table, top.faults);
    let name = entrance::name(&mut reader);
    let entrance = entrance::read(&mut reader, &name, None);
    let own = rules::own(&mut reader);
    (entrance, own, reader.finish())
}
