//! Which names give which pattern, what looks like a lock, and that neither many names nor odd ones go beyond the bounds.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::lock::glob::Glob;

fn see(scout: &mut Scout, connection: u64, seen: &[(Sight, &str)]) {
    for (sight, key) in seen {
        see_bytes(scout, connection, *sight, key.as_bytes());
    }
}

fn see_bytes(scout: &mut Scout, connection: u64, sight: Sight, key: &[u8]) {
    let mut sightings = Sightings::default();
    sightings.push(sight, key);
    scout.sighted(connection, &sightings);
}

const TAKE: Sight = Sight::Acquire { ttl: true };

/// The patterns of keys that were each taken and given up, all of them.
fn patterns(keys: &[&str]) -> Vec<String> {
    let mut scout = Scout::default();
    for key in keys {
        see(&mut scout, 1, &[(TAKE, key), (Sight::Release, key)]);
    }
    scout
        .snapshot()
        .groups()
        .into_iter()
        .map(|group| group.pattern)
        .collect()
}

fn shown(scout: &Scout) -> Vec<Group> {
    let mut groups = scout.snapshot().groups();
    groups.retain(Group::looks_like_locks);
    groups
}

#[test]
fn one_key_gives_a_pattern() {
    for (key, pattern) in [
        // Behind a word that means a lock.
        (":1:lock:order:17", ":1:lock:*"),
        ("app:mutex:42", "app:mutex:*"),
        ("locks/jobs/7", "locks/*"),
        ("lock.order.17", "lock.*"),
        ("lock-order-17", "lock-*"),
        ("lock_order", "lock_*"),
        ("lock7", "lock*"),
        ("LOCK:x", "LOCK:*"),
        ("orderLock:17", "orderLock:*"),
        ("lockOrder:17", "lockOrder:*"),
        ("cronlock:a", "cronlock:*"),
        ("tenant:17:lock:order", "tenant:17:lock:*"),
        ("app:redlock:{job}:1", "app:redlock:{*"),
        ("app:leader:eu", "app:leader:*"),
        // The word at the end.
        ("order:123:lock", "order:*:lock"),
        ("{order:17}:lock", "{order:*}:lock"),
        ("order-123-lock", "order-*-lock"),
        ("550e8400-e29b-41d4-a716-446655440000:lock", "*:lock"),
        ("cron-lock", "cron-lock"),
        (":1:leader", ":1:leader"),
        ("app:1:cron:mutex", "app:1:cron:mutex"),
        ("leader", "leader"),
        // No such word.
        (
            "laravel_database_laravel_cache_:invoice-7",
            "laravel_database_laravel_cache_:invoice-*",
        ),
        (":1:invoice-7", ":1:invoice-*"),
        ("busy:550e8400-e29b-41d4-a716-446655440000", "busy:*"),
        ("busy:550e8400-e29b-41d4-a716-446655440000:x", "busy:*:x"),
        ("busy:d41d8cd98f00b204e9800998ecf8427e", "busy:*"),
        ("report:2026-11-30", "report:*"),
        ("report:20261130T120000Z:x", "report:*:x"),
        ("import:customers", "import:customers"),
        ("job42", "job*"),
        ("user17:busy", "user*:busy"),
        ("oauth2:refresh:17", "oauth2:refresh:*"),
        ("block:5", "block:*"),
        ("clock:tower", "clock:tower"),
        // Wildcards are meant as they stand; what is no text is never in a pattern.
        ("a*b:lock:?x", "a\\*b:lock:\\?*"),
        ("[x]\\y:lock", "\\[x]\\\\y:lock"),
        ("größe:lock", "größe:lock"),
        ("job:\u{1}\n:lock", "job:*:lock"),
        ("lock:", "lock:*"),
        ("::", "::"),
    ] {
        assert_eq!(patterns(&[key]), [pattern], "{key}");
    }
}

