//! What `lockward explain` says of a refusal, and of the bytes, held against a real lockward and a real server.

use serde_json::Value;

use crate::rig::Lockward;

const RULES: &str = "[[locks]]\npattern = \"lock:*\"\nowner = \"connection\"\n";

/// The refusal in the words of the explanation, as the wire would have it.
fn on_the_wire(words: &str) -> &str {
    match words {
        words if words.starts_with("nil") => "$-1",
        words if words.starts_with("0,") || words.starts_with("not counted") => ":0",
        words if words.starts_with("the value that is there") => "held",
        words if words.starts_with("NOKEY") => "+NOKEY",
        words if words.starts_with("-BUSYKEY") => "-BUSYKEY Target key name already exists.",
        words => words,
    }
}

#[test]
fn a_refusal_is_answered_as_explained() {
    let lockward = Lockward::start(RULES);
    let (mut holder, mut other) = (lockward.client(), lockward.client());
    assert_eq!(holder.ask("SET lock:a held NX PX 600000"), "+OK");
    assert_eq!(holder.ask("SET b 1"), "+OK");
    for line in [
        "SET lock:a 1 NX",
        "SET lock:a 1 NX GET",
        "SETNX lock:a 1",
        "MSETNX lock:a 1",
        "SET lock:a 1",
        "SET lock:a 1 XX",
        "SET lock:a 1 XX GET",
        "SETEX lock:a 10 1",
        "MSET lock:a 1",
        "DEL lock:a",
        "UNLINK lock:a",
        "GETDEL lock:a",
        "EXPIRE lock:a 0",
        "EXPIREAT lock:a 1",
        "EXPIRE lock:a 100",
        "PERSIST lock:a",
        "GETEX lock:a EX 10",
        "GETEX lock:a PERSIST",
        "RENAME lock:a c",
        "RENAME b lock:a",
        "RENAMENX b lock:a",
        "MOVE lock:a 1",
        "MIGRATE 127.0.0.1 1 lock:a 0 100",
        "COPY b lock:a",
        "COPY b lock:a REPLACE",
        "RESTORE lock:a 0 x",
        "SUNIONSTORE lock:a d",
    ] {
        let said = lockward.run(&["explain", line, "-o", "json"]);
        let said: Value = serde_json::from_str(&said.out).expect("an explanation");
        let operation = &said["operations"][0];
        let foreign = operation["callers"].as_array().expect("callers").iter().find(|case| {
            case["caller"]
                .as_str()
                .is_some_and(|who| who.starts_with("other owner"))
        });
        assert_eq!(foreign.expect("somebody else")["refused"], true, "{line}");
        let expected = operation["refused_with"].as_str().expect("a refusal");
        assert_eq!(other.ask(line), on_the_wire(expected), "{line}");
    }
    assert_eq!(holder.ask("DEL lock:a"), ":1", "nothing was changed");
}

#[test]
fn it_needs_nobody_who_listens() {
    let said = crate::rig::run(&["explain", "SET", "lock:a", "1", "NX", "--text"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(
        said.out.contains("script     acquire") && said.out.contains("redis.pcall"),
        "{}",
        said.out
    );
    let said = crate::rig::run(&["explain", "EXPIRE", "lock:a", "-1"]);
    assert!(
        said.out.contains("release: gives the lock up"),
        "{}{}",
        said.out,
        said.err
    );
    let said = crate::rig::run(&["explain", "DELIFEQ lock:a x", "--features", "delifeq,msetex"]);
    assert!(said.out.contains("self-checked"), "{}", said.out);
}
