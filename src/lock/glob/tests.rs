//! The corners of Redis' glob by hand; `tests/glob.rs` compares thousands of patterns with real servers.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, key: &str) -> bool {
    Glob::new(pattern.as_bytes()).matches(key.as_bytes())
}

#[test]
fn the_plain_wildcards() {
    for (pattern, key) in [
        ("lock:*", "lock:"),
        ("lock:*", "lock:a"),
        ("*:lock", "a:lock"),
        ("*lock*", "alockb"),
        ("l?ck", "l:ck"),
        ("[abc]x", "bx"),
        ("[a-c]x", "bx"),
        ("[c-a]x", "bx"),
        ("[^a-c]x", "dx"),
        ("a\\*b", "a*b"),
        ("*a*b*c", "xxaxxbxxc"),
        ("*", ""),
        ("", ""),
    ] {
        assert!(matches(pattern, key), "{pattern} should match {key}");
    }
    for (pattern, key) in [
        ("lock:*", "lock"),
        ("lock:*", "Lock:a"),
        ("l?ck", "lck"),
        ("[^a-c]x", "bx"),
        ("a\\*b", "axb"),
        ("*a*b*c", "xxaxxcxxb"),
        ("", "a"),
        ("a", ""),
    ] {
        assert!(!matches(pattern, key), "{pattern} should not match {key}");
    }
}

#[test]
fn unclosed_brackets_end_with_the_pattern() {
    assert!(matches("[ab", "a"));
    assert!(!matches("[ab", "c"));
    assert!(matches("[^", "x"));
    assert!(!matches("[", "["));
    assert!(matches("[a-]", "b") == matches("[a-\\]]", "b"));
    assert!(matches("x\\", "x\\"));
}

#[test]
fn a_pattern_knows_how_its_keys_begin() {
    let glob = Glob::new(b"lo\\ck:[ab]*");
    assert_eq!(glob.prefix(), b"lock:");
    assert!(glob.may_begin_with(b'l') && !glob.may_begin_with(b'k'));
    assert!(Glob::new(b"[xy]*").may_begin_with(b'y') && !Glob::new(b"[xy]*").may_begin_with(b'z'));
    assert!(Glob::new(b"*x").may_begin_with(b'z'));
}

#[test]
fn a_pattern_covers_narrower_ones() {
    let covers = |a: &str, b: &str| Glob::new(a.as_bytes()).covers(&Glob::new(b.as_bytes()));
    assert!(covers("*", "a?b"));
    assert!(covers("lock:*", "lock:free:*"));
    assert!(covers("lock:*", "lock:free"));
    assert!(covers("l?ck", "lock"));
    // The empty key is matched by `*` and nothing else.
    assert!(!covers("**", "*") && covers("*", "**") && covers("**", "a*"));
    assert!(!covers("lock:free:*", "lock:*"));
    assert!(!covers("lock:a", "lock:*"));
}

#[test]
fn nested_stars_take_bounded_time() {
    let pattern = "*a".repeat(500) + "b";
    let key = "a".repeat(100_000);
    let start = Instant::now();
    assert!(!matches(&pattern, &key));
    assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
}

/// The obvious recursive matcher over the same tokens.
fn slowly(tokens: &[Token], key: &[u8]) -> bool {
    match (tokens.split_first(), key.split_first()) {
        (None, None) => true,
        (Some((Token::Star, rest)), _) => (0..=key.len()).any(|i| slowly(rest, &key[i..])),
        (Some((token, rest)), Some((byte, after))) => token.takes(*byte) && slowly(rest, after),
        _ => false,
    }
}

proptest! {
    #[test]
    fn one_place_to_come_back_to_is_enough(pattern in "[ab*?\\[\\]^\\\\-]{0,12}", key in "[ab\\]-]{1,10}") {
        prop_assert_eq!(matches(&pattern, &key), slowly(&tokens(pattern.as_bytes()), key.as_bytes()));
    }

    #[test]
    fn the_first_byte_and_the_prefix_never_lie(
        pattern in prop::collection::vec(any::<u8>(), 0..8),
        key in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let glob = Glob::new(&pattern);
        if glob.matches(&key) {
            prop_assert!(key.starts_with(glob.prefix()));
            prop_assert!(glob.may_begin_with(key[0]));
        }
    }
}
