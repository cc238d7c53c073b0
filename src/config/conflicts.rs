//! Settings that are each fine but cannot be meant together (faults), and those that work but may surprise
//! (warnings). Reads no TOML and changes no setting.

mod places;

use std::collections::HashMap;

use super::Config;
use super::address::{HostPort, Target};
use super::duration;
use super::fault::{Fault, Origin};
use super::reader::Origins;
use crate::lock::glob::Glob;
use crate::lock::rule::{Mode, Rule};

/// The longest `contention_shield`, in milliseconds.
const LONGEST_SHIELD_MS: u64 = 1000;

/// The settings with the places where they stand.
pub(super) struct Settings {
    pub(super) config: Config,
    /// In the order of [`Config::entrances`].
    pub(super) entrances: Vec<Origins>,
    pub(super) upstream: Origins,
    pub(super) admin: Origins,
    pub(super) rules: Vec<SitedRule>,
}

/// A rule with the places of its keys and of each of its patterns.
pub(super) struct SitedRule {
    pub(super) rule: Rule,
    pub(super) origins: Origins,
    pub(super) patterns: Vec<Origin>,
}

impl Settings {
    pub(super) fn into_config(self) -> Config {
        self.config
    }
}

/// Finds both kinds.
pub(super) fn find(settings: &Settings, faults: &mut Vec<Fault>, warnings: &mut Vec<String>) {
    places::find(settings, faults);
    if settings.upstream.has("tls") && !settings.config.upstream.server.tls {
        let text = "is of use only where upstream.url begins with rediss:// or rediss-sentinel://".to_owned();
        faults.push(settings.upstream.fault("tls", text));
    }
    sentinels(settings, faults);
    names(&settings.rules, faults);
    let config = &settings.config;
    let mut lists = vec![&config.listen.entrance.rules];
    lists.extend(
        config
            .listeners
            .iter()
            .filter(|one| config.has_own_rules(one))
            .map(|one| &one.rules),
    );
    for list in lists {
        let rules = list.iter().filter_map(|index| settings.rules.get(*index));
        patterns(rules, &config.records.prefix, faults);
    }
    for sited in &settings.rules {
        times(sited, faults);
    }
    warn(config, warnings);
}

/// Keys for sentinels where none are asked.
fn sentinels(settings: &Settings, faults: &mut Vec<Fault>) {
    let upstream = &settings.config.upstream;
    let (named, given) = (
        matches!(upstream.server.target, Target::Sentinels(_)),
        &settings.upstream,
    );
    for key in ["sentinel_user", "sentinel_password"] {
        if given.has(key) && !named {
            let text = "is of use only where upstream.url begins with redis-sentinel:// or rediss-sentinel://";
            faults.push(given.fault(key, text.to_owned()));
        }
    }
    if given.has("sentinel_tls") && !(named && upstream.server.tls) {
        let text = "is of use only where upstream.url begins with rediss-sentinel://";
        faults.push(given.fault("sentinel_tls", text.to_owned()));
    }
    if given.has("sentinel_user") && named && upstream.sentinel.user.is_some() && upstream.sentinel.password.is_none() {
        let text = "is of no use without sentinel_password: nobody logs in then";
        faults.push(given.fault("sentinel_user", text.to_owned()));
    }
}

/// Rules are known by their names, whichever listener they hold at.
fn names(rules: &[SitedRule], faults: &mut Vec<Fault>) {
    let mut seen: HashMap<_, &SitedRule> = HashMap::new();
    for sited in rules {
        // Without patterns there is a fault already, and no name to compare.
        let Some(first) = seen.get(&sited.rule.name).filter(|_| !sited.rule.patterns.is_empty()) else {
            seen.entry(&sited.rule.name).or_insert(sited);
            continue;
        };
        let name = sited.rule.name.escape_debug();
        let text = match first.patterns.as_slice() {
            [Origin::File] => format!("\"{name}\" is the name of the rule that stands for no [[locks]] at all"),
            _ => format!("\"{name}\" is the name of {} already", first.origins.path()),
        };
        faults.push(sited.origins.fault("name", text));
    }
}

