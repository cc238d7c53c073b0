//! All commands that there are: those of lockward's table, and those that the server lists with their subcommands. Says
//! which of them are said, and which only with a wrong number of arguments.

use std::collections::BTreeMap;

use crate::left_out::{LEFT_OUT, NEVER};
use crate::samples::SAMPLES;
use crate::sequences::SEQUENCES;
use crate::side::Control;

/// The rows of lockward's table as they stand in its source: building lockward for them would take minutes. A file that is
/// missing here is seen by the number of rows.
const TABLE: &[&str] = &[
    include_str!("../../src/command/table/arrays.rs"),
    include_str!("../../src/command/table/bitmaps.rs"),
    include_str!("../../src/command/table/connection.rs"),
    include_str!("../../src/command/table/generic.rs"),
    include_str!("../../src/command/table/geo.rs"),
    include_str!("../../src/command/table/hashes.rs"),
    include_str!("../../src/command/table/hyperloglogs.rs"),
    include_str!("../../src/command/table/lists.rs"),
    include_str!("../../src/command/table/modules.rs"),
    include_str!("../../src/command/table/pubsub.rs"),
    include_str!("../../src/command/table/scripting.rs"),
    include_str!("../../src/command/table/server.rs"),
    include_str!("../../src/command/table/sets.rs"),
    include_str!("../../src/command/table/sorted_sets.rs"),
    include_str!("../../src/command/table/streams.rs"),
    include_str!("../../src/command/table/strings.rs"),
    include_str!("../../src/command/table/transactions.rs"),
    include_str!("../../src/command/table/vectors.rs"),
];
const ROWS_AT_LEAST: usize = 400;

/// Names and arities: `plain("append", 3, ONE)`.
fn table() -> impl Iterator<Item = (String, i16)> {
    TABLE.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let (_, row) = line.trim().split_once("(\"")?;
        let (name, rest) = row.split_once("\", ")?;
        let (arity, _) = rest.split_once(',')?;
        Some((name.to_owned(), arity.parse().ok()?))
    })
}

/// A command, or a command and its subcommand with a blank between them.
pub struct Command {
    pub name: String,
    /// As `COMMAND` has it, the name counted.
    pub arity: i16,
    pub only_wrong: bool,
}

pub struct Commands {
    pub said: Vec<Command>,
}

impl Commands {
    /// Asks a server for what it knows.
    pub fn ask(server: &mut Control) -> Commands {
        let mut all: BTreeMap<String, i16> = BTreeMap::new();
        all.extend(table());
        assert!(all.len() >= ROWS_AT_LEAST, "the table has only {} rows", all.len());
        // The names only: a subcommand's is `config|set`.
        let listed = server.ask(&["COMMAND"]);
        let mut entries = Entries::new(&listed);
        while let Some((name, arity)) = entries.next_command() {
            all.insert(name.replace('|', " "), arity);
        }
        let listed_in = |list: &[(&str, &str)], name: &str| {
            let whole = name.split(' ').next().unwrap_or_default();
            list.iter().any(|(left_out, _)| *left_out == name || *left_out == whole)
        };
        let said = all
            .into_iter()
            .filter(|(name, _)| !listed_in(NEVER, name))
            .map(|(name, arity)| Command {
                only_wrong: listed_in(LEFT_OUT, &name),
                name,
                arity,
            })
            .filter(|command| {
                !command.only_wrong || usize::from(command.arity.unsigned_abs()) > command.name.split(' ').count()
            })
            .collect();
        Commands { said }
    }

    /// How many different commands a batch can hold: generic ones, samples and sequences.
    pub fn count(&self) -> usize {
        let mut names: Vec<String> = self.said.iter().map(|command| command.name.clone()).collect();
        let lines = SAMPLES.iter().chain(SEQUENCES.iter().copied().flatten());
        names.extend(lines.map(|line| line.split(' ').next().unwrap_or_default().to_ascii_lowercase()));
        names.sort();
        names.dedup();
        names.len()
    }
}

/// Looks through the answer to `COMMAND` for what can only be a command: a name in an array, and an integer behind it.
struct Entries<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
}

impl<'a> Entries<'a> {
    fn new(answer: &'a [u8]) -> Entries<'a> {
        Entries {
            lines: answer.split(|byte| *byte == b'\n').collect(),
            at: 0,
        }
    }

    fn next_command(&mut self) -> Option<(String, i16)> {
        while let [header, length, name, arity, ..] = self.lines.get(self.at..)? {
            self.at += 1;
            let is_entry = header.starts_with(b"*") && length.starts_with(b"$") && arity.starts_with(b":");
            let text = |line: &[u8]| String::from_utf8_lossy(line).trim().to_owned();
            if is_entry && let Ok(arity) = text(&arity[1..]).parse() {
                return Some((text(name), arity));
            }
        }
        None
    }
}
