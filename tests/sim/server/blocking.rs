//! Clients that wait for a list.

use super::keyspace::{Bytes, Tag};
use super::{Blocked, Server};
use crate::resp::Reply;

impl Server {
    pub(super) fn pop(&mut self, database: usize, keys: &[Bytes]) -> Option<Reply> {
        let mut core = self.core_mut();
        let key = keys.iter().find(|key| core.get(database, key).is_some())?;
        let item = core.data(database, &[b"LPOP".to_vec(), key.clone()])?;
        Some(Reply::Array(vec![Reply::Bulk(key.clone()), item]))
    }

    pub(super) fn blpop(&mut self, number: u64, args: &[Bytes], tag: Tag) -> Option<Reply> {
        let database = self.database(number);
        self.core_mut().begin(&tag, database, args);
        let keys = args[1..args.len() - 1].to_vec();
        let reply = self.pop(database, &keys);
        self.core_mut().end(reply.as_ref());
        if reply.is_none() {
            let seconds: f64 = String::from_utf8_lossy(&args[args.len() - 1]).parse().unwrap_or(0.0);
            let until = self.core().now_us + (seconds * 1e6) as u64;
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.blocked = Some(Blocked { keys, until, tag });
            }
        }
        reply
    }

    /// When the next blocked client has waited long enough, in microseconds since 1970.
    pub fn next_timeout(&self) -> Option<u64> {
        self.connections
            .values()
            .filter_map(|connection| connection.blocked.as_ref())
            .map(|b| b.until)
            .min()
    }

    /// The next blocked client that has an answer now: its number, the reply, its bytes and its request.
    pub fn unblock(&mut self) -> Option<(u64, Reply, Bytes, Tag)> {
        let now = self.core().now_us;
        let numbers: Vec<u64> = self.connections.keys().copied().collect();
        for number in numbers {
            let database = self.database(number);
            let Some(blocked) = self.connections.get(&number).and_then(|c| c.blocked.as_ref()) else {
                continue;
            };
            let (keys, until, tag) = (blocked.keys.clone(), blocked.until, blocked.tag.clone());
            self.core_mut().begin(&tag, database, &request_words(&keys));
            let popped = self.pop(database, &keys);
            let reply = popped.or_else(|| (until <= now).then_some(Reply::NullArray));
            self.core_mut().end(reply.as_ref());
            if let Some(reply) = reply {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.blocked = None;
                }
                let bytes = self.encode(number, &reply);
                return Some((number, reply, bytes, tag));
            }
        }
        None
    }
}

fn request_words(keys: &[Bytes]) -> Vec<Bytes> {
    std::iter::once(b"BLPOP".to_vec()).chain(keys.iter().cloned()).collect()
}
