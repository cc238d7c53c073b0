//! The fake server: connections, transactions, scripts and blocked clients around the keyspace. Bytes in, bytes out; it
//! knows no lockward, but each command carries a tag with the name of who asked, for the journal.

mod blocking;
mod collections;
pub mod commands;
pub mod keyspace;
pub mod lua;

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;

use sha1::{Digest, Sha1};

use self::commands::is;
use self::keyspace::{By, Bytes, Core, DATABASES, Note, Tag};
use self::lua::{Engine, Patch};
use crate::resp::{Reply, parse_request, take};

/// Replies that a client has asked not to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    On,
    Off,
    /// Not that to the CLIENT REPLY SKIP under way, and not the next.
    SkipAfter,
    Skip,
}

struct Blocked {
    keys: Vec<Bytes>,
    /// In microseconds since 1970.
    until: u64,
    tag: Tag,
}

struct Connection {
    database: usize,
    resp: u8,
    queue: Option<Vec<(Vec<Bytes>, Tag)>>,
    broken_queue: bool,
    watches: Vec<(usize, Bytes, u64)>,
    replies: Replies,
    input: Bytes,
    blocked: Option<Blocked>,
}

/// What a request led to.
pub struct Served {
    pub args: Vec<Bytes>,
    /// The reply as a value, as far as there is one yet; and its bytes, nothing if the client wants none.
    pub reply: Option<Reply>,
    pub bytes: Bytes,
}

pub struct Server {
    core: Rc<RefCell<Core>>,
    engine: Engine,
    scripts: BTreeMap<Bytes, Bytes>,
    /// The SHA1 of every text that was ever seen.
    names: BTreeMap<Bytes, Bytes>,
    connections: BTreeMap<u64, Connection>,
    numbers: u64,
}

impl Server {
    pub fn new(patch: Option<Patch>) -> Server {
        let core = Rc::new(RefCell::new(Core::new()));
        let engine = Engine::new(&core, patch);
        Server {
            core,
            engine,
            scripts: BTreeMap::new(),
            names: BTreeMap::new(),
            connections: BTreeMap::new(),
            numbers: 0,
        }
    }