#[test]
fn many_keys_give_one_pattern_where_a_place_varies() {
    let numbered = |format: &str, count: usize| -> Vec<String> {
        (1..=count).map(|n| format.replace('#', &n.to_string())).collect()
    };
    for (format, count, expected) in [
        (":#:lock:order", 2, vec![":1:lock:*", ":2:lock:*"]),
        (":#:lock:order", 3, vec![":*:lock:*"]),
        ("tenant:#:lock:x", 50, vec!["tenant:*:lock:*"]),
        ("order:#:lock", 50, vec!["order:*:lock"]),
        ("order:#:#:lock", 9, vec!["order:*:lock"]),
        ("app:1:order:#", 9, vec!["app:1:order:*"]),
    ] {
        let keys = numbered(format, count);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        assert_eq!(patterns(&keys), expected, "{format}");
    }
    let words = ["ann", "bob", "cid", "dan", "eve", "fay", "gus"];
    let keys: Vec<String> = words.iter().map(|word| format!("import:{word}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(patterns(&keys[..2]), ["import:ann", "import:bob"]);
    assert_eq!(patterns(&keys), ["import:*"]);
    // A word that means a lock is kept among words that vary, before and behind them.
    let keys: Vec<String> = words
        .iter()
        .flat_map(|word| [format!("app:{word}:lock"), format!("app:{word}")])
        .collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    keys.insert(5, "app:lock:7");
    assert_eq!(patterns(&keys), ["app:*", "app:*:lock", "app:lock:*"]);
}

#[test]
fn names_that_differ_at_their_beginning_are_told_by_their_end() {
    let mut scout = Scout::default();
    for n in 0..500_u32 {
        // Words without digits.
        let word: String = n
            .to_string()
            .bytes()
            .map(|digit| char::from(digit - b'0' + b'a'))
            .collect();
        let key = format!("q{word}:lock");
        see(&mut scout, 1, &[(TAKE, &key), (Sight::Release, &key)]);
        see(&mut scout, 1, &[(TAKE, "app:mutex:1"), (Sight::Release, "app:mutex:1")]);
    }
    let shown: Vec<String> = shown(&scout).into_iter().map(|group| group.pattern).collect();
    assert!(shown.contains(&"*:lock".to_owned()), "{shown:?}");
    assert!(shown.contains(&"app:mutex:*".to_owned()), "{shown:?}");
    assert!(shown.len() <= 66, "{}", shown.len());
}

#[test]
fn only_what_is_given_up_looks_like_a_lock() {
    let mut scout = Scout::default();
    for n in 0..40 {
        let key = |name: &str| format!("{name}:{n}");
        // A marker; one that gets its TTL afterwards; one that is deleted now and then.
        see(&mut scout, 1, &[(TAKE, &key("seen"))]);
        see(
            &mut scout,
            1,
            &[
                (Sight::Acquire { ttl: false }, &key("once")),
                (Sight::Extend, &key("once")),
            ],
        );
        see(&mut scout, 1, &[(TAKE, &key("cool"))]);
        if n % 20 == 0 {
            see(&mut scout, 1, &[(Sight::Release, &key("cool"))]);
        }
        // Locks given up by DEL, by a script, and never but kept alive.
        see(&mut scout, 1, &[(TAKE, &key("del")), (Sight::Release, &key("del"))]);
        see(
            &mut scout,
            1,
            &[(TAKE, &key("script")), (Sight::Script, &key("script"))],
        );
        see(&mut scout, 1, &[(TAKE, &key("alive")), (Sight::Extend, &key("alive"))]);
        // Cache traffic: nothing of it was acquired.
        see(
            &mut scout,
            1,
            &[(Sight::Release, &key("cache")), (Sight::Extend, &key("cache"))],
        );
    }
    // Twice is no habit.
    see(
        &mut scout,
        1,
        &[(TAKE, "rare"), (TAKE, "rare"), (Sight::Release, "rare")],
    );
    let patterns: Vec<String> = shown(&scout).into_iter().map(|group| group.pattern).collect();
    assert_eq!(patterns, ["alive:*", "del:*", "script:*"]);
}

#[test]
fn a_group_tells_what_was_seen() {
    let mut scout = Scout::default();
    for n in 0..5 {
        let key = format!("app:mutex:{n}");
        see(&mut scout, n, &[(TAKE, &key), (Sight::Acquire { ttl: false }, &key)]);
        see(
            &mut scout,
            0,
            &[(Sight::Extend, &key), (Sight::Release, &key), (Sight::Script, &key)],
        );
    }
    let groups = shown(&scout);
    let [group] = groups.as_slice() else {
        panic!("{groups:?}")
    };
    let expected = Counts {
        acquires: 10,
        without_ttl: 5,
        releases: 5,
        releases_elsewhere: 4,
        extends: 5,
        scripts: 5,
    };
    assert_eq!((group.counts, group.keys, group.handled), (expected, 5, 5));
    assert_eq!(group.examples.len(), EXAMPLES);
}

#[test]
fn countless_names_stay_within_the_bounds_and_hide_no_lock() {
    let mut scout = Scout::default();
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 33
    };
    for n in 0..200_000_u64 {
        // Words of letters, cut by separators at random places.
        let name: String = (0..3 + random() % 12)
            .map(|_| match random() % 30 {
                letter @ 0..26 => char::from(b'a' + letter as u8),
                26 => '.',
                27 => '-',
                _ => ':',
            })
            .collect();
        see_bytes(&mut scout, 1, TAKE, name.as_bytes());
        if n % 200 == 0 {
            let key = format!("app:mutex:{}", n / 200);
            see(&mut scout, 1, &[(TAKE, &key), (Sight::Release, &key)]);
        }
    }
    assert!(scout.keys.len() <= MOST_KEYS && scout.by_acquired.len() == scout.keys.len());
    let snapshot = scout.snapshot();
    assert!(
        snapshot.tree.groups().len() <= MOST_GROUPS,
        "{}",
        snapshot.tree.groups().len()
    );
    assert!(snapshot.dropped() > 150_000);
    let patterns: Vec<String> = shown(&scout).into_iter().map(|group| group.pattern).collect();
    assert_eq!(patterns, ["app:mutex:*"]);
}

#[test]
fn names_made_to_spoil_it_stay_within_the_bounds() {
    let mut scout = Scout::default();
    let separators = [
        "", ":", "::", "-", ":-", ".", "/", "*", "\\", "[", "{", "}:", "_", "__", "?:",
    ];
    let words = [
        "lock",
        "xLock",
        "a",
        "b",
        "17",
        "mutex",
        "",
        "sem",
        "dead beef",
        "LOCK",
        "v1",
        "q",
    ];
    for n in 0..20_000_usize {
        let mut key = String::new();
        let mut rest = n.wrapping_mul(2_654_435_761);
        for _ in 0..1 + n % 9 {
            key.push_str(separators[rest % separators.len()]);
            rest /= separators.len();
            key.push_str(words[rest % words.len()]);
            key.push_str(&(rest % 97).to_string().repeat(n % 3));
            rest = rest / words.len() + n;
        }
        if !key.is_empty() && key.len() <= LONGEST_KEY {
            see(&mut scout, 1, &[(TAKE, &key), (Sight::Release, &key)]);
        }
    }
    let groups = scout.snapshot().tree.groups();
    assert!(groups.len() <= MOST_GROUPS, "{}", groups.len());
    assert!(groups.iter().all(|(pattern, _)| pattern.text.len() <= 128));
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => "[a-c]{1,2}".prop_map(String::into_bytes),
        2 => "[0-9]{1,3}".prop_map(String::into_bytes),
        2 => "(lock|mutex|Lock|jobLock|sem)".prop_map(String::into_bytes),
        1 => "[0-9a-f]{8,12}".prop_map(String::into_bytes),
        1 => "[a-z]{1,3}[0-9]{1,3}".prop_map(String::into_bytes),
        1 => Just(b"550e8400-e29b-41d4-a716-446655440000".to_vec()),
        1 => vec(any::<u8>(), 0..60),
    ];
    let separator = "(:|::|-|\\.|\\*|\\?|\\[|\\\\|\\{|_|/|)".prop_map(String::into_bytes);
    vec((separator, word), 1..16).prop_map(|parts| {
        let mut key: Vec<u8> = parts.into_iter().flat_map(|(a, b)| [a, b].concat()).collect();
        key.truncate(LONGEST_KEY);
        key
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_pattern_matches_the_keys_that_it_was_made_from(keys in vec(name(), 1..100)) {
        let mut scout = Scout::default();
        let keys: Vec<Vec<u8>> = keys.into_iter().filter(|key| !key.is_empty()).collect();
        for key in &keys {
            see_bytes(&mut scout, 1, TAKE, key);
            see_bytes(&mut scout, 2, Sight::Release, key);
        }
        let snapshot = scout.snapshot();
        let groups = snapshot.tree.groups();
        prop_assert!(groups.len() <= MOST_GROUPS);
        let mut counted = 0;
        for (pattern, leaf) in &groups {
            prop_assert!(pattern.text.len() <= 128);
            let text = std::str::from_utf8(&pattern.text).expect("a pattern is text");
            prop_assert!(!text.chars().any(char::is_control));
            counted += leaf.counts.acquires;
        }
        prop_assert!(counted == keys.len() as u64 || snapshot.dropped() > 0);
        for key in &keys {
            let Some(leaf) = snapshot.tree.find(&words::steps(key)) else {
                prop_assert!(snapshot.dropped() > 0, "{:?} is in no group", key.escape_ascii().to_string());
                continue;
            };
            let (pattern, _) = groups.iter().find(|(_, group)| group.id == leaf.id).expect("its pattern");
            prop_assert!(
                Glob::new(&pattern.text).matches(key),
                "{} does not match {}", pattern.text.escape_ascii(), key.escape_ascii()
            );
        }
    }
}
