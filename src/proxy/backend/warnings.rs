//! What the keeper found wrong with a lease, in sentences for people. Finds nothing itself.

use crate::admin::api::{Warning, WarningKind};
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
                span(held_ms),
                span(usual_ms)
            ),
        ),
        Found::NearExpiry { left_ms: 0, ttl_ms } => (
            WarningKind::NearExpiry,
            format!(
                "Its TTL of {} has run out, and the server has not said yet what became of it.",
                span(ttl_ms)
            ),
        ),
        Found::NearExpiry { left_ms, ttl_ms } => (
            WarningKind::NearExpiry,
            format!(
                "It expires in {}, and nobody has extended its TTL of {} so far.",
                span(left_ms),
                span(ttl_ms)
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

/// A span of time in at most two units.
fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |whole: u64, unit: &str, rest: u64, smaller: &str| {
        if rest == 0 {
            format!("{whole} {unit}")
        } else {
            format!("{whole} {unit} {rest} {smaller}")
        }
    };
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..10_000 if milliseconds % 1000 >= 100 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        1000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => two(minutes, "min", seconds % 60, "s"),
        3_600_000..86_400_000 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1 s"),
            (1050, "1 s"),
            (1590, "1.5 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (5_400_000, "1 h 30 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(milliseconds), expected);
        }
    }

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
