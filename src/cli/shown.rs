//! Keys, owners and other texts of strangers as one printable piece of a line: nothing that moves the cursor, changes
//! colours, joins with its neighbours or turns the direction of writing comes through. Letters of all languages stay.
//! Also how wide such a text is on a terminal, how it is wrapped, and spans of time in few characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The bytes as text: UTF-8 stays where it is printable, everything else is escaped as in Rust strings (`\n`, `\u{202e}`;
/// bytes that are no UTF-8 as `\xff`), the backslash too. Can be read back, so two keys never look alike.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push(&mut text, character);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The same of a text.
pub(super) fn shown_text(text: &str) -> String {
    shown(text.as_bytes())
}

fn push(text: &mut String, character: char) {
    match character {
        '\\' => text.push_str("\\\\"),
        ' '..='~' => text.push(character),
        // What has no width of its own would join with what stands before it.
        _ if character.width().unwrap_or(0) == 0 && character.escape_debug().len() == 1 => {
            text.extend(character.escape_unicode());
        }
        _ => text.extend(character.escape_debug()),
    }
}

/// A text of ours with words of a stranger's in it: what a terminal could obey is escaped. Line ends stay, and so does the
/// backslash, so it cannot be read back.
pub(super) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\\' | '\'' | '"' => out.push(character),
            _ => push(&mut out, character),
        }
    }
    out
}

/// JSON with nothing in it that a terminal could obey: what is not printable stands as `\u…`, which only strings can
/// hold. Line ends stay.
pub(super) fn shown_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        let plain = matches!(character, ' '..='~' | '\n');
        if plain || (!character.is_ascii() && character.escape_debug().len() == 1) {
            text.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

/// How many columns of a terminal the text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Words behind `head`, in lines of so many columns as far as words can be moved; those below begin where the words do.
pub(super) fn wrapped(head: &str, words: &str, columns: usize) -> String {
    let (indent, mut out, mut line) = (width(head), String::new(), head.to_owned());
    let mut empty = true;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > columns {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

/// The text in at most so many columns, with `…` where it was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > columns {
            break;
        }
        kept.push(character);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// A span of time in few characters: `250ms`, `4.2s`, `1m03s`, `2h05m`, `3d04h`.
pub(super) fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..=9 => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_stay_and_the_rest_is_escaped() {
        assert_eq!(shown("lock:замок:錠:é \"x'".as_bytes()), "lock:замок:錠:é \"x'");
        assert_eq!(shown(b"a\x1b[31m\r\n\x7f\\\xff"), "a\\u{1b}[31m\\r\\n\\u{7f}\\\\\\xff");
        assert_eq!(
            shown("a\u{202e}b\u{200b}e\u{301}\u{9b}".as_bytes()),
            "a\\u{202e}b\\u{200b}e\\u{301}\\u{9b}"
        );
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_obeys() {
        assert_eq!(
            shown_json("{\n \"k\": \"é\u{9b}\u{7f}\u{202e}\"}"),
            "{\n \"k\": \"é\\u009b\\u007f\\u202e\"}"
        );
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(width("錠a"), 3);
        assert_eq!(cut("錠錠錠", 5), "錠錠…");
        assert_eq!(cut("錠錠錠", 4), "錠…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn spans_are_short() {
        for (milliseconds, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (4_250, "4.2s"),
            (59_999, "59s"),
            (63_000, "1m03s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(span(milliseconds), text);
        }
    }

    proptest! {
        #[test]
        fn every_character_has_a_width_and_two_keys_differ(a in prop::collection::vec(any::<u8>(), 0..12), b in prop::collection::vec(any::<u8>(), 0..12)) {
            let (one, other) = (shown(&a), shown(&b));
            prop_assert_eq!(one == other, a == b);
            prop_assert!(one.chars().all(|c| !c.is_control() && c.width().unwrap_or(0) > 0), "{}", one);
        }

        #[test]
        fn json_stays_the_same_json(text in "\\PC*|[\\x00-\\u{a0}\\u{2028}]*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&shown_json(&json)).unwrap(), text);
        }
    }
}
