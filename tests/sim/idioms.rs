//! How tasks spell what they do: the many ways in which clients take locks and give them up.

use crate::plan::{Conduct, Lock};
use crate::request::Meaning;
use crate::server::keyspace::Bytes;
use crate::task::{COMPARE_AND_DELETE, words};
use crate::world::World;

/// How an acquire is spelled.
pub struct Spelled {
    /// In one packet.
    pub commands: Vec<Vec<Bytes>>,
    /// Which of them tells whether it was granted.
    pub told_by: usize,
    /// Its TTL is still to come.
    pub bare: bool,
}

impl Spelled {
    pub fn told_by(told_by: usize, commands: Vec<Vec<Bytes>>) -> Spelled {
        Spelled {
            commands,
            told_by,
            bare: false,
        }
    }
}

impl World {
    /// The commands of an acquire. Clean ones take a free lock only, or none.
    pub fn spelled(&mut self, key: &[u8], conduct: Conduct, value: &[u8], ttl: &[u8]) -> Spelled {
        let most = if conduct == Conduct::Clean { 11 } else { 17 };
        let set_nx = words(&[b"SET", key, value, b"NX", b"PX", ttl]);
        let (setnx, expire) = (words(&[b"SETNX", key, value]), words(&[b"PEXPIRE", key, ttl]));
        let (multi, exec) = (words(&[b"MULTI"]), words(&[b"EXEC"]));
        let aside = [b"aside:", value].concat();
        let set_aside = words(&[b"SET", &aside, value, b"PX", ttl]);
        match self.rng.below(most) {
            0 | 1 => Spelled::told_by(0, vec![set_nx]),
            2 => Spelled::told_by(0, vec![words(&[b"SET", key, value, b"px", ttl, b"nx"])]),
            3 => Spelled {
                bare: true,
                ..Spelled::told_by(0, vec![setnx])
            },
            4 => Spelled::told_by(0, vec![setnx, expire]),
            5 => Spelled::told_by(1, vec![multi, set_nx, exec]),
            6 => Spelled::told_by(1, vec![multi, setnx, expire, exec]),
            7 => Spelled::told_by(0, vec![words(&[b"SET", key, value, b"NX", b"GET", b"PX", ttl])]),
            8 => Spelled::told_by(2, vec![words(&[b"WATCH", key]), multi, set_nx, exec]),
            9 => Spelled::told_by(1, vec![set_aside, words(&[b"RENAMENX", &aside, key])]),
            10 => Spelled::told_by(1, vec![set_aside, words(&[b"COPY", &aside, key])]),
            11 => Spelled::told_by(0, vec![words(&[b"SET", key, value, b"PX", ttl])]),
            12 => Spelled::told_by(0, vec![words(&[b"PSETEX", key, ttl, value])]),
            13 => Spelled::told_by(0, vec![words(&[b"GETSET", key, value]), expire]),
            14 => Spelled::told_by(0, vec![words(&[b"MSET", key, value]), expire]),
            15 => Spelled::told_by(0, vec![words(&[b"SET", key, value, b"GET", b"PX", ttl])]),
            // The whole cycle in one packet, whatever comes of it.
            _ => Spelled::told_by(0, vec![set_nx, words(&[b"DEL", key])]),
        }
    }

    /// The commands that give a lock up.
    pub fn given_up(&mut self, lock: &Lock, value: &[u8]) -> Vec<Vec<Bytes>> {
        let key = &lock.key;
        let emulates = self.plan.rules[lock.rule].emulate;
        if lock.conduct == Conduct::Rough && self.rng.one_in(15) {
            // Onto another lock.
            let other = self.plan.locks[self.rng.index(self.plan.locks.len())].key.clone();
            let other = if other == *key { b"trash".to_vec() } else { other };
            return vec![words(&[b"RENAME", key, &other])];
        }
        let one = |args: &[&[u8]]| vec![words(args)];
        match self.rng.below(18) {
            0..=4 => one(&[b"DEL", key]),
            5 | 6 => one(&[b"UNLINK", key]),
            7 => one(&[b"GETDEL", key]),
            8 => one(&[b"EXPIRE", key, b"0"]),
            9 => one(&[b"PEXPIRE", key, b"-5"]),
            10 => one(&[b"PEXPIREAT", key, b"1000"]),
            11 => one(&[b"RENAME", key, b"trash"]),
            12 => one(&[b"EVAL", COMPARE_AND_DELETE.as_bytes(), b"1", key, value]),
            13 => vec![words(&[b"MULTI"]), words(&[b"DEL", key]), words(&[b"EXEC"])],
            14 => one(&[b"DEL", key, b"plain:1", key]),
            15 => vec![words(&[b"CLIENT", b"REPLY", b"SKIP"]), words(&[b"DEL", key])],
            16 if emulates => one(&[b"DELIFEQ", key, value]),
            16 => one(&[b"GETEX", key, b"PXAT", b"1000"]),
            _ => vec![words(&[b"GET", key]), words(&[b"DEL", key])],
        }
    }
}

/// What a task means by a command.
pub fn meaning_of(args: &[Bytes]) -> Meaning {
    let word = |index: usize| args.get(index).map(|arg| arg.to_ascii_uppercase()).unwrap_or_default();
    let past = matches!(word(2).as_slice(), b"0" | b"-5" | b"1000") || word(3) == b"1000";
    match word(0).as_slice() {
        b"SETNX" | b"MSETNX" | b"RENAMENX" | b"COPY" => Meaning::Acquire,
        b"SET" if args.iter().skip(3).any(|arg| arg.eq_ignore_ascii_case(b"NX")) => Meaning::Acquire,
        b"SET" if args.iter().skip(3).any(|arg| arg.eq_ignore_ascii_case(b"GET")) => Meaning::Takeover,
        b"SET" | b"SETEX" | b"PSETEX" | b"MSET" => Meaning::Overwrite,
        b"GETSET" => Meaning::Takeover,
        b"DEL" | b"UNLINK" | b"GETDEL" | b"RENAME" | b"MOVE" => Meaning::Release,
        b"EXPIRE" | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT" | b"GETEX" if past => Meaning::Release,
        b"EXPIRE" | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT" | b"GETEX" | b"PERSIST" => Meaning::Extend,
        b"EVAL" | b"EVALSHA" | b"DELIFEQ" => Meaning::SelfChecked,
        _ => Meaning::Plain,
    }
}
