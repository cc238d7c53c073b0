//! Other settings for a running proxy: read anew, looked at whole, and put into force all or not at all. What is under way
//! goes on as it began; each client goes by the new rules from its next command on.

use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::listener::Limits;
use super::shared::Shared;
use super::tls::CertificateFault;
use crate::config::{Changes, Config, ConfigErrors, Loaded};
use crate::lock::rule::Rule;
use crate::metrics::log::LogHandle;
use crate::session::Ruled;

/// Reads the settings from where they were read at the start.
pub type Reread = dyn Fn() -> Result<Loaded, ConfigErrors> + Send + Sync;

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The new settings are faulty.
    #[error(transparent)]
    Faulty(#[from] ConfigErrors),
    /// An empty file, as somebody leaves behind who is about to write it anew, or one that was cut off.
    #[error("the new settings have no [[locks]] at all, and those in force have: write the one rule that is meant")]
    NoRules,
    /// A certificate is of no use.
    #[error(transparent)]
    Certificate(#[from] CertificateFault),
    /// Rules keep their places by name, and there have been too many names.
    #[error("this process has had 65,536 names of rules, and no place is left for another one: restart it")]
    TooManyRules,
    /// Nobody said where settings come from.
    #[error("this lockward does not know where to read its settings from")]
    Nowhere,
}

/// Where new settings come from, and what they are compared with.
pub(super) struct Reloading {
    reread: Box<Reread>,
    log: LogHandle,
    config: Mutex<Config>,
}

impl Reloading {
    pub(super) fn new(reread: Box<Reread>, log: LogHandle, config: Config) -> Reloading {
        Reloading {
            reread,
            log,
            config: Mutex::new(config),
        }
    }

    fn reload(&self, shared: &Shared) -> Result<Changes, ReloadError> {
        // One after the other.
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let Loaded {
            config: new,
            rules_given,
            warnings,
        } = (self.reread)()?;
        let general = |config: &Config| -> Vec<Rule> { config.rules_at(&config.listen.entrance).cloned().collect() };
        // Listeners that are gone from the file keep their own until the restart.
        if !rules_given && general(&new) != general(&config) {
            return Err(ReloadError::NoRules);
        }
        let followed = shared.keeper().len();
        let (next, changes) = config.changed_to(new);
        put_in_force(shared, &next)?;
        // The word stems from the configuration, so it is a level.
        let _ = self.log.set_level(next.log.level.word());
        *config = next;
        let left = followed.saturating_sub(shared.keeper().len());
        if left > 0 {
            tracing::warn!(
                leases = left,
                "leases are not followed any more, since no rule of the name that they were acquired under is in force"
            );
        }
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(changes)
    }
}

/// Whoever has one can make the proxy read its settings anew.
#[derive(Clone)]
pub struct Reloader(pub(super) Arc<Shared>);

impl Reloader {
    /// Reads the settings anew and puts them into force, or changes nothing. Says in the log what has changed, what waits
    /// for a restart, or what is wrong. Blocks as long as reading a file does.
    ///
    /// # Errors
    /// What is wrong with the new settings.
    pub fn reload(&self) -> Result<Changes, ReloadError> {
        let shared = &self.0;
        let outcome = shared
            .reloading
            .get()
            .ok_or(ReloadError::Nowhere)
            .and_then(|reloading| reloading.reload(shared));
        shared.metrics.config_reload(outcome.is_ok());
        match &outcome {
            Ok(changes) => tell(changes),
            Err(error) => {
                for line in error.to_string().lines() {
                    tracing::error!("the configuration is not reloaded, and nothing has changed: {line}");
                }
            }
        }
        outcome
    }
}

fn tell(changes: &Changes) {
    if changes.applied.is_empty() && changes.needs_restart.is_empty() {
        tracing::info!("the configuration was reloaded: nothing has changed");
    }
    for line in &changes.applied {
        tracing::info!("the configuration was reloaded: {line}");
    }
    if !changes.needs_restart.is_empty() {
        let keys = changes.needs_restart.join(", ");
        tracing::warn!("the configuration was reloaded, but this waits for a restart: {keys}");
    }
}

/// The rules of a configuration, listener by listener.
pub(super) fn ruled(config: &Config) -> Ruled {
    Ruled {
        rules: config.rules.clone(),
        listeners: config.entrances().map(|entrance| entrance.rules.clone()).collect(),
    }
}

fn put_in_force(shared: &Shared, config: &Config) -> Result<(), ReloadError> {
    let next = shared.policies.load().with_rules(ruled(config));
    let next = next.ok_or(ReloadError::TooManyRules)?.whole;
    // The last that can fail.
    shared.door.certificates.reload(config)?;
    // Before the first event under a new rule comes, everybody knows that rule.
    let rules = next.rules.list();
    let names: Vec<Arc<str>> = rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
    shared.metrics.set_rules(&names);
    shared.log.set_rules(&names);
    shared.keeper().reload(shared.now(), rules);
    shared.telling.chronicle().reload(rules);
    shared.pace.set(config.upstream.reconnect_rate);
    shared.door.reload(config);
    shared.limits.store(Arc::new(Limits::from(&config.listen)));
    // The server may be found able to do more meanwhile, which makes a new policy too.
    shared.policies.rcu(|old| match old.with_rules(ruled(config)) {
        Some(next) => Arc::new(next),
        None => Arc::clone(old),
    });
    // Also those who send nothing have to say whose they are under the new rules.
    shared.reloads.send_replace(());
    shared.chores.notify_one();
    shared.telling.changed();
    Ok(())
}
