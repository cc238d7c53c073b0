//! Finding a command's row by its name, in any case: the families of the table joined, and a hash index over them, both
//! made when the crate is compiled. No allocation, no lock, nothing made at the first use.

use super::row::Row;
use super::table::FAMILIES;

/// A command's place in the table; stable while the program runs, not from one version to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub u16);

impl CommandId {
    /// Every command that the table does not know.
    pub const OTHER: CommandId = CommandId(u16::MAX);
}

const COUNT: usize = rows_in(&FAMILIES);
/// More than twice the rows, so that few names meet; a power of two.
const SLOTS: usize = 2048;
const _: () = assert!(COUNT * 2 < SLOTS);
const EMPTY: u16 = u16::MAX;

static TABLE: [Row; COUNT] = joined(&FAMILIES);
static INDEX: [u16; SLOTS] = indexed(&TABLE);

/// The command with this name in any case, and its row; [`CommandId::OTHER`] and `None` for an unknown one.
pub fn lookup(name: &[u8]) -> (CommandId, Option<&'static Row>) {
    let mut slot = hash(name) & (SLOTS - 1);
    // Half of the slots are empty: the walk ends.
    while let Some(&place) = INDEX.get(slot) {
        let Some(row) = TABLE.get(usize::from(place)) else {
            break;
        };
        if name.eq_ignore_ascii_case(row.name.as_bytes()) {
            return (CommandId(place), Some(row));
        }
        slot = (slot + 1) & (SLOTS - 1);
    }
    (CommandId::OTHER, None)
}

/// The row of a command; `None` for [`CommandId::OTHER`] and for what no lookup gave.
pub fn row(id: CommandId) -> Option<&'static Row> {
    TABLE.get(usize::from(id.0))
}

/// The lower-case name of a command for labels; `other` for one that the table does not know.
pub fn name(id: CommandId) -> &'static str {
    row(id).map_or("other", |row| row.name)
}

/// How many commands the table knows; their ids are 0 to this, not included.
pub fn count() -> usize {
    COUNT
}

/// The names of all commands, by their numbers.
pub fn names() -> Vec<&'static str> {
    (0..COUNT).map(|id| name(CommandId(id as u16))).collect()
}

/// FNV-1a over the length and the first 24 bytes, in which no two names of the table are alike. Bit 5 is set in every
/// byte, which makes letters lower-case; other bytes that it merges are told apart by the comparison that follows.
const fn hash(name: &[u8]) -> usize {
    let mut hash = 0x811c_9dc5_u32 ^ name.len() as u32;
    let mut at = 0;
    while at < name.len() && at < 24 {
        hash = (hash ^ (name[at] | 0x20) as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    // The low bits of FNV are its weaker ones.
    (hash ^ (hash >> 15)) as usize
}

const fn rows_in(families: &[&[Row]]) -> usize {
    let mut count = 0;
    let mut family = 0;
    while family < families.len() {
        count += families[family].len();
        family += 1;
    }
    count
}

const fn joined(families: &[&[Row]]) -> [Row; COUNT] {
    let mut table = [families[0][0]; COUNT];
    let mut place = 0;
    let mut family = 0;
    while family < families.len() {
        let mut at = 0;
        while at < families[family].len() {
            table[place] = families[family][at];
            place += 1;
            at += 1;
        }
        family += 1;
    }
    table
}

const fn indexed(table: &[Row; COUNT]) -> [u16; SLOTS] {
    let mut index = [EMPTY; SLOTS];
    let mut place = 0;
    while place < COUNT {
        let mut slot = hash(table[place].name.as_bytes()) & (SLOTS - 1);
        while index[slot] != EMPTY {
            slot = (slot + 1) & (SLOTS - 1);
        }
        index[slot] = place as u16;
        place += 1;
    }
    index
}

#[cfg(test)]
mod tests;
