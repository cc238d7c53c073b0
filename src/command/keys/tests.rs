//! Tests of where the keys stand, hostile arguments included.

use proptest::prelude::*;

use super::*;
use crate::command::lookup::{CommandId, count, lookup, row};
use crate::command::sample::Sample;

fn row_of(args: Args<'_>) -> &'static Row {
    lookup(args.get(0).unwrap()).1.unwrap()
}

fn places(line: &str) -> Vec<usize> {
    let sample = Sample::line(line);
    keys(row_of(sample.args()), sample.args()).collect()
}

fn written(line: &str) -> Option<usize> {
    let sample = Sample::line(line);
    target(row_of(sample.args()), sample.args())
}

fn check(cases: &[(&str, &[usize])]) {
    for (line, wanted) in cases {
        assert_eq!(places(line), *wanted, "{line}");
    }
}

#[test]
fn no_keys() {
    check(&[
        ("PING", &[]),
        ("ECHO a", &[]),
        ("SUBSCRIBE a b", &[]),
        ("SPUBLISH a b", &[]),
        ("LOCKWARD FENCE a", &[]),
    ]);
}

#[test]
fn ranges() {
    check(&[
        ("GET a", &[1]),
        ("GET", &[]),
        ("SET a b NX EX 10", &[1]),
        ("DEL a b c", &[1, 2, 3]),
        ("DEL a a", &[1, 2]),
        ("DEL", &[]),
        ("RENAME a b", &[1, 2]),
        ("RENAME a", &[1]),
        ("BLPOP a b 0", &[1, 2]),
        ("BLPOP 0", &[]),
        ("BLPOP", &[]),
        ("BITOP AND d a b", &[2, 3, 4]),
        ("BITOP AND", &[]),
        ("MSET a 1 b 2", &[1, 3]),
        ("MSET a 1 b", &[1, 3]),
        ("MSET a", &[1]),
        ("JSON.MSET a $ 1 b $ 2", &[1, 4]),
        ("PFMERGE d a b", &[1, 2, 3]),
    ]);
}

#[test]
fn numbered_keys() {
    check(&[
        ("EVAL s 2 a b c", &[3, 4]),
        ("EVAL s 0", &[]),
        ("EVAL s 0 a", &[]),
        ("EVAL s 1 a", &[3]),
        ("EVAL s 2 a", &[]),
        ("EVAL s", &[]),
        ("EVAL", &[]),
        ("FCALL f 1 a b", &[3]),
        ("LMPOP 2 a b LEFT", &[2, 3]),
        ("BLMPOP 0 2 a b LEFT", &[3, 4]),
        ("BZMPOP 0 1 a MIN", &[3]),
        ("SINTERCARD 2 a b LIMIT 1", &[2, 3]),
        ("MSETEX 2 a 1 b 2 EX 9", &[2, 4]),
        ("MSETEX 2 a 1 b", &[]),
        ("MSETEX 1 a 1", &[2]),
    ]);
}

#[test]
fn hostile_numbers_give_no_keys() {
    for number in [
        "-1",
        "01",
        "+1",
        "1x",
        "x",
        "\"\"",
        "99999999999999999999",
        "9223372036854775807",
        "4611686018427387904",
    ] {
        for line in [
            "EVAL s # a b",
            "LMPOP # a b LEFT",
            "MSETEX # a 1 b 2",
            "ZUNIONSTORE d # a b",
            "ZUNION # a b",
        ] {
            assert_eq!(places(&line.replace('#', number)), [0_usize; 0], "{line} {number}");
            assert_eq!(written(&line.replace('#', number)), None, "{line} {number}");
        }
    }
}

#[test]
fn a_target_then_numbered_sources() {
    check(&[
        ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", &[1, 3, 4]),
        ("ZINTERSTORE d 1 a", &[1, 3]),
        ("ZDIFFSTORE d 0 a", &[]),
        ("ZUNIONSTORE d 3 a b", &[]),
        ("ZUNIONSTORE d", &[]),
        ("TDIGEST.MERGE d 1 a", &[1, 3]),
    ]);
}

#[test]
fn sort() {
    check(&[
        ("SORT a", &[1]),
        ("SORT", &[]),
        ("SORT a BY w_* LIMIT 0 5 GET # DESC ALPHA store d", &[1, 12]),
        ("SORT a STORE d STORE e", &[1, 5]),
        ("SORT a STORE", &[1]),
        // The word behind an option is its value, whatever it is called.
        ("SORT a BY STORE", &[1]),
        ("SORT a GET STORE STORE d", &[1, 5]),
        ("SORT a STORE limit STORE d", &[1, 5]),
        ("SORT a STORE store", &[1, 3]),
        ("SORT_RO a STORE d", &[1]),
    ]);
}

#[test]
fn georadius() {
    check(&[
        ("GEORADIUS a 1 2 3 m", &[1]),
        ("GEORADIUS a 1 2 3 m STORE d", &[1, 7]),
        ("GEORADIUS a 1 2 3 m COUNT 1 storedist d", &[1, 9]),
        ("GEORADIUS a 1 2 3 m STORE d STOREDIST e", &[1, 9]),
        ("GEORADIUS a 1 2 3 m STORE store", &[1, 7]),
        ("GEORADIUS a 1 2 3 m STORE", &[1]),
        ("GEORADIUSBYMEMBER a x 3 m STORE d", &[1, 6]),
        ("GEORADIUSBYMEMBER a STORE 3 m", &[1]),
    ]);
}

#[test]
fn migrate() {
    check(&[
        ("MIGRATE h 1 a 0 10", &[3]),
        ("MIGRATE h 1 \"\" 0 10", &[3]),
        ("MIGRATE h 1 \"\" 0 10 KEYS a b", &[7, 8]),
        ("MIGRATE h 1 \"\" 0 10 COPY REPLACE AUTH keys keys a", &[11]),
        ("MIGRATE h 1 \"\" 0 10 AUTH2 keys keys KEYS a b", &[10, 11]),
        ("MIGRATE h 1 \"\" 0 10 KEYS", &[]),
        ("MIGRATE h 1 a 0 10 KEYS b", &[]),
        ("MIGRATE h 1", &[]),
    ]);
}

#[test]
fn streams() {
    check(&[
        ("XREAD STREAMS a b 0 0", &[2, 3]),
        ("XREAD COUNT 1 BLOCK 0 streams a $", &[6]),
        ("XREADGROUP GROUP streams block NOACK STREAMS a >", &[6]),
        ("XREADGROUP GROUP g c CLAIM 5 STREAMS a >", &[7]),
        ("XREAD COUNT STREAMS STREAMS a 0", &[4]),
        ("XREAD STREAMS STREAMS 0", &[2]),
        // Missing STREAMS, nothing behind it, an odd count, a word that is no option.
        ("XREAD COUNT 1 a 0", &[]),
        ("XREAD COUNT", &[]),
        ("XREAD", &[]),
        ("XREAD STREAMS", &[]),
        ("XREAD STREAMS a", &[]),
        ("XREAD STREAMS a b 0", &[]),
        ("XREAD NONSENSE STREAMS a 0", &[]),
    ]);
}

#[test]
fn subcommands() {
    check(&[
        ("OBJECT encoding a", &[2]),
        ("OBJECT HELP", &[]),
        ("OBJECT ENCODING", &[]),
        ("OBJECT", &[]),
        ("MEMORY USAGE a SAMPLES 5", &[2]),
        ("MEMORY DOCTOR", &[]),
        ("XINFO STREAM a FULL", &[2]),
        ("XGROUP CREATE a g $", &[2]),
        ("DEBUG OBJECT a", &[2]),
        ("DEBUG DIGEST-VALUE a b", &[2, 3]),
        ("DEBUG SLEEP 0", &[]),
        ("BLESS SET a NO-EVICT", &[2]),
    ]);
}

#[test]
fn targets() {
    let cases = [
        ("SORT k STORE d", Some(3)),
        ("SORT k", None),
        ("GEORADIUS k 1 2 3 m STORE d", Some(7)),
        ("GEORADIUSBYMEMBER k x 3 m", None),
        ("BITOP AND d a", Some(2)),
        ("PFMERGE d a", Some(1)),
        ("ZRANGESTORE d a 0 -1", Some(1)),
        ("ZUNIONSTORE d 1 a", Some(1)),
        ("GEOSEARCHSTORE d a FROMMEMBER x BYRADIUS 1 m", Some(1)),
        ("SUNIONSTORE d a b", Some(1)),
        ("SINTERSTORE d a", Some(1)),
        ("SDIFFSTORE d a", Some(1)),
        ("COPY a d REPLACE", Some(2)),
        ("RENAME a d", Some(2)),
        ("RENAMENX a d", Some(2)),
        ("RESTORE d 0 x REPLACE", Some(1)),
        ("RENAME a", None),
        ("SUNIONSTORE", None),
        ("SET a b", None),
        ("MOVE a 1", None),
        ("LMOVE a b LEFT LEFT", None),
        ("CMS.MERGE d 1 a", None),
    ];
    for (line, wanted) in cases {
        assert_eq!(written(line), wanted, "{line}");
    }
}

#[test]
fn early_once_the_only_key_is_there() {
    let cases = [
        ("SET a", 3, true),
        ("SET a", 5, true),
        ("SET", 3, false),
        ("APPEND a", 3, true),
        ("RPUSH a x y", 1000, true),
        ("RESTORE a 0", 4, true),
        ("PUBLISH", 3, true),
        ("ECHO", 2, true),
        // Several keys, or keys that stand elsewhere.
        ("MSET a 1", 5, false),
        ("DEL a", 2, false),
        ("EVAL s", 4, false),
        ("SORT a", 2, false),
        ("OBJECT ENCODING a", 3, false),
        // No keys, but the session has to see the arguments.
        ("SUBSCRIBE", 2, false),
        ("CLIENT", 3, false),
        ("LOCKWARD", 2, false),
        // What the server will refuse.
        ("SET a", 2, false),
        ("GET a", 3, false),
    ];
    for (line, announced, wanted) in cases {
        let sample = Sample::line(line);
        assert_eq!(
            early(row_of(sample.args()), sample.args(), announced),
            wanted,
            "{line} of {announced}"
        );
    }
}

/// Words that mean something to one of the forms, and arbitrary bytes.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "",
        "a",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "01",
        "9223372036854775807",
        "99999999999999999999",
        "STORE",
        "storedist",
        "limit",
        "BY",
        "get",
        "KEYS",
        "auth",
        "AUTH2",
        "STREAMS",
        "GROUP",
        "block",
        "COUNT",
        "noack",
        "CLAIM",
        "usage",
        "encoding",
        "create",
        "stream",
        "object",
        "digest-value",
        "set",
    ];
    prop_oneof![
        4 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    /// For every row: no panic, only indices of arguments behind the name, each once; the target is one of the keys;
    /// and what `early` promises holds once the rest is there.
    #[test]
    fn any_arguments_of_any_command(words in prop::collection::vec(word(), 0..12), seen in 0usize..13) {
        let sample = Sample::of(&words);
        let args = sample.args();
        for place in 0..count() {
            let row = row(CommandId(place as u16)).unwrap();
            let found: Vec<usize> = keys(row, args).collect();
            prop_assert!(found.iter().all(|at| (1..args.len()).contains(at)), "{} {found:?}", row.name);
            let mut once = found.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), found.len(), "{}", row.name);
            if let Some(at) = target(row, args) {
                prop_assert!(found.contains(&at), "{} {at}", row.name);
            }
            let first = Sample::of(words.get(..seen).unwrap_or(&words));
            if early(row, first.args(), args.len()) {
                prop_assert!(found.iter().all(|at| *at < first.args().len()), "{}", row.name);
            }
        }
    }
}
