//! What somebody looks for among keys: a glob, or a piece of text where the words hold no wildcard. Matches bytes; knows
//! no rules. Whoever looks through many keys asks for the cost first, and does other things in between.

use memchr::memmem::Finder;
use thiserror::Error;

use super::glob::Glob;

/// The longest words, in bytes: a glob costs its length times that of the key.
pub const LONGEST_SEARCH: usize = 256;

/// The operator's: the words are longer than [`LONGEST_SEARCH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("pattern: is longer than {LONGEST_SEARCH} bytes")]
pub struct TooLong;

/// A search among keys.
#[derive(Clone, Debug)]
pub struct Search(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Glob(Glob, usize),
    Text(Box<Finder<'static>>),
}

impl Search {
    /// `words` with any of `*?[` is a glob as in `SCAN MATCH`; anything else matches the keys that contain it.
    ///
    /// # Errors
    /// Words longer than [`LONGEST_SEARCH`].
    pub fn new(words: &str) -> Result<Search, TooLong> {
        if words.len() > LONGEST_SEARCH {
            return Err(TooLong);
        }
        Ok(Search(if words.contains(['*', '?', '[']) {
            Kind::Glob(Glob::new(words.as_bytes()), words.len())
        } else {
            Kind::Text(Box::new(Finder::new(words).into_owned()))
        }))
    }

    /// Whether the key is one that is looked for.
    pub fn matches(&self, key: &[u8]) -> bool {
        match &self.0 {
            Kind::Glob(glob, _) => glob.matches(key),
            Kind::Text(text) => text.find(key).is_some(),
        }
    }

    /// How many bytes are compared at most for a key of this length; a million take about a millisecond.
    pub fn cost(&self, key_length: usize) -> usize {
        match &self.0 {
            Kind::Glob(_, length) => length.saturating_mul(key_length),
            Kind::Text(_) => key_length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &str, key: &[u8]) -> bool {
        Search::new(words).is_ok_and(|search| search.matches(key))
    }

    #[test]
    fn words_are_found_anywhere_and_globs_match_the_whole() {
        assert!(found("job", b"lock:job:7"));
        assert!(found("", b"lock:job:7"));
        assert!(found("", b""));
        assert!(found("a\\b", b"lock:a\\b"));
        assert!(!found("Job", b"lock:job:7"));
        assert!(found("lock:*", b"lock:job:7"));
        assert!(!found("job:*", b"lock:job:7"));
    }

    #[test]
    fn no_search_is_without_bound() {
        assert!(Search::new(&"a".repeat(LONGEST_SEARCH)).is_ok());
        assert!(Search::new(&"a".repeat(LONGEST_SEARCH + 1)).is_err());
        assert_eq!(Search::new("a*b").map(|search| search.cost(5)), Ok(15));
        assert_eq!(Search::new("ab").map(|search| search.cost(5)), Ok(5));
    }
}
