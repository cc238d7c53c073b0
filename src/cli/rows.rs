//! How one lock is written in a table: what stands in which column, for `lockward locks` and `lockward top` alike.

use super::shown::{shown, shown_text, span};
use super::table::Column;
use crate::admin::api::{Lock, WarningKind};
use crate::admin::client::key_bytes;

/// The columns of the lock table.
pub(super) const COLUMNS: [(&str, Column); 7] = [
    ("KEY", Column::GivesWay),
    ("RULE", Column::GivesWay),
    ("OWNER", Column::GivesWay),
    ("HELD", Column::Figures),
    ("TTL LEFT", Column::Figures),
    ("WAITING", Column::Figures),
    ("WARNINGS", Column::Words),
];

/// A key by its percent-encoded form, so that two keys that differ in bytes that are no text differ here too.
pub(super) fn key(text: &str, encoded: &str) -> String {
    key_bytes(encoded).map_or_else(|| shown_text(text), |bytes| shown(&bytes))
}

/// The cells of a lock's row, `later_ms` after it was read.
pub(super) fn cells(lock: &Lock, later_ms: u64) -> Vec<String> {
    let mut name = key(&lock.key, &lock.key_encoded);
    if lock.database != 0 {
        name.push_str(&format!(" (db {})", lock.database));
    }
    let mut rule = shown_text(&lock.rule);
    if lock.mode != "enforce" {
        rule.push_str(&format!(" ({})", shown_text(&lock.mode)));
    }
    vec![
        name,
        rule,
        holder(&lock.owner, lock.client_name.as_deref()),
        span(lock.held_ms.saturating_add(later_ms)),
        ttl_left(lock, later_ms),
        if lock.waiting == 0 {
            "-".to_owned()
        } else {
            lock.waiting.to_string()
        },
        warnings(lock),
    ]
}

/// An owner, and the name that its connection gives itself.
pub(super) fn holder(owner: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{} ({})", shown_text(owner), shown_text(name)),
        None => shown_text(owner),
    }
}

fn ttl_left(lock: &Lock, later_ms: u64) -> String {
    match lock.ttl_left_ms {
        None => "none".to_owned(),
        Some(left) => span(left.saturating_sub(later_ms)),
    }
}

fn warnings(lock: &Lock) -> String {
    let words: Vec<&str> = lock.warnings.iter().map(|warning| word(warning.kind)).collect();
    words.join(", ")
}

/// A kind of warning in few words.
pub(super) fn word(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::NoTtl => "no TTL",
        WarningKind::LongHeld => "long held",
        WarningKind::NearExpiry => "near expiry",
        WarningKind::ForeignRelease => "foreign release",
        WarningKind::Overrun => "overrun",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::Warning;

    #[test]
    fn a_row_says_what_there_is_to_say() {
        let lock = Lock {
            key: "lock:\u{fffd}".to_owned(),
            key_encoded: "lock:%FF".to_owned(),
            database: 2,
            rule: "jobs".to_owned(),
            mode: "observe".to_owned(),
            owner: "any".to_owned(),
            client_name: Some("w\u{1b}1".to_owned()),
            held_ms: 61_000,
            ttl_left_ms: Some(3_000),
            warnings: vec![Warning {
                kind: WarningKind::NearExpiry,
                text: String::new(),
            }],
            ..Lock::default()
        };
        assert_eq!(
            cells(&lock, 1_000),
            [
                "lock:\\xff (db 2)",
                "jobs (observe)",
                "any (w\\u{1b}1)",
                "1m02s",
                "2.0s",
                "-",
                "near expiry"
            ]
        );
        assert_eq!(cells(&Lock::default(), 0)[4], "none");
    }
}
