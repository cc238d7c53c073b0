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
use crate::config::{Config, Entrance};
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
    /// By the rules of this listener; left out: the general ones.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
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
        let asked = (&config, self.listener.as_deref());
        let explanation = explanation(&self.command, asked, features(&self.features), self.text).map_err(wrong)?;
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

/// The place where the command comes in.
fn entrance<'c>(config: &'c Config, name: Option<&str>) -> Result<&'c Entrance, String> {
    let Some(name) = name else {
        return Ok(&config.listen.entrance);
    };
    config
        .entrances()
        .find(|entrance| *entrance.name == *name)
        .ok_or_else(|| {
            let names: Vec<&str> = config.entrances().map(|entrance| &*entrance.name).collect();
            format!(
                "there is no listener \"{}\"; there are: {}",
                name.escape_debug(),
                names.join(", ")
            )
        })
}

/// The whole way from the words of the command line.
fn explanation(
    words: &[OsString],
    (config, listener): (&Config, Option<&str>),
    features: Features,
    with_text: bool,
) -> Result<Explanation, String> {
    let (command, entrance) = (read::command(words)?, entrance(config, listener)?);
    let rules = config.rules_at(entrance).cloned().collect();
    let rules = Rules::new(rules, config.records.prefix.as_bytes());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ground = Ground {
        rules: &rules,
        prefix: &config.records.prefix,
        features,
        now_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
    };
    let mut explanation = view::explain(&command, &ground)?;
    if listener.is_none() {
        explanation.notes.extend(notes::of_listeners(config));
    }
    if with_text {
        explanation.sent.iter_mut().for_each(sent::Sent::add_text);
    }
    Ok(explanation)
}
