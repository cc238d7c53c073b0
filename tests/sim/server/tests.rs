//! The fake server against what Redis does.

use super::keyspace::{By, Bytes, Note, Tag, What};
use super::*;

fn words(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Commands and the replies of Redis 7.0.15 to them.
#[test]
fn answers_as_redis_does() {
    let mut server = Server::new(None);
    let number = server.connect();
    server.advance(1_700_000_000_000_000);
    let cases = [
        ("SET a 1 NX PX 100", "+OK\r\n"),
        ("SET a 2 NX", "$-1\r\n"),
        ("SET a 2 XX GET KEEPTTL", "$1\r\n1\r\n"),
        ("PTTL a", ":100\r\n"),
        ("EXPIRE a 10 GT", ":1\r\n"),
        ("EXPIRE a 5 GT", ":0\r\n"),
        ("PEXPIRE a 0", ":1\r\n"),
        ("PERSIST a", ":0\r\n"),
        ("SET a 1 PX 0", "-ERR invalid expire time in 'set' command\r\n"),
        ("SET a 1 NX XX", "-ERR syntax error\r\n"),
        ("GETEX a", "$-1\r\n"),
        ("MSETNX a 1 b 2", ":1\r\n"),
        ("RENAME a c", "+OK\r\n"),
        ("RENAME a c", "-ERR no such key\r\n"),
        ("DEL a b c c", ":2\r\n"),
        ("HSET h f 1 g 2", ":2\r\n"),
        (
            "GET h",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        ),
        ("HDEL h f g", ":2\r\n"),
        ("EXISTS h", ":0\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("EVALSHA 0 0", "-NOSCRIPT No matching script. Please use EVAL.\r\n"),
        (
            "EVAL return{1,'a',false,3,nil,5} 0",
            "*4\r\n:1\r\n$1\r\na\r\n$-1\r\n:3\r\n",
        ),
        ("EVAL return{err='E'} 0", "-E\r\n"),
        ("EVAL return(redis.call('SET',KEYS[1],3.7)) 1 x", "+OK\r\n"),
        ("GET x", "$3\r\n3.7\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
    ];
    for (line, expected) in cases {
        let tag = Tag {
            by: By::Direct,
            keys: Vec::new(),
        };
        let bytes = server.serve(number, words(line), tag).bytes;
        assert_eq!(String::from_utf8_lossy(&bytes), expected, "{line}");
    }
}

/// As measured on Redis 7.0.15.
#[test]
fn full_memory_stops_a_script_only_before_its_first_write() {
    let mut server = Server::new(None);
    let number = server.connect();
    server.core_mut().memory_full = true;
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    let cases = [
        ("return redis.pcall('SET', 'y', '1')", Reply::error(refused)),
        (
            "redis.pcall('SET', 'y', '1') return redis.pcall('HSET', 'h', 'f', '1')",
            Reply::error(refused),
        ),
        (
            "redis.call('DEL', 'nothing') return redis.pcall('SET', 'y', '1')",
            Reply::ok(),
        ),
    ];
    for (text, expected) in cases {
        let args = [b"EVAL".to_vec(), text.as_bytes().to_vec(), b"0".to_vec()].to_vec();
        let tag = Tag {
            by: By::Direct,
            keys: Vec::new(),
        };
        assert_eq!(server.serve(number, args, tag).reply, Some(expected), "{text}");
    }
}

#[test]
fn a_key_lives_through_its_last_millisecond() {
    let mut server = Server::new(None);
    server.advance(5_000_000);
    server.direct(0, &words("SET a 1 PX 10"));
    server.advance(5_010_999);
    assert!(server.core().get(0, b"a").is_some());
    server.advance(5_011_000);
    assert!(server.core().get(0, b"a").is_none());
    let last = server.journal().pop();
    assert!(matches!(last, Some(Note::Change(change)) if change.what == What::Expired));
}
