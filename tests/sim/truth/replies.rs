//! Whether each answer is truthful, and of the type that the client's own command has: held against what the server
//! really did for that request, not against what lockward says.

use crate::request::Meaning;
use crate::resp::{Reply, show, show_args};
use crate::server::keyspace::{Bytes, PREFIX, Value, What};
use crate::world::World;

/// What became of a key by one request.
#[derive(Default)]
struct Fate {
    existed: bool,
    old: Option<Bytes>,
    created: bool,
    written: bool,
    removed: bool,
    expiry: bool,
}

impl World {
    fn fate(&self, number: usize, key: &[u8]) -> Fate {
        let request = &self.requests[number];
        let entry = request.before(key).and_then(|seen| seen.entry.as_ref());
        let mut fate = Fate {
            existed: entry.is_some(),
            ..Fate::default()
        };
        if let Some(Value::Text(text)) = entry.map(|entry| &entry.value) {
            fate.old = Some(text.clone());
        }
        for change in request.changes.iter().filter(|change| change.key == key) {
            match change.what {
                What::Created => fate.created = true,
                What::Written => fate.written = true,
                What::Removed => fate.removed = true,
                What::ExpirySet => fate.expiry = true,
                What::Expired | What::Touched => {}
            }
        }
        fate
    }

    /// Checks a reply; `raw` is missing inside EXEC's array.
    pub fn check_reply(&mut self, number: usize, reply: &Reply, raw: Option<&[u8]>) {
        let wrong = self.is_wrong(number, reply, raw);
        if let Some(why) = wrong {
            let request = &self.requests[number];
            let text = format!(
                "#{number} {} was answered with {reply}: {why}; it changed {:?}",
                show_args(&request.args),
                request.changes
            );
            self.violated("3 replies", text);
        }
    }

    fn is_wrong(&self, number: usize, reply: &Reply, raw: Option<&[u8]>) -> Option<String> {
        let request = &self.requests[number];
        if let Some(raw) = raw {
            let mut same = Vec::new();
            reply.encode(self.clients[request.client].resp, &mut same);
            // HELLO answers in the version that it asks for.
            if same != raw && request.name() != "HELLO" {
                return Some(format!("that is not its client's protocol: {}", show(raw)));
            }
        }
        if request.local {
            return (!reply.is_error()).then(|| "lockward should have refused it".to_owned());
        }
        let settled = request.executed == 1 || request.server_reply.is_some();
        if !settled && request.name() != "EXEC" {
            return Some("it was not executed".to_owned());
        }
        let emulated = request.name() == "DELIFEQ"
            && self
                .plan
                .rule_of(&request.args[1])
                .is_some_and(|rule| self.plan.rules[rule].emulate);
        let alone = matches!(request.meaning, Meaning::Plain | Meaning::SelfChecked) && !emulated;
        let passed = request.locks.is_empty() || alone;
        match request.meaning {
            Meaning::Own => self.own_is_wrong(number, reply),
            Meaning::Plain if matches!(request.name().as_str(), "KEYS" | "SCAN") => {
                self.listing_is_wrong(number, reply)
            }
            _ if passed => self.passage_is_wrong(number, reply),
            _ if reply.is_error() => self.error_is_wrong(number, reply),
            _ => self.lock_is_wrong(number, reply),
        }
    }

    /// What no rule concerns comes back as the server sent it.
    fn passage_is_wrong(&self, number: usize, reply: &Reply) -> Option<String> {
        let request = &self.requests[number];
        if request.in_multi {
            return None;
        }
        let same = match (&request.server_reply, reply) {
            // In RESP3 both are one.
            (Some(Reply::NullArray), Reply::Null) => true,
            (Some(sent), got) => sent == got || matches!((sent, got), (Reply::Map(a), Reply::Array(b)) if a == b),
            (None, _) => false,
        };
        (!same).then(|| format!("the server said {:?}", request.server_reply))
    }

    fn listing_is_wrong(&self, number: usize, reply: &Reply) -> Option<String> {
        let request = &self.requests[number];
        let keys = |reply: &Reply| -> Option<Vec<Reply>> {
            match reply {
                Reply::Array(parts) => match parts.as_slice() {
                    [Reply::Bulk(cursor), Reply::Array(keys)] if cursor == b"0" && request.name() == "SCAN" => {
                        Some(keys.clone())
                    }
                    _ => Some(parts.clone()),
                },
                _ => None,
            }
        };
        let hidden = |key: &Reply| matches!(key, Reply::Bulk(key) if key.starts_with(PREFIX.as_bytes()));
        let got = keys(reply)?;
        if got.iter().any(hidden) {
            return Some("record keys are seen".to_owned());
        }
        if request.in_multi {
            return None;
        }
        let sent = request.server_reply.as_ref().and_then(keys)?;
        let shown: Vec<Reply> = sent.into_iter().filter(|key| !hidden(key)).collect();
        (shown != got).then(|| "other keys are missing".to_owned())
    }

