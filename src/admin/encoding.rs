//! Keys in URLs: percent-encoding of any bytes, and back (RFC 3986, section 2.1). A plus sign is a plus sign.

/// The bytes as one path segment. Everything but letters, digits, `-`, `_` and `:` is encoded; dots too, since clients
/// swallow the segments `.` and `..`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b':' => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The bytes that a path stands for; `None` if a percent sign is not followed by two hex digits.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            hex(rest.next()?)? << 4 | hex(rest.next()?)?
        } else {
            byte
        });
    }
    Some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"/?#.+".contains(&byte)),
            "{text}"
        );
        assert_eq!(decode(&text), Some(all));
        assert_eq!(encode(b"lock:job-7_a"), "lock:job-7_a");
    }

    #[test]
    fn plain_characters_stand_for_themselves() {
        assert_eq!(decode("a/b+c"), Some(b"a/b+c".to_vec()));
        assert_eq!(decode("%6c%6F"), Some(b"lo".to_vec()));
    }

    #[test]
    fn broken_escapes_are_no_key() {
        for text in ["%", "%4", "%zz", "a%4", "%+1", "%%41"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
