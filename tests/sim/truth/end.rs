//! The end of a run: everybody leaves, every TTL and window passes, and nothing may be left over.

use bytes::Bytes;

use lockward::lock::chore::{Chore, Task};
use lockward::lock::record::record_name;

use super::Incarnation;
use crate::client::State;
use crate::server::keyspace::{DATABASES, PREFIX};
use crate::world::World;

impl World {
    /// The clients close; those that still wait for an answer have waited too long.
    pub fn everybody_leaves(&mut self) {
        for client in 0..self.clients.len() {
            let connection = &self.clients[client];
            if connection.state == State::Open && !connection.awaiting.is_empty() {
                let text = format!("client {client} still waits for {:?}", connection.awaiting);
                return self.violated("5 left over", text);
            }
            self.hang_up(client);
        }
    }

    /// The operator frees what has no TTL, by force.
    pub fn free_what_is_stuck(&mut self) {
        for db in 0..DATABASES {
            let core = self.server.core();
            let stuck: Vec<Vec<u8>> = core.databases[db]
                .iter()
                .filter(|(key, entry)| entry.expire.is_none() && self.plan.rule_of(key).is_some())
                .map(|(key, _)| key.clone())
                .collect();
            drop(core);
            for key in stuck {
                let chore = Chore {
                    database: db as u32,
                    key: Bytes::from(key),
                    task: Task::Free { token: None },
                };
                self.own_chore(0, chore);
            }
        }
    }

    /// A lease without TTL that somebody ended past lockward leaves its record until the next acquire, unless a keeper
    /// knows of it: there is nothing that could expire.
    fn is_forgivable(&self, db: usize, record: &[u8]) -> bool {
        let endless = self
            .server
            .core()
            .get(db, record)
            .is_some_and(|entry| entry.expire.is_none());
        let of_lock = |inc: &&Incarnation| inc.db == db && record_name(PREFIX, &inc.key) == record;
        let last = self.truth.incarnations.values().rev().find(of_lock);
        endless && last.is_some_and(|inc| inc.direct && inc.due.is_none())
    }

    pub fn check_the_end(&mut self) {
        if self.violation.is_some() {
            return;
        }
        for db in 0..DATABASES {
            let keys: Vec<Vec<u8>> = self.server.core().databases[db].keys().cloned().collect();
            for key in keys {
                let record = key.starts_with(PREFIX.as_bytes()) && !key.ends_with(b"}=");
                if record && self.is_forgivable(db, &key) {
                    continue;
                }
                if record || self.plan.rule_of(&key).is_some() {
                    let entry = self.server.core().get(db, &key).cloned();
                    return self.violated(
                        "5 left over",
                        format!("{} is still there: {entry:?}", key.escape_ascii()),
                    );
                }
            }
        }
        for index in 0..self.proxies.len() {
            let proxy = &self.proxies[index];
            if !proxy.lines.is_empty() {
                let clients: Vec<usize> = proxy.lines.values().map(|line| line.client).collect();
                return self.violated(
                    "5 left over",
                    format!("proxy {index} has sessions of clients {clients:?}"),
                );
            }
            if !proxy.keeper.is_empty() {
                let text = format!("the keeper of proxy {index} remembers leases: {:?}", proxy.keeper);
                return self.violated("5 left over", text);
            }
        }
    }
}
