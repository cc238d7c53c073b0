//! Whether the server keeps what it was given, by INFO and CONFIG: eviction when memory is full, persistence over a
//! restart. Only judges; what CONFIG does not tell is taken from INFO.

use super::finding::{Finding, quoted};
use crate::proxy::own::facts::Facts;

/// Memory in use, in per cent of the limit, from which it is said.
const NEARLY_FULL: u64 = 90;

/// What becomes of locks when memory is full.
pub(super) fn eviction(info: &Facts, config: &Facts) -> Option<Finding> {
    let policy = config
        .text("maxmemory-policy")
        .or_else(|| info.text("maxmemory_policy"))?;
    let limit = config.number("maxmemory").or_else(|| info.number("maxmemory"));
    let shown = quoted(policy);
    let found = match limit {
        Some(0) => format!("maxmemory-policy is {shown}, maxmemory is 0 (no limit)"),
        Some(limit) => format!("maxmemory-policy is {shown}, maxmemory is {}", bytes(limit)),
        None => format!("maxmemory-policy is {shown}"),
    };
    if policy == "noeviction" {
        return Some(kept(found, limit, info.number("used_memory")));
    }
    let victims = if policy.starts_with("volatile") {
        "keys with a TTL, which lease records and most locks have"
    } else {
        "any key"
    };
    let evicted = match info.number("evicted_keys") {
        Some(count @ 1..) => format!(" ({count} keys were evicted since its start)"),
        _ => String::new(),
    };
    let when = match limit {
        Some(0) => "nothing is evicted while there is no limit; with one, ",
        _ => "",
    };
    let means = format!(
        "{when}when memory is full the server deletes {victims}{evicted}: a lock that is held, and a second client gets \
         it, or a record, and its holder's release is no longer told from another's; keep locks on a server that evicts \
         nothing"
    );
    Some(
        Finding::warning("eviction", found)
            .means(means)
            .paste("CONFIG SET maxmemory-policy noeviction"),
    )
}

/// Of a server that evicts nothing.
fn kept(found: String, limit: Option<u64>, used: Option<u64>) -> Finding {
    match (limit, used) {
        (Some(0), _) => Finding::note("eviction", found).means(
            "no lock is evicted; but the server grows until the system ends it, and that loses what is not on disk",
        ),
        (Some(limit), Some(used)) if u128::from(used) * 100 >= u128::from(limit) * u128::from(NEARLY_FULL) => {
            Finding::warning("eviction", format!("{found}, {} are used", bytes(used))).means(
                "memory is nearly full: acquires are then refused with OOM; releases still work, and no lock is evicted",
            )
        }
        _ => Finding::ok("eviction", found).means("no lock is evicted; when memory is full, acquires are refused"),
    }
}

/// What becomes of locks when the server restarts.
pub(super) fn persistence(info: &Facts, config: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(restart(info, config));
    findings.extend(failing(info, config));
    findings
}

fn restart(info: &Facts, config: &Facts) -> Option<Finding> {
    let append_only = match (config.text("appendonly"), info.text("aof_enabled")) {
        (Some(word), _) => word == "yes",
        (None, Some(digit)) => digit == "1",
        (None, None) => return None,
    };
    if append_only {
        return Some(appended(config.text("appendfsync")));
    }
    let finding = match config.text("save") {
        Some("") => {
            Finding::warning("persistence", "off (save is \"\", appendonly is no)").means(
            "a restart forgets all locks: their holders go on as if they held them, and others get them at once",
        )
        }
        Some(points) => {
            Finding::warning(
            "persistence",
            format!("snapshots only (save is \"{}\", appendonly is no)", quoted(points)),
        )
        .means(
            "a crash forgets all locks since the last snapshot, and brings back those that were released since; most locks \
             are shorter than the time between two",
        )
        }
        None => Finding::warning("persistence", "no append-only file; whether there are snapshots is not known")
            .means("a crash forgets at least the locks since the last snapshot, and others get them at once"),
    };
    Some(finding.paste("CONFIG SET appendonly yes"))
}

/// Of a server with an append-only file.
fn appended(sync: Option<&str>) -> Finding {
    match sync {
        Some("always") => Finding::ok("persistence", "appendonly is yes, appendfsync is always")
            .means("a restart forgets no lock that was granted"),
        Some("no") => Finding::warning("persistence", "appendonly is yes, appendfsync is no")
            .means(
                "a crash of the machine loses the grants that the system had not written yet, up to half a minute of them, \
                 and others get those locks",
            )
            .paste("CONFIG SET appendfsync everysec"),
        Some(word) => Finding::note("persistence", format!("appendonly is yes, appendfsync is {}", quoted(word))).means(
            "a crash of the machine loses up to a second of grants (two on a slow disk), and others get those locks",
        ),
        None => Finding::ok("persistence", "appendonly is on").means("a restart keeps the locks"),
    }
}

