//! What the operator is told of a bad file: file, line, key, and what was probably meant.

use std::path::Path;

use lockward::config::{Config, Level, Origin};

use super::bad;

#[test]
fn a_slip_names_file_line_key_and_what_was_meant() {
    let text = "[listen]\naddress = \"127.0.0.1:1\"\n\n[[locks]]\n# which\npatern = \"lock:*\"\npattern = \"a\"\n";
    assert_eq!(
        bad(text, &[]),
        "lockward.toml:6: locks[0].patern: unknown key; did you mean \"pattern\"?"
    );
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_lines() {
    let text = r#"[listen]
adress = "127.0.0.1:1"
max_connections = 0
tls = { cert = "a", ky = "b" }

[upstrem]
x = 1

[upstream]
url = "redisss://a:hunter2@b"
mode = "shared"

[[locks]]
patern = "lock:*"
mode = "enforced"
owner = ["user",
  "clientname"]
default_ttl = 30

[[locks]]
pattern = "c*"
default_ttl = "1m"
max_ttl = "30s"
renew = true
max_hold = "0s"
contention_shield = "2s"

[[locks]]
pattern = [
  "b",
  "cd*",
  "lockward:*",
  "",
]
fencing = "true"
"#;
    let expected = r#"
lockward.toml:2: listen.adress: unknown key; did you mean "address"?
lockward.toml:3: listen.max_connections: must be a whole number from 1 to 1000000
lockward.toml:4: listen.tls.ky: unknown key; did you mean "key"?
lockward.toml:6: upstrem: unknown key; did you mean "upstream"?
lockward.toml:10: upstream.url: must begin with redis://, rediss://, redis+unix:// or redis-sentinel://
lockward.toml:14: locks[0].patern: unknown key; did you mean "pattern"?
lockward.toml:15: locks[0].mode: must be "enforce", "observe" or "off", not "enforced"; did you mean "enforce"?
lockward.toml:17: locks[0].owner: must be "connection", "process", "address", "client-name", "user" or "any", not "clientname"; did you mean "client-name"?
lockward.toml:18: locks[0].default_ttl: must be a time in quotes with its unit, like "30s", not a number
lockward.toml:23: locks[1].max_ttl: "30s" is shorter than default_ttl = "1m"
lockward.toml:25: locks[1].max_hold: "0s" leaves nothing to renew; give it a length, or set renew = false
lockward.toml:26: locks[1].contention_shield: "2s" is more than 1s: for so long a lock could be free by its TTL, or released past this lockward, and still be refused
lockward.toml:31: locks[2].pattern: "cd*" never gets a key: "c*" of the rule "c*" takes them all before it
lockward.toml:32: locks[2].pattern: "lockward:*" matches only lockward's own records (records.prefix), which are never locks
lockward.toml:33: locks[2].pattern: must not be empty; for all keys write "*"
lockward.toml:35: locks[2].fencing: must be true or false without quotes"#;
    assert_eq!(format!("\n{}", bad(text, &[])), expected);
}

/// One fault each: the file with `;` for its line ends, then the line and the beginning of what is told.
const ONE_FAULT: &str = r#"
[listen]; address = 6380 => 2: listen.address: must be host:port in quotes, not a number
[listen]; address = ":6380" => 2: listen.address: ":6380" is no address: the host is missing
[listen]; address = "a:1"; unix = "b" => 3: listen.unix: listen.address stands there too
[listen]; unix = "" => 2: listen.unix: must be the path
[listen]; proxy_protocol = true => 1: listen.trusted_proxies: proxy_protocol = true needs it: whoever may send a PROXY header
[listen]; proxy_protocol = true; trusted_proxies = [] => 3: listen.trusted_proxies: proxy_protocol = true needs it
[listen]; proxy_protocol = true; trusted_proxies = ["10.0.0.0/8", "balancer"] => 3: listen.trusted_proxies: "balancer" must be an IP address, a network like 10.0.0.0/8, or "unix"
[listen]; proxy_protocol = true; trusted_proxies = "10.0.0.1/8" => 3: listen.trusted_proxies: "10.0.0.1/8" is an address inside of a network
[listen]; proxy_protocol = true; trusted_proxies = "unix" => 3: listen.trusted_proxies: holds only "unix", so nobody could come in by TCP
[listen]; unix = "/a"; proxy_protocol = true; trusted_proxies = "10.0.0.1" => 4: listen.trusted_proxies: holds no "unix", so nobody
[listen]; trusted_proxies = "10.0.0.1" => 2: listen.trusted_proxies: is of use only with proxy_protocol = true
[listen]; unix_mode = "0770" => 2: listen.unix_mode: is of use only with unix
[listen]; unix = "/a"; unix_mode = "0779" => 3: listen.unix_mode: must be an octal number in quotes, like "0770"
[listen]; unix = "/a"; unix_mode = "4770" => 3: listen.unix_mode: must be an octal number in quotes, like "0770", up to "0777"
[listen]; unix = "/a"; unix_mode = 0o770 => 3: listen.unix_mode: must be an octal number in quotes, like "0770", not a number
[listen]; unix = "/a"; unix_mode = "0444" => 3: listen.unix_mode: lets nobody connect
[listen]; unix = "/a"; unix_group = "" => 3: listen.unix_group: must be the name or the number of a group
[listen]; unix = "/a"; unix_group = "4294967295" => 3: listen.unix_group: no group has this number
[listeners]; name = "a"; address = "a:1" => 1: listeners: must be written as [[listeners]]
listeners = [1] => 1: listeners[0]: must be a table
[[listeners]]; address = "a:1" => 1: listeners[0].name: missing; logs, `lockward check` and socket units
[[listeners]]; name = "a" => 1: listeners[0].address: missing; say where it listens
[[listeners]]; name = "a b"; address = "a:1" => 2: listeners[0].name: must be at most 64 letters, digits and -._
[[listeners]]; name = "listen"; address = "a:1" => 2: listeners[0].name: "listen" is the name of a section
[[listeners]]; name = "a"; address = "127.0.0.1:6380" => 3: listeners[0].address: is the place of listen already
[[listeners]]; name = "a"; address = "127.0.0.1:9180" => 3: listeners[0].address: is admin.address as well; each needs its own port
[[listeners]]; name = "a"; address = "127.0.0.1:6379" => 3: listeners[0].address: is the place of the server (upstream.url)
[[listeners]]; name = "a"; address = "h:1"; [upstream]; url = "redis://h:1" => 5: upstream.url: is the place where lockward itself listens (listeners[0])
[[listeners]]; name = "a"; address = "a:1"; unix = "/a" => 4: listeners[0].unix: listeners[0].address stands there too
[[listeners]]; name = "a"; address = "a:1"; [[listeners]]; name = "a"; address = "a:2" => 5: listeners[1].name: "a" is the name of listeners[0] already
[[listeners]]; name = "a"; address = "a:1"; [[listeners]]; name = "b"; address = "a:1" => 6: listeners[1].address: is the place of listeners[0] already
[[listeners]]; name = "a"; address = "a:1"; max_connections = 5 => 4: listeners[0].max_connections: unknown key here; it belongs to [listen]
[[listeners]]; name = "a"; address = "a:1"; tls = { cert = "a" } => 4: listeners[0].tls.key: key is missing
[[listeners]]; name = "a"; address = "a:1"; locks = [] => 4: listeners[0].locks: the list is empty
[[listeners]]; name = "a"; address = "a:1"; [listeners.locks]; pattern = "a" => 4: listeners[0].locks: must be written as [[listeners.locks]]
[[listeners]]; name = "a"; address = "a:1"; [[listeners.locks]]; patern = "a" => 5: listeners[0].locks[0].patern: unknown key
[[listeners]]; name = "a"; address = "a:1"; [[listeners.locks]]; pattern = "l*"; name = "default" => 6: listeners[0].locks[0].name: "default" is the name of the rule that stands for no [[locks]] at all
[[locks]]; pattern = "a"; [[listeners]]; name = "a"; address = "a:1"; [[listeners.locks]]; pattern = "a" => 6: listeners[0].locks[0].name: "a" is the name of locks[0] already
[[listeners]]; name = "a"; address = "a:1"; [[listeners.locks]]; pattern = "a*"; [[listeners.locks]]; pattern = "ab" => 7: listeners[0].locks[1].pattern: "ab" never gets a key: "a*"
[listen]; proxy_protocol = 1 => 2: listen.proxy_protocol: must be true or false
[listen]; tls = true => 2: listen.tls: must be a table, like { cert = "/etc/lockward/cert.pem"
[listen]; tls = { cert = "a" } => 2: listen.tls.key: key is missing: a certificate and its key belong together
[listen]; tls = { cert = "", key = "b" } => 2: listen.tls.cert: must be the path of a PEM file
[listen]; tls = { client_ca = "c", cert = "a", key = 5 } => 2: listen.tls.key: must be a path in quotes, not a number
[listen]; handshake_timeout = "0s" => 2: listen.handshake_timeout: must be at least "1ms"
[upstream]; url = "rediss://a"; tls = { key = "a" } => 3: upstream.tls.cert: cert is missing: a certificate and its key belong together
[upstream]; url = "rediss://a"; tls = { server_name = "a b" } => 3: upstream.tls.server_name: must be a host name or an IP address
[upstream]; url = "redis://a"; tls = { ca = "a" } => 3: upstream.tls: is of use only where upstream.url begins with rediss://
[listen]; max_connections = -1 => 2: listen.max_connections: must be a whole number from 1
[listen]; max_connections = 99999999999999999999 => 2: listen.max_connections: must be a whole number
[listen]; max_connections = 1.5 => 2: listen.max_connections: must be a whole number
[listen]; tcp_keepalive = "1 fortnight" => 2: listen.tcp_keepalive: "1 fortnight" is no time
[listen]; tcp_keepalive = "500ms" => 2: listen.tcp_keepalive: must be whole seconds
[listen]; url = "x" => 2: listen.url: unknown key here; it belongs to [upstream]
listen = 5 => 1: listen: must be one table, written as [listen]
[[listen]]; address = "a:1" => 1: listen: must be one table, written as [listen]
[upstream]; url = "127.0.0.1:6379" => 2: upstream.url: must be a URL
[upstream]; url = "redis://127.0.0.1:6380" => 2: upstream.url: is the place where lockward itself listens
[upstream]; mode = "dedicatd" => 2: upstream.mode: must be "dedicated" or "shared", not "dedicatd"; did you mean "dedicated"?
[upstream]; connect_timeout = "0s" => 2: upstream.connect_timeout: must be at least "1ms"
[admin]; address = "127.0.0.1:6380" => 2: admin.address: is listen.address as well
[admin]; hosts = "http://locks.example.org" => 2: admin.hosts: must be a host name
[admin]; hosts = ["a", "b:1"] => 2: admin.hosts: must be a host name
[admin]; hosts = [5] => 2: admin.hosts: must be a text in quotes or a list
[admin]; token = "a b" => 2: admin.token: must be printable ASCII
[admin]; token = " ab" => 2: admin.token: must be printable ASCII
[admin]; token = "ab\t" => 2: admin.token: must be printable ASCII
[admin]; token = 12345 => 2: admin.token: must be a text in quotes, not a number
[log]; level = "warning" => 2: log.level: must be "error", "warn", "info", "debug" or "trace", not "warning"
[log]; format = "xml" => 2: log.format: must be "text" or "json", not "xml"
[records]; prefix = "" => 2: records.prefix: must be 1 to 64
[records]; prefix = "a{b" => 2: records.prefix: must not contain a brace
[records]; prefix = "l"; [[locks]]; pattern = "lock:*" => 4: locks[0].pattern: "lock:*" matches only lockward's own records
[locks]; pattern = "a" => 1: locks: must be written as [[locks]]
locks = [] => 1: locks: the list is empty
locks = [1] => 1: locks[0]: must be a table
locks = "lock:*" => 1: locks: must be a list of rules
[[locks]]; name = "x" => 1: locks[0].pattern: missing; say which keys are locks, like pattern = "lock:*"
[[locks]]; pattern = [] => 2: locks[0].pattern: the list is empty
[[locks]]; pattern = ["a", 1] => 2: locks[0].pattern: must be a text in quotes or a list of them, not a number
[[locks]]; pattern = "a"; name = "" => 3: locks[0].name: must be 1 to 128
[[locks]]; pattern = "a"; owner = [] => 3: locks[0].owner: the list is empty
[[locks]]; pattern = "a"; owner = ["any", "user"] => 3: locks[0].owner: "any" makes everybody one owner
[[locks]]; pattern = "a"; owner = ["user", "user"] => 3: locks[0].owner: "user" stands there twice
[[locks]]; pattern = "a"; renew = "yes" => 3: locks[0].renew: must be true or false, not a text
[[locks]]; pattern = "a"; max_ttl = "0s" => 3: locks[0].max_ttl: must be at least "1ms"
[[locks]]; pattern = "a"; max_ttl = "4000d" => 3: locks[0].max_ttl: "4000d" is too long
[[locks]]; pattern = "a"; max_ttl = 2020-01-01 => 3: locks[0].max_ttl: must be a time in quotes with its unit, like "30s", not a date
[[locks]]; pattern = "a"; [[locks]]; pattern = "b"; name = "a" => 5: locks[1].name: "a" is the name of locks[0] already
[[locks]]; pattern = "a"; [[locks]]; pattern = "a"; name = "b" => 4: locks[1].pattern: "a" never gets a key: "a" of the rule "a"
[[locks]]; pattern = "lock:*"; [[locks]]; pattern = "lock:free:*" => 4: locks[1].pattern: "lock:free:*" never gets a key: "lock:*"
[listen]; max_connections = 10k => 2: max_connections: 
[log]; level = info => 2: level: 
[log]; level = "info => 2: level: 
[log]; level = "info"; level = "warn" => 3: level: duplicate key
[log; level = "info" => 1: 
"a\nb" = 1 => 1: a\nb: unknown key; here can stand: listen, listeners, upstream
"#;

#[test]
fn one_fault_in_one_line() {
    for row in ONE_FAULT.trim_matches('\n').lines() {
        let (file, expected) = row.split_once(" => ").expect("an arrow");
        let error = bad(&file.replace("; ", "\n"), &[]);
        assert!(
            error.starts_with(&format!("lockward.toml:{expected}")),
            "{row}\ngot {error}"
        );
        assert_eq!(error.lines().count(), 1, "{row}\n{error}");
    }
}

#[test]
fn unreadable_files_are_named() {
    let missing = Config::load(Some(Path::new("no/such.toml")), std::iter::empty()).expect_err("missing");
    assert!(
        missing.to_string().starts_with("no/such.toml: cannot be read: "),
        "{missing}"
    );
    let path = std::env::temp_dir().join(format!("lockward-config-{}.toml", std::process::id()));
    std::fs::write(&path, b"[log]\n# \xff\n").expect("written");
    let errors = Config::load(Some(&path), std::iter::empty()).expect_err("not UTF-8");
    std::fs::write(&path, b"\xef\xbb\xbf[log]\r\nlevel = \"warn\"\r\n").expect("written");
    let loaded = Config::load(Some(&path), std::iter::empty());
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(errors.faults()[0].origin, Origin::Line(2));
    assert_eq!(
        loaded.expect("a byte order mark and CRLF are fine").config.log.level,
        Level::Warn
    );
}

#[test]
fn keys_for_sentinels_need_sentinels() {
    let upstream = |rest: &str| format!("[upstream]\n{rest}\n");
    for (rest, hint) in [
        (
            "sentinel_password = \"hunter2\"",
            "upstream.sentinel_password: is of use only where",
        ),
        (
            "sentinel_user = \"hunter2\"",
            "upstream.sentinel_user: is of use only where",
        ),
        (
            "url = \"redis-sentinel://a/m\"\nsentinel_tls = false",
            "upstream.sentinel_tls: is of use only where upstream.url begins with rediss-sentinel://",
        ),
        (
            "url = \"redis-sentinel://a/m\"\nsentinel_user = \"hunter2\"",
            "upstream.sentinel_user: is of no use without sentinel_password",
        ),
        (
            "url = \"redis-sentinel://a/m\"\ntls = { ca = \"b\" }",
            "rediss-sentinel://",
        ),
    ] {
        let said = bad(&upstream(rest), &[]);
        assert!(said.contains(hint) && !said.contains("hunter"), "{rest}: {said}");
    }
    let variables = [
        ("LOCKWARD_UPSTREAM__URL", "rediss-sentinel://u:hunter2@a,b/m"),
        ("LOCKWARD_UPSTREAM__SENTINEL_USER", "s"),
        ("LOCKWARD_UPSTREAM__SENTINEL_PASSWORD", "hunter2"),
        ("LOCKWARD_UPSTREAM__SENTINEL_TLS", "false"),
    ];
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let loaded = Config::parse("", Path::new("lockward.toml"), variables).expect("it is good");
    let shown = lockward::config::describe(&loaded.config, &[]);
    let wanted = "master m of the sentinels a:26379,b:26379, TLS, as user u, with a password, sentinels as user s, with a \
                  password, without TLS, verified by";
    assert!(shown.contains(wanted), "{shown}");
    assert!(!format!("{shown}{:?}", loaded.config).contains("hunter"), "{shown}");
}
