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
pub mod waiters;
