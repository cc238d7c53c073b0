//! What a configuration says: who there is, and what may happen. Which ones are explored is in `configurations`.

use crate::state::{CONNECTIONS, LINKS, OwnerId, PROXIES};

/// One configuration.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub name: &'static str,
    /// What it is there for.
    pub about: &'static str,
    /// The owner and the proxy of each connection.
    pub owners: [OwnerId; CONNECTIONS],
    pub proxies: [u8; CONNECTIONS],
    pub connections: u8,
    pub leases: u8,
    /// Requests that a client sends before it has the answers.
    pub pipeline: u8,
    /// `unmanaged = "allow"`, else `"refuse"`.
    pub allow: bool,
    /// `default_ttl` is set.
    pub default_ttl: bool,
    /// Acquires may ask for no TTL.
    pub endless: bool,
    /// Clients close connections.
    pub closes: bool,
    /// Proxies crash.
    pub crashes: bool,
    /// Connections are lost by themselves.
    pub cuts: bool,
    /// Who did not hear the answer to a granted acquire may send its release all the same.
    pub in_doubt: bool,
    /// EXPIRE and SET without NX, by anybody.
    pub meddling: bool,
    /// So often the server restarts (its data stay), somebody writes past the proxy, a lock is taken over.
    pub restarts: u8,
    pub strangers: u8,
    pub takeovers: u8,
    /// Whether owners send a DEL that belongs to no lease.
    pub strays: bool,
    /// `max_ttl` is set, and there are PERSISTs.
    pub max_ttl: bool,
    /// Renewals are sent and arrive, one at a time, up to `max_hold` and while there is a connection of the owner; else one
    /// may arrive at any time.
    pub max_hold: bool,
    /// A connection that has ended may be opened anew once.
    pub reconnects: bool,
    /// Part of the quick look.
    pub quick: bool,
}

impl Bounds {
    pub fn owner(&self, link: u8) -> OwnerId {
        self.owners[usize::from(link) % CONNECTIONS]
    }

    pub fn proxy(&self, link: u8) -> u8 {
        self.proxies[usize::from(link) % CONNECTIONS]
    }

    pub fn links(&self) -> impl Iterator<Item = u8> {
        let places = if self.reconnects { LINKS } else { CONNECTIONS } as u8;
        (0..places).filter(|link| link % (CONNECTIONS as u8) < self.connections)
    }

    pub fn proxy_count(&self) -> u8 {
        let used = self.links().map(|link| self.proxy(link)).max().unwrap_or(0) + 1;
        used.min(PROXIES as u8)
    }

    /// In one line.
    pub fn words(&self) -> String {
        let connection = |link: u8| {
            let owner = ["A", "B"][usize::from(self.owner(link))];
            format!("{owner}{}@{}", link + 1, ["P", "Q"][usize::from(self.proxy(link))])
        };
        let connections: Vec<String> = (0..self.connections).map(connection).collect();
        let mut text = format!(
            "{}; {} leases; {} under way",
            connections.join(" "),
            self.leases,
            self.pipeline
        );
        let switches = [
            (!self.allow, "unmanaged refused"),
            (self.endless, "acquires without TTL"),
            (self.default_ttl, "default_ttl"),
            (self.max_ttl, "max_ttl, and PERSIST"),
            (self.max_hold, "max_hold"),
            (self.closes, "closed by clients"),
            (self.cuts, "connections break"),
            (self.reconnects, "opened anew"),
            (self.crashes, "proxies crash"),
            (self.restarts > 0, "server restarts"),
            (self.meddling, "extends and overwrites by anybody"),
            (self.takeovers > 0, "takeovers"),
            (self.strangers > 0, "writes past the proxy"),
            (self.strays, "a loser's DEL"),
            (self.in_doubt, "releases in doubt"),
        ];
        for (_, words) in switches.iter().filter(|(on, _)| *on) {
            text.push_str("; ");
            text.push_str(words);
        }
        text
    }
}
