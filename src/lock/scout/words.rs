//! A key taken apart into the steps of its name: what is a word, what is a number, an id or a date, and where it says
//! that it is a lock. Looks at one key only; what varies from key to key is the tree's business.

/// Steps of one key; what stands behind is one step that varies.
const MOST_STEPS: usize = 12;
/// So many bytes of a pattern may be literal, escapes included: a pattern can be a rule's name, which has a limit.
const LONGEST_LITERAL: usize = 96;
/// Longer words are data.
const LONGEST_WORD: usize = 48;

/// Words by which people call a lock, in lower case.
const LOCK_WORDS: [&str; 16] = [
    "lock",
    "locks",
    "locked",
    "locking",
    "lck",
    "mutex",
    "mutexes",
    "mtx",
    "lease",
    "leases",
    "semaphore",
    "semaphores",
    "sem",
    "leader",
    "leadership",
    "election",
];
/// Endings by which a longer word means a lock too (`cronlock`, `orderLock`, `redlock`) …
const LOCK_ENDINGS: [&str; 5] = ["lock", "locks", "mutex", "lease", "semaphore"];
/// … and those by which it does not.
const OTHER_ENDINGS: [&str; 9] = [
    "block", "blocks", "clock", "clocks", "unlock", "unlocks", "flock", "padlock", "release",
];
/// Beginnings by which it does, before an upper-case letter (`lockOrder`).
const LOCK_BEGINNINGS: [&str; 4] = ["lock", "mutex", "lease", "semaphore"];

/// One part of a key's name: separators, and what follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<'k> {
    /// ASCII punctuation and spaces; can be empty.
    pub separator: &'k [u8],
    /// What follows.
    pub word: Word<'k>,
}

/// What follows a separator. Never bytes that are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'k> {
    /// It means a lock, and stays.
    Lock(&'k [u8]),
    /// A word, which stays as long as few others stand in its place.
    Plain(&'k [u8]),
    /// A number that may be the same in all keys (`:1:lock:…`): stays as long as there are hardly others.
    Constant(&'k [u8]),
    /// Another one in each key. As the last step it stands for all that follows.
    Any,
}

/// What one word is by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Lock,
    Plain,
    Number,
    /// An id, a hash, or bytes that are no text.
    Id,
}

#[derive(Clone, Copy)]
struct Part<'k> {
    separator: &'k [u8],
    word: &'k [u8],
    class: Class,
}

/// The steps of a key, at most twelve.
pub(super) fn steps(key: &[u8]) -> Vec<Step<'_>> {
    let parts = parts(key);
    let lock = parts.iter().position(|part| part.class == Class::Lock);
    // Behind a word that means a lock begins the name of the thing that is locked.
    let behind_lock = lock.map(|place| place + 1).filter(|behind| *behind < parts.len());
    let mut steps = Vec::with_capacity(parts.len().min(MOST_STEPS));
    let mut literal = 0;
    for (place, part) in parts.iter().enumerate() {
        let is_end = Some(place) == behind_lock || place + 1 == MOST_STEPS;
        let may_be_constant = behind_lock.is_some() || is_version(place, part.word) && place + 1 < parts.len();
        let word = match part.class {
            _ if is_end => Word::Any,
            Class::Lock => Word::Lock(part.word),
            Class::Plain => Word::Plain(part.word),
            Class::Number if may_be_constant => Word::Constant(part.word),
            Class::Number | Class::Id => Word::Any,
        };
        literal += escaped_len(part.separator);
        literal += if word == Word::Any { 0 } else { escaped_len(part.word) };
        if literal > LONGEST_LITERAL {
            steps.push(Step {
                separator: &[],
                word: Word::Any,
            });
            break;
        }
        steps.push(Step {
            separator: part.separator,
            word,
        });
        if is_end {
            break;
        }
    }
    steps
}

