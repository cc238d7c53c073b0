//! The configuration as its user meets it: defaults, every key, warnings, what `check` shows. Faults, variables and
//! random input stand in files of their own.

mod faults;
mod listeners;
mod random;
mod schema;
mod tls;
mod variables;

use std::path::Path;
use std::time::Duration;

use lockward::config::{
    BUILT_IN, Config, ConfigErrors, Format, HostPort, Level, Loaded, Place, SocketRights, describe,
};
use lockward::lock::rule::{DeniedWrite, Mode, OwnerPart, Rule, Unmanaged};

fn load_with(text: &str, env: &[(&str, &str)]) -> Result<Loaded, ConfigErrors> {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::parse(text, Path::new("lockward.toml"), env)
}

fn load(text: &str) -> Result<Loaded, ConfigErrors> {
    load_with(text, &[])
}

fn good(text: &str, env: &[(&str, &str)]) -> Config {
    load_with(text, env)
        .unwrap_or_else(|errors| panic!("{text}\n{env:?}\n{errors}"))
        .config
}

fn bad(text: &str, env: &[(&str, &str)]) -> String {
    match load_with(text, env) {
        Ok(_) => panic!("no error in\n{text}\n{env:?}"),
        Err(errors) => errors.to_string(),
    }
}

fn place(host: &str, port: u16) -> Place {
    Place::Tcp(HostPort {
        host: host.to_owned(),
        port,
    })
}

#[test]
fn the_documented_file_the_empty_file_and_no_file_are_the_defaults() {
    let none = Config::load(None, std::iter::empty()).expect("the built-in default");
    assert_eq!(load(BUILT_IN), Ok(none.clone()));
    // The same, but for where its rule comes from.
    assert!(none.rules_given);
    let empty = Loaded {
        rules_given: false,
        ..none.clone()
    };
    assert_eq!(load(""), Ok(empty));

    let Config {
        listen,
        listeners,
        upstream,
        admin,
        log,
        records,
        rules,
    } = none.config;
    let entrance = &listen.entrance;
    assert_eq!(entrance.place, place("127.0.0.1", 6380));
    assert_eq!(
        (&*entrance.name, &entrance.rules[..], listeners.len()),
        ("listen", &[0][..], 0)
    );
    assert_eq!((&entrance.trusted, &entrance.rights), (&None, &SocketRights::default()));
    assert_eq!(listen.tcp_keepalive, Some(Duration::from_secs(60)));
    assert_eq!(listen.max_connections, 10_000);
    assert_eq!((listen.max_connections_per_address, listen.idle_timeout), (None, None));
    assert_eq!(listen.max_buffered, 1 << 30);
    assert_eq!(upstream.reconnect_rate, 1000);
    assert_eq!(upstream.server.target, place("127.0.0.1", 6379).into());
    assert_eq!(
        (upstream.server.user, upstream.server.password, upstream.server.database),
        (None, None, 0)
    );
    assert_eq!(upstream.connect_timeout, Duration::from_secs(2));
    assert_eq!(
        (admin.address.to_string().as_str(), admin.hosts.len(), admin.token),
        ("127.0.0.1:9180", 0, None)
    );
    assert_eq!((log.level, log.format), (Level::Info, Format::Text));
    assert_eq!(records.prefix, "lockward:");
    let [
        Rule {
            name,
            patterns,
            mode,
            owner,
            unmanaged,
            fencing,
            emulate,
            denied_write,
            ..
        },
    ] = &rules[..]
    else {
        panic!("not one rule: {rules:?}");
    };
    assert_eq!((&**name, &patterns[..]), ("default", &[Box::from(&b"lock:*"[..])][..]));
    assert_eq!((*mode, &owner[..]), (Mode::Enforce, &[OwnerPart::Address][..]));
    assert_eq!((*unmanaged, *denied_write), (Unmanaged::Allow, DeniedWrite::Error));
    assert!(!fencing && !emulate && !rules[0].renew && !rules[0].release_on_disconnect);
    assert_eq!((rules[0].default_ttl_ms, rules[0].max_ttl_ms), (None, None));
    assert_eq!(rules[0].contention_shield_ms, None);
    assert_eq!(
        (
            rules[0].late_release_window_ms,
            rules[0].max_hold_ms,
            rules[0].disconnect_grace_ms
        ),
        (120_000, 600_000, 5_000)
    );
}