/// Patterns that can match no key: those for records, and those whose keys an earlier rule takes.
fn patterns<'r>(rules: impl Iterator<Item = &'r SitedRule>, prefix: &str, faults: &mut Vec<Fault>) {
    let mut earlier: Vec<(Glob, &[u8], &Rule)> = Vec::new();
    for sited in rules {
        let mut own = Vec::new();
        for (pattern, origin) in sited.rule.patterns.iter().zip(&sited.patterns) {
            let glob = Glob::new(pattern);
            let shown = pattern.escape_ascii();
            let text = if glob.prefix().starts_with(prefix.as_bytes()) {
                Some(format!(
                    "\"{shown}\" matches only lockward's own records (records.prefix), which are never locks"
                ))
            } else {
                earlier
                    .iter()
                    .find(|(before, ..)| before.covers(&glob))
                    .map(|(_, before, rule)| {
                        let (before, name) = (before.escape_ascii(), rule.name.escape_debug());
                        format!(
                            "\"{shown}\" never gets a key: \"{before}\" of the rule \"{name}\" takes them all before it"
                        )
                    })
            };
            if let Some(text) = text {
                faults.push(Fault {
                    origin: origin.clone(),
                    key: format!("{}.pattern", sited.origins.path()),
                    text,
                });
            }
            own.push((glob, &**pattern, &sited.rule));
        }
        earlier.append(&mut own);
    }
}

fn times(sited: &SitedRule, faults: &mut Vec<Fault>) {
    let rule = &sited.rule;
    if let (Some(default), Some(max)) = (rule.default_ttl_ms, rule.max_ttl_ms)
        && max < default
    {
        let (max, default) = (duration::text(max), duration::text(default));
        faults.push(sited.origins.fault(
            "max_ttl",
            format!("\"{max}\" is shorter than default_ttl = \"{default}\""),
        ));
    }
    if rule.renew && rule.max_hold_ms == 0 {
        let text = "\"0s\" leaves nothing to renew; give it a length, or set renew = false".to_owned();
        faults.push(sited.origins.fault("max_hold", text));
    }
    if let Some(shield) = rule.contention_shield_ms.filter(|shield| *shield > LONGEST_SHIELD_MS) {
        let (shield, most) = (duration::text(shield), duration::text(LONGEST_SHIELD_MS));
        let text = format!(
            "\"{shield}\" is more than {most}: for so long a lock could be free by its TTL, or released past this \
             lockward, and still be refused"
        );
        faults.push(sited.origins.fault("contention_shield", text));
    }
}

fn warn(config: &Config, warnings: &mut Vec<String>) {
    if let Some(idle) = config.listen.idle_timeout {
        let idle = duration::milliseconds(idle);
        let renewing = config.rules.iter().filter(|rule| rule.renew && rule.max_hold_ms > idle);
        for rule in renewing {
            warnings.push(format!(
                "rule \"{}\": renew needs its owner connected, and listen.idle_timeout ({}) closes a holder that works for \
                 longer without a command, before max_hold ({})",
                rule.name.escape_debug(),
                duration::text(idle),
                duration::text(rule.max_hold_ms)
            ));
        }
    }
    let named = |wanted: &dyn Fn(&Rule) -> bool| named(config.rules.iter(), wanted);
    if let Some(rules) = named(&|rule| rule.mode == Mode::Enforce && rule.default_ttl_ms.is_none()) {
        warnings.push(format!(
            "{rules}: no default_ttl, so a lock that a client takes without a TTL stays until its owner releases it, \
             or until `lockward release KEY`"
        ));
    }
    if let Some(rules) = named(&|rule| rule.mode != Mode::Enforce && rule.contention_shield_ms.is_some()) {
        warnings.push(format!(
            "{rules}: contention_shield does nothing without mode = \"enforce\": every acquire is asked of the server"
        ));
    }
    for entrance in config.entrances() {
        places::warn(config, entrance, warnings);
    }
    admin(&config.admin.address, config.admin.token.is_some(), warnings);
    if config.upstream.server.database != 0 {
        warnings.push(format!(
            "upstream.url: database {} is that of lockward's own connection; clients begin in 0 and choose by SELECT",
            config.upstream.server.database
        ));
    }
}

/// The names of the rules that are `wanted`, if there are any.
fn named<'r>(rules: impl Iterator<Item = &'r Rule>, wanted: &dyn Fn(&Rule) -> bool) -> Option<String> {
    let names: Vec<String> = rules
        .filter(|rule| wanted(rule))
        .map(|rule| format!("\"{}\"", rule.name.escape_debug()))
        .collect();
    let word = if names.len() == 1 { "rule" } else { "rules" };
    (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")))
}

fn admin(address: &HostPort, token: bool, warnings: &mut Vec<String>) {
    if !address.is_loopback() && !token {
        warnings.push(format!(
            "admin.address {address} can be reached from other machines, and admin.token is empty: everybody there can \
             read the names of locks and owners, and nobody can release a stuck lock"
        ));
    }
}
