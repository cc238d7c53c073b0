//! `lockward health`: whether a running lockward is ready, as an exit code, for those who look after containers and have
//! no HTTP client in them.

use std::process::ExitCode;

use clap::Args;

use super::target::Target;
use super::{complain, runtime, say};

/// Ask a running lockward whether it is ready.
#[derive(Args)]
pub(super) struct Health {
    #[command(flatten)]
    target: Target,
    /// Ask only whether the process lives (/livez): with its server away it is not ready, but a restart would not help.
    #[arg(long)]
    live: bool,
}

impl Health {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, _) = self.target.client()?;
        let answer = match self.live {
            true => runtime()?.block_on(client.live()),
            false => runtime()?.block_on(client.ready()),
        };
        answer.map_err(|error| {
            complain(&error.to_string());
            ExitCode::FAILURE
        })?;
        say("ok");
        Ok(ExitCode::SUCCESS)
    }
}
