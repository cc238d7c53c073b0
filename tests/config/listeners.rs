//! Several ways in: whose rules hold where, what is warned of, what `check` shows, and what a reload makes of them.

use lockward::config::{Config, Group, describe};

use super::{good, load};

const TWO: &str = r#"
[listen]
address = "0.0.0.0:6380"
proxy_protocol = true
trusted_proxies = ["10.0.0.0/8", "192.0.2.7"]

[[listeners]]
name = "side"
unix = "/run/lockward/side.sock"
unix_mode = "0770"
unix_group = "redis"

[[listeners]]
name = "old"
address = "127.0.0.1:6381"
[[listeners.locks]]
name = "old locks"
pattern = "lock:*"
mode = "observe"
default_ttl = "1m"

[[locks]]
pattern = "lock:*"
default_ttl = "1m"
[[locks]]
pattern = "job:*"
owner = "process"
default_ttl = "1m"
"#;

fn names(config: &Config) -> Vec<Vec<String>> {
    let at = |entrance| config.rules_at(entrance).map(|rule| rule.name.to_string()).collect();
    config.entrances().map(at).collect()
}

#[test]
fn rules_of_its_own_stand_in_place_of_the_general_ones() {
    let config = good(TWO, &[]);
    let general = || vec!["lock:*".to_owned(), "job:*".to_owned()];
    assert_eq!(names(&config), [general(), general(), vec!["old locks".to_owned()]]);
    assert_eq!(config.rules.len(), 3);
    let rights = &config.listeners[0].rights;
    assert_eq!(
        (rights.mode, &rights.group),
        (Some(0o770), &Some(Group::Name("redis".to_owned())))
    );
    let numbered = good(&TWO.replace("\"redis\"", "\"112\""), &[]);
    assert_eq!(numbered.listeners[0].rights.group, Some(Group::Number(112)));
}

#[test]
fn warnings_are_of_the_rules_that_hold_there() {
    let warnings = load(TWO).expect("good").warnings;
    assert_eq!(
        warnings,
        [
            "rule \"job:*\": owner = \"process\" counts as \"connection\" behind a load balancer (0.0.0.0:6380, \
             proxy_protocol)",
            "rule \"lock:*\": owner = \"address\" on a unix socket: all clients are one owner; to tell them apart use owner = \
             \"process\", \"connection\" or \"client-name\"",
            "rule \"old locks\": owner = \"address\" on the loopback address 127.0.0.1:6381: all clients on this machine are \
             one owner (two redis-cli too); to tell them apart use owner = \"connection\" or \"client-name\"",
        ]
    );
}

#[test]
fn check_shows_each_way_in_and_its_rules() {
    let text = describe(&good(TWO, &[]), &[]);
    let places = "\
listen    0.0.0.0:6380, with a PROXY header from 10.0.0.0/8 192.0.2.7, at most 10000 connections, 1GB in buffers, keepalive 1m
listener  side: unix socket /run/lockward/side.sock, mode 0770, group redis, the general rules
listener  old: 127.0.0.1:6381, its own rules
upstream  ";
    assert!(text.starts_with(places), "{text}");
    let (general, own) = text
        .split_once("\nlock rules of listener old, in place of those above:\n1. old locks: lock:*\n")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(
        general.contains("\n1. lock:*: lock:*\n") && general.contains("\n2. job:*: job:*\n"),
        "{text}"
    );
    assert!(own.contains("observe") && !own.contains("2. "), "{text}");
}

#[test]
fn a_reload_changes_what_holds_there_and_not_where_it_is() {
    let old = good(TWO, &[]);
    let (same, nothing) = old.changed_to(old.clone());
    assert_eq!(same, old);
    assert_eq!((nothing.applied.len(), nothing.needs_restart.len()), (0, 0));
    let new = good(
        &TWO.replace("192.0.2.7", "192.0.2.8")
            .replace("mode = \"observe\"", "mode = \"enforce\"")
            .replace("side.sock", "other.sock")
            .replace("0770", "0700"),
        &[],
    );
    let (next, changes) = old.changed_to(new);
    assert_eq!(
        changes.applied,
        [
            "listen.trusted_proxies: 10.0.0.0/8 192.0.2.7 -> 10.0.0.0/8 192.0.2.8",
            "rule \"old locks\", mode: observe -> enforce",
        ]
    );
    assert_eq!(
        changes.needs_restart,
        ["listeners.side.address", "listeners.side.unix_mode"]
    );
    assert_eq!(next.listeners[0].place, old.listeners[0].place);
}

#[test]
fn a_listener_can_take_rules_of_its_own_or_the_general_ones_without_a_restart() {
    let old = good(TWO, &[]);
    let own = TWO.replace(
        "unix_group = \"redis\"\n",
        "unix_group = \"redis\"\n[[listeners.locks]]\npattern = \"side:*\"\ndefault_ttl = \"1m\"\n",
    );
    let (next, changes) = old.changed_to(good(&own, &[]));
    assert_eq!(names(&next)[1], ["side:*"]);
    assert_eq!(
        changes.applied,
        [
            "the rules of listener \"side\": the general ones -> its own",
            "rule \"side:*\" is new: side:*, enforce"
        ]
    );
    let (back, changes) = next.changed_to(old.clone());
    assert_eq!(back, old);
    assert_eq!(changes.applied[1], "rule \"side:*\" is gone");
}

#[test]
fn a_listener_that_came_or_went_waits_for_the_restart() {
    let old = good(TWO, &[]);
    let (before, _) = TWO
        .split_once("[[listeners]]\nname = \"old\"")
        .expect("it stands there");
    // Its rule has moved to the general ones, and says something else there.
    let new = good(
        &format!(
            "{before}[[listeners]]\nname = \"new\"\naddress = \"a:1\"\n[[listeners.locks]]\npattern = \"x\"\n\
             [[locks]]\nname = \"old locks\"\npattern = \"lock:*\"\ndefault_ttl = \"2m\"\n"
        ),
        &[],
    );
    let (next, changes) = old.changed_to(new.clone());
    assert_eq!(changes.needs_restart, ["listeners.old", "listeners.new"]);
    assert_eq!(
        names(&next),
        [["old locks"], ["old locks"], ["old locks"]].map(|one| one.map(str::to_owned).to_vec())
    );
    assert_eq!(next.rules[0].default_ttl_ms, Some(120_000));
    // One whose rules are nowhere any more keeps them.
    let (next, changes) = old.changed_to(good(&format!("{before}[[locks]]\npattern = \"a:*\"\n"), &[]));
    assert_eq!(names(&next)[2], ["old locks"]);
    assert_eq!(changes.needs_restart, ["listeners.old"]);
    let (again, _) = next.changed_to(good(&format!("{before}[[locks]]\npattern = \"a:*\"\n"), &[]));
    assert_eq!(again, next);
}
