//! What the server's `stringmatchlen` does with a pattern and a key, told once more: with backtracking, so that it takes
//! exponential time, which a budget ends. Written to be compared with, from the behaviour of Redis 7.0 on x86, where
//! a `char` is signed.

/// Whether the pattern matches; `None` when `budget` steps did not tell.
pub fn matches(pattern: &[u8], key: &[u8], budget: &mut u32) -> Option<bool> {
    let (mut pattern, mut key) = (pattern, key);
    while !pattern.is_empty() && !key.is_empty() {
        *budget = budget.checked_sub(1)?;
        match pattern[0] {
            b'*' => return star(pattern, key, budget),
            b'?' => pattern = &pattern[1..],
            b'[' => {
                let (taken, rest) = class(&pattern[1..], key[0]);
                if !taken {
                    return Some(false);
                }
                pattern = rest;
            }
            _ => {
                if pattern[0] == b'\\' && pattern.len() >= 2 {
                    pattern = &pattern[1..];
                }
                if pattern[0] != key[0] {
                    return Some(false);
                }
                pattern = &pattern[1..];
            }
        }
        key = &key[1..];
        // Only behind a byte that was taken may stars stand for nothing.
        if key.is_empty() {
            while let Some((b'*', rest)) = pattern.split_first() {
                pattern = rest;
            }
        }
    }
    Some(pattern.is_empty() && key.is_empty())
}

/// The rest is tried at every place that is not the end of the key.
fn star(pattern: &[u8], key: &[u8], budget: &mut u32) -> Option<bool> {
    let mut rest = pattern;
    while let Some((b'*', after)) = rest.split_first() {
        rest = after;
    }
    if rest.is_empty() {
        return Some(true);
    }
    for from in 0..key.len() {
        if matches(rest, &key[from..], budget)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether the class behind a `[` takes the byte, and what follows the class: nothing if it does not close.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut taken = false;
    loop {
        let left = pattern.len() - at;
        if left >= 2 && pattern[at] == b'\\' {
            taken |= pattern[at + 1] == byte;
            at += 2;
        } else if left == 0 {
            return (taken != negated, &[]);
        } else if pattern[at] == b']' {
            return (taken != negated, &pattern[at + 1..]);
        } else if left >= 3 && pattern[at + 1] == b'-' {
            let (one, other) = (pattern[at] as i8, pattern[at + 2] as i8);
            taken |= (one.min(other)..=one.max(other)).contains(&(byte as i8));
            at += 3;
        } else {
            taken |= pattern[at] == byte;
            at += 1;
        }
    }
}
