//! The configuration: TOML file and `LOCKWARD_…` variables to typed settings, every error with file, key and line.
//!
//! ```text
//! file ── tree ──┐
//!                ├── reader ── sections, rules, address ── conflicts ── Config, warnings
//! variables ─────┘   (typed values, unknown keys)          (what cannot be meant)
//! ```
//!
//! All faults are collected, so that one run shows them all. What this does not do: open a socket, watch the file, or
//! touch the settings in force.

mod address;
mod changes;
pub mod check;
mod conflicts;
pub(crate) mod duration;
mod entrance;
mod environment;
mod fault;
mod keys;
mod listeners;
mod reader;
mod rules;
mod sections;
mod sentinel;
mod size;
mod tls;
mod tree;
mod trusted;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use address::{HostPort, Place, Server, Target};
pub use changes::Changes;
pub use check::describe;
pub(crate) use duration::parse as parse_duration;
pub use entrance::{Entrance, Group, SocketRights};
pub use environment::variables;
pub use fault::{ConfigErrors, Fault, Origin};
pub use sentinel::{SentinelAccess, Sentinels};
pub use tls::{KeyPair, ListenTls, UpstreamTls};
pub use trusted::Trusted;

use crate::lock::rule::Rule;

/// The documented default, which runs when no file is given.
pub const BUILT_IN: &str = include_str!("../../config.toml");

/// No configuration is longer, in bytes; what is longer is some other file.
const LONGEST_FILE: u64 = 4 << 20;

/// The settings of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where clients connect, and what holds for all of them.
    pub listen: Listen,
    /// Further places where they connect.
    pub listeners: Vec<Entrance>,
    /// The server.
    pub upstream: Upstream,
    /// The HTTP side.
    pub admin: Admin,
    /// What is logged, and how.
    pub log: Log,
    /// The lease records.
    pub records: Records,
    /// The lock rules of all listeners: the general ones in their order, never none, then those of each listener that
    /// has its own. No two have one name.
    pub rules: Vec<Rule>,
}

/// `[listen]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// The one place where clients connect, or the first of several.
    pub entrance: Entrance,
    /// How long the beginning of a connection may take: its TLS handshake, and a PROXY header before that.
    pub handshake_timeout: Duration,
    /// How long a silent peer is waited for before the system asks whether it lives; `None`: never asked.
    pub tcp_keepalive: Option<Duration>,
    /// Connections beyond are closed at once.
    pub max_connections: usize,
    /// The same for those from one IP address; `None`: no such limit.
    pub max_connections_per_address: Option<usize>,
    /// A client that has been idle for so long is closed; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Bytes that all clients together may have lying here: requests not complete, answers
    /// not read, and what the answers due are read by.
    pub max_buffered: usize,
    /// How many threads carry the clients' bytes.
    pub workers: usize,
}

/// `[upstream]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// The server, and as whom lockward's own connection comes to it.
    pub server: Server,
    /// How lockward comes to the sentinels, where the URL names some.
    pub sentinel: SentinelAccess,
    /// What TLS to the server goes by, where the URL asks for it.
    pub tls: UpstreamTls,
    /// Whether each client has a connection of its own.
    pub mode: UpstreamMode,
    /// How long a connect may take.
    pub connect_timeout: Duration,
    /// Connections a second that are opened at most while the server is in trouble; 0: as they come.
    pub reconnect_rate: u32,
}

/// Which connections to the server the clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamMode {
    /// Each client its own.
    Dedicated,
    /// Clients without state on their connection share a few.
    Shared,
}

impl UpstreamMode {
    /// As it is written in the file.
    pub fn word(self) -> &'static str {
        match self {
            UpstreamMode::Dedicated => "dedicated",
            UpstreamMode::Shared => "shared",
        }
    }
}

/// `[admin]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where HTTP is served.
    pub address: HostPort,
    /// Names by which it may be called besides its address, IP literals, `localhost` and names without a dot.
    pub hosts: Vec<String>,
    /// What a call that changes state must present; `None`: such calls are refused.
    pub token: Option<Secret>,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The least important level that is written.
    pub level: Level,
    /// For people or for machines.
    pub format: Format,
}

/// How important a log line is, as written in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `error`
    Error,
    /// `warn`
    Warn,
    /// `info`
    Info,
    /// `debug`
    Debug,
    /// `trace`
    Trace,
}

impl Level {
    /// The word in the file, which `tracing` knows too.
    pub fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[records]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// What the names of lease records begin with. Not empty, without a brace.
    pub prefix: String,
}

/// A password or token. Prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, to be sent or compared (in constant time), never shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A good configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Rules were given; without any there is the one for `lock:*`.
    pub rules_given: bool,
    /// What works but may not be meant; one line each, to be shown at start-up and by `lockward check`.
    pub warnings: Vec<String>,
}

impl Config {
    /// All places where clients connect; the first is that of `[listen]`.
    pub fn entrances(&self) -> impl Iterator<Item = &Entrance> {
        std::iter::once(&self.listen.entrance).chain(&self.listeners)
    }

    /// The rules that hold at a place.
    pub fn rules_at<'c>(&'c self, entrance: &'c Entrance) -> impl Iterator<Item = &'c Rule> {
        entrance.rules.iter().filter_map(|index| self.rules.get(*index))
    }

    /// Whether a place has rules of its own.
    pub fn has_own_rules(&self, entrance: &Entrance) -> bool {
        entrance.rules != self.listen.entrance.rules
    }

    /// Reads the file (without one: the built-in default) and the variables, which win over it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them, in the order of the file, then of the variables.
    pub fn load(path: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Loaded, ConfigErrors> {
        match path {
            Some(path) => Config::parse(&read(path)?, path, env),
            None => Config::parse(BUILT_IN, Path::new("built-in config.toml"), env),
        }
    }

    /// Reads the text of a file; `path` is only named in errors.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn parse(text: &str, path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Loaded, ConfigErrors> {
        let path = PathBuf::from(path);
        let mut faults = Vec::new();
        let Some(mut tree) = tree::parse(text, &mut faults) else {
            return Err(ConfigErrors::new(path, faults));
        };
        environment::overlay(&mut tree, env, &mut faults);
        let settings = sections::read(tree, &mut faults);
        let mut warnings = Vec::new();
        conflicts::find(&settings, &mut faults, &mut warnings);
        let rules_given = settings.rules.iter().any(|sited| sited.patterns != [Origin::File]);
        match faults.is_empty() {
            true => Ok(Loaded {
                rules_given,
                config: settings.into_config(),
                warnings,
            }),
            false => Err(ConfigErrors::new(path, faults)),
        }
    }
}

fn read(path: &Path) -> Result<String, ConfigErrors> {
    let unreadable = |text: String| ConfigErrors::new(path.into(), vec![Fault::of_file(text)]);
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(unreadable(format!(
            "longer than {LONGEST_FILE} bytes: not a configuration of lockward"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        let origin = Origin::Line(line);
        ConfigErrors::new(
            path.into(),
            vec![Fault {
                origin,
                key: String::new(),
                text: "not UTF-8".to_owned(),
            }],
        )
    })
}
