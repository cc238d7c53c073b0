//! Redis' glob, compiled: `*`, `?`, `[a-z]`, `[^a]` and escapes over any bytes, as `stringmatchlen` of the server's
//! `util.c` reads them, its corners included (an unclosed bracket ends with the pattern, `[z-a]` is `[a-z]`, a pattern
//! never matches the empty key unless it is `*` itself).
//!
//! What this does not do: recurse, or go back further than to the last star, so a match costs at most the length of
//! the pattern times the length of the key (unbounded backtracking was CVE-2022-36021). It knows no upper and lower
//! case.

use std::ffi::c_char;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    /// What every matching key begins with.
    prefix: Box<[u8]>,
    rest: Rest,
    /// Only the patterns `` and `*` match the empty key.
    matches_empty: bool,
}

/// What comes after the literal beginning.
#[derive(Clone, Debug)]
enum Rest {
    /// The key ends with the prefix.
    Nothing,
    /// One star: whatever follows.
    Anything,
    Tokens(Box<[Token]>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Byte(u8),
    AnyByte,
    Class(Box<Class>),
    /// One or more stars.
    Star,
}

/// A set of bytes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Class([u64; 4]);

impl Class {
    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    /// Adds a range in either direction, in the order of C's `char`: signed on x86, unsigned on ARM, as for a server
    /// on the same kind of machine.
    fn add_range(&mut self, a: u8, b: u8) {
        let (a, b) = (a as c_char, b as c_char);
        let (low, high) = (a.min(b), a.max(b));
        (0..=u8::MAX)
            .filter(|&byte| (low..=high).contains(&(byte as c_char)))
            .for_each(|byte| self.add(byte));
    }

    fn invert(&mut self) {
        self.0.iter_mut().for_each(|word| *word = !*word);
    }

    fn has(&self, byte: u8) -> bool {
        self.0
            .get(usize::from(byte >> 6))
            .is_some_and(|word| word & (1 << (byte & 63)) != 0)
    }
}

impl Token {
    /// Whether this token takes one byte, and this one.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Token::Byte(b) => *b == byte,
            Token::AnyByte => true,
            Token::Class(class) => class.has(byte),
            Token::Star => false,
        }
    }
}

impl Glob {
    /// Compiles a pattern. Every sequence of bytes is a pattern.
    pub fn new(pattern: &[u8]) -> Glob {
        let tokens = tokens(pattern);
        let literals = tokens
            .iter()
            .take_while(|token| matches!(token, Token::Byte(_)))
            .count();
        let (head, tail) = tokens.split_at(literals);
        let prefix = head
            .iter()
            .filter_map(|token| if let Token::Byte(b) = token { Some(*b) } else { None })
            .collect();
        let rest = match tail {
            [] => Rest::Nothing,
            [Token::Star] => Rest::Anything,
            _ => Rest::Tokens(tail.into()),
        };
        Glob {
            prefix,
            rest,
            matches_empty: matches!(pattern, b"" | b"*"),
        }
    }

    /// Whether the pattern matches the whole key.
    pub fn matches(&self, key: &[u8]) -> bool {
        if key.is_empty() {
            return self.matches_empty;
        }
        // An empty box has no memory behind it, and glibc's memcmp on AVX-512 takes 45 ns to find that out (measured).
        let tail = if self.prefix.is_empty() {
            Some(key)
        } else {
            key.strip_prefix(&*self.prefix)
        };
        let Some(tail) = tail else { return false };
        match &self.rest {
            Rest::Nothing => tail.is_empty(),
            Rest::Anything => true,
            Rest::Tokens(tokens) => tokens_match(tokens, tail),
        }
    }

