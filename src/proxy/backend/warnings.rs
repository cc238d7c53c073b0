//! What the keeper found wrong with a lease, in sentences for people. Finds nothing itself.

use crate::admin::api::{Warning, WarningKind};
use crate::lock::chronicle::words::length;
use crate::lock::keeper::Warning as Found;

/// The warning as it is shown, of a lease held for so long.
pub(super) fn shown(found: &Found, held_ms: u64) -> Warning {
    let (kind, text) = match *found {
        Found::NoTtl => (
            WarningKind::NoTtl,
            "It has no TTL: if its holder crashes, the lock stays until somebody releases it.".to_owned(),
        ),
        Found::LongHeld { usual_ms } => (
            WarningKind::LongHeld,
            format!(
                "Held for {}; 99 of 100 leases under this rule end within {}.",
                length(held_ms),
                length(usual_ms)
            ),
        ),
        Found::NearExpiry { left_ms: 0, ttl_ms } => (
            WarningKind::NearExpiry,
            format!(
                "Its TTL of {} has run out, and the server has not said yet what became of it.",
                length(ttl_ms)
            ),
        ),
        Found::NearExpiry { left_ms, ttl_ms } => (
            WarningKind::NearExpiry,
            format!(
                "It expires in {}, and nobody has extended its TTL of {} so far.",
                length(left_ms),
                length(ttl_ms)
            ),
        ),
        Found::ForeignRelease { tries: 1 } => (
            WarningKind::ForeignRelease,
            "Somebody else tried to release it.".to_owned(),
        ),
        Found::ForeignRelease { tries } => (
            WarningKind::ForeignRelease,
            format!("Others tried to release it, {tries} times so far."),
        ),
        Found::Overrun { owed: 1 } => (
            WarningKind::Overrun,
            "An earlier lease of this lock expired and was never released: its holder may still be at work.".to_owned(),
        ),
        Found::Overrun { owed } => (
            WarningKind::Overrun,
            format!(
                "{owed} earlier leases of this lock expired and were never released: their holders may still be at work."
            ),
        ),
    };
    Warning { kind, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_is_one_sentence() {
        for found in [
            Found::NoTtl,
            Found::LongHeld { usual_ms: 1200 },
            Found::NearExpiry {
                left_ms: 0,
                ttl_ms: 5000,
            },
            Found::NearExpiry {
                left_ms: 900,
                ttl_ms: 5000,
            },
            Found::ForeignRelease { tries: 1 },
            Found::ForeignRelease { tries: 7 },
            Found::Overrun { owed: 1 },
            Found::Overrun { owed: 2 },
        ] {
            let text = shown(&found, 90_000).text;
            assert!(text.ends_with('.') && text.matches('.').count() <= 2, "{text}");
            assert!(
                text.starts_with(|first: char| first.is_uppercase() || first.is_ascii_digit()),
                "{text}"
            );
        }
    }
}
