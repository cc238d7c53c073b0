//! What clients do beside taking locks: traffic on other keys, questions, and what strays do to the locks of others.

use crate::client::letters;
use crate::idioms::meaning_of;
use crate::plan::{Conduct, PLAIN_KEYS};
use crate::request::Meaning;
use crate::server::keyspace::Bytes;
use crate::task::{COMPARE_AND_DELETE, words};
use crate::world::World;

impl World {
    /// Some requests on keys that no rule matches.
    pub fn plain_traffic(&mut self, client: usize) {
        let count = if self.rng.one_in(4) { self.rng.between(2, 6) } else { 1 };
        let mut requests = Vec::new();
        let transaction = count > 2 && self.rng.one_in(3);
        if transaction {
            requests.push(self.prepare(client, None, Meaning::Plain, words(&[b"MULTI"])));
        }
        for _ in 0..count {
            let args = self.plain_command();
            let local = args.iter().skip(1).any(|arg| arg.starts_with(b"lockward:"));
            let meaning = if is_flush(&args) {
                Meaning::Flush
            } else {
                own_or_plain(&args)
            };
            let number = self.prepare(client, None, meaning, args);
            self.requests[number].local = local && !transaction;
            requests.push(number);
        }
        if transaction {
            let end: &[u8] = if self.rng.one_in(6) { b"DISCARD" } else { b"EXEC" };
            requests.push(self.prepare(client, None, Meaning::Plain, words(&[end])));
        } else if count == 1 && self.rng.one_in(8) {
            return self.silent_traffic(client);
        }
        self.dispatch(client, &requests);
        if self.rng.one_in(60) {
            self.half_close(client);
        }
    }

    fn silent_traffic(&mut self, client: usize) {
        let skip = self.prepare(client, None, Meaning::Plain, words(&[b"CLIENT", b"REPLY", b"SKIP"]));
        let set = self.prepare(client, None, Meaning::Plain, words(&[b"SET", b"plain:0", b"silent"]));
        self.requests[skip].silent = true;
        self.requests[set].silent = true;
        let ping = self.prepare(client, None, Meaning::Plain, words(&[b"PING"]));
        self.dispatch(client, &[skip, set, ping]);
    }

    fn plain_command(&mut self) -> Vec<Bytes> {
        let key = format!("plain:{}", self.rng.index(PLAIN_KEYS));
        let key = key.as_bytes();
        let lock = self.rng.pick(&self.plan.locks).key.clone();
        let long = if self.rng.one_in(30) { 100_000 } else { 20 };
        let value = letters(&mut self.rng, long);
        match self.rng.below(25) {
            0 | 1 => words(&[b"SET", key, &value]),
            2 | 3 => words(&[b"GET", key]),
            4 => words(&[b"INCR", b"counter"]),
            5 => words(&[b"LPUSH", b"queue", &value]),
            6 => words(&[b"BLPOP", b"queue", b"0.2"]),
            7 => words(&[b"HSET", b"hash", &value, b"1"]),
            8 => words(&[b"HGETALL", b"hash"]),
            9 => words(&[b"MGET", key, b"nothing", &lock]),
            10 => words(&[b"KEYS", b"*"]),
            11 => words(&[b"SCAN", b"0"]),
            12 => words(&[b"PING"]),
            13 => words(&[b"ECHO", b"a\r\n-b"]),
            14 => words(&[b"NOSUCH", key]),
            15 => words(&[b"GET", &lock]),
            16 => words(&[b"PTTL", &lock]),
            17 => words(&[b"GET", b"lockward:{lock:0:0}"]),
            18 => words(&[b"LOCKWARD", b"WHOAMI"]),
            19 => words(&[b"LOCKWARD", b"FENCE", &lock]),
            20 => words(&[b"EVAL", b"return {1, 'two', false, {ok = 'fine'}}", b"0"]),
            21 => words(&[b"DEL", key, b"nothing"]),
            22 => words(&[b"GET"]),
            23 => words(&[b"EXISTS", &lock, key]),
            _ => words(&[b"LOCKWARD", b"HELP"]),
        }
    }

    /// Somebody who does not hold a lock meddles with it.
    pub fn stray(&mut self, client: usize) {
        let lock = self.rng.pick(&self.plan.locks).clone();
        let key = &lock.key;
        let rough = lock.conduct == Conduct::Rough;
        let args = match self.rng.below(22) {
            0 => words(&[b"DEL", key]),
            1 => words(&[b"UNLINK", b"plain:2", key]),
            2 => words(&[b"GETDEL", key]),
            3 => words(&[b"EXPIRE", key, b"0"]),
            4 => words(&[b"EXPIRE", key, b"1"]),
            5 => words(&[b"PEXPIRE", key, b"20000"]),
            6 => words(&[b"PEXPIRE", key, b"30", b"LT"]),
            7 => words(&[b"PERSIST", key]),
            8 => words(&[b"SET", key, b"stray", b"XX", b"PX", b"40"]),
            9 => words(&[b"RENAME", key, b"trash"]),
            10 | 20 | 21 => words(&[b"EVAL", b"return redis.call('exists', KEYS[1])", b"1", key]),
            11 => words(&[b"EVAL", COMPARE_AND_DELETE.as_bytes(), b"1", key, b"stray"]),
            12 => words(&[b"GETEX", key, b"PX", b"5000"]),
            13 => words(&[b"LOCKWARD", b"FENCE", key]),
            14 => words(&[b"DELIFEQ", key, b"stray"]),
            15 if rough => words(&[b"GETSET", key, b"stray"]),
            16 if rough => words(&[b"PSETEX", key, b"300", b"stray"]),
            17 if rough => words(&[b"SET", key, b"stray", b"PX", b"200"]),
            18 if rough => words(&[b"MSET", b"plain:3", b"x", key, b"stray"]),
            15 => words(&[b"GETSET", key, b"stray"]),
            _ => words(&[b"STRLEN", key]),
        };
        let takes = matches!(args[0].as_slice(), b"GETSET" | b"MSET");
        let meaning = if args[0] == b"LOCKWARD" {
            Meaning::Own
        } else {
            meaning_of(&args)
        };
        let mut requests = vec![self.prepare(client, None, meaning, args)];
        if takes {
            // Else it would stay until an operator comes.
            let args = words(&[b"PEXPIRE", key, b"300"]);
            requests.push(self.prepare(client, None, Meaning::Extend, args));
        }
        self.dispatch(client, &requests);
    }
}

fn is_flush(args: &[Bytes]) -> bool {
    args[0].starts_with(b"FLUSH")
}

fn own_or_plain(args: &[Bytes]) -> Meaning {
    if args[0] == b"LOCKWARD" {
        Meaning::Own
    } else {
        Meaning::Plain
    }
}
