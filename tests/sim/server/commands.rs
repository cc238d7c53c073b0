//! The commands on data, as Redis 7 does them; what the simulated clients and lockward's scripts use, and no more.

use super::keyspace::{Bytes, Core, DATABASES, Value, What};
use crate::resp::Reply;

pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const SYNTAX: &str = "ERR syntax error";
const NO_INTEGER: &str = "ERR value is not an integer or out of range";
const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// The commands that need memory.
const DENY_OOM: &[&str] = &[
    "SET", "SETNX", "SETEX", "PSETEX", "GETSET", "MSET", "MSETNX", "INCR", "APPEND", "HSET", "LPUSH", "RPUSH", "COPY",
];

/// The commands that only read.
const READS: &[&str] = &[
    "GET",
    "MGET",
    "STRLEN",
    "EXISTS",
    "TTL",
    "PTTL",
    "EXPIRETIME",
    "PEXPIRETIME",
    "HGET",
    "HGETALL",
    "LLEN",
    "TIME",
    "KEYS",
    "SCAN",
    "DBSIZE",
    "PING",
    "ECHO",
    "TYPE",
];

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

pub(super) type Done = Result<Reply, Reply>;

pub(super) fn fail<T>(text: &str) -> Result<T, Reply> {
    Err(Reply::error(text))
}

impl Core {
    /// Runs a command on data; `None` if there is no such command.
    pub fn data(&mut self, db: usize, args: &[Bytes]) -> Option<Reply> {
        let name = String::from_utf8_lossy(args.first()?).to_ascii_uppercase();
        let least = match name.as_str() {
            "PING" | "DBSIZE" | "TIME" | "FLUSHALL" | "FLUSHDB" => 1,
            "SET" | "SETNX" | "GETSET" | "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" | "RENAME" | "RENAMENX"
            | "HGET" | "HDEL" | "LPUSH" | "RPUSH" | "APPEND" | "MSET" | "MSETNX" | "MOVE" | "COPY" => 3,
            "SETEX" | "PSETEX" | "HSET" => 4,
            _ => 2,
        };
        if args.len() < least {
            let text = format!(
                "ERR wrong number of arguments for '{}' command",
                name.to_ascii_lowercase()
            );
            return self.knows(&name).then(|| Reply::error(&text));
        }
        if self.memory_full && !self.script_wrote && DENY_OOM.contains(&name.as_str()) {
            return Some(Reply::error(OUT_OF_MEMORY));
        }
        self.script_wrote |= self.in_script && !READS.contains(&name.as_str());
        let done = match name.as_str() {
            "GET" | "SET" | "SETNX" | "SETEX" | "PSETEX" | "GETSET" | "GETDEL" | "GETEX" | "MSET" | "MSETNX"
            | "MGET" | "INCR" | "APPEND" | "STRLEN" => self.strings(&name, db, args),
            "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" | "PERSIST" | "TTL" | "PTTL" | "EXPIRETIME"
            | "PEXPIRETIME" => self.expiry(&name, db, args),
            "HSET" | "HGET" | "HDEL" | "HGETALL" | "LPUSH" | "RPUSH" | "LPOP" | "LLEN" => {
                self.collections(&name, db, args)
            }
            "DEL" | "UNLINK" | "EXISTS" | "TYPE" | "KEYS" | "SCAN" | "RENAME" | "RENAMENX" | "MOVE" | "COPY"
            | "DBSIZE" | "TIME" | "PING" | "ECHO" | "FLUSHALL" | "FLUSHDB" => self.generic(&name, db, args),
            _ => return None,
        };
        Some(done.unwrap_or_else(|error| error))
    }

    fn knows(&self, name: &str) -> bool {
        !matches!(name, "DELEX" | "DELIFEQ" | "MSETEX")
    }

    fn text(&self, db: usize, key: &[u8]) -> Result<Option<Bytes>, Reply> {
        match self.get(db, key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => fail(WRONG_TYPE),
        }
    }

    fn bulk(&self, db: usize, key: &[u8]) -> Done {
        Ok(self.text(db, key)?.map_or(Reply::Null, Reply::Bulk))
    }

    fn strings(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        let key = &args[1];
        match name {
            "GET" => self.bulk(db, key),
            "SET" => self.set(db, args),
            "SETNX" if self.get(db, key).is_some() => Ok(Reply::Int(0)),
            "SETNX" => {
                self.put(db, key, Value::Text(args[2].clone()), None);
                Ok(Reply::Int(1))
            }
            "SETEX" | "PSETEX" => {
                let unit = if name == "SETEX" { 1000 } else { 1 };
                let expire = self.expire_in(&args[2], unit, name)?;
                self.put(db, key, Value::Text(args[3].clone()), Some(expire));
                Ok(Reply::ok())
            }
            "GETSET" => {
                let old = self.bulk(db, key)?;
                self.put(db, key, Value::Text(args[2].clone()), None);
                Ok(old)
            }
            "GETDEL" => {
                let old = self.bulk(db, key)?;
                self.remove(db, key, What::Removed);
                Ok(old)
            }
            "GETEX" => self.getex(db, args),
            "MGET" => {
                let all = args[1..].iter().map(|key| self.bulk(db, key).unwrap_or(Reply::Null));
                Ok(Reply::Array(all.collect()))
            }
            "STRLEN" => Ok(Reply::Int(self.text(db, key)?.map_or(0, |text| text.len() as i64))),
            "INCR" | "APPEND" => self.modify(name, db, args),
            _ => self.mset(name, db, args),
        }
    }

