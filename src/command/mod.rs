//! The commands: one table row for each command of the server that matters, and where its keys stand. Reads bytes
//! only; decides nothing about locks.

pub mod role;

pub use role::{Channels, Idiom, Role};