    pub fn core(&self) -> Ref<'_, Core> {
        self.core.borrow()
    }

    pub fn core_mut(&self) -> RefMut<'_, Core> {
        self.core.borrow_mut()
    }

    /// How many script texts the planted fault has changed.
    pub fn patched(&self) -> usize {
        self.engine.patched
    }

    pub fn journal(&self) -> Vec<Note> {
        std::mem::take(&mut self.core_mut().journal)
    }

    /// Sets the clock, and lets expire what has to.
    pub fn advance(&self, now_us: u64) {
        let mut core = self.core_mut();
        core.now_us = core.now_us.max(now_us);
        core.purge();
    }

    pub fn connect(&mut self) -> u64 {
        self.numbers += 1;
        let connection = Connection {
            database: 0,
            resp: 2,
            queue: None,
            broken_queue: false,
            watches: Vec::new(),
            replies: Replies::On,
            input: Vec::new(),
            blocked: None,
        };
        self.connections.insert(self.numbers, connection);
        self.numbers
    }

    pub fn disconnect(&mut self, connection: u64) {
        self.connections.remove(&connection);
    }

    /// The database that a connection has selected.
    pub fn database(&self, connection: u64) -> usize {
        self.connections
            .get(&connection)
            .map_or(0, |connection| connection.database)
    }

    /// The process dies and comes back: no connection, no script; the data stay or go.
    pub fn restart(&mut self, keep_data: bool) {
        self.connections.clear();
        self.scripts.clear();
        if !keep_data {
            (0..DATABASES).for_each(|db| self.core_mut().flush(db));
        }
    }

    pub fn flush_scripts(&mut self) {
        self.scripts.clear();
    }

    pub fn receive(&mut self, connection: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.input.extend_from_slice(bytes);
        }
    }

    /// The next whole request and its bytes, unless the connection is blocked.
    pub fn next_request(&mut self, connection: u64) -> Option<(Vec<Bytes>, Bytes)> {
        let connection = self.connections.get_mut(&connection)?;
        if connection.blocked.is_some() {
            return None;
        }
        let (args, len) = parse_request(&connection.input).expect("lockward sends requests")?;
        let raw = take(&mut connection.input, len);
        Some((args, raw))
    }

    pub fn serve(&mut self, number: u64, args: Vec<Bytes>, tag: Tag) -> Served {
        let reply = self.execute(number, &args, tag);
        let bytes = reply.as_ref().map_or_else(Vec::new, |reply| self.encode(number, reply));
        Served { args, reply, bytes }
    }

    /// A command past lockward.
    pub fn direct(&mut self, db: usize, args: &[Bytes]) -> Reply {
        let tag = Tag {
            by: By::Direct,
            keys: Vec::new(),
        };
        let mut core = self.core_mut();
        core.begin(&tag, db, args);
        let reply = core.data(db, args).expect("a known command");
        core.end(Some(&reply));
        reply
    }

    fn encode(&mut self, number: u64, reply: &Reply) -> Bytes {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Vec::new();
        };
        let silent = connection.replies != Replies::On;
        connection.replies = match connection.replies {
            Replies::SkipAfter => Replies::Skip,
            Replies::Skip => Replies::On,
            same => same,
        };
        let mut bytes = Vec::new();
        if !silent {
            reply.encode(connection.resp, &mut bytes);
        }
        bytes
    }

    fn execute(&mut self, number: u64, args: &[Bytes], tag: Tag) -> Option<Reply> {
        let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let connection = self.connections.get_mut(&number)?;
        let controls = [&b"EXEC"[..], b"DISCARD", b"MULTI", b"WATCH", b"RESET", b"QUIT"];
        if let Some(queue) = &mut connection.queue
            && !controls.contains(&name.as_slice())
        {
            if !known(&name) {
                connection.broken_queue = true;
                return Some(unknown(args));
            }
            queue.push((args.to_vec(), tag));
            return Some(Reply::Status(b"QUEUED".to_vec()));
        }
        match name.as_slice() {
            b"EXEC" => Some(self.exec(number)),
            b"BLPOP" => self.blpop(number, args, tag),
            _ => Some(self.command(number, &name, args, tag)),
        }
    }

    /// One command that is not queued, between its marks in the journal.
    fn command(&mut self, number: u64, name: &[u8], args: &[Bytes], tag: Tag) -> Reply {
        let database = self.database(number);
        self.core_mut().begin(&tag, database, args);
        let reply = match name {
            b"EVAL" | b"EVALSHA" => self.eval(name, args, database),
            b"SCRIPT" => self.script(args),
            b"AUTH" | b"HELLO" | b"SELECT" | b"CLIENT" => self.state(number, name, args),
            b"MULTI" | b"DISCARD" | b"WATCH" | b"UNWATCH" => self.transaction(number, name, args),
            b"BLPOP" => self.pop(database, &args[1..args.len() - 1]).unwrap_or(Reply::NullArray),
            _ => self.core_mut().data(database, args).unwrap_or_else(|| unknown(args)),
        };
        self.core_mut().end(Some(&reply));
        reply
    }

    fn eval(&mut self, name: &[u8], args: &[Bytes], database: usize) -> Reply {
        let Some(text) = args.get(1) else {
            return Reply::error("ERR wrong number of arguments for 'eval' command");
        };
        let text = if name == b"EVAL" {
            // Hashing costs more than all the rest.
            let name = self.names.entry(text.clone()).or_insert_with(|| sha1(text)).clone();
            self.scripts.entry(name).or_insert_with(|| text.clone());
            text.clone()
        } else {
            match self.scripts.get(text) {
                Some(text) => text.clone(),
                None => return Reply::error("NOSCRIPT No matching script. Please use EVAL."),
            }
        };
        let count = args
            .get(2)
            .and_then(|count| String::from_utf8_lossy(count).parse().ok())
            .unwrap_or(0);
        let (keys, argv) = args[3..].split_at(count);
        self.engine.run(&text, keys, argv, database)
    }

    fn script(&mut self, args: &[Bytes]) -> Reply {
        match args.get(1) {
            Some(word) if is(word, "LOAD") => {
                let name = self
                    .names
                    .entry(args[2].clone())
                    .or_insert_with(|| sha1(&args[2]))
                    .clone();
                self.scripts.insert(name.clone(), args[2].clone());
                Reply::Bulk(name)
            }
            Some(word) if is(word, "FLUSH") => {
                self.scripts.clear();
                Reply::ok()
            }
            Some(word) if is(word, "EXISTS") => Reply::Array(
                args[2..]
                    .iter()
                    .map(|name| Reply::bool(self.scripts.contains_key(name)))
                    .collect(),
            ),
            _ => Reply::error("ERR unknown subcommand"),
        }
    }

    fn state(&mut self, number: u64, name: &[u8], args: &[Bytes]) -> Reply {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Reply::ok();
        };
        match name {
            b"AUTH" if args.last().is_some_and(|password| password != b"right") => {
                return Reply::error("WRONGPASS invalid username-password pair or user is disabled.");
            }
            b"SELECT" => {
                let index = String::from_utf8_lossy(&args[1]).parse().unwrap_or(DATABASES);
                if index >= DATABASES {
                    return Reply::error("ERR DB index is out of range");
                }
                connection.database = index;
            }
            b"HELLO" => {
                connection.resp = if args.get(1).is_some_and(|version| version == b"3") {
                    3
                } else {
                    2
                };
                let field = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
                let proto = Reply::Int(i64::from(connection.resp));
                return Reply::Map(vec![field("server"), field("fake"), field("proto"), proto]);
            }
            b"CLIENT" if args.get(1).is_some_and(|word| is(word, "REPLY")) => {
                connection.replies = match args.get(2) {
                    Some(word) if is(word, "OFF") => Replies::Off,
                    Some(word) if is(word, "SKIP") && connection.replies == Replies::On => Replies::SkipAfter,
                    Some(word) if is(word, "ON") => Replies::On,
                    _ => connection.replies,
                };
            }
            _ => {}
        }
        Reply::ok()
    }

    fn version(&self, database: usize, key: &[u8]) -> u64 {
        self.core().get(database, key).map_or(0, |entry| entry.version)
    }

    fn transaction(&mut self, number: u64, name: &[u8], args: &[Bytes]) -> Reply {
        let database = self.database(number);
        let watched = args[1..]
            .iter()
            .map(|key| (database, key.clone(), self.version(database, key)));
        let watched: Vec<(usize, Bytes, u64)> = watched.collect();
        let Some(connection) = self.connections.get_mut(&number) else {
            return Reply::ok();
        };
        match (name, connection.queue.is_some()) {
            (b"MULTI", true) => return Reply::error("ERR MULTI calls can not be nested"),
            (b"WATCH", true) => return Reply::error("ERR WATCH inside MULTI is not allowed"),
            (b"DISCARD", false) => return Reply::error("ERR DISCARD without MULTI"),
            (b"MULTI", false) => connection.queue = Some(Vec::new()),
            (b"WATCH", false) => connection.watches.extend(watched),
            _ => {
                connection.queue = None;
                connection.broken_queue = false;
                connection.watches.clear();
            }
        }
        Reply::ok()
    }

    fn exec(&mut self, number: u64) -> Reply {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Reply::ok();
        };
        let Some(queue) = connection.queue.take() else {
            return Reply::error("ERR EXEC without MULTI");
        };
        let broken = std::mem::take(&mut connection.broken_queue);
        let watches = std::mem::take(&mut connection.watches);
        if broken {
            return Reply::error("EXECABORT Transaction discarded because of previous errors.");
        }
        if watches
            .iter()
            .any(|(database, key, version)| self.version(*database, key) != *version)
        {
            return Reply::NullArray;
        }
        let replies = queue
            .into_iter()
            .map(|(args, tag)| self.command(number, &args[0].to_ascii_uppercase(), &args, tag));
        Reply::Array(replies.collect())
    }
}

/// Whether the server would queue the command.
fn known(name: &[u8]) -> bool {
    !matches!(
        name,
        b"LOCKWARD.REFUSED" | b"DELEX" | b"DELIFEQ" | b"MSETEX" | b"NOSUCH"
    )
}

fn unknown(args: &[Bytes]) -> Reply {
    let name = args
        .first()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .unwrap_or_default();
    Reply::error(&format!("ERR unknown command '{name}', with args beginning with: "))
}

pub fn sha1(text: &[u8]) -> Bytes {
    let digits: String = Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.into_bytes()
}

#[cfg(test)]
mod tests;
