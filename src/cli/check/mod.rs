//! `lockward check`: what the configuration says, and with `--connect` whether the server can do what it asks for, and
//! what its settings mean for locks. Changes no key and no setting there.

mod asking;
mod clock;
mod finding;
mod keeping;
mod rights;
mod rules;
mod search;
mod sentinels;
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::output::{Closed, print, print_json};
use super::shown::harmless;
use super::{Source, complain, runtime};
use crate::config::{Loaded, check};
use crate::proxy::tls::Certificates;
use finding::{Finding, Report};

/// What the warnings of the configuration are about.
const CONFIGURATION: &str = "config";
/// What is wrong with the files that TLS goes by.
const CERTIFICATES: &str = "tls";

/// Check the configuration, and with --connect the server.
#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    source: Source,
    /// Connect to the server too: its version, rights, settings and clock.
    #[arg(long)]
    connect: bool,
    /// Look at the rights of this ACL user of the clients, too; can be given several times.
    #[arg(long = "user", value_name = "NAME", requires = "connect")]
    users: Vec<String>,
    /// Exit with code 1 at a warning, too, not only at an error.
    #[arg(long)]
    strict: bool,
    /// Print what was found as JSON, and not the settings.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let Loaded { config, warnings, .. } = self.source.load()?;
        let described = check::describe(&config, &warnings);
        if !self.json {
            print(&described).map_err(Closed::code)?;
        }
        let mut findings: Vec<Finding> = warnings
            .into_iter()
            .map(|text| Finding::warning(CONFIGURATION, text))
            .collect();
        let mut server = None;
        let certificates = match Certificates::read(&config) {
            Ok(certificates) => Some(Arc::new(certificates)),
            Err(fault) => {
                complain(&fault.to_string());
                findings.push(Finding::error(CERTIFICATES, fault.to_string()));
                None
            }
        };
        if let Some(certificates) = certificates.filter(|_| self.connect) {
            server = Some(config.upstream.server.target.to_string());
            findings.extend(runtime()?.block_on(asking::ask(&config, certificates, &self.users)));
        }
        let report = Report::new(server, findings);
        let printed = match (self.json, &report.server) {
            (true, _) => print_json(&report),
            (false, Some(place)) => {
                let text = format!("\nserver {place}:\n{}", report.text(CONFIGURATION));
                print(&harmless(&text))
            }
            (false, None) => Ok(()),
        };
        printed.map_err(Closed::code)?;
        Ok(match report.failed(self.strict) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }
}
