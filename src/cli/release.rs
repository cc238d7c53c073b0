//! `lockward release KEY`: the way out of a stuck lock, through the admin address of a running lockward.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::Args;

use super::shown::{shown, span};
use super::target::{Target, Token};
use super::{complain, runtime, say};
use crate::admin::client::{self, ClientError, Released};

/// Release a lock by force.
#[derive(Args)]
pub(super) struct Release {
    /// The lock key, as it is in the server.
    key: OsString,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    token: Token,
    /// The lock's database.
    #[arg(long, default_value_t = 0)]
    db: u32,
    /// Why, for the log.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Release {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, config) = self.target.client()?;
        let token = self.token.find(&config)?;
        let key = self.key.as_bytes();
        let name = shown(key);
        let released = client::release(client.address(), token.reveal(), self.db, key, &self.reason);
        match runtime()?.block_on(released) {
            Ok(Released::Freed { held_ms: Some(held) }) => {
                Ok(told(&format!("{name}: released, held for {}", span(held))))
            }
            Ok(Released::Freed { held_ms: None }) => Ok(told(&format!("{name}: released"))),
            Ok(Released::Absent) => Err(failed(&format!(
                "{name}: there is no such lock in database {}",
                self.db
            ))),
            Err(error) if surely_not(&error) => Err(failed(&format!("{name} was not released: {error}"))),
            Err(error) => Err(failed(&format!(
                "it is not known whether {name} was released, look at it with `lockward locks`: {error}"
            ))),
        }
    }
}

/// Whether nothing can have been released. A release goes on in lockward when its caller is gone, so that an answer which
/// does not come, or tells of trouble on the way to the server, leaves it open.
fn surely_not(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. } | ClientError::Unsendable(_) => true,
        ClientError::Refused { status, .. } => matches!(status, 400 | 401 | 403 | 404),
        ClientError::Timeout { .. } | ClientError::Foreign { .. } | ClientError::Gone { .. } => false,
    }
}

fn told(text: &str) -> ExitCode {
    say(text);
    ExitCode::SUCCESS
}

fn failed(text: &str) -> ExitCode {
    complain(text);
    ExitCode::FAILURE
}
