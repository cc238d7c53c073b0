//! What differs between the settings in force and newly read ones: what comes into force at once, in words for the log, and
//! what waits for a restart. Shows no secret; puts nothing into force.

mod entrances;

use std::time::Duration;

use super::check::{patterns, rule_settings};
use super::{Config, duration, size};
use crate::lock::rule::Rule;

/// What a reload changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// One line for each thing that comes into force at once.
    pub applied: Vec<String>,
    /// The keys whose new value waits for a restart.
    pub needs_restart: Vec<String>,
}

impl Config {
    /// What differs in `new`, and the settings that are in force once what can be is: those of `new`, but what needs a
    /// restart stays as it is here.
    pub fn changed_to(&self, new: Config) -> (Config, Changes) {
        let needs_restart = self.after_a_restart(&new);
        let mut config = self.clone();
        (config.listen.entrance, config.listeners, config.rules) = entrances::next(self, &new);
        config.log.level = new.log.level;
        config.listen.max_connections = new.listen.max_connections;
        config.listen.tcp_keepalive = new.listen.tcp_keepalive;
        config.listen.max_connections_per_address = new.listen.max_connections_per_address;
        config.listen.idle_timeout = new.listen.idle_timeout;
        config.listen.max_buffered = new.listen.max_buffered;
        config.upstream.reconnect_rate = new.upstream.reconnect_rate;
        // Papers for another server are of no use to this one.
        if config.upstream.server == new.upstream.server {
            config.upstream.tls = new.upstream.tls;
        }
        let applied = self.at_once(&config);
        (config, Changes { applied, needs_restart })
    }

    /// `next` are the settings in force then.
    fn at_once(&self, next: &Config) -> Vec<String> {
        let mut lines = Vec::new();
        for ((name, old), (_, new)) in limits(self).into_iter().zip(limits(next)) {
            if old != new {
                lines.push(format!("{name}: {old} -> {new}"));
            }
        }
        entrances::at_once(self, next, &mut lines);
        if self.upstream.tls != next.upstream.tls {
            lines.push("upstream.tls: other files or another name".to_owned());
        }
        rules(&self.rules, &next.rules, &mut lines);
        lines
    }

    fn after_a_restart(&self, new: &Config) -> Vec<String> {
        let compared = [
            (
                "listen.handshake_timeout",
                self.listen.handshake_timeout != new.listen.handshake_timeout,
            ),
            ("listen.workers", self.listen.workers != new.listen.workers),
            ("upstream.url", self.upstream.server != new.upstream.server),
            (
                "upstream.sentinel_user",
                self.upstream.sentinel.user != new.upstream.sentinel.user,
            ),
            (
                "upstream.sentinel_password",
                self.upstream.sentinel.password != new.upstream.sentinel.password,
            ),
            (
                "upstream.sentinel_tls",
                self.upstream.sentinel.tls != new.upstream.sentinel.tls,
            ),
            (
                "upstream.tls",
                self.upstream.server != new.upstream.server && self.upstream.tls != new.upstream.tls,
            ),
            ("upstream.mode", self.upstream.mode != new.upstream.mode),
            (
                "upstream.connect_timeout",
                self.upstream.connect_timeout != new.upstream.connect_timeout,
            ),
            ("admin.address", self.admin.address != new.admin.address),
            ("admin.hosts", self.admin.hosts != new.admin.hosts),
            ("admin.token", self.admin.token != new.admin.token),
            ("log.format", self.log.format != new.log.format),
            ("records.prefix", self.records != new.records),
        ];
        let changed = compared.into_iter().filter(|(_, changed)| *changed);
        let mut keys = entrances::after_a_restart(self, new);
        keys.extend(changed.map(|(name, _)| name.to_owned()));
        keys
    }
}

