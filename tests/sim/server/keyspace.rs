//! The fake server's data, its clock, and a journal of every change with the name of who asked for it. The journal is
//! how the simulator knows the truth: nothing in it stems from lockward.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lockward::lock::record::record_name;

use crate::resp::Reply;

pub type Bytes = Vec<u8>;

/// How many databases there are.
pub const DATABASES: usize = 4;
/// What the names of lease records begin with.
pub const PREFIX: &str = "lockward:";

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(Bytes),
    Hash(Vec<(Bytes, Bytes)>),
    List(VecDeque<Bytes>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub value: Value,
    /// Milliseconds since 1970; alive up to and including this one.
    pub expire: Option<i64>,
    /// A new number each time the key comes into being.
    pub incarnation: u64,
    /// A new number at each change, for WATCH.
    pub version: u64,
}

/// Who asked for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A client's request, by number.
    Request(usize),
    /// lockward, behind a self-checked request.
    Reconcile(usize),
    /// lockward, on the account of a client's connection, without meaning for locks.
    Extra,
    /// lockward, to see whether the lock that a client's acquire asks for is still held.
    Look(usize),
    /// The keeper of this proxy.
    Keeper(usize),
    /// Somebody past lockward.
    Direct,
}

/// A command's origin, and the keys whose state before it is to be noted.
#[derive(Clone, Debug)]
pub struct Tag {
    pub by: By,
    pub keys: Vec<Bytes>,
}

/// A key as it was before a command.
#[derive(Clone, Debug)]
pub struct Seen {
    pub key: Bytes,
    pub entry: Option<Entry>,
    /// The lease record beside it.
    pub record: Vec<(Bytes, Bytes)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Created,
    Written,
    Removed,
    Expired,
    ExpirySet,
    /// Changed in part (hashes, lists).
    Touched,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub db: usize,
    pub key: Bytes,
    pub what: What,
    pub incarnation: u64,
    /// Expiry before and after.
    pub was: Option<i64>,
    pub is: Option<i64>,
    /// The number it holds now, if it is one.
    pub number: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum Note {
    Begin {
        tag: Tag,
        db: usize,
        args: Vec<Bytes>,
        seen: Vec<Seen>,
    },
    Change(Change),
    End {
        reply: Option<Reply>,
    },
}

pub struct Core {
    pub databases: Vec<BTreeMap<Bytes, Entry>>,
    /// Microseconds since 1970.
    pub now_us: u64,
    pub memory_full: bool,
    /// The script under way has written something: then it may go on writing, memory or not.
    pub script_wrote: bool,
    pub in_script: bool,
    pub journal: Vec<Note>,
    /// Every key with an expiry, soonest first.
    expiries: BTreeSet<(i64, usize, Bytes)>,
    incarnations: u64,
    versions: u64,
}

impl Core {
    pub fn new() -> Core {
        Core {
            databases: vec![BTreeMap::new(); DATABASES],
            now_us: 0,
            memory_full: false,
            script_wrote: false,
            in_script: false,
            journal: Vec::new(),
            expiries: BTreeSet::new(),
            incarnations: 0,
            versions: 0,
        }
    }

    pub fn now_ms(&self) -> i64 {
        (self.now_us / 1000) as i64
    }

    pub fn get(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        self.databases[db].get(key)
    }

