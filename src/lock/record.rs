//! The names of lease records and fence keys, and from a record's name back to its lock: always in the lock key's own
//! cluster slot, never shared by two locks.
//! Knows nothing of what a record holds.

use std::sync::LazyLock;

use bytes::Bytes;

/// The number of hash slots of a cluster.
const SLOTS: usize = 16384;
/// What the fixed short tags are made of.
const TAG_LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// No tag needs more letters.
const TAG_LENGTH: usize = 4;

/// For each slot the first text in a fixed order that hashes to it. Part of the record's name, so the order must never
/// change.
static TAGS: LazyLock<Vec<[u8; TAG_LENGTH]>> = LazyLock::new(short_tags);

/// The name of the lease record of the lock `key`.
///
/// Three forms: around a key without any brace, before a key with a hash tag of its own (with one more colon where
/// the key's first byte could be mistaken for another form), and behind a fixed short tag for every other key.
pub fn record_name(prefix: &str, key: &[u8]) -> Bytes {
    let mut name = Vec::with_capacity(prefix.len() + key.len() + TAG_LENGTH + 3);
    name.extend_from_slice(prefix.as_bytes());
    if !key.is_empty() && !has_brace(key) {
        name.push(b'{');
        name.extend_from_slice(key);
        name.push(b'}');
    } else if hash_tag(key).is_some() {
        if matches!(key.first(), Some(b'{' | b':')) {
            name.push(b':');
        }
        name.extend_from_slice(key);
    } else {
        push_tag(slot(key), &mut name);
        name.push(b':');
        name.extend_from_slice(key);
    }
    name.into()
}

/// The lock key whose record has this name; `None` if no lock's record has.
pub fn lock_key(prefix: &str, name: &Bytes) -> Option<Bytes> {
    let rest = name.slice_ref(name.strip_prefix(prefix.as_bytes())?);
    let around = rest.strip_prefix(b"{").and_then(|inner| inner.strip_suffix(b"}"));
    let behind_colon = rest.strip_prefix(b":");
    let behind_tag = memchr::memmem::find(&rest, b"}:").and_then(|end| rest.get(end + 2..));
    // One of the three forms at most makes this very name again: no two locks share a record.
    [around, behind_colon, behind_tag, Some(&rest[..])]
        .into_iter()
        .flatten()
        .find(|key| record_name(prefix, key) == *name)
        .map(|key| rest.slice_ref(key))
}

/// The name of the key that holds the last fencing token of the slot of `key`.
pub fn fence_name(prefix: &str, key: &[u8]) -> Bytes {
    let mut name = Vec::with_capacity(prefix.len() + TAG_LENGTH + 3);
    name.extend_from_slice(prefix.as_bytes());
    push_tag(slot(key), &mut name);
    name.push(b'=');
    name.into()
}

/// The cluster slot of a key: CRC16 (XMODEM) of its hash tag or of all of it.
///
/// Redis documentation, "Redis cluster specification", key distribution model and hash tags.
fn slot(key: &[u8]) -> usize {
    usize::from(crc16(hash_tag(key).unwrap_or(key))) % SLOTS
}

fn has_brace(key: &[u8]) -> bool {
    key.iter().any(|byte| matches!(byte, b'{' | b'}'))
}

/// What stands between the first `{` and the first `}` behind it, if that is not empty.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let behind = key.get(memchr::memchr(b'{', key)? + 1..)?;
    let tag = behind.get(..memchr::memchr(b'}', behind)?)?;
    (!tag.is_empty()).then_some(tag)
}

fn push_tag(slot: usize, name: &mut Vec<u8>) {
    name.push(b'{');
    name.extend_from_slice(TAGS.get(slot).map(trimmed).unwrap_or_default());
    name.push(b'}');
}

/// A tag without the zero bytes behind it.
fn trimmed(tag: &[u8; TAG_LENGTH]) -> &[u8] {
    let length = tag.iter().position(|&byte| byte == 0).unwrap_or(TAG_LENGTH);
    tag.get(..length).unwrap_or_default()
}

/// Counts through all texts of one letter, then of two and so on, until each slot has one.
fn short_tags() -> Vec<[u8; TAG_LENGTH]> {
    let mut tags = vec![[0; TAG_LENGTH]; SLOTS];
    let mut missing = SLOTS;
    for length in 1..=TAG_LENGTH {
        for number in 0..TAG_LETTERS.len().pow(length as u32) {
            if missing == 0 {
                return tags;
            }
            let mut tag = [0; TAG_LENGTH];
            let mut rest = number;
            for letter in tag.iter_mut().take(length).rev() {
                *letter = TAG_LETTERS.get(rest % TAG_LETTERS.len()).copied().unwrap_or(b'0');
                rest /= TAG_LETTERS.len();
            }
            let place = usize::from(crc16(trimmed(&tag))) % SLOTS;
            if let Some(free) = tags.get_mut(place).filter(|known| known.first() == Some(&0)) {
                *free = tag;
                missing -= 1;
            }
        }
    }
    tags
}

/// CRC16 in the variant XMODEM (polynomial 0x1021, start 0).
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(key: &str) -> String {
        String::from_utf8(record_name("lockward:", key.as_bytes()).to_vec()).expect("the tests' keys are text")
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(name("lock:a"), "lockward:{lock:a}");
        assert_eq!(name("{lock:a}"), "lockward::{lock:a}");
        assert_eq!(name(":{lock:a}"), "lockward:::{lock:a}");
        assert_eq!(name("lock:{a}:x"), "lockward:lock:{a}:x");
        for key in ["", "lock:{a", "a}b", "a{}b", "{}"] {
            let name = name(key);
            assert!(
                name.starts_with("lockward:{") && name.ends_with(&format!("}}:{key}")),
                "{name}"
            );
        }
    }

    #[test]
    fn slots_as_the_server_computes_them() {
        // CLUSTER KEYSLOT on Redis 7.0.15.
        for (key, expected) in [
            ("foo", 12182),
            ("{user1000}.following", 3443),
            ("", 0),
            ("foo{}{bar}", 8363),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn every_slot_has_a_short_tag() {
        for (place, tag) in TAGS.iter().enumerate() {
            assert_eq!(slot(trimmed(tag)), place);
        }
    }

    proptest! {
        #[test]
        fn a_record_is_in_its_locks_slot_and_no_other_locks(key in "[a:{}=]{0,8}", other in "[a:{}=]{0,8}") {
            let record = record_name("lockward:", key.as_bytes());
            prop_assert_eq!(slot(&record), slot(key.as_bytes()));
            prop_assert_eq!(record == record_name("lockward:", other.as_bytes()), key == other);
            prop_assert_ne!(record, fence_name("lockward:", other.as_bytes()));
        }

        #[test]
        fn a_records_name_leads_back_to_its_lock(key in prop::collection::vec(any::<u8>(), 0..12), text in "[a:{}=]{0,8}") {
            for key in [key, text.into_bytes()] {
                let key = Bytes::from(key);
                prop_assert_eq!(lock_key("lw:", &record_name("lw:", &key)), Some(key.clone()));
                prop_assert_eq!(lock_key("lw:", &fence_name("lw:", &key)), None);
                prop_assert_eq!(lock_key("other:", &record_name("lw:", &key)), None);
            }
        }

        #[test]
        fn other_names_lead_to_no_lock(rest in "[a:{}=]{0,8}") {
            let name = Bytes::from(format!("lw:{rest}"));
            if let Some(key) = lock_key("lw:", &name) {
                prop_assert_eq!(record_name("lw:", &key), name);
            }
        }
    }
}
