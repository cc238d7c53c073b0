//! The commands: one table row for each command of Redis and Valkey that is known, and where its keys stand. Reads
//! bytes only; decides nothing about locks, and refuses nothing: the server knows its commands better than any table.

pub mod client;
pub mod keys;
pub mod lookup;
pub mod role;
pub mod row;
#[cfg(test)]
mod sample;
pub mod standing;
mod table;
pub mod waiting;

pub use client::{ClientCall, Hello};
pub use keys::{early, keys, only_key, target};
pub use lookup::{CommandId, count, lookup, name, names, row};
pub use role::{Channels, Idiom, Role};
pub use row::{Keys, Row, Subcommand, arity_ok};
pub use standing::{Stay, asks_for_own_writes, shareable, stay};
pub use waiting::may_wait;