#[test]
fn the_commented_keys_of_the_documented_file_are_right_too() {
    let mut text = String::new();
    for line in BUILT_IN.lines() {
        let key = line.strip_prefix("# ").unwrap_or(line);
        let commented = ["default_ttl =", "max_ttl =", "contention_shield ="]
            .iter()
            .any(|start| key.starts_with(start));
        text.push_str(if commented { key } else { line });
        text.push('\n');
    }
    let rule = &good(&text, &[]).rules[0];
    assert_eq!((rule.default_ttl_ms, rule.max_ttl_ms), (Some(30_000), Some(3_600_000)));
    assert_eq!(rule.contention_shield_ms, Some(5));
    let text = BUILT_IN
        .replace("\naddress = \"127.0.0.1:6380\"", "")
        .replace("# unix =", "unix =");
    assert_eq!(
        good(&text, &[]).listen.entrance.place,
        Place::Unix("/run/lockward/lockward.sock".into())
    );
}

#[test]
fn everything_can_be_set() {
    let config = good(
        r#"
        listen.unix = "/run/l.sock"
        listen.proxy_protocol = false
        listen.tcp_keepalive = "0s"
        listen.max_connections = 5
        listen.max_connections_per_address = 3
        listen.idle_timeout = "1h"
        listen.max_buffered = "64mb"
        upstream = { url = "redis://app:pw@[::1]:7000/2", mode = "dedicated", connect_timeout = "250ms", reconnect_rate = 0 }
        admin = { address = "0.0.0.0:1", hosts = ["locks.example.org", "l"], token = "marked-secret-admin-token" }
        log = { level = "debug", format = "json" }
        records.prefix = "lw:"
        [[locks]]
        name = "jobs"
        pattern = ["job:*", 'x\*']
        mode = "observe"
        owner = ["user", "client-name"]
        unmanaged = "refuse"
        fencing = true
        emulate = true
        denied_write = "nil"
        default_ttl = "30s"
        max_ttl = "1h30m"
        late_release_window = "0s"
        renew = true
        max_hold = "1d"
        release_on_disconnect = true
        disconnect_grace = "0s"
        contention_shield = "5ms"
        [[locks]]
        pattern = "*"
        mode = "off"
        "#,
        &[],
    );
    assert_eq!(config.listen.entrance.place, Place::Unix("/run/l.sock".into()));
    assert_eq!((config.listen.tcp_keepalive, config.listen.max_connections), (None, 5));
    assert_eq!(config.upstream.server.target, place("::1", 7000).into());
    assert_eq!(config.upstream.server.database, 2);
    assert_eq!(config.listen.max_connections_per_address, Some(3));
    assert_eq!(config.listen.idle_timeout, Some(Duration::from_secs(3600)));
    assert_eq!(config.listen.max_buffered, 64 << 20);
    assert_eq!(config.upstream.connect_timeout, Duration::from_millis(250));
    assert_eq!(config.upstream.reconnect_rate, 0);
    assert_eq!(
        config.admin.token.as_ref().map(|token| token.reveal()),
        Some("marked-secret-admin-token")
    );
    assert_eq!(config.admin.hosts, ["locks.example.org", "l"]);
    assert_eq!((config.log.level, config.log.format), (Level::Debug, Format::Json));
    assert_eq!(config.records.prefix, "lw:");
    let expected = Rule {
        name: "jobs".into(),
        patterns: vec![Box::from(&b"job:*"[..]), Box::from(&b"x\\*"[..])],
        mode: Mode::Observe,
        owner: vec![OwnerPart::User, OwnerPart::ClientName],
        unmanaged: Unmanaged::Refuse,
        fencing: true,
        emulate: true,
        denied_write: DeniedWrite::Nil,
        default_ttl_ms: Some(30_000),
        max_ttl_ms: Some(5_400_000),
        late_release_window_ms: 0,
        renew: true,
        max_hold_ms: 86_400_000,
        release_on_disconnect: true,
        disconnect_grace_ms: 0,
        contention_shield_ms: Some(5),
    };
    assert_eq!(
        config.rules,
        vec![
            expected,
            Rule {
                mode: Mode::Off,
                ..Rule::new("*")
            }
        ]
    );
    assert!(!format!("{config:?}").contains("marked-secret-admin-token") && !format!("{config:?}").contains("pw"));
}

