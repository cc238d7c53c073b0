//! What the runner was asked for, and the settings in which it says everything.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

pub const USAGE: &str =
    "differential --proxy PATH --server PATH [--server PATH] [--cases N] [--seed N] [--jobs N] [--only TEXT]";

/// The rules of a setting: a name and the end of the configuration.
const RULES: [(&str, &str); 3] = [
    ("a rule for other keys", "[[locks]]\npattern = \"no-such-lock:*\"\n"),
    ("no rule", "[[locks]]\npattern = \"*\"\nmode = \"off\"\n"),
    ("a password", "[[locks]]\npattern = \"no-such-lock:*\"\n"),
];

pub struct Options {
    pub proxy: String,
    pub servers: Vec<Server>,
    pub cases: u64,
    pub seed: u64,
    pub jobs: usize,
    pub only: String,
}

/// A server's program, and which it is.
#[derive(Clone)]
pub struct Server {
    pub program: String,
    pub valkey: bool,
}

/// In which everything is said once.
pub struct Setting {
    pub name: String,
    pub server: Server,
    pub mode: &'static str,
    pub rules: &'static str,
    pub password: bool,
}

impl Options {
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        let mut options = Options {
            proxy: String::new(),
            servers: Vec::new(),
            cases: 20_000,
            seed: now % 1_000_000_000 * 1_000_000,
            jobs: 2,
            only: String::new(),
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{name} needs a number, not {value:?}"))
            };
            match name.as_str() {
                "--proxy" => options.proxy = value,
                "--server" => options.servers.push(Server::identify(value)?),
                "--cases" => options.cases = number()?,
                "--seed" => options.seed = number()?,
                "--jobs" => options.jobs = number()?.clamp(1, 64) as usize,
                "--only" => options.only = value,
                _ => return Err(format!("what is {name}? {USAGE}")),
            }
        }
        if options.proxy.is_empty() || options.servers.is_empty() {
            return Err(format!("a proxy and a server are needed; {USAGE}"));
        }
        match options.settings().len() {
            0 => Err(format!("no setting is called {:?}", options.only)),
            _ => Ok(options),
        }
    }

    /// Those whose names hold `only`.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for server in &self.servers {
            for mode in ["dedicated", "shared"] {
                for (name, rules) in RULES {
                    let kind = if server.valkey { "valkey" } else { "redis" };
                    let password = name == "a password";
                    settings.push(Setting {
                        name: format!("{kind}, {mode}, {name}"),
                        server: server.clone(),
                        mode,
                        rules,
                        password,
                    });
                }
            }
        }
        settings.retain(|setting| setting.name.contains(&self.only));
        settings
    }
}

impl Server {
    fn identify(program: String) -> Result<Server, String> {
        let said = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        let said = String::from_utf8_lossy(&said.stdout).to_lowercase();
        let valkey = said.starts_with("valkey");
        if valkey || said.starts_with("redis") {
            Ok(Server { program, valkey })
        } else {
            Err(format!("{program} is no server"))
        }
    }
}
