//! Times as people read and write them. Formats; rounds, and says nothing else.

/// A length of time for a sentence: `340 ms`, `1.2 s`, `45 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`.
pub fn length(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => match ms / 100 % 10 {
            0 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        10_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600_000..86_400_000 => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        small => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// What people write as a TTL, in milliseconds.
const WRITTEN_MS: [u64; 25] = [
    100, 200, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000,
    180_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000, 2_700_000, 3_600_000, 7_200_000, 14_400_000,
];

/// The next number that people write as a TTL; whole hours beyond four.
pub fn rounded_up(ms: u64) -> u64 {
    let written = WRITTEN_MS.into_iter().find(|written| *written >= ms);
    written.unwrap_or_else(|| ms.div_ceil(3_600_000).saturating_mul(3_600_000))
}

/// A length of time as the configuration has it: `500ms`, `45s`, `90s`, `5m`, `2h`.
pub fn setting(ms: u64) -> String {
    match ms {
        ms if ms > 0 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        ms if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        ms if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_exact_as_a_reader_wants_them() {
        let shown = [
            0,
            999,
            1000,
            1250,
            9999,
            10_900,
            59_999,
            60_000,
            125_000,
            3_600_000,
            12_000_000,
            190_000_000,
        ];
        let shown = shown.map(length);
        let wanted = [
            "0 ms",
            "999 ms",
            "1 s",
            "1.2 s",
            "9.9 s",
            "10 s",
            "59 s",
            "1 min",
            "2 min 5 s",
            "1 h",
            "3 h 20 min",
            "2 d 4 h",
        ];
        assert_eq!(shown.each_ref().map(String::as_str), wanted);
    }

    #[test]
    fn ttls_are_rounded_up_to_what_people_write() {
        let rounded = [1, 101, 4_000, 31_000, 45_000, 46_000, 100_000, 5_000_000, 20_000_000]
            .map(rounded_up)
            .map(setting);
        let wanted = ["100ms", "200ms", "5s", "45s", "45s", "1m", "2m", "2h", "6h"];
        assert_eq!(rounded.each_ref().map(String::as_str), wanted);
        assert_eq!(
            [0, 90_000, 1_500].map(setting).each_ref().map(String::as_str),
            ["0s", "90s", "1500ms"]
        );
        assert!(WRITTEN_MS.is_sorted());
    }
}