fn warnings(text: &str) -> Vec<String> {
    load(text).unwrap_or_else(|errors| panic!("{errors}")).warnings
}

#[test]
fn surprises_are_warned_of_and_only_they() {
    let [no_ttl, loopback] = &warnings("")[..] else {
        panic!("{:?}", warnings(""))
    };
    assert!(no_ttl.starts_with("rule \"default\": no default_ttl") && no_ttl.contains("lockward release KEY"));
    assert!(
        loopback.contains("owner = \"address\" on the loopback address 127.0.0.1:6380") && loopback.contains("two")
    );

    let rule = "[[locks]]\npattern = \"a\"\ndefault_ttl = \"1m\"\n";
    for (text, expected) in [
        (format!("[listen]\naddress = \"0.0.0.0:1\"\n{rule}"), None),
        (format!("{rule}owner = \"connection\""), None),
        (format!("{rule}owner = [\"address\", \"user\"]"), None),
        (format!("{rule}mode = \"off\""), None),
        (
            format!("{rule}owner = \"any\"\nmode = \"observe\"\ncontention_shield = \"5ms\""),
            Some("rule \"a\": contention_shield does nothing without mode = \"enforce\""),
        ),
        (format!("{rule}owner = \"any\"\ncontention_shield = \"1s\""), None),
        (
            format!("{rule}owner = \"process\""),
            Some("rule \"a\": owner = \"process\" counts as \"connection\" on TCP"),
        ),
        (format!("[listen]\nunix = \"/s\"\n{rule}owner = \"process\""), None),
        (
            format!("[listen]\nunix = \"/s\"\n{rule}"),
            Some("rule \"a\": owner = \"address\" on a unix socket"),
        ),
        (
            format!("[admin]\naddress = \"0.0.0.0:1\"\n{rule}owner = \"any\""),
            Some("admin.address 0.0.0.0:1 can be reached"),
        ),
        (
            format!("[admin]\naddress = \"0.0.0.0:1\"\ntoken = \"x\"\n{rule}owner = \"any\""),
            None,
        ),
        (
            format!("[upstream]\nurl = \"redis://h/3\"\n{rule}owner = \"any\""),
            Some("upstream.url: database 3"),
        ),
    ] {
        let warnings = warnings(&text);
        assert_eq!(warnings.len(), usize::from(expected.is_some()), "{text}\n{warnings:?}");
        if let (Some(expected), Some(warning)) = (expected, warnings.first()) {
            assert!(warning.starts_with(expected), "{text}\n{warning}");
        }
    }
}

#[test]
fn check_shows_what_the_file_came_to_and_no_secret() {
    let text = "[upstream]\nurl = \"redis://app:hunter2@h:1\"\n[admin]\ntoken = \"hunter3\"\n[[locks]]\nname = \"seen\"\n\
                pattern = \"lock:seen:*\"\nmode = \"off\"\n[[locks]]\npattern = [\"lock:*\", \"x\"]\nrenew = true\n\
                owner = [\"user\", \"client-name\"]\nmax_ttl = \"90m\"\ncontention_shield = \"5ms\"\n";
    let loaded = load(text).expect("good");
    let shown = describe(&loaded.config, &loaded.warnings);
    let expected = "\
listen    127.0.0.1:6380, at most 10000 connections, 1GB in buffers, keepalive 1m
upstream  redis://h:1, as user app, with a password, dedicated, connect timeout 2s, reconnects at 1000 a second
admin     http://127.0.0.1:9180, with a token
log       info, text
records   names begin with lockward:

lock rules, the first that matches a key decides:
1. seen: lock:seen:*
   mode                   off
2. lock:*,x: lock:* x
   mode                   enforce
   owner                  user and client-name
   unmanaged              allow
   denied_write           error
   fencing                off
   emulate                off
   default_ttl            off
   max_ttl                1h30m
   late_release_window    2m
   renew                  up to 10m
   release_on_disconnect  off
   contention_shield      5ms

warnings:
- rule \"lock:*,x\": no default_ttl, so a lock that a client takes without a TTL stays until its owner releases it, or until `lockward release KEY`
";
    assert_eq!(shown, expected);
}
