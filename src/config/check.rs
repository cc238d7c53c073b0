//! The settings as text, for `lockward check` and for a look at what a file and its variables came to. Shows no
//! secret; connects to nothing.

use std::fmt::Write as _;

use super::rules::{MODES, OWNER_PARTS};
use super::{Config, Entrance, Format, Group, Listen, Place, SentinelAccess, Server, Target, Upstream, duration, size};
use crate::lock::rule::{DeniedWrite, OwnerPart, Rule, Unmanaged};

/// All settings, the rules in their order, and the warnings. Ends with a line end.
pub fn describe(config: &Config, warnings: &[String]) -> String {
    let Config {
        listen,
        listeners,
        upstream,
        admin,
        log,
        records,
        rules: _,
    } = config;
    let keepalive = listen
        .tcp_keepalive
        .map_or("off".to_owned(), |time| duration::text(duration::milliseconds(time)));
    let timeout = duration::text(duration::milliseconds(upstream.connect_timeout));
    let token = match admin.token {
        Some(_) => "with a token",
        None => "without a token: calls that change state are refused",
    };
    let format = match log.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10}{value}");
    };
    let each = listen
        .max_connections_per_address
        .map_or(String::new(), |most| format!(", {most} from one address"));
    let idle = listen.idle_timeout.map_or(String::new(), |time| {
        format!(
            ", closed when idle for {}",
            duration::text(duration::milliseconds(time))
        )
    });
    line(
        "listen",
        format!(
            "{}, at most {} connections{each}, {} in buffers{idle}, keepalive {keepalive}",
            came_in(listen, &listen.entrance),
            listen.max_connections,
            size::text(listen.max_buffered as u64)
        ),
    );
    for listener in listeners {
        let rules = match config.has_own_rules(listener) {
            true => "its own rules",
            false => "the general rules",
        };
        line(
            "listener",
            format!("{}: {}, {rules}", listener.name, came_in(listen, listener)),
        );
    }
    let pace = match upstream.reconnect_rate {
        0 => String::new(),
        rate => format!(", reconnects at {rate} a second"),
    };
    line(
        "upstream",
        format!(
            "{}{}{}, {}, connect timeout {timeout}{pace}",
            server(&upstream.server),
            sentinels(upstream),
            server_tls(upstream),
            upstream.mode.word()
        ),
    );
    let names = match &admin.hosts[..] {
        [] => String::new(),
        hosts => format!(", also as {}", hosts.join(", ")),
    };
    line("admin", format!("http://{}{names}, {token}", admin.address));
    line("log", format!("{}, {format}", log.level.word()));
    line("records", format!("names begin with {}", records.prefix));
    text.push_str("\nlock rules, the first that matches a key decides:\n");
    describe_rules(config, &listen.entrance, &mut text);
    for listener in listeners.iter().filter(|listener| config.has_own_rules(listener)) {
        let _ = writeln!(
            text,
            "\nlock rules of listener {}, in place of those above:",
            listener.name
        );
        describe_rules(config, listener, &mut text);
    }
    if !warnings.is_empty() {
        text.push_str("\nwarnings:\n");
        for warning in warnings {
            let _ = writeln!(text, "- {warning}");
        }
    }
    text
}

fn describe_rules(config: &Config, entrance: &Entrance, text: &mut String) {
    for (index, rule) in config.rules_at(entrance).enumerate() {
        text.push_str(&describe_rule(index, rule));
    }
}

/// A place where clients come in, and how.
fn came_in(listen: &Listen, entrance: &Entrance) -> String {
    let mode = entrance
        .rights
        .mode
        .map_or(String::new(), |mode| format!(", mode {mode:04o}"));
    let group = match &entrance.rights.group {
        None => String::new(),
        Some(Group::Name(name)) => format!(", group {name}"),
        Some(Group::Number(number)) => format!(", group {number}"),
    };
    let trusted = entrance
        .trusted
        .as_ref()
        .map_or(String::new(), |trusted| format!(", with a PROXY header from {trusted}"));
    format!(
        "{}{mode}{group}{trusted}{}",
        entrance.place,
        clients_tls(listen, entrance)
    )
}

fn clients_tls(listen: &Listen, entrance: &Entrance) -> String {
    let Some(tls) = &entrance.tls else {
        return String::new();
    };
    let clients = match &tls.client_ca {
        Some(ca) => format!("clients' certificates by {}", ca.display()),
        None => "no certificates of clients".to_owned(),
    };
    let handshake = duration::text(duration::milliseconds(listen.handshake_timeout));
    format!(
        ", TLS with {}, {clients}, handshake timeout {handshake}",
        tls.own.cert.display()
    )
}

