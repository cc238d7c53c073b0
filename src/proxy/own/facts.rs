//! Names and values as a server gives them in INFO and CONFIG GET. They come from outside: only so many are kept, and of
//! each value only so much. Judges nothing.

use std::collections::HashMap;

use crate::resp::frame;

/// Names kept of one answer; servers have some 250.
const MOST: usize = 4096;
/// Characters kept of a name or value; the longest that is looked at is a list of save points.
const LONGEST: usize = 512;

/// Names and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(HashMap<String, String>);

impl Facts {
    /// Reads the text of INFO: lines `name:value`, headings begin with `#`.
    pub(crate) fn from_info(text: &[u8]) -> Facts {
        let mut facts = Facts::default();
        for line in text.split(|byte| *byte == b'\n').take(2 * MOST) {
            let line = String::from_utf8_lossy(line);
            if let Some((name, value)) = line.split_once(':').filter(|(name, _)| !name.starts_with('#')) {
                facts.add(name, value.trim_end());
            }
        }
        facts
    }

    /// Adds what CONFIG GET answered: names and values by turns. `None` if the answer is no such list.
    pub(crate) fn add_config(&mut self, reply: &[u8]) -> Option<()> {
        let mut elements = frame::elements(reply)?;
        while let (Some(name), Some(value)) = (elements.next(), elements.next()) {
            let (name, value) = (frame::bulk(name)?, frame::bulk(value)?);
            self.add(&String::from_utf8_lossy(name), &String::from_utf8_lossy(value));
        }
        Some(())
    }

    fn add(&mut self, name: &str, value: &str) {
        if self.0.len() < MOST && name.len() <= LONGEST {
            self.0.insert(name.to_owned(), value.chars().take(LONGEST).collect());
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Whether the value is exactly this.
    pub(crate) fn says(&self, name: &str, value: &str) -> bool {
        self.text(name) == Some(value)
    }

    /// One part of a value like `name=mymaster,status=ok`.
    pub(crate) fn part(&self, name: &str, part: &str) -> Option<&str> {
        let parts = self.text(name)?.split(',').filter_map(|pair| pair.split_once('='));
        parts.into_iter().find(|(key, _)| *key == part).map(|(_, value)| value)
    }

    /// The databases that have keys, in order.
    pub(crate) fn databases(&self) -> Vec<u32> {
        let numbers = self.0.keys().filter_map(|name| name.strip_prefix("db")?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn info_is_read() {
        let facts = Facts::from_info(b"# Server\r\nredis_version:7.0.15\r\n\r\ndb3:keys=5,expires=1\r\ndb0:keys=x\r\n");
        assert_eq!(facts.text("redis_version"), Some("7.0.15"));
        assert_eq!((facts.part("db3", "keys"), facts.part("db3", "k")), (Some("5"), None));
        assert_eq!(facts.databases(), [0, 3]);
        assert!(facts.text("# Server").is_none());
    }

    #[test]
    fn config_is_read() {
        let mut facts = Facts::default();
        let read = facts.add_config(b"*4\r\n$4\r\nsave\r\n$0\r\n\r\n$9\r\nmaxmemory\r\n$2\r\n10\r\n");
        assert_eq!(read, Some(()));
        assert_eq!((facts.text("save"), facts.number("maxmemory")), (Some(""), Some(10)));
        assert_eq!(facts.add_config(b"-ERR no\r\n"), None);
        assert_eq!(facts.add_config(b"*2\r\n$-1\r\n$-1\r\n"), None);
    }

    proptest! {
        #[test]
        fn no_answer_is_too_much(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut facts = Facts::from_info(&bytes);
            let _ = facts.add_config(&bytes);
            prop_assert!(facts.0.len() <= MOST);
        }
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut info: String = (0..3 * MOST).map(|number| format!("n{number}:1\n")).collect();
        info.insert_str(0, &format!("long:{}\n", "x".repeat(1 << 20)));
        let facts = Facts::from_info(info.as_bytes());
        assert_eq!(facts.0.len(), MOST);
        assert_eq!(facts.text("long").map(str::len), Some(LONGEST));
    }
}
