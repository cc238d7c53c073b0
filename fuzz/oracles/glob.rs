//! The glob: it matches what the server's own matcher matches, what it says of a pattern without a key is true, and it
//! never takes long: libFuzzer's time limit sees to that, and some inputs are blown up for it.

use lockward::lock::glob::{Glob, escaped};

use super::naive_glob;

/// The naive matcher may take so many steps.
const BUDGET: u32 = 2_000;
/// So often a pattern and a key are repeated, to see what a long one costs.
const PATTERN_TIMES: usize = 8;
const KEY_TIMES: usize = 64;

/// Two lengths, two patterns, and the rest is the key. The upper bit of a length blows up the first pattern, that of the
/// second one the key.
pub fn check(input: &[u8]) {
    let [first, second, rest @ ..] = input else { return };
    let Some((pattern, rest)) = rest.split_at_checked(usize::from(first & 0x7f)) else {
        return;
    };
    let Some((other, key)) = rest.split_at_checked(usize::from(second & 0x7f)) else {
        return;
    };
    let (pattern, key) = (
        blown_up(pattern, first, PATTERN_TIMES),
        blown_up(key, second, KEY_TIMES),
    );
    let glob = Glob::new(&pattern);
    let ours = glob.matches(&key);
    if let Some(theirs) = naive_glob::matches(&pattern, &key, &mut BUDGET.clone()) {
        let said = naive_said(&pattern, &key, theirs);
        assert_eq!(
            ours,
            said,
            "pattern {}, key {}",
            pattern.escape_ascii(),
            key.escape_ascii()
        );
    }
    if ours {
        assert!(key.starts_with(glob.prefix()), "a key without the prefix");
        assert!(
            key.first().is_none_or(|byte| glob.may_begin_with(*byte)),
            "a key that could not begin so"
        );
    }
    let other = Glob::new(other);
    if glob.covers(&other) {
        assert!(
            ours || !other.matches(&key),
            "what covers the other does not match its key"
        );
    }
    if let Ok(text) = core::str::from_utf8(&key) {
        let only = Glob::new(escaped(text).as_bytes());
        assert!(
            only.matches(&key) || key.is_empty(),
            "an escaped text does not match itself"
        );
        assert_eq!(only.prefix(), &key[..], "an escaped text is not all prefix");
    }
}

/// The server does not ask its matcher about `*`, which is every key.
fn naive_said(pattern: &[u8], key: &[u8], matcher: bool) -> bool {
    matcher || (pattern == b"*" && key.is_empty())
}

fn blown_up(text: &[u8], length: &u8, times: usize) -> Vec<u8> {
    text.repeat(if length & 0x80 == 0 { 1 } else { times })
}
