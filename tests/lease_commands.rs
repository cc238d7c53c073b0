//! What single commands do to locks on a real server, beyond the random histories: odd spellings, several keys, keys
//! that come and go by other commands, servers without the newest commands, full memory, narrow permissions.

#[path = "lease/client.rs"]
mod client;
mod real_server;
#[allow(
    dead_code,
    reason = "shared with the differential test, which reads more of the replies"
)]
#[path = "lease/server.rs"]
mod server;

use client::Client;
use server::Server;

/// Runs a scene on both servers.
fn on_both(scene: impl Fn(&mut Client)) {
    for kind in ["redis", "valkey"] {
        let server = Server::start(kind);
        scene(&mut Client::new(server.connect()));
    }
}

/// Each line: who, his command, the reply and what is said of it. `direct` goes past the scripts.
fn play(client: &mut Client, scene: &str) {
    for line in scene
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (command, expected) = line.split_once(" -> ").unwrap_or((line, "*"));
        let (who, command) = command.split_once(": ").expect("who: command -> reply");
        let reply = if who == "direct" {
            client.direct(command)
        } else {
            client.does(who, command)
        };
        assert!(expected == "*" || reply == expected, "{line}\n  got: {reply}");
    }
}

#[test]
fn the_server_says_itself_what_it_does_not_like() {
    on_both(|client| {
        play(
            client,
            "A1: SET lock:a 1 NX XX -> !ERR syntax error failed
             A1: SET lock:a 1 BOGUS -> !ERR syntax error failed
             A1: SET lock:a 1 NX PX 0 -> !ERR invalid expire time in 'set' command failed
             A1: SET lock:a 1 NX EX -> !ERR syntax error failed
             A1: SET lock:a 1 EX 100 -> OK granted
             B1: SET lock:a 2 NX XX -> !ERR syntax error failed
             B1: SET lock:a 2 BOGUS -> !ERR syntax error
             B1: SET lock:a 2 EX 9 NX BOGUS -> !ERR syntax error
             A1: EXPIRE lock:a abc -> forwarded !ERR value is not an integer or out of range
             A1: EXPIRE lock:a 9223372036854775807 -> forwarded !ERR invalid expire time in 'expire' command
             A1: PEXPIRE lock:a 9223372036854775807 -> !ERR invalid expire time in 'pexpire' command
             B1: EXPIRE lock:a 0 BOGUS -> 0 refused extend foreign
             A1: EXPIRE lock:a 0 BOGUS -> !ERR Unsupported option BOGUS
             A1: EXPIRE lock:a 5 NX GT -> *
             A1: GETEX lock:a EX 0 -> *
             A1: GETEX lock:a EX 5 PX 5 -> !ERR syntax error
             A1: MSET lock:a 1 lock:b -> *
             A1: RENAME lock:a lock:a -> forwarded OK
             direct: GET lock:a -> \"1\"
             B1: DEL lock:a -> 0 foreign, refused release foreign
             A1: DEL lock:a -> 1 released",
        );
    });
}

#[test]
fn a_key_in_an_error_cannot_break_the_line() {
    on_both(|client| {
        let key = "lock:'\r\n\\\u{e9}".to_owned();
        client.asks("A1", &["SETNX", &key, "1"].map(str::to_owned));
        let reply = client.asks("B1", &["SETEX", &key, "5", "1"].map(str::to_owned));
        let text =
            r"!LOCKHELD lock 'lock:\x27\x0d\x0a\x5c\xc3\xa9' is held by another client refused overwrite foreign";
        assert_eq!(reply, text);
    });
}

#[test]
fn conditions_of_a_release_are_the_servers() {
    on_both(|client| {
        play(
            client,
            "A1: SETNX lock:a 1 -> 1 granted
             A1: PEXPIRE lock:a 0 XX -> 0
             B1: PEXPIRE lock:a 0 XX -> 0
             B1: PEXPIRE lock:a 0 NX -> 0 foreign, refused release foreign
             A1: PEXPIRE lock:a 0 GT -> 0
             A1: PEXPIRE lock:a -5 LT -> 1 released
             A1: SET lock:a 1 EX 100 -> OK granted
             A1: EXPIRE lock:a -1 NX -> 0
             A1: EXPIREAT lock:a 1000 GT -> 0
             A1: EXPIREAT lock:a 1000 XX -> 1 released
             A1: SET lock:a v EX 100 -> OK granted
             B1: GETEX lock:a PXAT 1000 -> nil foreign, refused release foreign
             A1: GETEX lock:a EXAT 1000 -> \"v\" released
             A1: SET lock:a 1 EX 100 -> OK granted
             B1: MOVE lock:a 1 -> 0 foreign, refused release foreign
             A2: MOVE lock:a 1 -> 1 pooled
             direct: EXISTS lock:a lockward:{lock:a} -> 0",
        );
    });
}

