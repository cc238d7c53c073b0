//! Sets up where log lines go: the process's standard error, as text or JSON, from a level upwards that can be changed
//! later. Writes no lines itself.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::config::Format;

/// Why logging could not be set up or changed.
#[derive(Debug, Error)]
pub enum LogError {
    /// The operator's: no such level.
    #[error("log level '{0}' is none of off, error, warn, info, debug, trace")]
    Level(String),
    /// The program's: somebody set up logging before.
    #[error("logging is set up already: {0}")]
    Twice(#[from] TryInitError),
    /// The program's: logging is gone.
    #[error("logging cannot be changed any more: {0}")]
    Gone(#[from] reload::Error),
}

/// Changes the level of a running process.
#[derive(Clone, Debug)]
pub struct LogHandle(reload::Handle<LevelFilter, Registry>);

impl LogHandle {
    /// Shows lines of `level` and above from here on.
    ///
    /// # Errors
    /// [`LogError::Level`] if there is no such level: nothing is changed.
    pub fn set_level(&self, level: &str) -> Result<(), LogError> {
        self.0.reload(parse_level(level)?)?;
        Ok(())
    }
}

/// Reads a level as the configuration names it: `off`, `error`, `warn`, `info`, `debug` or `trace`, in any case.
///
/// # Errors
/// [`LogError::Level`] for anything else.
pub fn parse_level(level: &str) -> Result<LevelFilter, LogError> {
    // Numbers and the empty text, which tracing takes too, are no levels of ours.
    let word = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_alphabetic());
    level
        .parse()
        .ok()
        .filter(|_| word)
        .ok_or_else(|| LogError::Level(level.to_owned()))
}

/// Sets up logging for the whole process, once.
///
/// # Errors
/// [`LogError::Level`] if there is no such level, [`LogError::Twice`] if logging is set up already.
pub fn init(level: &str, format: Format) -> Result<LogHandle, LogError> {
    let (filter, handle) = reload::Layer::new(parse_level(level)?);
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init()?;
    Ok(LogHandle(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_words() {
        assert_eq!(parse_level("info").unwrap(), LevelFilter::INFO);
        assert_eq!(parse_level("WARN").unwrap(), LevelFilter::WARN);
        assert_eq!(parse_level("off").unwrap(), LevelFilter::OFF);
        for wrong in ["", "3", "inf", "lockward=debug", "info "] {
            assert!(parse_level(wrong).is_err(), "{wrong:?}");
        }
    }
}
