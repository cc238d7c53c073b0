//! What somebody looks for among keys: a glob, or a piece of text where the words hold no wildcard. Matches bytes; knows
//! no rules.

use super::glob::Glob;

/// A search among keys.
#[derive(Clone, Debug)]
pub struct Search(Glob);

impl Search {
    /// `words` with any of `*?[` is a glob as in `SCAN MATCH`; anything else matches the keys that contain it.
    pub fn new(words: &str) -> Search {
        if words.contains(['*', '?', '[']) {
            return Search(Glob::new(words.as_bytes()));
        }
        if words.is_empty() {
            // Two stars in a row would not match the empty key.
            return Search(Glob::new(b"*"));
        }
        let mut pattern = vec![b'*'];
        for byte in words.bytes() {
            if byte == b'\\' {
                pattern.push(b'\\');
            }
            pattern.push(byte);
        }
        pattern.push(b'*');
        Search(Glob::new(&pattern))
    }

    /// Whether the key is one that is looked for.
    pub fn matches(&self, key: &[u8]) -> bool {
        self.0.matches(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_anywhere_and_globs_match_the_whole() {
        assert!(Search::new("job").matches(b"lock:job:7"));
        assert!(Search::new("").matches(b"lock:job:7"));
        assert!(Search::new("").matches(b""));
        assert!(Search::new("a\\b").matches(b"lock:a\\b"));
        assert!(!Search::new("Job").matches(b"lock:job:7"));
        assert!(Search::new("lock:*").matches(b"lock:job:7"));
        assert!(!Search::new("job:*").matches(b"lock:job:7"));
    }
}