fn server_tls(upstream: &Upstream) -> String {
    if !upstream.server.tls {
        return String::new();
    }
    let tls = &upstream.tls;
    let roots = tls
        .ca
        .as_ref()
        .map_or("the system's roots".to_owned(), |ca| ca.display().to_string());
    let name = tls
        .server_name
        .as_ref()
        .map_or(String::new(), |name| format!(", as {name}"));
    let own = tls
        .own
        .as_ref()
        .map_or(String::new(), |own| format!(", with {}", own.cert.display()));
    format!(", verified by {roots}{name}{own}")
}

fn server(server: &Server) -> String {
    let user = match (&server.user, &server.password) {
        (None, None) => "without a password".to_owned(),
        (None, Some(_)) => "as the default user, with a password".to_owned(),
        (Some(user), Some(_)) => format!("as user {}, with a password", user.escape_debug()),
        (Some(user), None) => format!("as user {}, without a password", user.escape_debug()),
    };
    let place = match &server.target {
        Target::Place(Place::Tcp(address)) if server.tls => format!("rediss://{address}"),
        Target::Place(Place::Tcp(address)) => format!("redis://{address}"),
        unix @ Target::Place(Place::Unix(_)) => unix.to_string(),
        sentinels @ Target::Sentinels(_) if server.tls => format!("{sentinels}, TLS"),
        sentinels @ Target::Sentinels(_) => sentinels.to_string(),
    };
    format!("{place}, {user}")
}

fn sentinels(upstream: &Upstream) -> String {
    let Target::Sentinels(_) = upstream.server.target else {
        return String::new();
    };
    let SentinelAccess { user, password, tls } = &upstream.sentinel;
    let login = match (user, password) {
        (_, None) => "without a password".to_owned(),
        (None, Some(_)) => "with a password".to_owned(),
        (Some(user), Some(_)) => format!("as user {}, with a password", user.escape_debug()),
    };
    let tls = match (upstream.server.tls, tls) {
        (false, _) => "",
        (true, true) => ", by TLS",
        (true, false) => ", without TLS",
    };
    format!(", sentinels {login}{tls}")
}

/// The word for a value, from the list that the file is read by.
fn word<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> &'static str {
    words
        .iter()
        .find(|(_, other)| other == value)
        .map_or("", |(word, _)| word)
}

/// How a rule says it: the parts of its owner, with "and" between them.
pub(crate) fn owner_words(rule: &Rule) -> String {
    let owner: Vec<&str> = rule.owner.iter().map(owner_word).collect();
    owner.join(" and ")
}

/// The word for one part of an owner.
pub(crate) fn owner_word(part: &OwnerPart) -> &'static str {
    word(part, &OWNER_PARTS)
}

/// The word for a rule's mode.
pub(crate) fn mode_word(rule: &Rule) -> &'static str {
    word(&rule.mode, &MODES)
}

/// The patterns of a rule, as they are written.
pub(super) fn patterns(rule: &Rule) -> String {
    let patterns = rule.patterns.iter().map(|pattern| pattern.escape_ascii().to_string());
    patterns.collect::<Vec<String>>().join(" ")
}

/// What a rule does with its locks: a name and a value each.
pub(super) fn rule_settings(rule: &Rule) -> [(&'static str, String); 12] {
    let time = |time: Option<u64>| time.map_or("off".to_owned(), duration::text);
    let after = |on: bool, label: &str, milliseconds: u64| match on {
        true => format!("{label} {}", duration::text(milliseconds)),
        false => "off".to_owned(),
    };
    let unmanaged = match rule.unmanaged {
        Unmanaged::Allow => "allow",
        Unmanaged::Refuse => "refuse",
    };
    let denied_write = match rule.denied_write {
        DeniedWrite::Error => "error",
        DeniedWrite::Nil => "nil",
    };
    [
        ("mode", mode_word(rule).to_owned()),
        ("owner", owner_words(rule)),
        ("unmanaged", unmanaged.to_owned()),
        ("denied_write", denied_write.to_owned()),
        ("fencing", on_off(rule.fencing)),
        ("emulate", on_off(rule.emulate)),
        ("default_ttl", time(rule.default_ttl_ms)),
        ("max_ttl", time(rule.max_ttl_ms)),
        ("late_release_window", duration::text(rule.late_release_window_ms)),
        ("renew", after(rule.renew, "up to", rule.max_hold_ms)),
        (
            "release_on_disconnect",
            after(rule.release_on_disconnect, "after", rule.disconnect_grace_ms),
        ),
        ("contention_shield", time(rule.contention_shield_ms)),
    ]
}

fn describe_rule(index: usize, rule: &Rule) -> String {
    let lines = rule_settings(rule);
    let mut text = format!("{}. {}: {}\n", index + 1, rule.name.escape_debug(), patterns(rule));
    // A rule that is off has no other settings that matter.
    let shown = if lines.first().is_some_and(|(_, mode)| mode == "off") {
        1
    } else {
        lines.len()
    };
    for (name, value) in lines.into_iter().take(shown) {
        let _ = writeln!(text, "   {name:<22} {value}");
    }
    text
}

fn on_off(on: bool) -> String {
    if on { "on".to_owned() } else { "off".to_owned() }
}
