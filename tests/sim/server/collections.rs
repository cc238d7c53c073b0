//! Hashes and lists.

use std::collections::VecDeque;

use super::commands::{Done, WRONG_TYPE, fail};
use super::keyspace::{Bytes, Core, Value};
use crate::resp::Reply;

impl Core {
    pub(super) fn collections(&mut self, name: &str, db: usize, args: &[Bytes]) -> Done {
        let key = &args[1];
        let value = self.get(db, key).map(|entry| entry.value.clone());
        let (empty_hash, empty_list) = (Value::Hash(Vec::new()), Value::List(VecDeque::new()));
        match (name.starts_with('H'), &value) {
            (true, None | Some(Value::Hash(_))) | (false, None | Some(Value::List(_))) => {}
            _ => return fail(WRONG_TYPE),
        }
        let fields = match &value {
            Some(Value::Hash(fields)) => fields.as_slice(),
            _ => &[],
        };
        Ok(match (name, &value) {
            ("HGETALL", _) => {
                let all = fields.iter().flat_map(|(field, value)| [field, value]);
                Reply::Map(all.cloned().map(Reply::Bulk).collect())
            }
            ("HGET", _) => {
                let found = fields.iter().find(|(field, _)| *field == args[2]);
                found.map_or(Reply::Null, |(_, value)| Reply::Bulk(value.clone()))
            }
            ("HDEL", None) | ("LLEN", None) => Reply::Int(0),
            ("LPOP", None) => Reply::Null,
            ("LLEN", Some(Value::List(items))) => Reply::Int(items.len() as i64),
            ("HSET", _) => Reply::Int(self.change(db, key, empty_hash, |value| hset(value, &args[2..]))),
            ("HDEL", _) if fields.iter().any(|(field, _)| args[2..].contains(field)) => {
                Reply::Int(self.change(db, key, empty_hash, |value| hdel(value, &args[2..])))
            }
            ("HDEL", _) => Reply::Int(0),
            ("LPOP", _) => self.change(db, key, empty_list, |value| match value {
                Value::List(items) => items.pop_front().map_or(Reply::Null, Reply::Bulk),
                _ => Reply::Null,
            }),
            _ => Reply::Int(self.change(db, key, empty_list, |value| push(value, name == "LPUSH", &args[2..]))),
        })
    }
}

fn hset(value: &mut Value, pairs: &[Bytes]) -> i64 {
    let Value::Hash(fields) = value else { return 0 };
    let mut new = 0;
    for pair in pairs.chunks(2) {
        match fields.iter_mut().find(|(field, _)| *field == pair[0]) {
            Some((_, value)) => *value = pair[1].clone(),
            None => {
                fields.push((pair[0].clone(), pair[1].clone()));
                new += 1;
            }
        }
    }
    new
}

fn hdel(value: &mut Value, names: &[Bytes]) -> i64 {
    let Value::Hash(fields) = value else { return 0 };
    let before = fields.len();
    fields.retain(|(field, _)| !names.contains(field));
    (before - fields.len()) as i64
}

fn push(value: &mut Value, front: bool, new: &[Bytes]) -> i64 {
    let Value::List(items) = value else { return 0 };
    for item in new {
        if front {
            items.push_front(item.clone());
        } else {
            items.push_back(item.clone());
        }
    }
    items.len() as i64
}
