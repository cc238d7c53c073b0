//! What packages need of the command line itself: the man pages and the completions of the shells, made from the same
//! definition as the help. Adds only what no option says: files, environment, signals, exit status.

use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::output::print;
use super::{Cli, complain};

/// What stands at the head of each page.
const MANUAL: &str = "lockward manual";

/// The shells that packages have a place for.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

/// Print the completions of a shell.
#[derive(Args)]
pub(super) struct Completions {
    shell: Known,
}

/// Print a man page.
#[derive(Args)]
pub(super) struct Manual {
    /// The page of a subcommand; without one that of lockward itself.
    command: Option<String>,
}

impl Completions {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        generate(shell, &mut Cli::command(), "lockward", &mut script);
        told(&script)
    }
}

impl Manual {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        // The help has no page of its own.
        let mut whole = Cli::command()
            .disable_help_subcommand(true)
            .subcommand_value_name("COMMAND")
            .subcommand_help_heading("COMMANDS");
        whole.build();
        let page = match &self.command {
            None => page(whole, true),
            Some(name) => match whole.find_subcommand(name) {
                Some(command) => page(command.clone(), false),
                None => {
                    complain(&format!("there is no command {name}"));
                    return Err(ExitCode::from(2));
                }
            },
        };
        match page {
            Ok(page) => told(&page),
            Err(error) => {
                complain(&format!("the page cannot be made: {error}"));
                Err(ExitCode::FAILURE)
            }
        }
    }
}

fn told(text: &[u8]) -> Result<ExitCode, ExitCode> {
    match print(&String::from_utf8_lossy(text)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(closed) => Err(closed.code()),
    }
}

/// A page in man's own language. `whole`: that of the program, with all sections.
fn page(command: Command, whole: bool) -> std::io::Result<Vec<u8>> {
    let subcommands = command.has_subcommands();
    let man = Man::new(command).manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    if whole {
        section(&DESCRIPTION).to_writer(&mut page)?;
    } else {
        man.render_description_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    if subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    if whole {
        for part in &SECTIONS {
            section(part).to_writer(&mut page)?;
        }
    }
    section(if whole { &SEE_ALSO } else { &SEE_LOCKWARD }).to_writer(&mut page)?;
    Ok(page)
}

/// A heading, and what stands below it: a term with its text, or a text alone.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

fn section((heading, items): &Section) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [*heading]);
    for (term, text) in *items {
        match term.is_empty() {
            true => roff.control("PP", []),
            false => roff.control("TP", []).text([bold(*term)]),
        };
        roff.text([roman(*text)]);
    }
    roff
}

const DESCRIPTION: Section = (
    "DESCRIPTION",
    &[
        (
            "",
            "lockward stands between programs and a Redis or Valkey server. It forwards everything byte for byte; only on \
             keys that match a lock rule it turns the bare commands (SET with NX, DEL, EXPIRE) into atomic, token-checked \
             operations, so that a client can release, extend or overwrite only the lock that it really holds.",
        ),
        (
            "",
            "Without a subcommand it serves: clients connect to listen.address (127.0.0.1:6380) as they would to the server, \
             and what it knows of locks is shown over HTTP at admin.address (127.0.0.1:9180).",
        ),
    ],
);

const SECTIONS: [Section; 4] = [
    (
        "FILES",
        &[
            (
                "/etc/lockward/lockward.toml",
                "The configuration that the packaged service is started with. There is no file that is read without --config.",
            ),
            (
                "/etc/default/lockward",
                "Variables for the packaged service, read by systemd as root: the place for secrets.",
            ),
            (
                "/usr/share/doc/lockward/examples/config.toml",
                "Every key with its default and what it means.",
            ),
            (
                "/usr/share/lockward/config.schema.json",
                "A JSON schema of the configuration, for editors.",
            ),
            ("/run/lockward", "The packaged service's folder for listen.unix."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            (
                "LOCKWARD_SECTION__KEY",
                "A setting, which wins over the file: LOCKWARD_UPSTREAM__URL, LOCKWARD_ADMIN__TOKEN, LOCKWARD_LOCKS__0__PATTERN. \
                 Two underscores stand between section and key.",
            ),
            ("LOCKWARD_SERVER", "The server program for --with-server and demo."),
            ("NO_COLOR", "If it is not empty, top and tap print no colours."),
            (
                "NOTIFY_SOCKET, WATCHDOG_USEC",
                "The service manager is told when lockward serves and when it drains, and that it lives as long as all worker \
                 threads turn.",
            ),
            (
                "LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES",
                "Sockets handed over by the service manager: one named admin is for HTTP, one of any other name for clients, \
                 in place of those in the configuration.",
            ),
        ],
    ),
    (
        "SIGNALS",
        &[
            (
                "SIGTERM, SIGINT",
                "Drains: no new clients, each one closed between two commands, at most 5 seconds. A second one ends at once.",
            ),
            (
                "SIGHUP",
                "Reads the configuration again: rules, log level, limits and certificates come into force all or nothing. The log says what \
                 changed, what is wrong, and what needs a restart.",
            ),
            (
                "SIGUSR2",
                "Upgrades: the program as it is on the disk now takes over the listening sockets, and this process drains once that \
                 one serves; if it does not come to serve, nothing changes. The log says which. See lockward-upgrade(1).",
            ),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "All went well."),
            ("1", "Something failed; a line on standard error says what."),
            ("2", "Wrong usage, or a configuration with errors."),
            ("130, 143", "Ended at once by a second SIGINT or SIGTERM."),
        ],
    ),
];

const SEE_ALSO: Section = (
    "SEE ALSO",
    &[(
        "",
        "redis-server(1), redis-cli(1), systemd.service(5), systemd.socket(5)",
    )],
);

const SEE_LOCKWARD: Section = ("SEE ALSO", &[("", "lockward(1)")]);