/// A server that cannot write to its disk refuses writes.
fn failing(info: &Facts, config: &Facts) -> Option<Finding> {
    let snapshot = info.text("rdb_last_bgsave_status").is_some_and(|word| word != "ok")
        && !config.says("stop-writes-on-bgsave-error", "no")
        && !config.says("save", "");
    let file = info.says("aof_enabled", "1") && info.text("aof_last_write_status").is_some_and(|word| word != "ok");
    let what = match (snapshot, file) {
        (_, true) => "the last write to the append-only file failed",
        (true, false) => "the last snapshot failed",
        (false, false) => return None,
    };
    Some(Finding::warning("persistence", what).means(
        "the server refuses all writes with MISCONF until one succeeds: nobody gets a lock; see its log and disk",
    ))
}

/// `512 B`, `1.5 GiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut tenths = u128::from(count) * 10;
    let mut unit = "B";
    for larger in UNITS {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, larger);
    }
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::finding::Level;
    use super::*;

    fn facts(text: &str) -> Facts {
        Facts::from_info(text.as_bytes())
    }

    fn evicting(info: &str, config: &str) -> Finding {
        eviction(&facts(info), &facts(config)).expect("a finding")
    }

    #[test]
    fn policies_that_evict_locks_are_warned_of() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm"] {
            let finding = evicting("", &format!("maxmemory-policy:{policy}\nmaxmemory:104857600"));
            assert_eq!(finding.level, Level::Warning);
            assert!(
                finding.found.contains("100 MiB") && finding.means.contains("any key"),
                "{finding:?}"
            );
            assert_eq!(finding.paste, ["CONFIG SET maxmemory-policy noeviction"]);
        }
        let finding = evicting("evicted_keys:7", "maxmemory-policy:volatile-ttl\nmaxmemory:1048576");
        assert!(
            finding.means.contains("with a TTL") && finding.means.contains("7 keys"),
            "{finding:?}"
        );
        let finding = evicting("", "maxmemory-policy:allkeys-lru\nmaxmemory:0");
        assert_eq!(finding.level, Level::Warning);
        assert!(
            finding.means.starts_with("nothing is evicted while there is no limit"),
            "{finding:?}"
        );
    }

    #[test]
    fn without_the_right_to_config_info_tells_the_policy() {
        let finding = evicting("maxmemory_policy:allkeys-lru\nmaxmemory:1024", "");
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.found.contains("1 KiB"), "{finding:?}");
        assert_eq!(eviction(&facts(""), &facts("")), None);
    }

    #[test]
    fn a_server_that_evicts_nothing_may_still_be_full() {
        assert_eq!(
            evicting("", "maxmemory-policy:noeviction\nmaxmemory:0").level,
            Level::Note
        );
        let limited = "maxmemory-policy:noeviction\nmaxmemory:1000";
        assert_eq!(evicting("used_memory:899", limited).level, Level::Ok);
        assert_eq!(evicting("used_memory:900", limited).level, Level::Warning);
    }

    #[test]
    fn each_way_of_forgetting_is_said() {
        for (info, config, level, word) in [
            ("", "save:\nappendonly:no", Level::Warning, "off"),
            (
                "",
                "save:3600 1 300 100\nappendonly:no",
                Level::Warning,
                "snapshots only (save is \"3600 1 300 100\"",
            ),
            (
                "",
                "save:\nappendonly:yes\nappendfsync:everysec",
                Level::Note,
                "everysec",
            ),
            ("", "appendonly:yes\nappendfsync:always", Level::Ok, "always"),
            (
                "",
                "appendonly:yes\nappendfsync:no",
                Level::Warning,
                "appendfsync is no",
            ),
            ("aof_enabled:0", "", Level::Warning, "not known"),
            ("aof_enabled:1", "", Level::Ok, "is on"),
        ] {
            let found = persistence(&facts(info), &facts(config));
            assert_eq!(found.len(), 1, "{config}");
            assert_eq!(found[0].level, level, "{config}");
            assert!(found[0].found.contains(word), "{found:?}");
        }
        assert_eq!(persistence(&facts(""), &facts("")), []);
    }

    #[test]
    fn a_failing_disk_stops_all_grants() {
        let failed = "rdb_last_bgsave_status:err";
        let with_save = "save:60 1\nappendonly:no\nstop-writes-on-bgsave-error:yes";
        assert!(
            persistence(&facts(failed), &facts(with_save))[1]
                .means
                .contains("MISCONF")
        );
        let going_on = with_save.replace("error:yes", "error:no");
        assert_eq!(persistence(&facts(failed), &facts(&going_on)).len(), 1);
        let file = persistence(
            &facts("aof_enabled:1\naof_last_write_status:err"),
            &facts("appendonly:yes"),
        );
        assert!(file[1].found.contains("append-only"), "{file:?}");
    }

    #[test]
    fn sizes_are_short() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    proptest! {
        #[test]
        fn no_value_makes_it_panic(value in "\\PC{0,40}|[0-9]{0,30}") {
            let text = ["maxmemory", "maxmemory-policy", "used_memory", "save", "appendonly", "appendfsync", "aof_enabled"]
                .map(|name| format!("{name}:{value}\n"))
                .concat();
            let _ = eviction(&facts(&text), &facts(&text));
            let _ = persistence(&facts(&text), &facts(&text));
        }
    }
}
