//! The `tls` tables: what stands in them, by file and by variable, and what `check` shows of them.

use std::path::PathBuf;
use std::time::Duration;

use lockward::config::{BUILT_IN, KeyPair, ListenTls, UpstreamTls, describe};

use super::good;

fn pair(cert: &str, key: &str) -> KeyPair {
    KeyPair {
        cert: cert.into(),
        key: key.into(),
    }
}

#[test]
fn both_tables_by_file_and_by_variable() {
    let text = "[listen]\ntls = { cert = \"c\", key = \"k\", client_ca = \"ca\" }\nhandshake_timeout = \"3s\"\n\
                [upstream]\nurl = \"rediss://h:1\"\n\
                tls = { ca = \"a\", cert = \"b\", key = \"d\", server_name = \"redis.internal\" }\n";
    let env = [
        ("LOCKWARD_LISTEN__TLS__CERT", "c"),
        ("LOCKWARD_LISTEN__TLS__KEY", "k"),
        ("LOCKWARD_LISTEN__TLS__CLIENT_CA", "ca"),
        ("LOCKWARD_LISTEN__HANDSHAKE_TIMEOUT", "3s"),
        ("LOCKWARD_UPSTREAM__URL", "rediss://h:1"),
        ("LOCKWARD_UPSTREAM__TLS__CA", "a"),
        ("LOCKWARD_UPSTREAM__TLS__CERT", "b"),
        ("LOCKWARD_UPSTREAM__TLS__KEY", "d"),
        ("LOCKWARD_UPSTREAM__TLS__SERVER_NAME", "redis.internal"),
    ];
    for config in [good(text, &[]), good("", &env)] {
        let listen = ListenTls {
            own: pair("c", "k"),
            client_ca: Some(PathBuf::from("ca")),
        };
        let upstream = UpstreamTls {
            ca: Some(PathBuf::from("a")),
            own: Some(pair("b", "d")),
            server_name: Some("redis.internal".to_owned()),
        };
        assert_eq!(config.listen.entrance.tls, Some(listen));
        assert_eq!(config.listen.handshake_timeout, Duration::from_secs(3));
        assert_eq!(config.upstream.tls, upstream);
        assert!(config.upstream.server.tls);
        let shown = describe(&config, &[]);
        let listen = "listen    127.0.0.1:6380, TLS with c, clients' certificates by ca, handshake timeout 3s, at most";
        let upstream =
            "upstream  rediss://h:1, without a password, verified by a, as redis.internal, with b, dedicated";
        assert!(shown.contains(listen) && shown.contains(upstream), "{shown}");
    }
}

#[test]
fn without_them_there_is_no_tls_to_clients_and_the_system_is_trusted() {
    let config = good("[upstream]\nurl = \"rediss://h\"", &[]);
    assert_eq!(
        (config.listen.entrance.tls, &config.upstream.tls),
        (None, &UpstreamTls::default())
    );
    assert_eq!(config.listen.handshake_timeout, Duration::from_secs(10));
    assert!(config.upstream.server.tls && !good("", &[]).upstream.server.tls);
}

#[test]
fn the_documented_tables_are_right_too() {
    let text = BUILT_IN
        .replace("# tls = {", "tls = {")
        .replace("url = \"redis://", "url = \"rediss://");
    let config = good(&text, &[]);
    assert!(config.listen.entrance.tls.is_some_and(|tls| tls.client_ca.is_some()));
    assert!(config.upstream.tls.own.is_some() && config.upstream.tls.ca.is_some());
}
