//! `lockward check`: what the configuration says, and with `--connect` whether the server can do what it asks for.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::{Source, complain, runtime, say};
use crate::config::{Config, Loaded, check};
use crate::lock::chore::{Chore, Task};
use crate::lock::features::Features;
use crate::lock::script;
use crate::proxy;
use crate::proxy::own::Handle;
use crate::proxy::tls::Certificates;
use crate::resp::frame;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(source: &Source, connect: bool) -> Result<ExitCode, ExitCode> {
    let Loaded { config, warnings } = source.load()?;
    say(check::describe(&config, &warnings).trim_end());
    let certificates = Certificates::read(&config).map_err(|fault| {
        complain(&fault.to_string());
        ExitCode::FAILURE
    })?;
    if !connect {
        return Ok(ExitCode::SUCCESS);
    }
    match runtime()?.block_on(ask(&config, certificates)) {
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
async fn ask(config: &Config, certificates: Certificates) -> Result<String, String> {
    let own = proxy::own(config, Arc::new(certificates));
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
    let missing = missing(&own, &config.records.prefix).await;
    if !missing.is_empty() {
        return Err(format!(
            "the user of lockward's own connection lacks permissions: {}",
            missing.join("; ")
        ));
    }
    let chore = Chore {
        database: config.upstream.server.database,
        key: example(config),
        task: Task::Inspect,
    };
    own.chore(chore)
        .await
        .map_err(|error| format!("the server at {place} does not run the lock scripts: {error}"))?;
    Ok(format!(
        "server {place}: {}; the lock scripts are loaded and run\nnewer commands: {}",
        if state.version.is_empty() {
            "version unknown"
        } else {
            &state.version
        },
        newer(state.features)
    ))
}

/// A key that the first rule could match, so that a user who is let at locks only is let at it.
fn example(config: &Config) -> Bytes {
    let pattern = config
        .rules
        .first()
        .and_then(|rule| rule.patterns.first())
        .map_or(&b""[..], |pattern| pattern);
    let literal = pattern.iter().take_while(|byte| !b"*?[\\".contains(byte));
    literal.copied().chain(*b"lockward-check").collect()
}

/// What the server says it would refuse the user, by `ACL DRYRUN`, which does nothing. A user who may not ask is told
/// nothing: then the first chore shows it.
async fn missing(own: &Handle, prefix: &str) -> Vec<String> {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect::<Vec<_>>()
    };
    let Ok(answer) = own.command(None, words(&["ACL", "WHOAMI"])).await else {
        return Vec::new();
    };
    let Some(user) = frame::bulk(&answer) else {
        return Vec::new();
    };
    let user = String::from_utf8_lossy(user).into_owned();
    let record = format!("{prefix}{{lockward-check}}");
    let mut missing = Vec::new();
    for command in script::COMMANDS.iter().chain(&["EVAL"]) {
        let mut request = vec!["ACL", "DRYRUN", &user, command];
        request.extend(match *command {
            "TIME" => vec![],
            "EVAL" => vec!["return 1", "1", &record],
            "HSET" => vec![&*record, "field", "value"],
            "SET" | "HDEL" | "PEXPIRE" | "PEXPIREAT" => vec![&*record, "1"],
            _ => vec![&*record],
        });
        // An answer that is a text is a refusal; an error means that the question is not allowed or not known.
        if let Ok(answer) = own.command(None, words(&request)).await
            && answer.first() == Some(&b'$')
        {
            missing.extend(frame::bulk(&answer).map(|text| String::from_utf8_lossy(text).into_owned()));
        }
    }
    missing
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
    if has.is_empty() {
        "none".to_owned()
    } else {
        has.join(", ")
    }
}
