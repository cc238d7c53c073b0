//! The locks: rules, owners, lease records, the release accounting, the decision table and the scripts that make each
//! decision atomic on the server. No IO, no clock, no randomness.

pub mod call;
pub mod chore;
pub mod chronicle;
pub mod decision;
pub mod features;
pub mod glob;
pub mod idiom;
pub mod keeper;
pub mod model;
pub mod observe;
pub mod owner;
pub mod record;
pub mod rule;
pub mod scout;
pub mod script;
pub mod search;
pub mod shield;
pub mod waiters;

/// So long after its due time a lease counts as run out, in milliseconds: the due time as the proxy knows it is already
/// late by the way of the answer, and server and proxy count milliseconds each for themselves.
const DUE_MARGIN_MS: u64 = 50;
/// Longer keys, in bytes, are forwarded and decided upon like any, but nothing is remembered of them: whoever made them up
/// would have all the memory.
pub const LONGEST_KEPT_KEY: usize = 4096;