#[test]
fn locks_come_and_go_by_other_commands() {
    on_both(|client| {
        play(
            client,
            "A1: SET lock:a v EX 100 -> OK granted
             direct: SADD s1 x -> 1
             B1: SUNIONSTORE lock:a s1 -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: COPY s1 lock:a REPLACE -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: COPY s1 lock:a -> 0 contended
             B1: SORT s1 ALPHA STORE lock:a -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: RENAME s1 lock:a -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: RENAMENX s1 lock:a -> 0 contended
             B1: RENAME lock:a other -> !ERR no such key foreign, refused release foreign
             A2: SUNIONSTORE lock:a s1 -> 1 overwritten
             direct: TYPE lock:a -> set
             direct: PTTL lockward:{lock:a} -> -1
             A1: SINTERSTORE lock:a s1 none -> 0 ended
             direct: EXISTS lock:a lockward:{lock:a} -> 0
             B1: COPY s1 lock:a -> 1 granted
             B1: RENAME lock:a lock:b -> OK released, granted
             A1: RENAME s1 lock:b -> !LOCKHELD lock 'lock:b' is held by another client refused overwrite foreign
             A1: SET lock:c v EX 100 -> OK granted
             A1: RENAME lock:c lock:b -> !LOCKHELD lock 'lock:b' is held by another client refused overwrite foreign
             A1: RENAMENX lock:c lock:b -> 0
             B2: RENAME lock:b gone -> OK pooled
             A1: RENAME lock:c lock:b -> OK released, granted
             direct: EXISTS lock:c lockward:{lock:c} -> 0
             A1: DEL lock:b -> 1 released",
        );
    });
}

#[test]
fn other_databases_are_safe_from_copy_replace() {
    on_both(|client| {
        play(
            client,
            "direct: SELECT 1
             A1: SET lock:a v EX 100 -> OK granted
             direct: SELECT 0
             direct: SET x y
             B1: COPY x lock:a DB 1 REPLACE -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: COPY x lock:a DB 1 -> forwarded 0
             B1: COPY x lock:b DB 1 REPLACE -> 1
             direct: EXISTS lock:b -> 0
             direct: SELECT 1
             direct: GET lock:a -> \"v\"
             direct: GET lock:b -> \"y\"",
        );
    });
}

