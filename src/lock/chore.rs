//! What lockward does with a lease on its own account, on its own upstream connection: renewal, release on disconnect
//! or by force, marks for closed connections, looking. Plain values; the scripts behind them stand in `script`.

use bytes::{Bytes, BytesMut};

use crate::event::{ConnectionId, Owner, Token};

/// One piece of work on one lock key.
#[derive(Clone, Debug)]
pub struct Chore {
    /// The lock's database.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    /// What to do.
    pub task: Task,
}

/// What to do with the lock.
#[derive(Clone, Debug)]
pub enum Task {
    /// Set the TTL of this lease to `ttl_ms` from now, if it is current and has no doubtful payment.
    Renew {
        /// Which lease.
        token: Token,
        /// New TTL in milliseconds.
        ttl_ms: u64,
    },
    /// Release this lease, if it is current.
    Free {
        /// Which lease; `None`: whatever holds the lock now (by force).
        token: Option<Token>,
    },
    /// Mark the connection closed in the record's lease and debts.
    Gone {
        /// Which connection.
        connection: ConnectionId,
    },
    /// The owner ended with its connection: its debts are dropped, and its lease will owe nothing.
    DropDebts {
        /// Which owner.
        owner: Owner,
    },
    /// What became of this lease?
    Check {
        /// Which lease.
        token: Token,
    },
    /// Read the lock and its record.
    Inspect,
}

/// What came of a chore.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// Renewed, TTL left in milliseconds.
    Renewed {
        /// TTL left.
        ttl_ms: u64,
    },
    /// Not renewed: a payment under this lease is doubtful.
    Doubtful,
    /// The lease is not current any more.
    Lost,
    /// The lease was released; held for so long, where known.
    Freed {
        /// From acquire to now, in milliseconds.
        held_ms: Option<u64>,
    },
    /// There was no lock to release.
    Absent,
    /// Marked, dropped or nothing to mark.
    Marked,
    /// The lease is current; TTL left in milliseconds, `None` without TTL.
    Live {
        /// TTL left.
        ttl_ms: Option<u64>,
    },
    /// The lease ended by its TTL; its release is still owed.
    Expired,
    /// The lease ended otherwise, or its record is gone.
    Ended,
    /// The lock as it stands.
    Seen(Seen),
}

/// A lock and its record, without the owner token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The lock key exists.
    pub exists: bool,
    /// `free`, `held`, `unmanaged`, `adrift` or `open`.
    pub state: String,
    /// TTL left of the lock key in milliseconds, `None` without one.
    pub ttl_ms: Option<u64>,
    /// The lease's owner.
    pub owner: Option<String>,
    /// The lease's connection.
    pub connection: Option<String>,
    /// Whether that connection is still open, as far as the record says.
    pub connection_open: bool,
    /// Fencing token.
    pub fence: Option<u64>,
    /// Server time of the acquire, milliseconds since 1970.
    pub acquired_at_ms: Option<i64>,
    /// Unpaid debts on the record: owner and server time of the expiry in milliseconds.
    pub debts: Vec<(String, i64)>,
}

/// Appends the request for a chore: an EVAL with the script's text, answered by what [`parse_chore`] reads.
pub fn encode_chore(chore: &Chore, prefix: &str, out: &mut BytesMut) {
    let _ = (chore, prefix, out);
}

/// Reads the whole reply to a chore. `None` if it is an error or makes no sense.
pub fn parse_chore(task: &Task, reply: &[u8]) -> Option<Done> {
    let _ = (task, reply);
    None
}
