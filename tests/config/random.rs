//! Bad input never panics, however bad, and is told well.

use std::path::Path;

use lockward::config::{BUILT_IN, Config, ConfigErrors, Origin, describe};
use proptest::prelude::*;

use super::{bad, load};

/// TOML that is nearly right: known and unknown keys with values of every type.
fn nearly() -> impl Strategy<Value = String> {
    let head = prop::sample::select(vec![
        "[listen]",
        "[upstream]",
        "[admin]",
        "[log]",
        "[records]",
        "[[locks]]",
        "[locks]",
        "[[listen]]",
        "[listen.tls]",
        "[upstream.tls]",
        "",
    ]);
    let key = prop::sample::select(vec![
        "address",
        "unix",
        "tls",
        "proxy_protocol",
        "handshake_timeout",
        "cert",
        "server_name",
        "tcp_keepalive",
        "max_connections",
        "max_connections_per_address",
        "idle_timeout",
        "max_buffered",
        "reconnect_rate",
        "url",
        "mode",
        "token",
        "hosts",
        "level",
        "prefix",
        "name",
        "pattern",
        "owner",
        "default_ttl",
        "max_ttl",
        "renew",
        "max_hold",
        "contention_shield",
        "locks",
        "listen",
        "patern",
        "listen.tls.cert",
        "\"\"",
        "\"\\u0000\"",
    ]);
    let value = prop::sample::select(vec![
        "\"\"",
        "\"lock:*\"",
        "\"30s\"",
        "\"redis://h\"",
        "\"off\"",
        "\"99999999999999999999h\"",
        "[]",
        "[\"a\", \"b\"]",
        "[[1]]",
        "{}",
        "{ cert = 1 }",
        "true",
        "0",
        "-9223372036854775808",
        "0x10",
        "1e400",
        "nan",
        "1979-05-27T07:32:00Z",
        "\"\\u0000é\"",
        "'''\n'''",
        "[{}]",
        "x",
        "",
    ]);
    let line =
        prop_oneof![1 => head.prop_map(str::to_owned), 4 => (key, value).prop_map(|(k, v)| format!("{k} = {v}"))];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn variables() -> impl Strategy<Value = Vec<(String, String)>> {
    let name =
        "LOCKWARD_(LISTEN|UPSTREAM|LOCKS|LOG)__([0-3]__)?(ADDRESS|URL|PATTERN|OWNER|TLS__CERT|X|UNIX|DEFAULT_TTL)";
    let value = prop_oneof![
        "[\\[\\]\"',a:0-9s]{0,8}",
        Just("30s".to_owned()),
        Just("redis://h:1".to_owned())
    ];
    prop::collection::vec((name, value), 0..4)
}

/// Every fault has a key or is one of the whole line, stands in an existing line, and is one line of text.
fn well_told(errors: &ConfigErrors, text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!errors.faults().is_empty());
    for fault in errors.faults() {
        if let Origin::Line(line) = fault.origin {
            prop_assert!(
                line >= 1 && line <= 1 + text.matches('\n').count(),
                "line {} in\n{}",
                line,
                text
            );
        }
        prop_assert!(!fault.text.is_empty());
    }
    let shown = errors.to_string();
    prop_assert_eq!(shown.lines().count(), errors.faults().len(), "{}", shown);
    prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{:?}", shown);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nearly_right_text_never_panics(text in nearly(), env in variables()) {
        match Config::parse(&text, Path::new("t"), env.into_iter()) {
            Ok(loaded) => prop_assert!(!describe(&loaded.config, &loaded.warnings).is_empty()),
            Err(errors) => well_told(&errors, &text)?,
        }
    }

    #[test]
    fn random_text_never_panics(text in "(\\PC|\n|\t|[\\[\\]{}=\"'.#a-z\\\\]){0,60}") {
        if let Err(errors) = load(&text) {
            well_told(&errors, &text)?;
        }
    }

    #[test]
    fn a_damaged_default_never_panics(at in 0..BUILT_IN.len(), cut in 0..30_usize, put in "[\\[\\]{}=\"'\n#a-z\\\\]{0,3}") {
        let (start, end) = (floor(at), floor((at + cut).min(BUILT_IN.len())));
        let text = format!("{}{put}{}", &BUILT_IN[..start], &BUILT_IN[end..]);
        if let Err(errors) = load(&text) {
            well_told(&errors, &text)?;
        }
    }
}

fn floor(mut at: usize) -> usize {
    while !BUILT_IN.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    for text in [
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{ b = ".repeat(50_000)),
    ] {
        assert!(load(&text).is_err());
    }
    let dotted = format!("{} = 1", vec!["a"; 50_000].join("."));
    assert!(bad(&dotted, &[]).len() < 200);
    assert!(bad(&format!("{} = 1", "a".repeat(50_000)), &[]).len() < 300);
    let header = format!("[{}]", vec!["a"; 50_000].join("."));
    assert!(load(&header).is_err());
}
