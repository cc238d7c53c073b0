//! The locks: rules, owners, lease records, the release accounting, the decision table and the scripts that make each
//! decision atomic on the server. No IO, no clock, no randomness.

pub mod chore;
pub mod features;
pub mod keeper;
pub mod rule;
pub mod waiters;
