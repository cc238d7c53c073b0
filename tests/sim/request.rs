//! One request of a client, from its sending to its answer, and what it did at the server.

use crate::resp::Reply;
use crate::server::keyspace::{Bytes, Change, Seen};

/// What a client means by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    Acquire,
    Release,
    Extend,
    Overwrite,
    Takeover,
    /// A script or compare command, taken at its word.
    SelfChecked,
    /// `LOCKWARD …`.
    Own,
    /// FLUSHALL and the like.
    Flush,
    /// No operation on a lease: passed on byte for byte.
    Plain,
}

impl Meaning {
    /// The five that have a column in the decision table.
    pub const TABLE: [Meaning; 5] = [
        Meaning::Acquire,
        Meaning::Release,
        Meaning::Extend,
        Meaning::Overwrite,
        Meaning::Takeover,
    ];
}

#[derive(Debug)]
pub struct Request {
    pub client: usize,
    pub task: Option<usize>,
    pub args: Vec<Bytes>,
    pub raw: Bytes,
    pub meaning: Meaning,
    /// The lock keys among its keys, each once.
    pub locks: Vec<Bytes>,
    /// Sent between MULTI and EXEC.
    pub in_multi: bool,
    /// lockward answers it itself.
    pub local: bool,
    /// No answer comes.
    pub silent: bool,
    /// It is behind all others: the connection closes after its answer.
    pub last: bool,
    /// What the server answered to what arrived in its place.
    pub server_reply: Option<Reply>,
    /// lockward refused it without sending it.
    pub shielded: bool,
    /// What a look at its lock has found last: it was held.
    pub looked: bool,
    /// How often it was executed.
    pub executed: usize,
    /// Its locks as they were before.
    pub seen: Vec<Seen>,
    /// What it changed, records left out.
    pub changes: Vec<Change>,
    /// How many changes it made to records.
    pub record_changes: usize,
}

impl Request {
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.args[0]).to_ascii_uppercase()
    }

    /// Whether a word stands behind the first two arguments.
    pub fn has(&self, word: &str) -> bool {
        self.args
            .iter()
            .skip(3)
            .any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The locks that a release gives up.
    pub fn released(&self) -> Vec<Bytes> {
        let count = if self.name() == "RENAME" { 1 } else { self.locks.len() };
        self.locks.iter().take(count).cloned().collect()
    }

    pub fn before(&self, key: &[u8]) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.key == key)
    }
}