    /// What every matching key begins with; empty if the pattern begins with a wildcard.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Whether a matching key can begin with this byte.
    pub fn may_begin_with(&self, byte: u8) -> bool {
        match (self.prefix.first(), &self.rest) {
            (Some(first), _) => *first == byte,
            (None, Rest::Nothing) => false,
            (None, Rest::Anything) => true,
            (None, Rest::Tokens(tokens)) => tokens.first().is_some_and(|t| *t == Token::Star || t.takes(byte)),
        }
    }

    /// Whether this pattern surely matches every key that `other` matches. Sees only the plain cases (a literal
    /// beginning and a star, or a key without wildcards), so `false` proves nothing.
    pub fn covers(&self, other: &Glob) -> bool {
        match (&self.rest, &other.rest) {
            // `**` matches all that `*` does, but for the empty key.
            _ if other.matches_empty && !self.matches_empty => false,
            (_, Rest::Nothing) => self.matches(&other.prefix),
            (Rest::Anything, _) => other.prefix.starts_with(&self.prefix),
            _ => false,
        }
    }
}

/// The text as a pattern that matches only itself.
pub fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '^' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Matches with one place to come back to: after a star has found a place for what stands between it and the next
/// star, an earlier star cannot find a better one.
fn tokens_match(tokens: &[Token], key: &[u8]) -> bool {
    let (mut t, mut k) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(&byte) = key.get(k) {
        let from = match tokens.get(t) {
            Some(Token::Star) => {
                t += 1;
                if t == tokens.len() {
                    return true;
                }
                k
            }
            Some(token) if token.takes(byte) => {
                t += 1;
                k += 1;
                continue;
            }
            _ => match back {
                Some((after_star, from)) => {
                    t = after_star;
                    from + 1
                }
                None => return false,
            },
        };
        // Behind a star: on to the first place where the next token can stand.
        let Some(place) = next_place(tokens.get(t), key, from) else {
            return false;
        };
        back = Some((t, place));
        k = place;
    }
    tokens
        .get(t..)
        .is_some_and(|left| left.iter().all(|token| *token == Token::Star))
}

fn next_place(token: Option<&Token>, key: &[u8], from: usize) -> Option<usize> {
    let left = key.get(from..)?;
    match token {
        Some(Token::Byte(byte)) => memchr::memchr(*byte, left).map(|at| from + at),
        Some(token) => left.iter().position(|byte| token.takes(*byte)).map(|at| from + at),
        None => None,
    }
}

fn tokens(mut pattern: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((&first, after)) = pattern.split_first() {
        pattern = after;
        let token = match first {
            b'*' if tokens.last() == Some(&Token::Star) => continue,
            b'*' => Token::Star,
            b'?' => Token::AnyByte,
            b'[' => {
                let (class, after) = class(pattern);
                pattern = after;
                Token::Class(Box::new(class))
            }
            b'\\' => match pattern.split_first() {
                Some((&escaped, after)) => {
                    pattern = after;
                    Token::Byte(escaped)
                }
                None => Token::Byte(b'\\'),
            },
            byte => Token::Byte(byte),
        };
        tokens.push(token);
    }
    tokens
}

/// Reads a class behind its `[`; gives back what follows it.
fn class(mut pattern: &[u8]) -> (Class, &[u8]) {
    let mut class = Class::default();
    let negated = pattern.first() == Some(&b'^');
    if negated {
        pattern = pattern.get(1..).unwrap_or_default();
    }
    loop {
        // The order of the arms is the server's: an escape before the end of the class, both before a range; so a
        // range takes a `]` as its end (`[a-]`), but a `]` never begins one.
        pattern = match pattern {
            [b'\\', escaped, after @ ..] => {
                class.add(*escaped);
                after
            }
            [b']', after @ ..] => {
                pattern = after;
                break;
            }
            [] => break,
            [low, b'-', high, after @ ..] => {
                class.add_range(*low, *high);
                after
            }
            [byte, after @ ..] => {
                class.add(*byte);
                after
            }
        };
    }
    if negated {
        class.invert();
    }
    (class, pattern)
}

#[cfg(test)]
mod tests;
