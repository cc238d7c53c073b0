//! Numbers of bytes as people write them: `64KB`, `16MB`, `1GB`. As in Redis' own configuration a `kb` is 1,024 bytes,
//! and case says nothing.

use super::fault::shown;

/// The units, largest first.
const UNITS: [(&str, u64); 4] = [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];
/// The most that a setting may say: a terabyte.
const MOST: u64 = 1 << 40;

/// Reads a number of bytes.
///
/// # Errors
///
/// What is wrong with the text, for the operator.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let shown = shown(text);
    let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!(
            "\"{shown}\" is no size; write a whole number with KB, MB or GB, like \"16MB\""
        ));
    };
    number
        .parse::<u64>()
        .map_err(|_| format!("\"{shown}\" is no size; write a whole number with KB, MB or GB, like \"16MB\""))?
        .checked_mul(*length)
        .filter(|bytes| *bytes <= MOST)
        .ok_or_else(|| format!("\"{shown}\" is too large; at most \"{}\"", self::text(MOST)))
}

/// Writes a number of bytes in the largest unit that tells it exactly.
pub(super) fn text(bytes: u64) -> String {
    let exact = UNITS
        .iter()
        .find(|(_, length)| bytes >= *length && bytes.is_multiple_of(*length));
    let (name, length) = exact.unwrap_or(&("b", 1));
    format!("{}{}", bytes / length, name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("16MB", 16 << 20),
            ("1gb", 1 << 30),
            (" 64 Kb ", 64 << 10),
            ("0B", 0),
            ("1024GB", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_said() {
        for (text, part) in [
            ("16", "with KB, MB or GB"),
            ("MB", "whole number"),
            ("1.5GB", "whole number"),
            ("-1MB", "whole number"),
            ("99999999999999999999MB", "whole number"),
            ("2000GB", "at most \"1024GB\""),
            ("18446744073709551615GB", "at most"),
            ("", "no size"),
        ] {
            assert!(parse(text).is_err_and(|error| error.contains(part)), "{text}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for bytes in [0, 1, 1023, 1024, 1536, 16 << 20, (16 << 20) + 1, 1 << 30] {
            assert_eq!(parse(&text(bytes)), Ok(bytes));
        }
    }
}
