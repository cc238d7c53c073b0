//! The `lockward` program: hands its arguments to [`lockward::cli`] and exits with its code. Nothing else lives here.

use std::process::ExitCode;

fn main() -> ExitCode {
    lockward::cli::main()
}
