//! Times as people write them: `250ms`, `30s`, `2m`, `1h30m`, `1d`. Does not know clocks or dates.

use std::time::Duration;

use super::fault::shown;

/// The longest time a setting may say, ten years, in milliseconds: far from where Lua and Redis lose precision.
pub(super) const LONGEST_MS: u64 = 3650 * 86_400_000;

/// The units, longest first, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Reads a time; gives milliseconds.
///
/// # Errors
///
/// What is wrong with the text, for the operator.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("must be a time, like \"30s\"".to_owned());
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, after) = after.split_at(letters);
        let shown = shown(text);
        if number.is_empty() {
            return Err(format!(
                "\"{shown}\" is no time; write whole numbers with units, like \"250ms\" or \"1h30m\""
            ));
        }
        if unit.is_empty() && after.is_empty() {
            return Err(format!(
                "\"{shown}\" has no unit; write \"{shown}s\" for seconds, \"{shown}ms\" for milliseconds"
            ));
        }
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!(
                "\"{shown}\" is no time; the units are ms, s, m, h, d, and numbers are whole"
            ));
        };
        let part = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(*length));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LONGEST_MS)
            .ok_or_else(|| format!("\"{shown}\" is too long; at most \"3650d\""))?;
        rest = after.trim_start();
    }
    Ok(total)
}

/// The whole milliseconds of a duration.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a time in the largest units that tell it exactly.
pub(crate) fn text(milliseconds: u64) -> String {
    let mut left = milliseconds;
    let mut text = String::new();
    for (name, length) in UNITS {
        if left >= length {
            text.push_str(&format!("{}{name}", left / length));
            left %= length;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_as_people_write_them() {
        for (text, expected) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1m 500ms", 60_500),
            ("0s", 0),
            ("3650d", LONGEST_MS),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_explained() {
        for (text, hint) in [
            ("30", "\"30s\""),
            ("", "\"30s\""),
            ("s", "no time"),
            ("-5s", "no time"),
            ("1.5s", "whole"),
            ("5 minutes", "no time"),
            ("5 s", "no time"),
            ("3651d", "too long"),
            ("99999999999999999999s", "too long"),
            ("18446744073709551615d", "too long"),
            ("5µs", "no time"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(milliseconds in 0..=LONGEST_MS) {
            prop_assert_eq!(parse(&text(milliseconds)), Ok(milliseconds));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = parse(&text);
        }
    }
}
