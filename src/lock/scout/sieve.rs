//! Which keys were acquired of late, as fingerprints in a fixed table that all sessions share without a lock. A session
//! asks it before it bothers anybody with a DEL, an EXPIRE or a script. It may say yes to a stranger (once in a billion)
//! and forgets what is crowded out, so it is good for sparing work and for nothing else: the scout knows for certain.

use std::sync::atomic::{AtomicU32, Ordering};

/// Fingerprints that share a place; the youngest stands in front. Half a cache line.
const WAYS: usize = 8;
/// Places; a power of two.
const PLACES: usize = 2048;

/// A shared set of fingerprints: 64 KiB, however many keys there are.
pub struct Sieve(Box<[[AtomicU32; WAYS]]>);

/// A key as the sieve sees it.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

impl Mark {
    /// The mark of a key: eight bytes at a time folded by a multiplication, as the fast hashes do it. A third of the
    /// standard hasher's work (measured), which every DEL pays. Without a seed: who finds keys that collide only gets
    /// them looked at in vain.
    pub fn of(key: &[u8]) -> Mark {
        let (words, rest) = key.as_chunks::<8>();
        let mut mixed = ODD ^ key.len() as u64;
        for word in words {
            mixed = fold(mixed ^ u64::from_le_bytes(*word));
        }
        let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
        Mark(fold(fold(mixed ^ last)))
    }

    /// Never 0, which is an empty slot.
    fn fingerprint(self) -> u32 {
        (self.0 >> 32) as u32 | 1
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product, in one.
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(ODD);
    (product >> 64) as u64 ^ product as u64
}

impl Default for Sieve {
    fn default() -> Self {
        Sieve((0..PLACES).map(|_| Default::default()).collect())
    }
}

impl Sieve {
    /// Whether the key was acquired of late.
    pub fn has(&self, mark: Mark) -> bool {
        let wanted = mark.fingerprint();
        self.place(mark)
            .iter()
            .any(|slot| slot.load(Ordering::Relaxed) == wanted)
    }

    /// Notes an acquire. Of two at the same moment one may be lost.
    pub fn note(&self, mark: Mark) {
        let mut carried = mark.fingerprint();
        for slot in self.place(mark) {
            let found = slot.load(Ordering::Relaxed);
            // One that is tried again and again stands in front, and its cache line stays with all who read it.
            if found == carried {
                return;
            }
            slot.store(carried, Ordering::Relaxed);
            // What was there already moves to the front, those before it one back.
            if found == mark.fingerprint() || found == 0 {
                return;
            }
            carried = found;
        }
    }

    fn place(&self, mark: Mark) -> &[AtomicU32] {
        let index = mark.0 as usize & (PLACES - 1);
        self.0.get(index).map_or(&[], |place| place.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_until_it_is_crowded_out() {
        let sieve = Sieve::default();
        let key = |n: u32| format!("lock:{n}").into_bytes();
        assert!(!sieve.has(Mark::of(b"lock:0")));
        for n in 0..4_000 {
            sieve.note(Mark::of(&key(n)));
        }
        let known = (0..4_000).filter(|n| sieve.has(Mark::of(&key(*n)))).count();
        assert!(known > 3_990, "{known} of 4000: there is room for four times as many");
        let strangers = (4_000..50_000).filter(|n| sieve.has(Mark::of(&key(*n)))).count();
        assert_eq!(strangers, 0);
        for n in 4_000..100_000 {
            sieve.note(Mark::of(&key(n)));
        }
        assert_eq!((0..4_000).filter(|n| sieve.has(Mark::of(&key(*n)))).count(), 0);
        assert!((99_000..100_000).all(|n| sieve.has(Mark::of(&key(n)))));
    }

    #[test]
    fn a_key_that_is_acquired_again_and_again_is_not_crowded_out() {
        let sieve = Sieve::default();
        for n in 0..100_000_u32 {
            sieve.note(Mark::of(b"cron-lock"));
            sieve.note(Mark::of(format!("seen:{n}").as_bytes()));
        }
        assert!(sieve.has(Mark::of(b"cron-lock")));
    }
}
