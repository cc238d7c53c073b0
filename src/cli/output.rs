//! What the commands print. A reader that has gone away (`lockward tap | head`) ends a command quietly, anything else
//! that keeps it from writing is an error.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::complain;
use super::shown::shown_json;

/// Standard output cannot be written to.
pub(super) struct Closed(io::Error);

impl Closed {
    /// The exit code, after the error was shown where it is one.
    pub(super) fn code(self) -> ExitCode {
        if self.0.kind() == io::ErrorKind::BrokenPipe {
            return ExitCode::SUCCESS;
        }
        complain(&format!("cannot write: {}", self.0));
        ExitCode::FAILURE
    }
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Closed {
        Closed(error)
    }
}

/// Writes a text as it is.
pub(super) fn print(text: &str) -> Result<(), Closed> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a value as JSON over several lines.
pub(super) fn print_json<T: Serialize>(value: &T) -> Result<(), Closed> {
    let json = serde_json::to_string_pretty(value).map_err(|error| Closed(io::Error::other(error)))?;
    print(&format!("{}\n", shown_json(&json)))
}
