//! The command line: serve, check, demo, explain, what asks a running lockward (locks, tap, top, suggest, release, upgrade,
//! pause, resume, health), and what packages are made of (completions, man).
//! Reads arguments and configuration, prints, and calls the parts that do the work.

mod check;
pub mod demo;
mod explain;
mod health;
mod locks;
mod manual;
mod output;
mod pause;
mod release;
mod rows;
mod serve;
mod showcase;
mod shown;
mod signals;
mod successor;
mod suggest;
mod systemd;
mod table;
mod tap;
mod target;
mod top;
mod upgrade;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Config, ConfigErrors, Loaded};

/// A transparent proxy for Redis and Valkey that lets a client release, extend or overwrite only the lock it holds.
#[derive(Parser)]
#[command(name = "lockward", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    serve: Serve,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Without a subcommand lockward serves.
#[derive(Args)]
struct Serve {
    #[command(flatten)]
    source: Source,
    /// Start a server of its own on a private unix socket (LOCKWARD_SERVER, PATH, or what scripts/get-server fetched).
    #[arg(long)]
    with_server: bool,
}

/// Where the configuration comes from.
#[derive(Args)]
struct Source {
    /// The configuration file; without one the built-in default (config.toml). LOCKWARD_SECTION__KEY variables win.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Check the configuration, and with --connect the server: rights, clock, what its settings mean for locks.
    Check(check::Check),
    /// Play the bug that lockward exists for: straight on a server, then through lockward.
    Demo,
    /// Explain what becomes of one command under the configuration: needs no server.
    Explain(explain::Explain),
    /// Show the locks that a running lockward knows: who holds which, since when, who waits.
    Locks(locks::Locks),
    /// Show the lock table as it changes, on the whole terminal.
    Top(top::Top),
    /// Show each lock event of a running lockward as it happens.
    Tap(tap::Tap),
    /// Suggest rules by the traffic that a running lockward has seen.
    Suggest(suggest::Suggest),
    /// Release a lock by force, through the admin address of a running lockward.
    Release(release::Release),
    /// Have a new process, of the program as it is on the disk now, take the place of a running lockward.
    Upgrade(upgrade::Upgrade),
    /// Hold the clients of a running lockward back while the server is switched; the exit code says if that is safe.
    Pause(pause::Pause),
    /// Let the clients of a running lockward go on.
    Resume(pause::Resume),
    /// Ask a running lockward whether it is ready to take clients; the exit code says it.
    Health(health::Health),
    /// Print the completions of a shell.
    Completions(manual::Completions),
    /// Print a man page.
    Man(manual::Manual),
}

impl Source {
    /// The configuration, or what is wrong with it.
    fn read(&self) -> Result<Loaded, ConfigErrors> {
        Config::load(self.config.as_deref(), config::variables())
    }

    /// The configuration, or the exit code after the errors were shown.
    fn load(&self) -> Result<Loaded, ExitCode> {
        self.read().map_err(|errors| {
            complain(&errors.to_string());
            ExitCode::from(2)
        })
    }
}

/// Runs the program and returns its exit code: 0 good, 1 failed, 2 wrong usage or configuration.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Check(check)) => check.run(),
        Some(Command::Demo) => showcase::run(),
        Some(Command::Explain(explain)) => explain.run(),
        Some(Command::Locks(locks)) => locks.run(),
        Some(Command::Top(top)) => top.run(),
        Some(Command::Tap(tap)) => tap.run(),
        Some(Command::Suggest(suggest)) => suggest.run(),
        Some(Command::Release(release)) => release.run(),
        Some(Command::Upgrade(upgrade)) => upgrade.run(),
        Some(Command::Pause(pause)) => pause.run(),
        Some(Command::Resume(resume)) => resume.run(),
        Some(Command::Health(health)) => health.run(),
        Some(Command::Completions(completions)) => completions.run(),
        Some(Command::Man(manual)) => manual.run(),
    };
    result.unwrap_or_else(|code| code)
}

/// A line on standard error. It may hold words of a stranger's.
fn complain(text: &str) {
    // Nobody is left to tell if that fails.
    let _ = writeln!(io::stderr(), "lockward: {}", shown::harmless(text.trim_end()));
}

/// A line on standard output.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// A runtime for everything but the clients' bytes, which have threads of their own.
fn runtime() -> Result<tokio::runtime::Runtime, ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            complain(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        })
}
