//! What must hold of any bytes that come to lockward's scanners, its configuration and its patterns: one function for
//! each fuzz target, which panics where it does not hold. Each compares with something that was written for itself, be
//! it a naive reading of the same bytes or another crate. Runs under libFuzzer (`targets`) and, over the kept seeds,
//! in `cargo test` (`tests/fuzz_seeds.rs`). Knows no server: that is for the runners beside it.

pub mod announced;
pub mod config;
pub mod cuts;
pub mod glob;
pub mod inline;
pub mod naive_glob;
pub mod naive_reply;
pub mod naive_request;
pub mod reply;
pub mod request;
pub mod rules;

/// What must hold of these bytes: it panics if it does not.
pub type Oracle = fn(&[u8]);

/// The oracles by the names of their targets.
pub const ALL: [(&str, Oracle); 7] = [
    ("announced", announced::check),
    ("config", config::check),
    ("glob", glob::check),
    ("inline", inline::check),
    ("reply", reply::check),
    ("request", request::check),
    ("rules", rules::check),
];
