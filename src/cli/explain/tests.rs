//! Explanations by example: a dozen commands in short form, a whole page, and that what is said of a command's meaning
//! agrees with what a session sends for it.

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::cli::shown::width;

const RULES: &str = r#"
[[locks]]
name = "not locks"
pattern = "lock:seen:*"
mode = "off"

[[locks]]
name = "watched"
pattern = ["job:*", "task:*"]
mode = "observe"

[[locks]]
pattern = "lock:*"
default_ttl = "30s"
max_ttl = "1h"
"#;

fn config() -> Config {
    Config::parse(RULES, Path::new("test"), std::iter::empty())
        .expect("good rules")
        .config
}

fn explained_with(line: &str, features: Features) -> Explanation {
    explanation(&[OsString::from(line)], (&config(), None), features, false)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn explained(line: &str) -> Explanation {
    explained_with(line, Features::default())
}

/// Treatment, meaning, what goes to the server, and what a refusal is answered with.
fn short(line: &str) -> String {
    let explanation = explained(line);
    let sent: Vec<String> = explanation
        .sent
        .iter()
        .enumerate()
        .map(|(index, sent)| match &sent.script {
            Some(script) => format!("{script} {} | {}", sent.keys.join(" "), sent.arguments.join(" ")),
            None if index == 0 && explanation.untouched => "raw".to_owned(),
            None => sent.bytes.clone(),
        })
        .collect();
    let refused: Vec<&str> = explanation
        .operations
        .iter()
        .map(|operation| operation.refused_with.as_str())
        .collect();
    format!(
        "{} {}: {} => {}",
        explanation.treatment,
        explanation.meaning.unwrap_or("-"),
        sent.join(" + "),
        refused.join(" / ")
    )
    .replace("1 120000 30000 3600000 <token> <connection> <owner>", "<caller>")
}

#[test]
fn a_dozen_commands() {
    let none = "0, as where the command has done nothing";
    let nil = "nil, as where the command has done nothing";
    let cases = [
        (
            "SET lock:a 1 NX",
            format!("enforce acquire: acquire lock:a lockward:{{lock:a}} |  <caller> SET lock:a 1 NX => {nil}"),
        ),
        (
            "setnx lock:a 1",
            format!("enforce acquire: acquire lock:a lockward:{{lock:a}} |  <caller> setnx lock:a 1 => {none}"),
        ),
        (
            "SET lock:a 1",
            "enforce overwrite: write lock:a lockward:{lock:a} | <caller> overwrite held reply 0 SET lock:a 1 => \
             -LOCKHELD lock 'lock:a' is held by another client"
                .to_owned(),
        ),
        (
            "SET lock:a 1 XX PX 50",
            format!(
                "enforce overwrite: write lock:a lockward:{{lock:a}} | <caller> overwrite nil reply 0 SET lock:a 1 XX PX \
                 50 => {nil}"
            ),
        ),
        (
            "GETSET lock:a 1",
            "enforce takeover: write lock:a lockward:{lock:a} | <caller> takeover held always 0 GETSET lock:a 1 => \
             -LOCKHELD lock 'lock:a' is held by another client"
                .to_owned(),
        ),
        (
            "DEL b lock:a lock:a",
            "enforce release: release lock:a lockward:{lock:a} lock:a lockward:{lock:a} b | DEL  <connection> 1  120000 1<owner> 1<owner> => \
             not counted in the number of keys removed (0 for this key alone)"
                .to_owned(),
        ),
        (
            "EXPIRE lock:a 0",
            format!(
                "enforce release: remove lock:a lockward:{{lock:a}} | <caller> zero -  EXPIRE lock:a 0 => {none}"
            ),
        ),
        (
            "PEXPIREAT lock:a 1000",
            format!(
                "enforce release: extend lock:a lockward:{{lock:a}} | <caller> at 1000 - zero PEXPIREAT lock:a 1000 => \
                 {none}"
            ),
        ),
        (
            "GETEX lock:a EX 10",
            format!(
                "enforce extend: extend lock:a lockward:{{lock:a}} | <caller> in 10000 - nil GETEX lock:a EX 10 => {nil}"
            ),
        ),
        (
            "EVAL 'return 1' 1 lock:a",
            "enforce self-checked: raw + reconcile lock:a lockward:{lock:a} | <caller> => ".to_owned(),
        ),
        ("SET lock:seen:1 1 NX", "forward -: raw => ".to_owned()),
        ("SET job:1 1 NX", format!("observe acquire: raw => {nil}")),
        ("INCR lock:a", "forward -: raw => ".to_owned()),
        ("SET a 1 NX", "forward -: raw => ".to_owned()),
        ("LOCKARD x", "forward -: raw => ".to_owned()),
        (
            "GET lockward:{lock:a}",
            "forward -: *1\\r\\n$4\\r\\nPING\\r\\n => ".to_owned(),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(short(line), expected, "{line}");
    }
}

#[test]
fn a_whole_page() {
    let page = text::text(&explained("SET \"lock:a\\xff\" 1 NX EX 7200"));
    let expected = r#"command    SET: an operation on a lock, where a key of it is one
key        lock:a\xff: rule "lock:*", mode enforce, owner = address; not matched by "not locks" (lock:seen:*),
           "watched" (job:* task:*)
meaning    acquire: takes the lock if it is free
note       its TTL of 2h is cut to max_ttl = 1h
note       inside MULTI, in a pipeline and after a NOSCRIPT the same goes out as EVAL, with the text of the
           script (acquire); the client's answer is of the same type everywhere

acquire of lock:a\xff under rule "lock:*", the first line that fits decides:
  + anyone, lock free                                            granted, new lease
  - holder, own connection                                       contended
  - anyone, lock unmanaged or open (or adrift and the caller's)  contended
  - same owner, own debt on this key                             contended
  - same owner, other connection                                 contended
  - other owner (or adrift and not the caller's)                 contended
  what is refused (-) is answered with: nil, as where the command has done nothing

to the server, in place of the command:
  script     acquire
  keys       lock:a\xff lockward:{lock:a\xff}
  arguments  "" "1 120000 30000 3600000 <token> <connection> <owner>" SET lock:a\xff 1 NX EX 7200
"#;
    let (shown, bytes) = page.split_once("  bytes").expect("the bytes come last");
    assert_eq!(shown, expected);
    assert!(bytes.contains("\\r\\n$7\\r\\nlock:a\\xff\\r\\n"), "{bytes}");
    assert!(page.lines().take(6).all(|line| width(line) <= 110));
}

#[test]
fn notes_say_what_the_rule_adds() {
    for (line, hint) in [
        ("SET lock:a 1 NX", "default_ttl = 30s"),
        ("MSETNX lock:a 1 lock:b 1", "default_ttl = 30s"),
        ("SET lock:a 1 NX EX 10", "TTL 10s"),
        ("SET lock:a 1 KEEPTTL", "keeps the TTL"),
        ("SET lock:a 1 EXAT 99999999999", "is cut to max_ttl = 1h"),
        ("EXPIRE lock:a 7200", "cut to 1h"),
        ("PERSIST lock:a", "answered with 0"),
        ("SET lock:a 1 NX SOON", "not understood"),
        ("SET job:1 1", "action=\"observed\""),
        ("DELIFEQ lock:a 1", "self-checked"),
        ("INCR lock:a", "no operation on a lease"),
        ("EVAL x 1 lock:a", "inside MULTI"),
    ] {
        let notes = explained(line).notes;
        assert!(notes.iter().any(|note| note.contains(hint)), "{line}: {notes:?}");
    }
}

#[test]
fn no_token_is_shown_even_where_a_key_looks_like_one() {
    let explanation = explained("SET lock:00000000-0000-4000-8000-000000000000 1 NX");
    let json = serde_json::to_string(&explanation).expect("it is plain data");
    assert_eq!(json.matches("<token>").count(), 2, "{json}");
    let caller = explanation.sent[0].arguments[1].clone();
    assert_eq!(caller, "1 120000 30000 3600000 <token> <connection> <owner>");
}

#[test]
fn wrong_arity_is_an_error() {
    let error = explanation(&["SET a".into()], (&config(), None), Features::default(), false).expect_err("too few");
    assert!(
        error.contains("at least 3 arguments") && error.contains("here are 2"),
        "{error}"
    );
    let error =
        explanation(&["SETNX a b c".into()], (&config(), None), Features::default(), false).expect_err("too many");
    assert!(error.contains("SETNX takes 3 arguments"), "{error}");
}

/// What the idiom says and what the session does are told from two sources; they must agree.
#[test]
fn the_meaning_agrees_with_what_is_sent() {
    let all = notes::EVERYTHING;
    for line in [
        "SET lock:a 1",
        "SET lock:a 1 NX",
        "SET lock:a 1 NX GET",
        "SET lock:a 1 GET",
        "SET lock:a 1 IFEQ 2",
        "SET lock:a 1 IFNE 2",
        "SETNX lock:a 1",
        "SETEX lock:a 1 1",
        "PSETEX lock:a 1 1",
        "GETSET lock:a 1",
        "MSET lock:a 1 b 2",
        "MSET lock:a 1 b",
        "MSETNX lock:a 1",
        "MSETEX 1 lock:a 1 NX",
        "DEL lock:a",
        "UNLINK lock:a",
        "GETDEL lock:a",
        "DELEX lock:a",
        "DELEX lock:a IFEQ 1",
        "DELIFEQ lock:a 1",
        "EXPIRE lock:a 1",
        "EXPIRE lock:a x",
        "PEXPIRE lock:a -1",
        "EXPIREAT lock:a 1",
        "PERSIST lock:a",
        "GETEX lock:a",
        "GETEX lock:a PERSIST",
        "RENAME lock:a b",
        "RENAME b lock:a",
        "RENAMENX b lock:a",
        "RENAME lock:a lock:a",
        "MOVE lock:a 1",
        "MIGRATE h 1 lock:a 0 1",
        "MIGRATE h 1 \"\" 0 1 KEYS lock:a lock:b",
        "COPY b lock:a",
        "COPY b lock:a REPLACE",
        "COPY b lock:a DB 1 REPLACE",
        "COPY lock:a b",
        "RESTORE lock:a 0 x",
        "RESTORE lock:a 0 x REPLACE",
        "SUNIONSTORE lock:a b",
        "SUNIONSTORE b lock:a",
        "SORT b STORE lock:a",
        "EVAL x 1 lock:a",
        "FCALL f 1 lock:a",
        "SET job:a 1",
        "DEL job:a lock:seen:1",
        "DEL lock:a job:a",
    ] {
        for features in [Features::default(), all] {
            let explanation = explained_with(line, features);
            let scripts = explanation.sent.iter().filter(|sent| sent.script.is_some()).count();
            let expected = match (explanation.treatment, explanation.meaning) {
                ("enforce", Some("self-checked")) if explanation.sent.len() == 1 => (false, 1),
                ("enforce", Some("self-checked")) => (true, 1),
                ("enforce", _) => (false, 1),
                _ => (true, 0),
            };
            assert_eq!((explanation.untouched, scripts), expected, "{line}: {explanation:?}");
            let asks = explanation.operations.is_empty();
            let away = line.contains("DB 1");
            assert!(
                asks == matches!(explanation.meaning, None | Some("other" | "self-checked")) || away,
                "{line}: {explanation:?}"
            );
        }
    }
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "SET",
        "DEL",
        "MSETEX",
        "EXPIRE",
        "PEXPIREAT",
        "RENAME",
        "MIGRATE",
        "COPY",
        "SORT",
        "EVAL",
        "LOCKWARD",
        "MULTI",
        "CLIENT",
        "REPLY",
        "OFF",
        "HELLO",
        "SUBSCRIBE",
        "XREAD",
        "STREAMS",
        "POST",
        "FENCE",
        "lock:a",
        "lock:b",
        "job:1",
        "lock:seen:1",
        "lockward:{lock:a}",
        "NX",
        "XX",
        "GET",
        "EX",
        "IFEQ",
        "KEYS",
        "STORE",
        "REPLACE",
        "DB",
        "1",
        "-1",
        "9223372036854775807",
        "",
    ];
    prop_oneof![
        6 => prop::sample::select(known.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(1_u8..=255, 0..6),
    ]
}

proptest! {
    #[test]
    fn nothing_panics_and_everything_shown_is_printable(words in prop::collection::vec(word(), 1..9), all in any::<bool>()) {
        let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
        let features = if all { notes::EVERYTHING } else { Features::default() };
        if let Ok(explanation) = explanation(&words, (&config(), None), features, true) {
            let text = text::text(&explanation);
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{}", text);
            prop_assert!(explanation.known || explanation.untouched || !explanation.notes.is_empty() || explanation.answered.is_some());
        }
    }
}

#[test]
fn a_listener_with_rules_of_its_own_is_explained_by_these() {
    let text = "[[listeners]]\nname = \"old\"\nunix = \"/a\"\n[[listeners.locks]]\nname = \"seen\"\npattern = \"lock:*\"\n\
                mode = \"observe\"\n";
    let config = Config::parse(text, Path::new("test"), std::iter::empty())
        .expect("good")
        .config;
    let ask = |listener| {
        explanation(
            &["SETNX lock:a 1".into()],
            (&config, listener),
            Features::default(),
            false,
        )
    };
    let general = ask(None).expect("explained");
    assert_eq!(general.treatment, "enforce");
    assert!(
        general
            .notes
            .iter()
            .any(|note| note.ends_with("listeners with their own (--listener): old")),
        "{:?}",
        general.notes
    );
    assert_eq!(ask(Some("listen")).expect("explained").treatment, "enforce");
    let old = ask(Some("old")).expect("explained");
    assert_eq!((old.treatment, old.untouched), ("observe", true));
    let error = ask(Some("new")).expect_err("no such listener");
    assert_eq!(error, "there is no listener \"new\"; there are: listen, old");
}