/// Adds text to a pattern that matches exactly it.
pub(super) fn escape(text: &[u8], pattern: &mut Vec<u8>) {
    for byte in text {
        if is_wildcard(*byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
}

fn escaped_len(text: &[u8]) -> usize {
    text.len() + text.iter().filter(|byte| is_wildcard(**byte)).count()
}

fn is_wildcard(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

/// Frameworks put one digit for the version of their keys first, or behind a prefix (`:1:`, `app:1:`).
fn is_version(place: usize, word: &[u8]) -> bool {
    place <= 1 && matches!(word, [digit] if digit.is_ascii_digit())
}

fn parts(key: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = key;
    // One more than the steps, so that it is known whether the last step is the last part.
    while !rest.is_empty() && parts.len() <= MOST_STEPS {
        let (separator, behind) = split(rest, |byte| !is_separator(byte));
        let (word, behind) = match uuid(behind) {
            Some(found) => found,
            None => split(behind, is_separator),
        };
        rest = behind;
        let class = class(word);
        match numbered(word, class, rest.is_empty()) {
            Some((name, number)) => {
                let class = self::class(name);
                parts.push(Part {
                    separator,
                    word: name,
                    class,
                });
                parts.push(Part {
                    separator: &[],
                    word: number,
                    class: Class::Number,
                });
            }
            None => parts.push(Part { separator, word, class }),
        }
    }
    parts
}

fn split(text: &[u8], at: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let place = text.iter().position(|byte| at(*byte)).unwrap_or(text.len());
    text.split_at_checked(place).unwrap_or((text, &[]))
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_punctuation() || byte == b' '
}

/// A UUID at the beginning, and what follows: its dashes would make words of it.
fn uuid(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const LENGTH: usize = 36;
    let (id, behind) = text.split_at_checked(LENGTH)?;
    let fits = id.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (fits && behind.first().is_none_or(|byte| is_separator(*byte))).then_some((id, behind))
}

/// A name with a number behind it (`job42`, `lock7`), in two. A single digit can belong to the name (`oauth2`), except
/// at the end of the key.
fn numbered(word: &[u8], class: Class, last: bool) -> Option<(&[u8], &[u8])> {
    let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (name, number) = word.split_at_checked(word.len() - digits)?;
    let splits = class == Class::Plain
        && !name.is_empty()
        && !name.iter().any(u8::is_ascii_digit)
        && (digits > 1 || digits == 1 && last);
    splits.then_some((name, number))
}

fn class(word: &[u8]) -> Class {
    let is_text = std::str::from_utf8(word).is_ok_and(|text| !text.chars().any(char::is_control));
    if !is_text || word.len() > LONGEST_WORD {
        return Class::Id;
    }
    if means_lock(word) {
        return Class::Lock;
    }
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    match digits {
        0 => Class::Plain,
        _ if digits == word.len() => Class::Number,
        _ if word.len() >= 8 && word.iter().all(u8::is_ascii_hexdigit) => Class::Id,
        _ if is_mixed(word, digits) => Class::Id,
        _ => Class::Plain,
    }
}

/// Letters and digits in no order that a name would have (`x7Kp29`, `30T12`).
fn is_mixed(word: &[u8], digits: usize) -> bool {
    let begins_with_digit = word.first().is_some_and(u8::is_ascii_digit);
    let trailing = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    word.len() >= 5 && trailing < digits && (digits > 1 || begins_with_digit)
}

fn means_lock(word: &[u8]) -> bool {
    let ends = |ending: &str| {
        let tail = word.len().checked_sub(ending.len()).and_then(|from| word.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending.as_bytes()))
    };
    let begins = |beginning: &str| {
        let head = word.get(..beginning.len());
        let behind = word.get(beginning.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(beginning.as_bytes()))
            && behind.is_some_and(u8::is_ascii_uppercase)
    };
    LOCK_WORDS
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        || LOCK_ENDINGS.iter().any(|known| ends(known)) && !OTHER_ENDINGS.iter().any(|known| ends(known))
        || LOCK_BEGINNINGS.iter().any(|known| begins(known)) && word.iter().any(u8::is_ascii_lowercase)
}
