//! Fuzzes what `oracles/rules.rs` says. Nothing in lockward may ask for more memory than stands here, whatever the input
//! announces: an allocation beyond it fails, which ends the run.

#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 16 << 20);

fuzz_target!(|input: &[u8]| lockward_fuzz::rules::check(input));