    fn note(&mut self, db: usize, key: &[u8], what: What, incarnation: u64, was: Option<i64>, is: Option<i64>) {
        let number = match self.get(db, key).map(|entry| &entry.value) {
            Some(Value::Text(text)) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        self.journal.push(Note::Change(Change {
            db,
            key: key.to_vec(),
            what,
            incarnation,
            was,
            is,
            number,
        }));
    }

    fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// Replaces the whole value. `expire`: the new one; the caller carries the old one over where the command does.
    pub fn put(&mut self, db: usize, key: &[u8], value: Value, expire: Option<i64>) {
        let version = self.next_version();
        let old = self.databases[db]
            .get(key)
            .map(|entry| (entry.incarnation, entry.expire));
        let incarnation = old.map_or_else(
            || {
                self.incarnations += 1;
                self.incarnations
            },
            |(incarnation, _)| incarnation,
        );
        let was = old.and_then(|(_, expire)| expire);
        self.schedule(db, key, was, expire);
        self.databases[db].insert(
            key.to_vec(),
            Entry {
                value,
                expire,
                incarnation,
                version,
            },
        );
        let what = if old.is_some() { What::Written } else { What::Created };
        self.note(db, key, what, incarnation, was, expire);
    }

    /// Changes a value in place; an empty hash or list goes.
    pub fn change<T>(&mut self, db: usize, key: &[u8], empty: Value, change: impl FnOnce(&mut Value) -> T) -> T {
        let version = self.next_version();
        if self.get(db, key).is_none() {
            self.put(db, key, empty, None);
        }
        let entry = self.databases[db].get_mut(key).expect("just put");
        entry.version = version;
        let result = change(&mut entry.value);
        let (incarnation, expire) = (entry.incarnation, entry.expire);
        let gone = match &entry.value {
            Value::Text(_) => false,
            Value::Hash(fields) => fields.is_empty(),
            Value::List(items) => items.is_empty(),
        };
        self.note(db, key, What::Touched, incarnation, expire, expire);
        if gone {
            self.remove(db, key, What::Removed);
        }
        result
    }

    pub fn remove(&mut self, db: usize, key: &[u8], what: What) -> bool {
        let Some(entry) = self.databases[db].remove(key) else {
            return false;
        };
        self.schedule(db, key, entry.expire, None);
        self.note(db, key, what, entry.incarnation, entry.expire, None);
        true
    }

    pub fn set_expiry(&mut self, db: usize, key: &[u8], expire: Option<i64>) {
        let version = self.next_version();
        let Some(entry) = self.databases[db].get_mut(key) else {
            return;
        };
        let was = std::mem::replace(&mut entry.expire, expire);
        entry.version = version;
        let incarnation = entry.incarnation;
        self.schedule(db, key, was, expire);
        self.note(db, key, What::ExpirySet, incarnation, was, expire);
    }

    fn schedule(&mut self, db: usize, key: &[u8], was: Option<i64>, is: Option<i64>) {
        if was == is {
            return;
        }
        if let Some(was) = was {
            self.expiries.remove(&(was, db, key.to_vec()));
        }
        if let Some(is) = is {
            self.expiries.insert((is, db, key.to_vec()));
        }
    }

    /// Removes what has expired. Called before each command, never within one: time stands still in a script.
    pub fn purge(&mut self) {
        let now = self.now_ms();
        while let Some((at, db, key)) = self.expiries.first().cloned() {
            if at >= now {
                return;
            }
            self.remove(db, &key, What::Expired);
        }
    }

    pub fn flush(&mut self, db: usize) {
        let keys: Vec<Bytes> = self.databases[db].keys().cloned().collect();
        for key in keys {
            self.remove(db, &key, What::Removed);
        }
    }

    pub fn begin(&mut self, tag: &Tag, db: usize, args: &[Bytes]) {
        let seen = tag.keys.iter().map(|key| self.see(db, key)).collect();
        self.journal.push(Note::Begin {
            tag: tag.clone(),
            db,
            args: args.to_vec(),
            seen,
        });
    }

    fn see(&self, db: usize, key: &[u8]) -> Seen {
        let record = match self.get(db, &record_name(PREFIX, key)).map(|entry| &entry.value) {
            Some(Value::Hash(fields)) => fields.clone(),
            _ => Vec::new(),
        };
        Seen {
            key: key.to_vec(),
            entry: self.get(db, key).cloned(),
            record,
        }
    }

    pub fn end(&mut self, reply: Option<&Reply>) {
        self.journal.push(Note::End { reply: reply.cloned() });
    }
}