    fn modify(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        let old = self.text(db, &args[1])?;
        let expire = self.get(db, &args[1]).and_then(|entry| entry.expire);
        if name == "APPEND" {
            let mut text = old.unwrap_or_default();
            text.extend_from_slice(&args[2]);
            let length = text.len() as i64;
            self.put(db, &args[1], Value::Text(text), expire);
            return Ok(Reply::Int(length));
        }
        let Some(count) = number(&old.unwrap_or_else(|| b"0".to_vec())) else {
            return fail(NO_INTEGER);
        };
        self.put(db, &args[1], Value::Text((count + 1).to_string().into_bytes()), expire);
        Ok(Reply::Int(count + 1))
    }

    fn mset(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        if args.len().is_multiple_of(2) {
            return fail(&format!(
                "ERR wrong number of arguments for '{}' command",
                name.to_ascii_lowercase()
            ));
        }
        let pairs: Vec<&[Bytes]> = args[1..].chunks(2).collect();
        if name == "MSETNX" && pairs.iter().any(|pair| self.get(db, &pair[0]).is_some()) {
            return Ok(Reply::Int(0));
        }
        for pair in pairs {
            self.put(db, &pair[0], Value::Text(pair[1].clone()), None);
        }
        Ok(if name == "MSETNX" { Reply::Int(1) } else { Reply::ok() })
    }

    fn expire_in(&self, text: &[u8], unit: i64, name: &str) -> Result<i64, Reply> {
        match number(text) {
            None => fail(NO_INTEGER),
            Some(..=0) => fail(&format!(
                "ERR invalid expire time in '{}' command",
                name.to_ascii_lowercase()
            )),
            Some(count) => Ok(self.now_ms() + count * unit),
        }
    }

    fn set(&mut self, db: usize, args: &[Bytes]) -> Done {
        let (mut nx, mut xx, mut get, mut keep, mut expire) = (false, false, false, false, None);
        let mut words = args[3..].iter();
        while let Some(word) = words.next() {
            match word {
                word if is(word, "NX") && !xx => nx = true,
                word if is(word, "XX") && !nx => xx = true,
                word if is(word, "GET") => get = true,
                word if is(word, "KEEPTTL") && expire.is_none() => keep = true,
                word if (is(word, "EX") || is(word, "PX")) && expire.is_none() && !keep => {
                    let unit = if is(word, "EX") { 1000 } else { 1 };
                    let Some(count) = words.next() else { return fail(SYNTAX) };
                    expire = Some(self.expire_in(count, unit, "set")?);
                }
                _ => return fail(SYNTAX),
            }
        }
        let old = if get { self.bulk(db, &args[1])? } else { Reply::Null };
        let there = self.get(db, &args[1]);
        if nx && there.is_some() || xx && there.is_none() {
            return Ok(old);
        }
        let expire = if keep {
            there.and_then(|entry| entry.expire)
        } else {
            expire
        };
        self.put(db, &args[1], Value::Text(args[2].clone()), expire);
        Ok(if get { old } else { Reply::ok() })
    }

    fn getex(&mut self, db: usize, args: &[Bytes]) -> Done {
        let old = self.bulk(db, &args[1])?;
        let expire = match args.get(2) {
            None => return Ok(old),
            Some(word) if is(word, "PERSIST") => None,
            Some(word) if is(word, "EX") => Some(self.expire_in(&args[3], 1000, "getex")?),
            Some(word) if is(word, "PX") => Some(self.expire_in(&args[3], 1, "getex")?),
            Some(word) if is(word, "PXAT") => Some(number(&args[3]).ok_or(Reply::error(NO_INTEGER))?),
            Some(_) => return fail(SYNTAX),
        };
        if !old.is_nil() {
            match expire {
                Some(at) if at <= self.now_ms() => {
                    self.remove(db, &args[1], What::Removed);
                }
                None if self.get(db, &args[1]).is_some_and(|entry| entry.expire.is_none()) => {}
                expire => self.set_expiry(db, &args[1], expire),
            }
        }
        Ok(old)
    }

