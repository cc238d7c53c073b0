//! Numbers in arguments, read exactly as strictly as the server reads them (`string2ll`). Knows no floats.

/// The number in `text`: an optional `-`, digits, no leading zero, no `+`, no blanks, no `-0`, within 64 bits.
/// `None` for everything else, where the server answers `ERR value is not an integer or out of range`.
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'0'] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    // 19 digits are the most that fit; the first one is not 0.
    if digits.len() > 19 || !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let mut value = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Summed on the negative side, where the range is larger by one.
        value = value.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn what_the_server_takes() {
        for number in [0, 1, -1, 10, 42, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
    }

    #[test]
    fn what_the_server_refuses() {
        let texts = [
            "", "-", "+1", "01", "-0", "00", " 1", "1 ", "1.0", "1e3", "0x1", "--1", "1a", "\0",
        ];
        for text in texts {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
        for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
