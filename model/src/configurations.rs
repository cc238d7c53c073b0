//! What is explored. The exhaustive configurations together are what `docs/model.md` claims; the small ones are for the mutants
//! and the quick look. What a configuration can say is in `bounds`.

use crate::bounds::Bounds;

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
    max_ttl: false,
    max_hold: false,
    reconnects: false,
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
        name: "releases",
        about: "acquires and releases only, three leases: for mutants that an extend would show first",
        closes: true,
        meddling: false,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "small-in-doubt",
        about: "who never heard of his lease sends its release all the same; three leases",
        closes: true,
        cuts: true,
        in_doubt: true,
        leases: 3,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "renewals",
        about: "acquires and overwrites without TTL, PERSIST, `default_ttl`, `max_ttl`; renewed up to `max_hold`; crashes",
        proxies: [0, 0, 1],
        endless: true,
        default_ttl: true,
        max_ttl: true,
        max_hold: true,
        closes: true,
        crashes: true,
        leases: 2,
        quick: true,
        ..NONE
    },
    Bounds {
        name: "small-anew",
        about: "two connections of one owner; each, once it has ended, is opened anew; two leases",
        connections: 2,
        closes: true,
        cuts: true,
        reconnects: true,
        restarts: 1,
        leases: 2,
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
        name: "ttl-faults",
        about: "acquires and overwrites without TTL, GETSET, `default_ttl`; crashes, breaks, a restart; three leases",
        endless: true,
        default_ttl: true,
        closes: true,
        cuts: true,
        crashes: true,
        restarts: 1,
        takeovers: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "renewals-faults",
        about: "renewals up to `max_hold`, with all that takes a TTL off; crashes, breaks, a restart; three leases",
        proxies: [0, 0, 1],
        endless: true,
        default_ttl: true,
        max_ttl: true,
        max_hold: true,
        closes: true,
        cuts: true,
        crashes: true,
        restarts: 1,
        leases: 3,
        ..NONE
    },
    Bounds {
        name: "anew",
        about: "two connections of one owner; each, once it has ended, is opened anew; three leases",
        connections: 2,
        closes: true,
        cuts: true,
        reconnects: true,
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
