//! The variables: they win over the file, others are left alone, slips are told.

use std::path::Path;

use lockward::config::{Config, Place};
use lockward::lock::rule::{OwnerPart, Rule};

use super::{bad, good, load, load_with, place};

#[test]
fn a_variable_wins_over_the_file() {
    let text = "[listen]\naddress = \"127.0.0.1:1\"\n[[locks]]\npattern = \"a\"\n[[locks]]\npattern = \"b\"\n";
    let config = good(
        text,
        &[
            ("LOCKWARD_LISTEN__UNIX", "/run/s"),
            ("LOCKWARD_LISTEN__MAX_CONNECTIONS", "7"),
            ("LOCKWARD_LISTEN__PROXY_PROTOCOL", "false"),
            ("LOCKWARD_UPSTREAM__URL", "redis://:secret@h:1"),
            ("LOCKWARD_ADMIN__HOSTS", "a.example, b.example"),
            ("LOCKWARD_LOCKS__1__OWNER", "user, client-name"),
            ("LOCKWARD_LOCKS__1__PATTERN", "[\"x,y\", 'z']"),
            ("LOCKWARD_LOCKS__1__RENEW", "true"),
            ("LOCKWARD_LOCKS__2__PATTERN", "[ab]c,d"),
            ("LOCKWARD_LOCKS__2__DEFAULT_TTL", "3s"),
            ("LOCKWARD_LOCKS__2__NAME", "third"),
        ],
    );
    assert_eq!(config.listen.entrance.place, Place::Unix("/run/s".into()));
    assert_eq!(config.listen.max_connections, 7);
    assert_eq!(config.admin.hosts, ["a.example", "b.example"]);
    assert_eq!(
        config
            .upstream
            .server
            .password
            .as_ref()
            .map(|password| password.reveal()),
        Some("secret")
    );
    let patterns = |index: usize| -> Vec<String> {
        config.rules[index]
            .patterns
            .iter()
            .map(|pattern| pattern.escape_ascii().to_string())
            .collect()
    };
    assert_eq!(patterns(0), ["a"]);
    assert_eq!(patterns(1), ["x,y", "z"]);
    assert_eq!(patterns(2), ["[ab]c", "d"]);
    assert_eq!(config.rules[1].owner, [OwnerPart::User, OwnerPart::ClientName]);
    assert!(config.rules[1].renew);
    assert_eq!(
        (&*config.rules[2].name, config.rules[2].default_ttl_ms),
        ("third", Some(3_000))
    );

    let config = good("[listen]\nunix = \"/run/s\"", &[("LOCKWARD_LISTEN__ADDRESS", "h:1")]);
    assert_eq!(config.listen.entrance.place, place("h", 1));
}

#[test]
fn a_listener_can_stand_in_variables_alone() {
    let config = good(
        "",
        &[
            ("LOCKWARD_LISTENERS__0__NAME", "app"),
            ("LOCKWARD_LISTENERS__0__ADDRESS", "h:1"),
            ("LOCKWARD_LISTENERS__0__PROXY_PROTOCOL", "true"),
            ("LOCKWARD_LISTENERS__0__TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.7"),
            ("LOCKWARD_LISTENERS__0__TLS__CERT", "/c"),
            ("LOCKWARD_LISTENERS__0__TLS__KEY", "/k"),
            ("LOCKWARD_LISTENERS__0__LOCKS__0__PATTERN", "a:*"),
            ("LOCKWARD_LISTENERS__0__LOCKS__1__PATTERN", "b:*"),
            ("LOCKWARD_LISTENERS__1__NAME", "side"),
            ("LOCKWARD_LISTENERS__1__UNIX", "/s"),
            ("LOCKWARD_LISTENERS__1__UNIX_MODE", "0660"),
        ],
    );
    let [app, side] = &config.listeners[..] else {
        panic!("{:?}", config.listeners)
    };
    assert_eq!((&app.place, &*app.name), (&place("h", 1), "app"));
    assert!(app.tls.is_some());
    assert_eq!(
        app.trusted.as_ref().map(ToString::to_string).as_deref(),
        Some("10.0.0.0/8 192.0.2.7")
    );
    let names: Vec<&str> = config.rules_at(app).map(|rule| &*rule.name).collect();
    assert_eq!(names, ["a:*", "b:*"]);
    assert_eq!(
        (side.rights.mode, &side.place),
        (Some(0o660), &Place::Unix("/s".into()))
    );
    assert_eq!(
        bad("", &[("LOCKWARD_LISTENERS__1__NAME", "app")]),
        "LOCKWARD_LISTENERS__1__NAME: there are 0 listeners before it; the next one has number 0"
    );
    assert!(
        bad("", &[("LOCKWARD_LISTENERS__0__ADRESS", "a:1")]).contains("did you mean LOCKWARD_LISTENERS__0__ADDRESS?")
    );
}

