//! `lockward check`: what the configuration says, and with `--connect` whether the server can do what it asks for.

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::{Source, complain, runtime, say};
use crate::config::{Config, Loaded, check};
use crate::lock::chore::{Chore, Task};
use crate::lock::features::Features;
use crate::proxy;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(source: &Source, connect: bool) -> Result<ExitCode, ExitCode> {
    let Loaded { config, warnings } = source.load()?;
    say(check::describe(&config, &warnings).trim_end());
    if !connect {
        return Ok(ExitCode::SUCCESS);
    }
    match runtime()?.block_on(ask(&config)) {
        Ok(text) => {
            say(&text);
            Ok(ExitCode::SUCCESS)
        }
        Err(text) => {
            complain(&text);
            Err(ExitCode::FAILURE)
        }
    }
}

/// Connects, loads the scripts and runs one that only reads.
async fn ask(config: &Config) -> Result<String, String> {
    let own = proxy::own(config);
    let place = &config.upstream.server.place;
    let mut state = own.state();
    let settled = timeout(PATIENCE, state.wait_for(|state| state.up || state.error.is_some())).await;
    let state = match settled {
        Ok(Ok(state)) => state.clone(),
        _ => return Err(format!("the server at {place} did not answer within {PATIENCE:?}")),
    };
    if let Some(error) = state.error {
        return Err(format!("the server at {place}: {error}"));
    }
    let chore = Chore {
        database: config.upstream.server.database,
        key: Bytes::from_static(b"lockward-check"),
        task: Task::Inspect,
    };
    own.chore(chore).await.map_err(|error| format!("the server at {place} does not run the lock scripts: {error}"))?;
    Ok(format!(
        "server {place}: {}; the lock scripts are loaded and run\nnewer commands: {}",
        state.version,
        newer(state.features)
    ))
}

fn newer(features: Features) -> String {
    let all = [
        ("DELEX", features.delex),
        ("DELIFEQ", features.delifeq),
        ("MSETEX", features.msetex),
        ("SET IFEQ", features.set_ifeq),
        ("SET IFNE", features.set_ifne),
    ];
    let has: Vec<&str> = all.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    if has.is_empty() { "none".to_owned() } else { has.join(", ") }
}
