//! The command line: serve, check, demo, release.

pub mod demo;

use std::process::ExitCode;

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
