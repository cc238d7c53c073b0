//! Keys, owners and reasons as one short line of printable ASCII, whatever bytes they hold. Not reversible once cut.

/// What is shown of one text, in bytes.
const SHOWN: usize = 256;

/// The bytes as printable ASCII: everything else, and the backslash and the double quote, is escaped as in Rust strings.
/// Cut at 256 bytes, with the length of the whole behind it.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        // No escape is longer than 4 bytes.
        if text.len() + 4 > SHOWN && index + 1 < bytes.len() {
            text.push_str(&format!("... ({} bytes)", bytes.len()));
            break;
        }
        match byte {
            b'\'' => text.push('\''),
            byte => text.extend(byte.escape_ascii().map(char::from)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_printable_ascii_comes_out() {
        assert_eq!(printable(b"lock:a'b"), "lock:a'b");
        assert_eq!(
            printable(b"a\r\nb\x1b[31m\"\\\x00\xff"),
            r#"a\r\nb\x1b[31m\"\\\x00\xff"#
        );
        let all: Vec<u8> = (0..=255).collect();
        assert!(printable(&all).chars().all(|c| (' '..='~').contains(&c)));
    }

    #[test]
    fn long_texts_are_cut() {
        let text = printable(&[b'k'; 100_000]);
        assert!(
            text.ends_with("k... (100000 bytes)") && text.len() < SHOWN + 32,
            "{text}"
        );
        assert!(printable(&[0xff; 100_000]).len() < SHOWN + 32);
        assert_eq!(printable(&[b'k'; 253]).len(), 253);
    }
}
