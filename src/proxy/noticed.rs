//! What a session has noticed beside locks, and who has to hear of it.

use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::event::ConnectionId;
use crate::session::{Databases, Notice};

impl Shared {
    /// A client's session has noticed something.
    pub(super) fn noticed(&self, connection: &ConnectionId, notice: Notice) {
        match notice {
            Notice::Owner { rule, owner } => self.keeper().bound(connection.number, rule, &owner),
            Notice::Name(name) => {
                self.clients.named(connection, &name);
                self.telling.changed();
            }
            Notice::ScriptsFlushed => {
                let own = self.own.clone();
                self.runtime.spawn(async move {
                    // A failure shows in the state of the connection; the sessions heal NOSCRIPT by themselves.
                    let _ = own.reload_scripts().await;
                });
            }
            Notice::RightsChanged => {
                self.rights.fetch_add(1, Ordering::AcqRel);
            }
            Notice::Foreign(protocol) => self.door.closed(self, connection, protocol),
            Notice::DataFlushed { command, databases } => self.flushed(connection, command, databases),
            Notice::Watching { database, key, on } => {
                self.keeper().watching(connection.number, database, &key, on);
            }
        }
        self.chores.notify_one();
    }

    fn flushed(&self, connection: &ConnectionId, command: &'static str, databases: Databases) {
        let mut keeper = self.keeper();
        let known: usize = databases.each().map(|database| keeper.known(database)).sum();
        for database in databases.each() {
            keeper.look_again(self.now(), database);
        }
        drop(keeper);
        if known > 0 {
            tracing::warn!(command, %connection, leases_known = known, "a client flushed data while leases were known");
        }
    }
}