#[test]
fn migrate_takes_only_what_the_caller_may_give_up() {
    for kind in ["redis", "valkey"] {
        // A dump of one kind of server does not load into the other.
        let (server, target) = (Server::start(kind), Server::start(kind));
        let (client, port) = (&mut Client::new(server.connect()), target.port());
        play(
            client,
            &format!(
                "A1: SET lock:a v EX 100 -> OK granted
                 A1: SET lock:b v EX 100 -> OK granted
                 B1: SET lock:c v EX 100 -> OK granted
                 direct: SET data:x 1
                 B1: MIGRATE 127.0.0.1 {port} lock:a 0 1000 -> NOKEY foreign, refused release foreign
                 A1: MIGRATE 127.0.0.1 {port} lock:a 0 1000 COPY -> forwarded OK
                 A1: MIGRATE 127.0.0.1 {port} lock:a 0 1000 REPLACE -> OK released"
            ),
        );
        let words: Vec<String> = [
            "MIGRATE",
            "127.0.0.1",
            &port.to_string(),
            "",
            "0",
            "1000",
            "KEYS",
            "lock:b",
            "data:x",
            "lock:c",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(client.asks("A2", &words), "OK pooled, foreign, refused release foreign");
        assert_eq!(client.direct("EXISTS lock:a lock:b data:x lockward:{lock:b}"), "0");
        assert_eq!(client.direct("EXISTS lock:c lockward:{lock:c}"), "2");
    }
}

#[test]
fn a_hundred_thousand_keys_in_one_command() {
    on_both(|client| {
        let mut write = vec!["MSET".to_owned()];
        let mut remove = vec!["DEL".to_owned()];
        for number in 0..100_000 {
            let key = if number % 50_000 == 7 {
                format!("lock:{number}")
            } else {
                format!("data:{number}")
            };
            write.extend([key.clone(), "v".to_owned()]);
            remove.push(key);
        }
        assert_eq!(client.does("B1", "SET lock:50007 b EX 100"), "OK granted");
        let held = "!LOCKHELD lock 'lock:50007' is held by another client refused overwrite foreign";
        assert_eq!(client.asks("A1", &write), held);
        assert_eq!(client.direct("DBSIZE"), "2");
        assert_eq!(client.does("B1", "DEL lock:50007"), "1 released");
        assert_eq!(client.asks("A1", &write), "OK granted, granted");
        write[0] = "MSETNX".to_owned();
        assert_eq!(client.asks("B1", &write), "0 contended, contended");
        assert_eq!(
            client.asks("B1", &remove),
            "99998 foreign, refused release foreign, foreign, refused release foreign"
        );
        assert_eq!(client.asks("A1", &remove), "2 released, released");
        assert_eq!(client.asks("A1", &write), "1 granted, granted");
        remove.push("lock:7".to_owned());
        assert_eq!(client.asks("A1", &remove), "100000 released, released");
        assert_eq!(client.direct("DBSIZE"), "0");
    });
}

#[test]
fn compare_commands_are_done_by_scripts_where_the_rule_says_so() {
    on_both(|client| {
        play(client, "A1: SET lock:a v EX 100 -> OK granted");
        for command in ["DELEX lock:a", "DELEX lock:a IFNE x", "SET lock:a w IFNE x"] {
            assert!(client.does("B1", command).starts_with("forwarded !ERR"), "{command}");
        }
        client.rule.emulate = true;
        play(
            client,
            "B1: DELEX lock:a -> 0 foreign, refused release foreign
             B1: DELEX lock:a IFEQ x -> 0
             B1: DELIFEQ lock:a x -> 0
             B1: SET lock:a w IFEQ x -> nil
             B1: SET lock:a w IFEQ x GET -> \"v\"
             A1: DELEX lock:a IFNE v -> 0
             A2: SET lock:a w IFEQ v PX 5000 GET -> \"v\" overwritten
             direct: GET lock:a -> \"w\"
             A2: DELEX lock:a IFNE v -> 1 pooled
             A1: SET lock:a v EX 100 -> OK granted
             A2: DELIFEQ lock:a v -> 1 self_checked
             direct: EXISTS lock:a lockward:{lock:a} -> 0
             A1: DELEX lock:a IFEQ v -> 0
             A1: SET lock:a w IFEQ v -> nil",
        );
    });
}

#[test]
fn a_record_of_another_version_is_left_alone() {
    on_both(|client| {
        play(
            client,
            "direct: SET lock:a v
             direct: HSET lockward:{lock:a} version 2 owner A secret x
             B1: DEL lock:a -> 0 foreign, refused release foreign
             B1: EXPIRE lock:a 100 -> 0 refused extend foreign
             B1: SET lock:a w -> !LOCKHELD lock 'lock:a' is held by another client refused overwrite foreign
             B1: SETNX lock:a w -> 0 contended
             A1: EXPIRE lock:a 100 -> 1
             A1: DEL lock:a -> 1 unmanaged
             direct: HGET lockward:{lock:a} secret -> \"x\"
             B1: DEL lock:a -> 0 absent
             B1: SETNX lock:a v -> 1 granted
             direct: HGET lockward:{lock:a} secret -> nil
             B1: DEL lock:a -> 1 released",
        );
    });
}

#[test]
fn a_record_of_the_first_version_is_left_alone_too() {
    on_both(|client| {
        play(
            client,
            "direct: SET lock:a v PX 100000
             direct: HSET lockward:{lock:a} version 1 window 120000 number 1 owner A token t connection A-1 acquired_at 1
             B1: DEL lock:a -> 0 foreign, refused release foreign
             B1: SET lock:a w NX PX 5000 -> nil contended
             A1: PEXPIRE lock:a 90000 -> 1
             A1: DEL lock:a -> 1 unmanaged
             B1: SET lock:a w NX PX 5000 -> OK granted
             direct: HEXISTS lockward:{lock:a} version -> 0
             A1: DEL lock:a -> 0 foreign, refused release foreign
             B2: DEL lock:a -> 1 pooled",
        );
    });
}

#[test]
fn the_shortest_way_and_the_long_one_meet() {
    on_both(|client| {
        play(
            client,
            "A1: SET lock:a v NX EX 100 -> OK granted
             direct: HSTRLEN lockward:{lock:a} token -> 36
             direct: OBJECT ENCODING lockward:{lock:a} -> \"listpack\"
             A1: EXPIRE lock:a 50 -> 1 extended
             A2: EXPIRE lock:a 60 -> 1 extended
             B1: EXPIRE lock:a 60 -> 0 refused extend foreign
             A1: PERSIST lock:a -> 1 extended
             direct: PTTL lockward:{lock:a} -> -1
             A1: EXPIRE lock:a 50 -> 1 extended
             direct: PEXPIRE lock:a 70000 -> 1
             B1: DEL lock:a -> 0 foreign, refused release foreign
             A1: DEL lock:a -> 1 unmanaged
             direct: EXISTS lock:a lockward:{lock:a} -> 0
             A1: SETNX lock:a v -> 1 granted
             B1: GETSET lock:a w -> \"v\" taken over
             A1: DEL lock:a -> 1 unmanaged
             direct: EXISTS lock:a lockward:{lock:a} -> 0
             A1: SETNX lock:a v -> 1 granted
             direct: DEL lock:a -> 1
             A1: SETNX lock:a v -> 1 granted
             A2: unlink lock:a -> 1 pooled
             direct: DBSIZE -> 0",
        );
    });
}

#[test]
fn thirty_two_debts_are_kept() {
    on_both(|client| {
        let mut reply = String::new();
        for _ in 0..36 {
            reply = client.does("A1", "SET lock:a 1 NX PX 1");
            std::thread::sleep(std::time::Duration::from_millis(4));
        }
        assert_eq!(reply, "OK expired, dropped 1 by cap, granted");
        for _ in 0..33 {
            let reply = client.does("A1", "DEL lock:a");
            assert!(reply == "0 late" || reply == "0 expired, late", "{reply}");
        }
        assert_eq!(client.does("A1", "DEL lock:a"), "0 absent");
        assert_eq!(client.direct("EXISTS lockward:{lock:a}"), "0");
    });
}

#[test]
fn memory_is_full() {
    on_both(|client| {
        play(
            client,
            "A1: SETNX lock:a 1 -> 1 granted
             A1: SET lock:b 1 NX PX 1 -> OK granted
             direct: CONFIG SET maxmemory 1 -> OK
             A1: SET lock:c 1 NX -> !OOM command not allowed when used memory > 'maxmemory'. failed
             A1: SET lock:c 1 -> !OOM command not allowed when used memory > 'maxmemory'. failed
             B1: GETSET lock:a 2 -> !OOM command not allowed when used memory > 'maxmemory'.
             A2: EXPIRE lock:a 100 -> 1 extended
             B1: DEL lock:a lock:b -> *
             A2: DEL lock:a lock:b -> *
             direct: CONFIG SET maxmemory 0 -> OK
             direct: DBSIZE -> 0",
        );
    });
}

#[test]
fn a_narrow_user_gets_the_servers_refusal_and_no_lock() {
    on_both(|client| {
        play(
            client,
            "direct: ACL SETUSER narrow on >pass ~lock:* +@all -> OK
             direct: ACL SETUSER half on >pass ~* +@all -hset -> OK
             direct: AUTH narrow pass -> OK",
        );
        for command in ["SET lock:a 1 NX", "SET lock:a 1", "DEL lock:a"] {
            assert!(client.does("A1", command).starts_with("!NOPERM"), "{command}");
        }
        client.direct("AUTH half pass");
        let reply = client.does("A1", "SET lock:a 1 NX");
        assert!(reply.starts_with("!NOPERM"), "{reply}");
        client.direct("ACL SETUSER default on nopass");
        client.direct("AUTH default any");
        assert_eq!(client.direct("DBSIZE"), "0");
        assert_eq!(client.direct("ACL DELUSER narrow half"), "2");
    });
}
