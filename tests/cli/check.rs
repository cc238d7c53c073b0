//! `lockward check --connect` against real servers: what it finds, how bad it says that is, and that the lines it gives to
//! paste help. Only the old server is none: Redis before 7.0 can hardly be had any more.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::real_server::{self, RealServer};
use crate::rig::{Client, Ran, Running, eventually, free_port, program};

/// Runs the check against this URL, with `lock:*` as the only rule unless variables say otherwise.
fn check(url: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = program();
    command.args(["check", "--connect"]).args(args);
    command
        .env("LOCKWARD_UPSTREAM__URL", url)
        .envs(variables.iter().copied());
    Running::start(&mut command).ended()
}

/// What a check found, and its exit code.
struct Found(Value, Option<i32>);

impl Found {
    fn with(url: &str, args: &[&str], variables: &[(&str, &str)]) -> Found {
        let ran = check(url, &[args, &["--json"]].concat(), variables);
        assert_eq!(ran.err, "");
        Found(serde_json::from_str(&ran.out).expect("JSON"), ran.code)
    }

    fn at(port: u16) -> Found {
        Found::with(&format!("redis://127.0.0.1:{port}"), &[], &[])
    }

    /// Level, text and lines to paste of the only finding of this topic that says this.
    fn about(&self, topic: &str, words: &str) -> (&str, String, Vec<&str>) {
        fn text(value: &Value) -> &str {
            value.as_str().unwrap_or_default()
        }
        let said = |finding: &Value| format!("{}: {}", text(&finding["found"]), text(&finding["means"]));
        let findings = self.0["findings"].as_array().expect("findings").iter();
        let some: Vec<&Value> = findings
            .filter(|finding| finding["topic"] == topic && said(finding).contains(words))
            .collect();
        assert_eq!(some.len(), 1, "{topic}, {words}: {:#}", self.0);
        let paste = some[0]["paste"].as_array().into_iter().flatten().map(text);
        (text(&some[0]["level"]), said(some[0]), paste.collect())
    }

    fn level(&self, topic: &str, words: &str) -> &str {
        self.about(topic, words).0
    }
}

/// A server with these users, and a client of its default user.
fn with_users(program: &str, users: &[&str]) -> (RealServer, Client) {
    let server = RealServer::start(program);
    let mut client = Client::connect(server.port());
    for user in users {
        assert_eq!(client.ask(&format!("ACL SETUSER {user}")), "+OK");
    }
    (server, client)
}

#[test]
fn a_good_server_passes_and_is_left_as_it_was() {
    for program in [real_server::redis(), real_server::valkey()] {
        let server = RealServer::start_with(&program, &["--appendonly", "yes", "--maxmemory", "100mb"]);
        let mut client = Client::connect(server.port());
        assert_eq!(client.ask("SET lock:a 1"), "+OK");
        let found = Found::at(server.port());
        assert_eq!(found.1, Some(0), "{:#}", found.0);
        assert_eq!(
            (found.0["errors"].as_u64(), found.0["notes"].as_u64()),
            (Some(0), Some(2))
        );
        for (topic, words) in [
            ("server", ""),
            ("rights", "user default has all"),
            ("scripts", "run"),
            ("features", ""),
            ("clock", "off this machine's"),
            ("eviction", "noeviction, maxmemory is 100 MiB"),
            ("rules", "keys fall under default"),
        ] {
            assert_eq!(found.level(topic, words), "ok", "{topic}");
        }
        assert_eq!(found.level("persistence", "everysec"), "note");
        assert_eq!(found.level("replication", "without replicas"), "note");
        assert_eq!(
            (client.ask("DBSIZE"), client.ask("GET lock:a")),
            (":1".into(), "1".into())
        );
    }
}