/// What is no rule and comes into force at once.
fn limits(config: &Config) -> [(&'static str, String); 7] {
    let time = |time: Option<Duration>| match time {
        Some(time) => duration::text(duration::milliseconds(time)),
        None => "off".to_owned(),
    };
    let Config {
        listen, upstream, log, ..
    } = config;
    let each = listen.max_connections_per_address;
    [
        ("listen.max_connections", listen.max_connections.to_string()),
        (
            "listen.max_connections_per_address",
            each.map_or("off".to_owned(), |most| most.to_string()),
        ),
        ("listen.idle_timeout", time(listen.idle_timeout)),
        ("listen.max_buffered", size::text(listen.max_buffered as u64)),
        ("listen.tcp_keepalive", time(listen.tcp_keepalive)),
        ("upstream.reconnect_rate", upstream.reconnect_rate.to_string()),
        ("log.level", log.level.word().to_owned()),
    ]
}

/// The rules that came, went, or say something else, by name.
fn rules(old: &[Rule], new: &[Rule], lines: &mut Vec<String>) {
    let named = |rules: &[Rule], name: &str| rules.iter().any(|rule| *rule.name == *name);
    for rule in new {
        let name = rule.name.escape_debug();
        match old.iter().find(|known| known.name == rule.name) {
            Some(known) => {
                let before = [("pattern", patterns(known))].into_iter().chain(rule_settings(known));
                let after = [("pattern", patterns(rule))].into_iter().chain(rule_settings(rule));
                for ((field, before), (_, after)) in before.zip(after).filter(|(before, after)| before != after) {
                    lines.push(format!("rule \"{name}\", {field}: {before} -> {after}"));
                }
            }
            None => {
                let [(_, mode), ..] = rule_settings(rule);
                lines.push(format!("rule \"{name}\" is new: {}, {mode}", patterns(rule)));
            }
        }
    }
    for rule in old.iter().filter(|rule| !named(new, &rule.name)) {
        lines.push(format!("rule \"{}\" is gone", rule.name.escape_debug()));
    }
    let common = |rules: &[Rule], others: &[Rule]| -> Vec<String> {
        let names = rules.iter().map(|rule| rule.name.to_string());
        names.filter(|name| named(others, name)).collect()
    };
    if common(old, new) != common(new, old) {
        lines.push("the order of the rules".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        let loaded = Config::parse(text, Path::new("test.toml"), std::iter::empty());
        loaded.expect("it is a good configuration").config
    }

    #[test]
    fn papers_wait_for_the_server_that_they_are_for() {
        let old = config("[upstream]\nurl = \"rediss://old:1\"\ntls = { ca = \"old.pem\" }\n");
        let moved = config("[upstream]\nurl = \"rediss://new:1\"\ntls = { ca = \"new.pem\" }\n");
        let (next, changes) = old.changed_to(moved);
        assert_eq!(next.upstream, old.upstream);
        assert_eq!(changes.applied, Vec::<String>::new());
        assert_eq!(changes.needs_restart, ["upstream.url", "upstream.tls"]);
        let renewed = config("[upstream]\nurl = \"rediss://old:1\"\ntls = { ca = \"new.pem\" }\n");
        let (next, changes) = old.changed_to(renewed.clone());
        assert_eq!(next.upstream, renewed.upstream);
        assert_eq!(changes.needs_restart, Vec::<String>::new());
        assert_eq!(changes.applied, ["upstream.tls: other files or another name"]);
    }

    #[test]
    fn what_changed_is_said_and_what_needs_a_restart_stays() {
        let old = config(
            "[admin]\ntoken = \"one\"\n[[locks]]\nname = \"a\"\npattern = \"a:*\"\nmode = \"observe\"\n\
             [[locks]]\nname = \"b\"\npattern = \"b:*\"\n[[locks]]\nname = \"c\"\npattern = \"c:*\"\n",
        );
        let new = config(
            "[listen]\nmax_connections = 50\nworkers = 7\n[log]\nlevel = \"debug\"\n[admin]\ntoken = \"two\"\n\
             [[locks]]\nname = \"c\"\npattern = [\"c:*\", \"cc:*\"]\n\
             [[locks]]\nname = \"a\"\npattern = \"a:*\"\nmax_ttl = \"1h\"\n\
             [[locks]]\nname = \"d\"\npattern = \"d:*\"\nmode = \"observe\"\n",
        );
        let (config, changes) = old.changed_to(new.clone());
        assert_eq!(
            changes.applied,
            [
                "listen.max_connections: 10000 -> 50",
                "log.level: info -> debug",
                "rule \"c\", pattern: c:* -> c:* cc:*",
                "rule \"a\", mode: observe -> enforce",
                "rule \"a\", max_ttl: off -> 1h",
                "rule \"d\" is new: d:*, observe",
                "rule \"b\" is gone",
                "the order of the rules",
            ]
        );
        assert_eq!(changes.needs_restart, ["listen.workers", "admin.token"]);
        assert_eq!(config.rules, new.rules);
        assert_eq!(config.admin, old.admin);
        let (_, again) = config.changed_to(new);
        assert_eq!(again.applied, Vec::<String>::new());
        assert_eq!(again.needs_restart, ["listen.workers", "admin.token"], "still said");
    }
}
