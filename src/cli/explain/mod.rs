//! `lockward explain 'SET lock:a 1 NX'`: what lockward would do with one command under a configuration, for each kind of
//! caller, and what would go to the server. Needs no server and sends nothing.

mod callers;
mod keys;
mod meaning;
mod notes;
mod read;
mod sent;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};

use super::output::{Closed, print, print_json};
use super::{Source, complain};
use crate::config::Config;
use crate::lock::features::Features;
use crate::lock::rule::Rules;
use view::{Explanation, Ground};

/// Explain what becomes of one command; needs no server.
#[derive(Args)]
pub(super) struct Explain {
    /// The command: one text as an inline command is written ('SET lock:a "some value" NX'), or its arguments.
    #[arg(required = true, value_name = "COMMAND", allow_negative_numbers = true)]
    command: Vec<OsString>,
    #[command(flatten)]
    source: Source,
    /// What the server has besides the commands of Redis 7.0.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COMMAND")]
    features: Vec<Feature>,
    /// Print the text of the scripts too.
    #[arg(long)]
    text: bool,
    /// For people or for machines.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// In which form.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// A newer command that a server may have.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Feature {
    /// DELEX (Redis 8.4)
    Delex,
    /// DELIFEQ (Valkey 9)
    Delifeq,
    /// MSETEX (Redis 8.4, Valkey 9.1)
    Msetex,
    /// SET … IFEQ (Redis 8.4, Valkey 8.1)
    SetIfeq,
    /// SET … IFNE (Redis 8.4)
    SetIfne,
}

impl Explain {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let config = self.source.load()?.config;
        let wrong = |text: String| {
            complain(&text);
            ExitCode::from(2)
        };
        let explanation = explanation(&self.command, &config, features(&self.features), self.text).map_err(wrong)?;
        match self.output {
            Output::Text => print(&text::text(&explanation)),
            Output::Json => print_json(&explanation),
        }
        .map_err(Closed::code)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn features(words: &[Feature]) -> Features {
    let has = |feature| words.contains(&feature);
    Features {
        delex: has(Feature::Delex),
        delifeq: has(Feature::Delifeq),
        msetex: has(Feature::Msetex),
        set_ifeq: has(Feature::SetIfeq),
        set_ifne: has(Feature::SetIfne),
        login: false,
    }
}

/// The whole way from the words of the command line.
fn explanation(
    words: &[OsString],
    config: &Config,
    features: Features,
    with_text: bool,
) -> Result<Explanation, String> {
    let command = read::command(words)?;
    let rules = Rules::new(config.rules.clone(), config.records.prefix.as_bytes());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ground = Ground {
        rules: &rules,
        prefix: &config.records.prefix,
        features,
        now_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
    };
    let mut explanation = view::explain(&command, &ground)?;
    if with_text {
        explanation.sent.iter_mut().for_each(sent::Sent::add_text);
    }
    Ok(explanation)
}