    fn expiry(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        let key = &args[1];
        let there = self.get(db, key).map(|entry| entry.expire);
        let Some(expire) = there else {
            return Ok(Reply::Int(if name.contains("TTL") || name.contains("TIME") {
                -2
            } else {
                0
            }));
        };
        let left = expire.map(|at| (at - self.now_ms()).max(0));
        match name {
            "TTL" => return Ok(Reply::Int(left.map_or(-1, |left| (left + 500) / 1000))),
            "PTTL" => return Ok(Reply::Int(left.unwrap_or(-1))),
            "PEXPIRETIME" => return Ok(Reply::Int(expire.unwrap_or(-1))),
            "EXPIRETIME" => return Ok(Reply::Int(expire.map_or(-1, |at| (at + 500) / 1000))),
            "PERSIST" => {
                if expire.is_some() {
                    self.set_expiry(db, key, None);
                }
                return Ok(Reply::bool(expire.is_some()));
            }
            _ => {}
        }
        let Some(count) = args.get(2).and_then(|count| number(count)) else {
            return fail(NO_INTEGER);
        };
        let unit = if name.starts_with('P') { 1 } else { 1000 };
        let at = count * unit + if name.ends_with("AT") { 0 } else { self.now_ms() };
        for flag in &args[3..] {
            let holds = match flag {
                flag if is(flag, "NX") => expire.is_none(),
                flag if is(flag, "XX") => expire.is_some(),
                flag if is(flag, "GT") => expire.is_some_and(|known| at > known),
                flag if is(flag, "LT") => expire.is_none_or(|known| at < known),
                _ => return fail("ERR Unsupported option"),
            };
            if !holds {
                return Ok(Reply::Int(0));
            }
        }
        if at <= self.now_ms() {
            self.remove(db, key, What::Removed);
        } else {
            self.set_expiry(db, key, Some(at));
        }
        Ok(Reply::Int(1))
    }

    fn generic(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        Ok(match name {
            "PING" => args
                .get(1)
                .map_or_else(|| Reply::Status(b"PONG".to_vec()), |text| Reply::Bulk(text.clone())),
            "ECHO" => Reply::Bulk(args[1].clone()),
            "DBSIZE" => Reply::Int(self.databases[db].len() as i64),
            "TIME" => {
                let parts = [self.now_us / 1_000_000, self.now_us % 1_000_000];
                Reply::Array(parts.map(|part| Reply::Bulk(part.to_string().into_bytes())).to_vec())
            }
            "DEL" | "UNLINK" => {
                let gone = args[1..]
                    .iter()
                    .filter(|key| self.remove(db, key, What::Removed))
                    .count();
                Reply::Int(gone as i64)
            }
            "EXISTS" => Reply::Int(args[1..].iter().filter(|key| self.get(db, key).is_some()).count() as i64),
            "TYPE" => Reply::error("ERR not in this server"),
            "FLUSHDB" | "FLUSHALL" => {
                let all = if name == "FLUSHALL" { 0..DATABASES } else { db..db + 1 };
                all.for_each(|db| self.flush(db));
                Reply::ok()
            }
            "KEYS" => self.matching(db, &args[1]),
            "SCAN" => Reply::Array(vec![Reply::Bulk(b"0".to_vec()), self.matching(db, b"*")]),
            "MOVE" => return self.move_key(db, args),
            "COPY" => return self.copy(db, args),
            _ => return self.rename(name, db, args),
        })
    }

    /// `*` and `prefix*` are all the patterns that there are.
    fn matching(&self, db: usize, pattern: &[u8]) -> Reply {
        let prefix = pattern.strip_suffix(b"*").unwrap_or(pattern);
        let found = self.databases[db].keys().filter(|key| key.starts_with(prefix));
        Reply::Array(found.cloned().map(Reply::Bulk).collect())
    }

    fn rename(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        let Some(entry) = self.get(db, &args[1]).cloned() else {
            return fail("ERR no such key");
        };
        let nx = name == "RENAMENX";
        if nx && self.get(db, &args[2]).is_some() {
            return Ok(Reply::Int(0));
        }
        if args[1] != args[2] {
            self.remove(db, &args[1], What::Removed);
            self.put(db, &args[2], entry.value, entry.expire);
        }
        Ok(if nx { Reply::Int(1) } else { Reply::ok() })
    }

    fn other_database(text: &[u8]) -> Result<usize, Reply> {
        let found = number(text)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|index| *index < DATABASES);
        found.ok_or_else(|| Reply::error("ERR DB index is out of range"))
    }

    fn move_key(&mut self, db: usize, args: &[Bytes]) -> Done {
        let to = Core::other_database(&args[2])?;
        let Some(entry) = self.get(db, &args[1]).cloned() else {
            return Ok(Reply::Int(0));
        };
        if self.get(to, &args[1]).is_some() {
            return Ok(Reply::Int(0));
        }
        self.remove(db, &args[1], What::Removed);
        self.put(to, &args[1], entry.value, entry.expire);
        Ok(Reply::Int(1))
    }

    fn copy(&mut self, db: usize, args: &[Bytes]) -> Done {
        let replace = args[3..].iter().any(|word| is(word, "REPLACE"));
        let Some(entry) = self.get(db, &args[1]).cloned() else {
            return Ok(Reply::Int(0));
        };
        if self.get(db, &args[2]).is_some() && !replace {
            return Ok(Reply::Int(0));
        }
        self.put(db, &args[2], entry.value, entry.expire);
        Ok(Reply::Int(1))
    }
}
