//! Which keys there are, and which of them a misspelt one probably meant. Knows no types and no values.

pub(super) const LISTEN: &[&str] = &[
    "address",
    "unix",
    "unix_mode",
    "unix_group",
    "tls",
    "handshake_timeout",
    "proxy_protocol",
    "trusted_proxies",
    "tcp_keepalive",
    "max_connections",
    "max_connections_per_address",
    "idle_timeout",
    "max_buffered",
    "workers",
];
pub(super) const LISTENERS: &[&str] = &[
    "name",
    "address",
    "unix",
    "unix_mode",
    "unix_group",
    "tls",
    "proxy_protocol",
    "trusted_proxies",
    "locks",
];
pub(super) const LISTEN_TLS: &[&str] = &["cert", "key", "client_ca"];
pub(super) const UPSTREAM: &[&str] = &[
    "url",
    "sentinel_user",
    "sentinel_password",
    "sentinel_tls",
    "tls",
    "mode",
    "connect_timeout",
    "reconnect_rate",
];
pub(super) const UPSTREAM_TLS: &[&str] = &["ca", "cert", "key", "server_name"];
pub(super) const ADMIN: &[&str] = &["address", "hosts", "token"];
pub(super) const LOG: &[&str] = &["level", "format"];
pub(super) const RECORDS: &[&str] = &["prefix"];
pub(super) const LOCKS: &[&str] = &[
    "name",
    "pattern",
    "mode",
    "owner",
    "unmanaged",
    "fencing",
    "emulate",
    "denied_write",
    "default_ttl",
    "max_ttl",
    "late_release_window",
    "renew",
    "max_hold",
    "release_on_disconnect",
    "disconnect_grace",
    "contention_shield",
];

/// The sections with one table each.
pub(super) const SECTIONS: &[(&str, &[&str])] = &[
    ("listen", LISTEN),
    ("upstream", UPSTREAM),
    ("admin", ADMIN),
    ("log", LOG),
    ("records", RECORDS),
];

/// The tables inside a section, each called `tls`.
pub(super) const TLS: &[(&str, &[&str])] = &[("listen", LISTEN_TLS), ("upstream", UPSTREAM_TLS)];

/// The top level.
pub(super) const TOP: &[&str] = &["listen", "listeners", "upstream", "admin", "log", "records", "locks"];

/// The text for a key that does not exist, with the best hint there is.
pub(super) fn unknown(key: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(key, known.iter().copied()) {
        return format!("unknown key; did you mean \"{near}\"?");
    }
    let elsewhere = SECTIONS
        .iter()
        .chain(&[("[locks]", LOCKS)])
        .find(|(_, keys)| keys.contains(&key));
    match elsewhere {
        Some((section, _)) => format!("unknown key here; it belongs to [{section}]"),
        None => format!("unknown key; here can stand: {}", known.join(", ")),
    }
}

/// The nearest of some words, if it is near enough to be meant: a third of its letters may be wrong.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No key is this long, and the distance costs the product of the lengths.
    if word.len() > 100 {
        return None;
    }
    let near_enough = |known: &'a str| {
        let limit = 1.max(known.len() / 3);
        // Words whose lengths differ more need no closer look.
        let distance = (known.len().abs_diff(word.len()) <= limit).then(|| distance(word, known))?;
        (distance <= limit).then_some((distance, known))
    };
    let (_, nearest) = known.filter_map(near_enough).min_by_key(|(distance, _)| *distance)?;
    Some(nearest)
}

/// How many letters must be put in, taken out or changed to make one word of the other (Levenshtein), whatever their
/// case.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut left = i + 1;
        let mut corner = i;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let best = (corner + usize::from(!x.eq_ignore_ascii_case(&y)))
                .min(left + 1)
                .min(*cell + 1);
            corner = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_letters() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("patern", "pattern", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
            ("x", "X", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_documented_file_has_every_key() {
        let all = SECTIONS.iter().flat_map(|(_, keys)| keys.iter()).chain(LOCKS);
        let all = all.chain(LISTENERS.iter().filter(|key| **key != "locks"));
        for key in all {
            let set = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{key} = "));
            assert!(
                crate::config::BUILT_IN.lines().any(set),
                "{key} is missing in config.toml"
            );
        }
        for key in TLS.iter().flat_map(|(_, keys)| keys.iter()) {
            let inside = |line: &str| line.starts_with("# tls = {") && line.contains(&format!(" {key} = \""));
            assert!(
                crate::config::BUILT_IN.lines().any(inside),
                "{key} is missing in config.toml"
            );
        }
    }

    #[test]
    fn the_schema_has_every_key_and_no_other() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../deploy/config.schema.json")).expect("JSON");
        let sorted = |keys: &[&str]| {
            let mut keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            keys.sort();
            keys
        };
        let there = |table: &serde_json::Value| {
            assert_eq!(table["additionalProperties"], false, "{table}");
            let mut keys: Vec<String> = table["properties"]
                .as_object()
                .expect("a table")
                .keys()
                .cloned()
                .collect();
            keys.sort();
            keys
        };
        assert_eq!(there(&schema), sorted(TOP));
        for (section, keys) in SECTIONS {
            assert_eq!(there(&schema["properties"][section]), sorted(keys), "{section}");
        }
        for (section, keys) in TLS {
            let table = &schema["properties"][section]["properties"]["tls"];
            assert_eq!(there(table), sorted(keys), "{section}");
        }
        let listener = &schema["$defs"]["listener"];
        assert_eq!(there(listener), sorted(LISTENERS));
        assert_eq!(there(&listener["properties"]["tls"]), sorted(LISTEN_TLS));
        assert_eq!(there(&schema["$defs"]["rule"]), sorted(LOCKS));
    }

    #[test]
    fn a_slip_finds_its_key_and_noise_finds_none() {
        for (slip, key) in [
            ("patern", "pattern"),
            ("default-ttl", "default_ttl"),
            ("denied_writes", "denied_write"),
            ("Mode", "mode"),
            ("late_release_windw", "late_release_window"),
        ] {
            assert_eq!(nearest(slip, LOCKS.iter().copied()), Some(key));
        }
        assert_eq!(nearest("colour", LOCKS.iter().copied()), None);
        assert!(unknown("url", LISTEN).ends_with("it belongs to [upstream]"));
        assert!(unknown("pattern", TOP).ends_with("it belongs to [[locks]]"));
    }
}
