//! Which running lockward is meant, and how it knows who asks: options that several commands share.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{Source, complain};
use crate::admin::client::Client;
use crate::config::{Config, Secret};

/// No token is longer, in bytes; what is longer is some other file.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// The running lockward.
#[derive(Args)]
pub(super) struct Target {
    #[command(flatten)]
    source: Source,
    /// The admin address of the running lockward; default: that of the configuration.
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
}

/// The admin token.
#[derive(Args)]
pub(super) struct Token {
    /// The admin token; better in a file, the configuration or LOCKWARD_ADMIN__TOKEN, for here `ps` shows it.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file that holds the admin token and nothing else; - is standard input.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Target {
    /// A client for it, and the configuration by which it was found.
    pub(super) fn client(&self) -> Result<(Client, Config), ExitCode> {
        let config = self.source.load()?.config;
        let address = self.admin.clone().unwrap_or_else(|| config.admin.address.to_string());
        Ok((Client::new(&address), config))
    }
}

impl Token {
    /// The token, from wherever it is.
    pub(super) fn find(&self, config: &Config) -> Result<Secret, ExitCode> {
        let wrong = |text: String| {
            complain(&text);
            ExitCode::from(2)
        };
        if let Some(path) = &self.token_file {
            return read(path).map(Secret::new).map_err(wrong);
        }
        let given = self.token.clone().map(Secret::new);
        given.or_else(|| config.admin.token.clone()).ok_or_else(|| {
            wrong(
                "this needs the admin token that the running lockward has: give --token-file FILE, --config FILE or \
                 LOCKWARD_ADMIN__TOKEN"
                    .to_owned(),
            )
        })
    }
}

/// The first line of the file.
fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let cannot = |error: std::io::Error| format!("the token cannot be read from {name}: {error}");
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(cannot)?)
    };
    let mut text = String::new();
    source
        .take(LONGEST_TOKEN + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > LONGEST_TOKEN {
        return Err(format!("{name} is too long to be a token"));
    }
    match text.trim() {
        "" => Err(format!("there is no token in {name}")),
        token if token.contains(['\n', '\r']) => Err(format!("{name} holds more than one line, so it is no token")),
        token => Ok(token.to_owned()),
    }
}