#[test]
fn a_finding_is_a_line_and_below_it_stands_what_to_do() {
    let server = RealServer::start(&real_server::redis());
    let url = format!("redis://127.0.0.1:{}", server.port());
    let ran = check(&url, &[], &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let at = |start: &str| {
        let line = ran.out.lines().position(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {}", ran.out))
    };
    let warning = at("warning  persistence  off (save is \"\", appendonly is no)");
    let below: Vec<&str> = ran.out.lines().skip(warning + 1).map(str::trim_start).collect();
    assert!(below[0].starts_with("a restart forgets all locks"), "{}", ran.out);
    assert_eq!(below[1], "CONFIG SET appendonly yes");
    at("ok       server       redis 7");
    at("0 errors, ");
    at("CONFIG SET and ACL SETUSER last until");
    // The rules are described before.
    assert!(at("lock rules") < at("server 127.0.0.1:"), "{}", ran.out);
    assert_eq!(check(&url, &["--strict"], &[]).code, Some(1), "a warning is enough");
}

/// Each user lacks something, is told the line that grants it, and has all once that was pasted.
fn rights_are_granted(program: &str) {
    let users = [
        "narrow on >secret1 ~other:* +ping +eval +hget +time +del",
        "nothing on >secret1 +ping",
        "app on >secret1 ~lock:* %R~lockward:* +@all -evalsha",
    ];
    let (server, mut admin) = with_users(program, &users);
    for (user, lacks) in [
        (
            "narrow",
            &["+evalsha", "+hset", "+scan", "%RW~lockward:*", "~lock:*"][..],
        ),
        ("nothing", &["+eval", "+script|load", "+info"]),
        ("app", &["+evalsha", "%RW~lockward:*"]),
    ] {
        let url = format!("redis://{user}:secret1@127.0.0.1:{}", server.port());
        let found = Found::with(&url, &[], &[]);
        assert_eq!(found.1, Some(1), "{:#}", found.0);
        let (level, text, paste) = found.about("rights", "lacks");
        assert_eq!(level, "error", "{text}");
        let words: Vec<&str> = paste[0].split(' ').collect();
        assert_eq!(words[..3], ["ACL", "SETUSER", user]);
        for right in lacks {
            assert!(
                words.contains(right) && text.contains(right),
                "{right}: {text}, {paste:?}"
            );
        }
        assert!(!words.contains(&"+get"), "no rule has fencing: {paste:?}");
        assert_eq!(words.contains(&"+time"), user == "nothing", "{paste:?}");
        assert!(!text.contains("secret1"), "{text}");
        // While rules only observe, none of it is needed but what makes the connection.
        let observed = Found::with(&url, &[], &[("LOCKWARD_LOCKS__0__MODE", "observe")]);
        let as_bad_as_that = match words.contains(&"+select") {
            true => (Some(1), "error"),
            false => (Some(0), "warning"),
        };
        assert_eq!((observed.1, observed.level("rights", "lacks")), as_bad_as_that);

        assert_eq!(admin.ask(paste[0]), "+OK");
        let found = Found::with(&url, &[], &[]);
        assert_eq!(
            (found.1, found.level("rights", "has all")),
            (Some(0), "ok"),
            "{:#}",
            found.0
        );
        assert_eq!(found.level("scripts", "loaded and run"), "ok");
    }
}

#[test]
fn missing_rights_come_with_the_line_that_grants_them() {
    rights_are_granted(&real_server::redis());
    rights_are_granted(&real_server::valkey());
}

fn clients_are_granted_rights(program: &str) {
    let users = [
        "web on >secret1 ~lock:* +set +setnx +del",
        "own on >secret1 ~* +@all -acl|dryrun",
    ];
    let (server, mut admin) = with_users(program, &users);
    let url = format!("redis://127.0.0.1:{}", server.port());
    let fencing = [("LOCKWARD_LOCKS__0__FENCING", "true")];
    let found = Found::with(&url, &["--user", "web", "--user", "nobody"], &fencing);
    assert_eq!(found.1, Some(1));
    let (level, text, paste) = found.about("rights", "user web lacks");
    assert_eq!(level, "error");
    assert!(
        text.contains("NOPERM") && text.contains("+get") && !text.contains("+scan"),
        "{text}"
    );
    assert_eq!(found.level("rights", "there is no user nobody"), "error");
    assert_eq!(found.level("rights", "user default has all"), "ok");
    assert_eq!(found.level("scripts", "loaded and run"), "ok", "that is another user's");
    assert_eq!(admin.ask(paste[0]), "+OK");
    let found = Found::with(&url, &["--user", "web"], &fencing);
    assert_eq!((found.1, found.level("rights", "user web has all")), (Some(0), "ok"));
    // Some of the locks are not for everybody.
    let rules = [
        ("LOCKWARD_LOCKS__0__PATTERN", "lock:*"),
        ("LOCKWARD_LOCKS__1__PATTERN", "cron:*"),
    ];
    let found = Found::with(&url, &["--user", "web"], &rules);
    let (level, _, paste) = found.about("rights", "user web lacks ~cron:*");
    assert_eq!(
        (found.1, level, paste),
        (Some(0), "warning", vec!["ACL SETUSER web ~cron:*"])
    );

    let own = format!("redis://own:secret1@127.0.0.1:{}", server.port());
    let found = Found::with(&own, &["--user", "web"], &[]);
    let (level, text, _) = found.about("rights", "user web");
    assert_eq!(level, "warning");
    assert!(text.contains("+acl|dryrun"), "{text}");
}

#[test]
fn the_rights_of_clients_can_be_asked_for() {
    clients_are_granted_rights(&real_server::redis());
    clients_are_granted_rights(&real_server::valkey());
}

#[test]
fn settings_that_lose_locks() {
    let server = RealServer::start(&real_server::redis());
    let mut client = Client::connect(server.port());
    let mut set = |line: &str| assert_eq!(client.ask(&format!("CONFIG SET {line}")), "+OK", "{line}");
    let seen = |topic, words: &str| Found::at(server.port()).level(topic, words).to_owned();
    assert_eq!(seen("persistence", "off"), "warning");
    assert_eq!(seen("eviction", "no limit"), "note");
    set("save \"3600 1 300 100\"");
    set("maxmemory 100mb");
    for policy in ["allkeys-lru", "allkeys-random", "volatile-ttl", "volatile-lfu"] {
        set(&format!("maxmemory-policy {policy}"));
        let found = Found::at(server.port());
        let (level, text, paste) = found.about("eviction", policy);
        assert_eq!(
            (level, paste),
            ("warning", vec!["CONFIG SET maxmemory-policy noeviction"])
        );
        assert!(text.contains("a lock that is held"), "{text}");
        assert_eq!(found.level("persistence", "snapshots only"), "warning");
        assert_eq!(found.1, Some(0), "only warnings");
    }
    set("appendonly yes");
    for (sync, level) in [("everysec", "note"), ("always", "ok"), ("no", "warning")] {
        set(&format!("appendfsync {sync}"));
        assert_eq!(seen("persistence", &format!("appendfsync is {sync}")), level);
    }
    set("busy-reply-threshold 10");
    assert_eq!(seen("scripts", "BUSY"), "note");
}

#[test]
fn without_the_right_to_see_settings_info_is_taken() {
    let (server, _admin) = with_users(&real_server::redis(), &["own on >secret1 ~* +@all -config"]);
    let url = format!("redis://own:secret1@127.0.0.1:{}", server.port());
    let found = Found::with(&url, &[], &[]);
    assert_eq!(found.1, Some(0));
    let (level, _, paste) = found.about("not seen", "settings of the server");
    assert_eq!((level, paste), ("note", vec!["ACL SETUSER own +config|get"]));
    assert_eq!(found.level("eviction", "noeviction"), "note");
    assert_eq!(found.level("persistence", "not known"), "warning");
}

#[test]
fn replicas_and_their_primary() {
    let primary = RealServer::start(&real_server::redis());
    let port = primary.port().to_string();
    let replica = RealServer::start_with(&real_server::redis(), &["--replicaof", "127.0.0.1", &port]);
    let found = Found::at(replica.port());
    assert_eq!(found.1, Some(1));
    let (level, text, _) = found.about("replication", "replica of");
    assert_eq!(level, "error");
    assert!(
        text.contains(&format!("127.0.0.1:{port}")) && text.contains("read-only"),
        "{text}"
    );

    let found = eventually("the replica is there", || {
        let found = Found::at(primary.port());
        found
            .0
            .to_string()
            .contains("a primary with 1 replica")
            .then_some(found)
    });
    let (level, text, paste) = found.about("replication", "asynchronous");
    assert_eq!((level, paste), ("note", vec!["CONFIG SET min-replicas-to-write 1"]));
    assert!(text.contains("lose the last grants"), "{text}");
    assert_eq!(found.1, Some(0));
    let mut client = Client::connect(primary.port());
    assert_eq!(client.ask("CONFIG SET min-replicas-to-write 3"), "+OK");
    assert_eq!(Found::at(primary.port()).level("replication", "NOREPLICAS"), "warning");
}

#[test]
fn a_cluster_and_a_sentinel_are_not_supported() {
    let cluster = RealServer::start_with(&real_server::redis(), &["--cluster-enabled", "yes"]);
    let found = Found::at(cluster.port());
    assert_eq!(
        (found.1, found.level("server", "cluster_enabled:1")),
        (Some(1), "error")
    );

    let folder = std::env::temp_dir().join(format!("lockward-sentinel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, port) = (folder.join("sentinel.conf"), free_port());
    let text = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {} 1\n",
        cluster.port()
    );
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(real_server::redis());
    let _sentinel = Running::start(command.arg(&file).arg("--sentinel"));
    eventually("the sentinel listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    let found = Found::at(port);
    let (level, text, _) = found.about("server", "Sentinel");
    assert_eq!((found.1, level), (Some(1), "error"));
    assert!(
        text.contains(&format!("mymaster at redis://127.0.0.1:{}", cluster.port())),
        "{text}"
    );
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn logins_that_are_refused() {
    let server = RealServer::start_with(&real_server::redis(), &["--requirepass", "secret1"]);
    let at = format!("127.0.0.1:{}", server.port());
    let open = RealServer::start(&real_server::redis());
    for (url, words) in [
        (format!("redis://{at}"), "asks for a password"),
        (format!("redis://:marked-wrong@{at}"), "WRONGPASS"),
        (format!("redis://nobody:marked-wrong@{at}"), "user nobody"),
        (
            format!("redis://:marked-wrong@127.0.0.1:{}", open.port()),
            "asks for no password",
        ),
    ] {
        let found = Found::with(&url, &[], &[]);
        let (level, text, _) = found.about("login", words);
        assert_eq!((found.1, level), (Some(1), "error"));
        assert!(!text.contains("marked-wrong"), "{text}");
    }
    assert_eq!(Found::with(&format!("redis://:secret1@{at}"), &[], &[]).1, Some(0));
    let nobody = Found::at(free_port());
    assert_eq!(
        (nobody.1, nobody.level("connection", "cannot connect")),
        (Some(1), "error")
    );
}

#[test]
fn a_server_without_a_command_that_the_scripts_need() {
    let server = RealServer::start_with(&real_server::redis(), &["--rename-command", "EVALSHA", "hidden"]);
    let found = Found::at(server.port());
    let (level, text, _) = found.about("rights", "does not know EVALSHA");
    assert_eq!((found.1, level), (Some(1), "error"));
    assert!(text.contains("rename-command"), "{text}");
}

#[test]
fn rules_that_match_nothing() {
    let server = RealServer::start(&real_server::redis());
    let mut client = Client::connect(server.port());
    for line in ["SET :1:lock:a 1", "SET cron:daily 1", "SELECT 3", "SET job:7 1"] {
        assert_eq!(client.ask(line), "+OK");
    }
    let url = format!("redis://127.0.0.1:{}", server.port());
    let variables = [
        ("LOCKWARD_LOCKS__0__PATTERN", "lock:*"),
        ("LOCKWARD_LOCKS__1__PATTERN", "cron:daily"),
        ("LOCKWARD_LOCKS__2__PATTERN", "job:*"),
        ("LOCKWARD_LOCKS__3__PATTERN", "cron:d[ao]ily"),
    ];
    let found = Found::with(&url, &[], &variables);
    assert_eq!(found.level("rules", "keys fall under cron:daily, job:*"), "ok");
    let (level, text, paste) = found.about("rules", "no key falls under default (lock:*)");
    assert_eq!((level, paste), ("note", vec!["lockward suggest"]));
    assert!(
        text.contains("all 3 keys") && text.contains("only while they are held"),
        "{text}"
    );
    // The rule before it takes the only key.
    assert_eq!(found.level("rules", "no key falls under cron:d[ao]ily"), "note");
}

/// A server that takes its time for each key that it loads.
#[test]
fn a_server_that_is_loading() {
    let slow = [
        "--key-load-delay",
        "1000",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let options = [&slow[..], &["--enable-debug-command", "yes"]].concat();
    let mut server = RealServer::start_with(&real_server::redis(), &options);
    let mut client = Client::connect(server.port());
    assert_eq!(client.ask("DEBUG POPULATE 30000 other"), "+OK");
    assert_eq!(client.ask("SAVE"), "+OK");
    server.kill();
    server.restart();
    eventually("the server listens", || {
        TcpStream::connect(("127.0.0.1", server.port())).ok()
    });
    let found = Found::at(server.port());
    assert_eq!(
        (found.1, found.level("server", "is loading its data")),
        (Some(1), "error")
    );
}

#[test]
fn a_large_server_is_looked_at_in_part() {
    let server = RealServer::start_with(&real_server::redis(), &["--enable-debug-command", "yes"]);
    let mut client = Client::connect(server.port());
    assert_eq!(client.ask("DEBUG POPULATE 150000 other"), "+OK");
    let found = Found::at(server.port());
    let words = "no key falls under default (lock:*) now; about 100000 keys were looked at, and there are more";
    assert_eq!(found.level("rules", words), "note");
}

/// Runs a server five seconds in the future (libfaketime; with Debian's build of Redis it does not get on).
#[test]
fn a_clock_that_is_five_seconds_off() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tool = Command::new(top.join("scripts/get-tool")).arg("faketime").output();
    let tool = tool.expect("scripts/get-tool runs");
    let said = String::from_utf8_lossy(&tool.stderr);
    assert!(tool.status.success(), "this test needs a clock that is off: {said}");
    let faketime = String::from_utf8_lossy(&tool.stdout).trim().to_owned();

    let folder = std::env::temp_dir().join(format!("lockward-clock-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("server");
    let text = format!("#!/bin/sh\nexec '{faketime}' +5s '{}' \"$@\"\n", real_server::valkey());
    std::fs::write(&program, text).expect("a file");
    let mode = Command::new("chmod").arg("+x").arg(&program).status();
    assert!(mode.expect("chmod runs").success());
    let mut server = RealServer::start(program.to_str().expect("a path in ASCII"));
    let found = Found::at(server.port());
    let (level, text, _) = found.about("clock", "ahead of this machine's");
    assert_eq!((found.1, level), (Some(0), "warning"));
    assert!(
        text.contains("clock is 5.0s ahead") || text.contains("clock is 4.9s ahead"),
        "{text}"
    );
    assert!(text.contains("leases do not depend on it"), "{text}");
    // It has something to clean up.
    server.end();
    let _ = std::fs::remove_dir_all(&folder);
}

/// No real server: it answers PING, INFO and TIME as a Redis 6.2 does, and everything else with an error.
fn old_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_as_old(stream));
        }
    });
    port
}

fn answer_as_old(stream: TcpStream) {
    const INFO: &str = "# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\n# Memory\r\nmaxmemory:0\r\n\
        maxmemory_policy:noeviction\r\n# Persistence\r\nloading:0\r\naof_enabled:0\r\n# Replication\r\nrole:master\r\n\
        connected_slaves:0\r\n";
    let mut input = BufReader::new(stream);
    while let Some(words) = request(&mut input) {
        let reply = match words[0].as_str() {
            "PING" => "+PONG\r\n".to_owned(),
            "INFO" => format!("${}\r\n{INFO}\r\n", INFO.len()),
            word => format!("-ERR unknown command `{word}`, with args beginning with: \r\n"),
        };
        if input.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// One request: an array of bulk strings.
fn request(input: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let number = |input: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    let count = number(input)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut bytes = vec![0; number(input)? + 2];
        input.read_exact(&mut bytes).ok()?;
        words.push(String::from_utf8_lossy(&bytes).trim_end().to_owned());
    }
    Some(words)
}

#[test]
fn an_old_server() {
    let found = Found::at(old_server());
    let (level, text, _) = found.about("server", "redis 6.2.14 is too old");
    assert_eq!((found.1, level), (Some(1), "error"));
    assert!(text.contains("Redis 7.0 or newer, or Valkey 7.2 or newer"), "{text}");
    assert_eq!(found.level("not seen", "rights, scripts and rules"), "note");
    assert_eq!(found.level("persistence", "not known"), "warning");
}

#[test]
fn others_than_servers() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\u{1b}[2J\r\n",
        "*1000000000\r\n",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let found = Found::at(port);
        assert_eq!((found.1, found.level("connection", "")), (Some(1), "error"), "{answer}");
    }
}

#[test]
fn warnings_of_the_configuration_count_without_a_server() {
    let ran = crate::rig::run(&["check", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((ran.code, report["server"].is_null()), (Some(0), true));
    assert_eq!(report["findings"][0]["topic"], "config");
    assert_eq!(crate::rig::run(&["check", "--strict"]).code, Some(1));
    assert_eq!(crate::rig::run(&["check"]).code, Some(0));
    assert_eq!(crate::rig::run(&["check", "--user", "app"]).code, Some(2));
}
