//! `lockward release KEY`: the way out of a stuck lock, through the admin address of a running lockward.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::Args;

use super::{Source, complain, runtime, say};
use crate::admin::client::{self, Released};

/// Release a lock by force.
#[derive(Args)]
pub(super) struct Release {
    /// The lock key, as it is in the server.
    key: OsString,
    #[command(flatten)]
    source: Source,
    /// The lock's database.
    #[arg(long, default_value_t = 0)]
    db: u32,
    /// Why, for the log.
    #[arg(long, default_value = "")]
    reason: String,
    /// The admin address; default: that of the configuration.
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    /// The admin token; default: that of the configuration (better there, or in LOCKWARD_ADMIN__TOKEN, than in `ps`).
    #[arg(long)]
    token: Option<String>,
}

impl Release {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let config = self.source.load()?.config;
        let address = self.admin.unwrap_or_else(|| config.admin.address.to_string());
        let token = self
            .token
            .or_else(|| config.admin.token.as_ref().map(|token| token.reveal().to_owned()));
        let Some(token) = token else {
            complain(
                "this needs the admin token that the running lockward has: give --config FILE, LOCKWARD_ADMIN__TOKEN or --token",
            );
            return Err(ExitCode::from(2));
        };
        let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let key = self.key.as_bytes();
        let shown = String::from_utf8_lossy(key).escape_debug().to_string();
        match runtime()?.block_on(client::release(&address, &token, self.db, key, &self.reason)) {
            Ok(Released::Freed { held_ms: Some(held) }) => Ok(told(&format!("{shown}: released, held for {held} ms"))),
            Ok(Released::Freed { held_ms: None }) => Ok(told(&format!("{shown}: released"))),
            Ok(Released::Absent) => {
                complain(&format!("{shown}: there is no such lock in database {}", self.db));
                Err(ExitCode::FAILURE)
            }
            Err(error) => {
                complain(&format!("{shown} was not released: {error}"));
                Err(ExitCode::FAILURE)
            }
        }
    }
}

fn told(text: &str) -> ExitCode {
    say(text);
    ExitCode::SUCCESS
}