    /// An error is truthful if nothing was changed.
    fn error_is_wrong(&self, number: usize, reply: &Reply) -> Option<String> {
        let request = &self.requests[number];
        let Reply::Error(text) = reply else { return None };
        let kept = request.changes.iter().filter(|change| change.what != What::Expired);
        let undone = |key: &[u8]| {
            let fate = self.fate(number, key);
            fate.created && fate.removed
        };
        let changed = kept.into_iter().any(|change| !undone(&change.key));
        if changed {
            return Some("it is an error, and something was changed".to_owned());
        }
        let known: [&[u8]; 5] = [
            b"LOCKHELD lock '",
            b"OOM ",
            b"ERR no such key",
            b"WRONGTYPE ",
            b"ERR unknown command",
        ];
        let others: [&[u8]; 2] = [b"ERR value is not an integer", b"ERR syntax error"];
        let fits = known.iter().chain(&others).any(|known| text.starts_with(known));
        (!fits).then(|| "an odd error".to_owned())
    }

    fn lock_is_wrong(&self, number: usize, reply: &Reply) -> Option<String> {
        let request = &self.requests[number];
        let name = request.name();
        let key = &request.args[1];
        let fate = self.fate(number, key);
        let wrote = fate.created || fate.written;
        let count = |what: What| request.changes.iter().filter(|change| change.what == what).count() as i64;
        let refused = matches!(reply, Reply::Null | Reply::Int(0));
        if request.meaning == Meaning::Acquire && refused && fate.existed && request.record_changes > 0 {
            return Some("a refused acquire changed a record".to_owned());
        }
        let right = match name.as_str() {
            "SET" => return self.set_is_wrong(number, reply, &fate),
            "SETNX" => *reply == Reply::bool(fate.created) && fate.created != fate.existed,
            "SETEX" | "PSETEX" => reply.is_ok() && wrote,
            "GETSET" => wrote && *reply == fate.old.clone().map_or(Reply::Null, Reply::Bulk),
            "MSET" => reply.is_ok() && request.locks.iter().all(|key| self.wrote(number, key)),
            "MSETNX" => {
                let all = request.locks.iter().all(|key| self.fate(number, key).created);
                let any = request.locks.iter().any(|key| self.wrote(number, key));
                *reply == Reply::bool(all) && all == any
            }
            "DEL" | "UNLINK" | "DELIFEQ" | "DELEX" => *reply == Reply::Int(count(What::Removed)),
            "MOVE" => *reply == Reply::bool(fate.removed),
            "GETDEL" => match reply {
                Reply::Bulk(value) => fate.removed && Some(value) == fate.old.as_ref(),
                _ => reply.is_nil() && !fate.removed,
            },
            "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" | "PERSIST" => {
                *reply == Reply::bool(fate.removed || fate.expiry)
            }
            "GETEX" => match reply {
                Reply::Bulk(value) => Some(value) == fate.old.as_ref(),
                _ => reply.is_nil() && !fate.removed && !fate.expiry,
            },
            "RENAME" => reply.is_ok() && fate.removed && self.wrote(number, &request.args[2]),
            "RENAMENX" => {
                let moved = fate.removed && self.wrote(number, &request.args[2]);
                *reply == Reply::bool(moved)
            }
            "COPY" => *reply == Reply::bool(self.wrote(number, &request.args[2])),
            _ => return Some("the simulator does not know this command".to_owned()),
        };
        (!right).then(|| "that is not what happened".to_owned())
    }

    fn wrote(&self, number: usize, key: &[u8]) -> bool {
        let fate = self.fate(number, key);
        fate.created || fate.written
    }

    fn set_is_wrong(&self, number: usize, reply: &Reply, fate: &Fate) -> Option<String> {
        let request = &self.requests[number];
        let (nx, xx, get) = (request.has("NX"), request.has("XX"), request.has("GET"));
        let wrote = fate.created || fate.written;
        let nil_allowed = {
            let rule = self.plan.rule_of(&request.args[1]).unwrap_or(0);
            self.plan.rules[rule].denied_write == lockward::lock::rule::DeniedWrite::Nil
        };
        let old = fate.old.clone().map_or(Reply::Null, Reply::Bulk);
        let right = if get {
            // A refused `SET … GET` never answers nil, so whatever comes here is the old value.
            *reply == old && (wrote || nx || xx)
        } else if wrote {
            reply.is_ok() && !(nx && fate.existed)
        } else {
            reply.is_nil() && (nx && fate.existed || xx || nil_allowed || request.has("IFEQ"))
        };
        (!right).then(|| format!("that is not what happened (existed {}, written {wrote})", fate.existed))
    }

    fn own_is_wrong(&self, number: usize, reply: &Reply) -> Option<String> {
        let request = &self.requests[number];
        let word = request
            .args
            .get(1)
            .map(|word| word.to_ascii_uppercase())
            .unwrap_or_default();
        match (word.as_slice(), reply) {
            (b"FENCE", Reply::Int(_)) if request.server_reply.as_ref() == Some(reply) || request.in_multi => None,
            (b"FENCE", Reply::Null) | (b"WHOAMI" | b"HELP", Reply::Array(_)) => None,
            _ => Some("LOCKWARD does not answer so".to_owned()),
        }
    }
}
