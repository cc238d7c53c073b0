//! What a session sees of lock-shaped traffic on keys that no rule matches, kept until the shell fetches it. Reads how a
//! command is spelled, never an answer: an attempt counts as done.

use crate::command::Idiom;
use crate::lock::idiom;
use crate::resp::Args;

/// Sightings that one wake-up of a session may bring; more are only counted.
pub const SIGHTINGS_LIMIT: usize = 64;
/// Longer keys are not followed, in bytes.
pub const LONGEST_KEY: usize = 512;
/// Keys of one command that are looked at. Nobody gives up a lock among a hundred others.
pub const KEYS_LIMIT: usize = 16;
/// Room for so many bytes of keys stays with an idle session.
const KEPT_ROOM: usize = 512;

/// What was done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// `SET … NX`, `SETNX`.
    Acquire {
        /// With a TTL.
        ttl: bool,
    },
    /// `DEL`, `UNLINK`, `GETDEL`.
    Release,
    /// The `EXPIRE` family.
    Extend,
    /// A script or function that names the key, or a command that compares.
    Script,
}

impl Sight {
    /// What a command on a key could be to a lock; `None` for all that says nothing. `SET` without options costs a look
    /// at their number.
    pub fn of(idiom: Idiom, args: Args<'_>) -> Option<Sight> {
        match idiom {
            _ if !Sight::possible(idiom, args.len()) => None,
            Idiom::Set => idiom::condition(args).map(|condition| match condition {
                idiom::SetCondition::Absent { ttl } => Sight::Acquire { ttl },
                idiom::SetCondition::Compared => Sight::Script,
            }),
            Idiom::SetNx => Some(Sight::Acquire { ttl: false }),
            Idiom::Del | Idiom::GetDel => Some(Sight::Release),
            Idiom::Expire | Idiom::PExpire | Idiom::ExpireAt | Idiom::PExpireAt => Some(Sight::Extend),
            _ => Some(Sight::Script),
        }
    }

    /// Whether there are arguments, so many with the name, with which [`of`](Self::of) sees something.
    pub fn possible(idiom: Idiom, argc: usize) -> bool {
        match idiom {
            Idiom::Set => argc > 3,
            Idiom::SetNx
            | Idiom::Del
            | Idiom::GetDel
            | Idiom::Expire
            | Idiom::PExpire
            | Idiom::ExpireAt
            | Idiom::PExpireAt
            | Idiom::DelEx
            | Idiom::DelIfEq => true,
            Idiom::SetEx
            | Idiom::GetSet
            | Idiom::MSet
            | Idiom::MSetNx
            | Idiom::MSetEx
            | Idiom::Persist
            | Idiom::GetEx
            | Idiom::Rename
            | Idiom::Move
            | Idiom::Migrate
            | Idiom::Copy
            | Idiom::Restore
            | Idiom::Store => false,
        }
    }
}

/// The sightings of one session since the shell fetched them last. All keys stand in one buffer, which is kept as long
/// as it is small: an acquire on a key that no rule matches allocates nothing in the long run.
#[derive(Debug, Default)]
pub struct Sightings {
    keys: Vec<u8>,
    list: Vec<(Sight, usize)>,
    missed: u64,
}

impl Sightings {
    /// Adds one, or counts it where there are enough or its key is too long.
    pub fn push(&mut self, sight: Sight, key: &[u8]) {
        if self.list.len() < SIGHTINGS_LIMIT && key.len() <= LONGEST_KEY {
            self.keys.extend_from_slice(key);
            self.list.push((sight, key.len()));
        } else {
            self.missed += 1;
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.missed == 0
    }

    /// What was seen, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Sight, &[u8])> {
        let mut rest = self.keys.as_slice();
        self.list.iter().map(move |(sight, length)| {
            let (key, behind) = rest.split_at_checked(*length).unwrap_or_default();
            rest = behind;
            (*sight, key)
        })
    }

    /// How many were left out.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Forgets all of them; an unusual amount of room is given back.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.list.clear();
        self.keys.shrink_to(KEPT_ROOM);
        self.missed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{self, Role};
    use crate::resp::Span;

    fn sight(words: &str) -> Option<Sight> {
        let mut spans = Vec::new();
        for word in words.split(' ') {
            let start = spans.last().map_or(0, |span: &Span| span.end + 1);
            spans.push(Span {
                start,
                end: start + word.len(),
            });
        }
        let args = Args::new(words.as_bytes(), &spans);
        match command::lookup(args.get(0)?).1?.role {
            Role::Lock(idiom) => Sight::of(idiom, args),
            _ => None,
        }
    }

    #[test]
    fn options_count_in_any_order_and_case() {
        let with = Some(Sight::Acquire { ttl: true });
        let without = Some(Sight::Acquire { ttl: false });
        for (words, expected) in [
            ("SET k v NX", without),
            ("set k v nx ex 30", with),
            ("SET k v EX 30 nX", with),
            ("SET k v PX 30000 GET NX", with),
            ("SET k v NX PXAT 99", with),
            ("SET k v NX KEEPTTL", without),
            ("SETNX k v", without),
            ("SET k v", None),
            ("SET k NX", None),
            ("SET k v EX 30", None),
            ("SET k v XX", None),
            ("SET k v NX XX", None),
            ("SET k v PX NX", None),
            ("SET k v EX nx NX", with),
            ("SET k v NX WHAT", None),
            ("SET k v NXX", None),
            ("SET k v IFEQ old", Some(Sight::Script)),
            ("SET k v EX 30 IFDEQ 0123", Some(Sight::Script)),
            ("SET k v IFNE old", None),
            ("DEL k", Some(Sight::Release)),
            ("UNLINK k", Some(Sight::Release)),
            ("GETDEL k", Some(Sight::Release)),
            ("DELIFEQ k v", Some(Sight::Script)),
            ("DELEX k IFEQ v", Some(Sight::Script)),
            ("PEXPIRE k 30000", Some(Sight::Extend)),
            ("EXPIREAT k 99", Some(Sight::Extend)),
            ("GETEX k EX 30", None),
            ("SETEX k 30 v", None),
        ] {
            assert_eq!(sight(words), expected, "{words}");
        }
    }

    #[test]
    fn sightings_are_bounded_and_what_is_left_out_is_counted() {
        let mut sightings = Sightings::default();
        assert!(sightings.is_empty());
        sightings.push(Sight::Release, &[b'k'; LONGEST_KEY + 1]);
        for n in 0..100 {
            sightings.push(Sight::Release, &[b'k'; LONGEST_KEY][..n]);
        }
        assert_eq!(sightings.missed(), 37);
        let seen: Vec<usize> = sightings.iter().map(|(_, key)| key.len()).collect();
        assert_eq!(seen, (0..SIGHTINGS_LIMIT).collect::<Vec<_>>());
        sightings.clear();
        assert!(sightings.is_empty() && sightings.iter().next().is_none());
        assert!(sightings.keys.capacity() <= KEPT_ROOM);
    }
}
