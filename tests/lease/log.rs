//! What happened in a history, told only if it ends in a difference.

use std::fmt;

use lockward::event::{ConnectionId, Owner};

use super::history::Came;
use super::step::Step;

pub enum Entry {
    Asked {
        step: Step,
        who: ConnectionId,
        owner: Owner,
        key: usize,
        rules: [usize; 2],
    },
    Came {
        start: i64,
        end: i64,
        came: Came,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Asked {
                step,
                who,
                owner,
                key,
                rules,
            } => {
                writeln!(f, "{step:?} by {who} of {owner} on key {key}, rules {rules:?}")
            }
            Entry::Came { start, end, came } => writeln!(f, "  {start}..{end}: {came:?}"),
        }
    }
}
