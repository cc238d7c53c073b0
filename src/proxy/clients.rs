//! The clients that are connected: where each comes from and what it calls itself, for those who look at locks. As large
//! as there are connections, each entry bounded. Decides nothing.

use std::sync::Arc;

use dashmap::DashMap;

use crate::event::ConnectionId;
use crate::metrics::printable;

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    connection: ConnectionId,
    /// Where it comes from.
    pub(super) address: Arc<str>,
    /// What it calls itself, as printable ASCII; nothing without a name.
    pub(super) name: Option<Arc<str>>,
}

/// All of them, by the number of their connection.
#[derive(Debug, Default)]
pub(super) struct Clients(DashMap<u64, Client>);

impl Clients {
    /// How many are connected.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A client has come.
    pub(super) fn opened(&self, connection: &ConnectionId, from: &str) {
        let client = Client {
            connection: connection.clone(),
            address: from.into(),
            name: None,
        };
        self.0.insert(connection.number, client);
    }

    /// A client has got another name, or an empty one: none.
    pub(super) fn named(&self, connection: &ConnectionId, name: &[u8]) {
        let name = (!name.is_empty()).then(|| printable(name).into());
        self.0.alter(&connection.number, |_, client| Client { name, ..client });
    }

    /// A client has gone.
    pub(super) fn closed(&self, connection: &ConnectionId) {
        self.0.remove(&connection.number);
    }

    /// The client of this connection, while it is open here.
    pub(super) fn find(&self, connection: &ConnectionId) -> Option<Client> {
        self.0
            .view(&connection.number, |_, client| client.clone())
            .filter(|client| client.connection == *connection)
    }

    /// What the client of this connection calls itself, while it is open here and has a name.
    pub(super) fn name(&self, connection: &ConnectionId) -> Option<String> {
        self.find(connection)?.name.map(|name| name.to_string())
    }
}
