//! Addresses and URLs by example, good and bad, and that no text panics.

use proptest::prelude::*;

use super::*;

fn tcp(host: &str, port: u16) -> Place {
    Place::Tcp(HostPort {
        host: host.to_owned(),
        port,
    })
}

#[test]
fn good_urls() {
    for (text, place, user, password, database) in [
        ("redis://127.0.0.1:6379", tcp("127.0.0.1", 6379), None, None, 0),
        ("redis://redis.internal", tcp("redis.internal", 6379), None, None, 0),
        ("redis://[::1]:7000/3", tcp("::1", 7000), None, None, 3),
        ("redis://[::1]/", tcp("::1", 6379), None, None, 0),
        ("redis://app:s%40c@h:1/0", tcp("h", 1), Some("app"), Some("s@c"), 0),
        ("redis://:pw@h:1", tcp("h", 1), None, Some("pw"), 0),
        ("redis://app@h:1", tcp("h", 1), Some("app"), None, 0),
        ("redis://a:p:q@h:1", tcp("h", 1), Some("a"), Some("p:q"), 0),
        (
            "redis+unix:///run/r.sock",
            Place::Unix("/run/r.sock".into()),
            None,
            None,
            0,
        ),
        (
            "redis+unix://a:p@/run/r%20s",
            Place::Unix("/run/r s".into()),
            Some("a"),
            Some("p"),
            0,
        ),
    ] {
        let server = server(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(server.target, place.into(), "{text}");
        assert_eq!(server.user.as_deref(), user, "{text}");
        assert_eq!(server.password.as_ref().map(Secret::reveal), password, "{text}");
        assert_eq!(server.database, database, "{text}");
    }
}

#[test]
fn only_rediss_means_tls() {
    for (text, tls) in [
        ("redis://h:1", false),
        ("rediss://h:1", true),
        ("rediss://u:p@[::1]/2", true),
        ("redis+unix:///s", false),
    ] {
        assert_eq!(server(text).expect(text).tls, tls, "{text}");
    }
    assert_eq!(
        server("rediss://h").expect("a URL").target,
        server("redis://h").expect("a URL").target
    );
}

#[test]
fn sentinels_are_named_with_the_master() {
    for (text, shown, tls, user) in [
        ("redis-sentinel://a/m", "master m of the sentinels a:26379", false, None),
        (
            "rediss-sentinel://u:p%40@a:1,b,[::1]:2,[::2]/my.master-1_x",
            "master my.master-1_x of the sentinels a:1,b:26379,[::1]:2,[::2]:26379",
            true,
            Some("u"),
        ),
    ] {
        let server = server(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(server.target.to_string(), shown);
        assert_eq!(
            (server.tls, server.user.as_deref(), server.database),
            (tls, user, 0),
            "{text}"
        );
    }
}

#[test]
fn what_another_program_calls_an_address() {
    for (host, port) in [("10.0.0.1", "6379"), ("::1", "1"), ("redis-0.redis", "65535")] {
        let told = HostPort::told(host.as_bytes(), port.as_bytes()).expect(host);
        assert_eq!((told.host.as_str(), told.port.to_string().as_str()), (host, port));
    }
    for (host, port) in [
        ("", "1"),
        ("h", "0"),
        ("h", "+1"),
        ("h", "1x"),
        ("h", ""),
        ("a:b", "1"),
        ("h/", "1"),
        ("é", "1"),
    ] {
        assert_eq!(HostPort::told(host.as_bytes(), port.as_bytes()), None, "{host} {port}");
    }
}

#[test]
fn bad_urls_are_explained_and_not_repeated() {
    for (text, hint) in [
        ("127.0.0.1:6379", "must be a URL"),
        ("http://hunter2", "must begin with redis://"),
        ("rediss+unix://hunter2", "rediss://"),
        ("redis-sentinel://hunter2", "names no master"),
        ("redis-sentinel://hunter2/", "names no master"),
        ("redis+sentinel://hunter2/m", "redis-sentinel://host:26379"),
        ("rediss+sentinel://hunter2/m", "rediss-sentinel:// for TLS"),
        ("sentinel://hunter2/m", "redis-sentinel://host:26379"),
        ("redis-sentinels://hunter2/m", "redis-sentinel://host:26379"),
        ("redis-sentinel:///m", "host is missing"),
        ("redis-sentinel://hunter2,/m", "host is missing"),
        ("redis-sentinel://hunter2,hunter2/m", "twice"),
        ("redis-sentinel://hunter2:0/m", "port 0"),
        ("redis-sentinel://hunter2/m/0", "nothing stands behind it"),
        ("redis-sentinel://hunter2/m m", "letters, digits"),
        ("redis-sentinel://hunter2/m?x=1", "no options"),
        (
            "redis-sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,hunter2/m",
            "at most 16",
        ),
        ("redis+cluster://hunter2", "not in this version yet"),
        ("unix:///hunter2", "redis+unix:///path"),
        ("redis://", "host is missing"),
        ("redis://u:hunter2@", "host is missing"),
        ("redis://::1:6379", "in brackets"),
        ("redis://[::1", "not closed"),
        ("redis://[hunter2]", "no IPv6 address"),
        ("redis://[::1]6379", "a colon and a port"),
        ("redis://h:hunter2", "number up to 65535"),
        ("redis://h:65536", "number up to 65535"),
        ("redis://h:", "number up to 65535"),
        ("redis://h:+1", "number up to 65535"),
        ("redis://h:0", "port 0"),
        ("redis://h:1/hunter2", "number of a database"),
        ("redis://h:1/99999999999", "number of a database"),
        ("redis://h:1?db=1", "no options"),
        ("redis://u:hun#ter2@h", "%23"),
        ("redis://u:hunter2%zz@h", "%25"),
        ("redis://u:hunter2%ff@h", "UTF-8"),
        ("redis://h ost:1", "no host has"),
        ("redis+unix://host/path", "three slashes"),
        ("redis+unix://", "path of a unix socket"),
    ] {
        let error = server(text).expect_err(text);
        assert!(error.contains(hint), "{text}: {error}");
        assert!(!error.contains("hunter"), "{text}: {error}");
    }
}

#[test]
fn addresses_to_listen_at() {
    for (text, host, port) in [
        ("127.0.0.1:6380", "127.0.0.1", 6380),
        ("[::]:0", "::", 0),
        ("localhost:1", "localhost", 1),
    ] {
        let address = host_port(text).expect(text);
        assert_eq!((address.host.as_str(), address.port), (host, port));
        assert_eq!(address.to_string(), text);
    }
    for (text, hint) in [
        ("6380", "no port"),
        (":6380", "0.0.0.0"),
        ("127.0.0.1", "no port"),
        ("::1", "in brackets"),
        ("", "host is missing"),
        ("h:1:2", "in brackets"),
    ] {
        let error = host_port(text).expect_err(text);
        assert!(error.contains(hint), "{text}: {error}");
    }
    let loopback = |text| host_port(text).is_ok_and(|address| address.is_loopback());
    assert!(
        loopback("127.3.0.1:1") && loopback("[::1]:1") && loopback("LocalHost:1") && loopback("[::ffff:127.0.0.1]:1")
    );
    assert!(!loopback("0.0.0.0:1") && !loopback("[::]:1") && !loopback("example.org:1"));
}

#[test]
fn a_socket_path_has_a_length() {
    assert!(socket_path("/run/lockward.sock").is_ok());
    assert!(socket_path("").is_err());
    assert!(socket_path("a\0b").is_err());
    assert!(socket_path(&"x".repeat(108)).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "(redis://|redis\\+unix://|redis-sentinel://)?[a-z@:/%,\\[\\]é0-9]{0,20}") {
        let _ = (server(&text), host_port(&text));
    }
}
