//! `lockward pause` and `lockward resume`: clients of a running lockward are held back while the server is restarted or
//! switched, through its admin address. The exit code says whether it is safe to begin.

use std::process::ExitCode;

use clap::Args;

use super::target::{Target, Token};
use super::{complain, runtime, say};
use crate::admin::api::PauseQuery;

/// Hold the clients of a running lockward back.
#[derive(Args)]
pub(super) struct Pause {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    token: Token,
    /// For how long, 5 minutes at most; it ends by itself then.
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    length: String,
    /// How long to wait until nothing is under way, 8 s at most.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    wait: String,
}

/// Let the clients of a running lockward go on.
#[derive(Args)]
pub(super) struct Resume {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    token: Token,
}

impl Pause {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, config) = self.target.client()?;
        let token = self.token.find(&config)?;
        let query = PauseQuery {
            length: Some(self.length),
            wait: Some(self.wait),
        };
        let pause = runtime()?.block_on(client.pause(token.reveal(), &query));
        let pause = pause.map_err(|error| failed(&format!("not paused: {error}")))?;
        let left = pause.left_ms.unwrap_or_default().div_ceil(1000);
        let told = format!(
            "paused for {left} s: {} under way, {} blocked",
            pause.under_way, pause.blocked
        );
        match pause.under_way {
            0 => say(&told),
            _ => return Err(failed(&format!("{told}; it is not safe yet to switch the server"))),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Resume {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, config) = self.target.client()?;
        let token = self.token.find(&config)?;
        let resumed = runtime()?.block_on(client.resume(token.reveal()));
        resumed.map_err(|error| failed(&format!("not resumed: {error}")))?;
        say("resumed");
        Ok(ExitCode::SUCCESS)
    }
}

fn failed(text: &str) -> ExitCode {
    complain(text);
    ExitCode::FAILURE
}
