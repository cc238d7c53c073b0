//! Whole numbers, read as the server reads them in header lines and in arguments (`string2ll` in its util.c): no plus
//! sign, no leading zero, no blank, no minus zero, nothing beyond 64 bits. Knows no floats, and does not judge what a
//! number is used for.

/// The number in `text`; `None` where the server says that it is not an integer or out of range.
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Counts downwards, since the lowest number has no positive twin.
    let mut value: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn reads_what_the_server_reads() {
        for (text, value) in [
            ("0", 0),
            ("7", 7),
            ("-1", -1),
            ("10", 10),
            ("536870912", 536_870_912),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text.as_bytes()), Some(value), "{text}");
        }
    }

    #[test]
    fn refuses_what_the_server_refuses() {
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "-01",
            "1 ",
            " 1",
            "1\0",
            "0x1",
            "1.0",
            "1e3",
            "--1",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