#[test]
fn eleven_rules_by_variables_stand_in_the_order_of_their_numbers() {
    let env: Vec<(String, String)> = (0..11)
        .map(|n| (format!("LOCKWARD_LOCKS__{n}__PATTERN"), format!("p{n}:*")))
        .collect();
    let config = Config::parse("", Path::new("x"), env.into_iter()).expect("good").config;
    let names: Vec<&str> = config.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(
        names,
        [
            "p0:*", "p1:*", "p2:*", "p3:*", "p4:*", "p5:*", "p6:*", "p7:*", "p8:*", "p9:*", "p10:*"
        ]
    );
}

#[test]
fn without_a_file_variables_change_the_default_rule() {
    let env = [("LOCKWARD_LOCKS__0__PATTERN".to_owned(), "job:*".to_owned())];
    let config = Config::load(None, env.into_iter()).expect("good").config;
    assert_eq!(
        config.rules,
        [Rule {
            name: "default".into(),
            ..Rule::new("job:*")
        }]
    );
}

#[test]
fn what_others_put_into_the_environment_is_ignored() {
    let env = [
        ("LOCKWARD_SERVICE_HOST", "10.0.0.1"),
        ("LOCKWARD_PORT", "tcp://10.0.0.1:6380"),
        ("LOCKWARD_PORT_6380_TCP_ADDR", "10.0.0.1"),
        ("LOCKWARD__A_PORT", "1"),
        ("LOCKWARD_", ""),
        ("LOCKWARDEN__X", "1"),
        ("PATH__X", "1"),
    ];
    assert_eq!(load_with("", &env), load(""));
}

/// Name behind `LOCKWARD_`, value, and the beginning of what is told.
const WRONG: &str = r#"
LISTEN__ADRESS a:1 => unknown variable; did you mean LOCKWARD_LISTEN__ADDRESS?
LISTN__ADDRESS a:1 => unknown variable; did you mean LOCKWARD_LISTEN__ADDRESS?
LOCKS__3__PATERN a => unknown variable; did you mean LOCKWARD_LOCKS__3__PATTERN?
LOCKS__PATTERN a => unknown variable; did you mean LOCKWARD_LOCKS__0__PATTERN?
LOCKS__00__PATTERN a => unknown variable; did you mean LOCKWARD_LOCKS__0__PATTERN?
log__level info => unknown variable; did you mean LOCKWARD_LOG__LEVEL?
LISTEN__TLS__CRT x => unknown variable; did you mean LOCKWARD_LISTEN__TLS__CERT?
SOMETHING__QUITE_DIFFERENT_FROM_ALL_OF_THEM x => unknown variable; settings are called LOCKWARD_SECTION__KEY
LISTEN__TLS__CERT a => key is missing: a certificate and its key belong together
UPSTREAM__TLS__CA a => is of use only where upstream.url begins with rediss://
UPSTREAM__TLS__CRT x => unknown variable; did you mean LOCKWARD_UPSTREAM__TLS__C
LISTEN__PROXY_PROTOCOL true => proxy_protocol = true needs it
LISTEN__MAX_CONNECTIONS many => must be a whole number from 1 to 1000000
LOG__LEVEL loud => must be "error", "warn", "info", "debug" or "trace", not "loud"
LOCKS__0__RENEW yes => must be true or false, not a text
LOCKS__0__DEFAULT_TTL 30 => "30" has no unit; write "30s" for seconds
LOCKS__0__PATTERN  => must not be empty
LOCKS__0__PATTERN ["a", => no list as in TOML
LOCKS__0__OWNER user,bob => must be "connection"
LOCKS__7__PATTERN x => there are 1 rules before it; the next one has number 1
"#;

#[test]
fn a_wrong_variable_names_itself_and_the_right_one() {
    for row in WRONG.trim_matches('\n').lines() {
        let (variable, expected) = row.split_once(" => ").expect("an arrow");
        let (name, value) = variable.split_once(' ').expect("a value");
        let name = format!("LOCKWARD_{name}");
        let error = bad("[[locks]]\npattern = \"lock:*\"\n", &[(&name, value)]);
        assert!(error.starts_with(&format!("{name}: {expected}")), "{row}\ngot {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
