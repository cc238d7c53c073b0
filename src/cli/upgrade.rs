//! `lockward upgrade`: a new process takes the place of a running lockward, through its admin address. That one does it by
//! itself; here it is asked for, waited for and told.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep};

use super::target::{Target, Token};
use super::{complain, runtime, say};
use crate::admin::api::Upgraded;
use crate::admin::client::{Client, ClientError};

/// The old process lets go of its sockets within moments.
const LIMIT: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Have a new process take the place of a running lockward.
#[derive(Args)]
pub(super) struct Upgrade {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    token: Token,
}

impl Upgrade {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, config) = self.target.client()?;
        let token = self.token.find(&config)?;
        let text = runtime()?.block_on(upgrade(&client, token.reveal()));
        let text = text.map_err(|text| {
            complain(&text);
            ExitCode::FAILURE
        })?;
        say(&text);
        Ok(ExitCode::SUCCESS)
    }
}

async fn upgrade(client: &Client, token: &str) -> Result<String, String> {
    let upgraded = client.upgrade(token).await.map_err(|error| match error {
        ClientError::Refused { .. } | ClientError::Connect { .. } | ClientError::Unsendable(_) => {
            format!("not upgraded, and nothing has changed: {error}")
        }
        ClientError::Timeout { .. } | ClientError::Foreign { .. } | ClientError::Gone { .. } => {
            format!("it is not known whether it was upgraded, its log says it: {error}")
        }
    })?;
    let Upgraded {
        pid,
        version,
        admin,
        was,
    } = &upgraded;
    let told = format!(
        "upgraded: {} (pid {}) -> {version} (pid {pid}); the old process drains",
        was.version, was.pid
    );
    if answers(client, &upgraded).await {
        return Ok(told);
    }
    match admin == client.address() {
        true => Err(format!("{told}, and the new one does not answer at {admin}")),
        false => Ok(format!("{told}, and the new one answers at {admin}")),
    }
}

/// Waits until the new process answers, and it alone.
async fn answers(client: &Client, upgraded: &Upgraded) -> bool {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        match client.process().await {
            Ok(process) if process.pid == upgraded.pid => return true,
            Err(ClientError::Connect { .. }) if upgraded.admin != client.address() => return false,
            Ok(_) | Err(_) => sleep(ASK_AGAIN).await,
        }
    }
    false
}
