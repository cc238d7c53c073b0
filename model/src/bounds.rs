//! What is explored: each configuration says who there is and what may happen. The exhaustive ones together are what
//! `docs/model.md` claims; the small ones are for the mutants and the quick look.

use crate::state::{CONNECTIONS, OwnerId, PROXIES};

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
    /// Part of the quick look.
    pub quick: bool,
}

const NONE: Bounds = Bounds {
    name: "",
    about: "",
    owners: [0, 0, 1],
    proxies: [0, 1, 1],
    connections: 3,
    leases: 4,
    pipeline: 1,
    allow: true,
    default_ttl: false,
    endless: false,
    closes: false,
    crashes: false,
    cuts: false,
    in_doubt: false,
    meddling: true,
    restarts: 0,
    strangers: 0,
    takeovers: 0,
    strays: false,
    quick: false,
};

/// All that is explored without a mutant.
pub const ALL: &[Bounds] = &[
    Bounds {
        name: "small",
        about: "a pool of two connections and another owner, three leases; closed by clients",
        closes: true,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "pool-of-three",
        about: "one owner with three connections, three leases; closed by clients",
        owners: [0, 0, 0],
        closes: true,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "pipeline",
        about: "two requests under way on each connection",
        connections: 2,
        owners: [0, 1, 0],
        pipeline: 2,
        closes: true,
        leases: 2,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "endless",
        about: "acquires without TTL, `default_ttl` set",
        endless: true,
        default_ttl: true,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "endless-by-hand",
        about: "acquires without TTL, and no `default_ttl`",
        endless: true,
        closes: true,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "unmanaged-allowed",
        about: "somebody writes past the proxy, and the rule allows",
        closes: true,
        strangers: 1,
        leases: 2,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "unmanaged-refused",
        about: "somebody writes past the proxy, and the rule refuses",
        closes: true,
        strangers: 1,
        allow: false,
        leases: 2,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "small-takeover",
        about: "a lock is taken over by GETSET, three leases",
        closes: true,
        takeovers: 1,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "pool",
        about: "a pool of two connections and another owner, four leases; closed by clients",
        closes: true,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "one-owner",
        about: "one owner with three connections, four leases; closed by clients",
        owners: [0, 0, 0],
        closes: true,
        ..NONE
    },
    Bounds {
        name: "pool-breaks",
        about: "the pool of two and another owner, four leases; connections are closed, and break",
        closes: true,
        cuts: true,
        ..NONE
    },
    Bounds {
        name: "one-owner-breaks",
        about: "one owner with three connections, four leases; connections are closed, and break",
        owners: [0, 0, 0],
        closes: true,
        cuts: true,
        ..NONE
    },
    Bounds {
        name: "pool-faults",
        about: "the pool behind two proxies; proxies crash, the server restarts",
        closes: true,
        crashes: true,
        restarts: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "pool-behind-one",
        about: "the pool behind one proxy, the other owner behind the other; proxies crash, the server restarts",
        proxies: [0, 0, 1],
        closes: true,
        crashes: true,
        restarts: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "one-owner-faults",
        about: "one owner behind two proxies; proxies crash, the server restarts",
        owners: [0, 0, 0],
        closes: true,
        crashes: true,
        restarts: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "in-doubt",
        about: "who never heard of his lease sends its release all the same; four leases",
        closes: true,
        cuts: true,
        in_doubt: true,
        ..NONE
    },
    Bounds {
        name: "takeover",
        about: "a lock is taken over by GETSET, four leases",
        closes: true,
        takeovers: 1,
        ..NONE
    },
    Bounds {
        name: "strangers-allow",
        about: "somebody writes past the proxy, the rule allows; three leases",
        closes: true,
        strangers: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "strangers-refuse",
        about: "somebody writes past the proxy, the rule refuses; three leases",
        closes: true,
        strangers: 1,
        allow: false,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "losers-del",
        about: "a loser sends a DEL, four leases",
        closes: true,
        strays: true,
        ..NONE
    },
    Bounds {
        name: "without-ttl",
        about: "acquires without TTL and with, no `default_ttl`; four leases",
        closes: true,
        endless: true,
        ..NONE
    },
    Bounds {
        name: "pipelined",
        about: "two requests under way on each of three connections; three leases",
        closes: true,
        pipeline: 2,
        leases: 3,
        ..NONE
    },
];

/// The configuration of this name.
pub fn named(name: &str) -> Option<&'static Bounds> {
    ALL.iter().find(|bounds| bounds.name == name)
}

impl Bounds {
    pub fn owner(&self, link: u8) -> OwnerId {
        self.owners[usize::from(link)]
    }

    pub fn proxy(&self, link: u8) -> u8 {
        self.proxies[usize::from(link)]
    }

    pub fn links(&self) -> impl Iterator<Item = u8> {
        0..self.connections
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
        let connections: Vec<String> = self.links().map(connection).collect();
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
            (self.closes, "closed by clients"),
            (self.cuts, "connections break"),
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
