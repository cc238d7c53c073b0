//! What lockward does with a lease on its own account, on its own upstream connection: renewal, release on disconnect
//! or by force, marks for closed connections, looking. Plain values; the scripts behind them stand in `script`.

use bytes::{Bytes, BytesMut};

use super::call;
use super::script::Script;
use crate::event::{ConnectionId, Owner, Token};
use crate::resp::frame;

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
    let (script, argv) = match &chore.task {
        Task::Renew { token, ttl_ms } => (Script::Renew, vec![text(token.0), text(ttl_ms)]),
        Task::Free { token: Some(token) } => (Script::Free, vec![text(token.0)]),
        Task::Free { token: None } => (Script::Free, vec![text('-')]),
        Task::Gone { connection } => (Script::Gone, vec![text(connection)]),
        Task::DropDebts { owner } => (Script::Drop, vec![text(owner)]),
        Task::Check { token } => (Script::Check, vec![text(token.0)]),
        Task::Inspect => (Script::Inspect, Vec::new()),
    };
    call::encode_own(script, prefix, &chore.key, &argv, out);
}

fn text(value: impl ToString) -> Bytes {
    Bytes::from(value.to_string())
}

/// Reads the whole reply to a chore. `None` if it is an error or makes no sense.
pub fn parse_chore(task: &Task, reply: &[u8]) -> Option<Done> {
    let words = bulks(reply)?;
    if let Task::Inspect = task {
        return seen(&words).map(Done::Seen);
    }
    let mut parts = words.first()?.split(' ');
    let word = parts.next()?;
    let number = parts.next();
    Some(match word {
        "renewed" => Done::Renewed {
            ttl_ms: number?.parse().ok()?,
        },
        "doubtful" => Done::Doubtful,
        "lost" => Done::Lost,
        "freed" => Done::Freed {
            held_ms: number?.parse().ok(),
        },
        "absent" => Done::Absent,
        "marked" => Done::Marked,
        "live" => Done::Live {
            ttl_ms: number?.parse().ok(),
        },
        "expired" => Done::Expired,
        "ended" => Done::Ended,
        _ => return None,
    })
}

/// The texts of one bulk string or of one flat array of them.
fn bulks(reply: &[u8]) -> Option<Vec<&str>> {
    let text = |frame| std::str::from_utf8(frame::bulk(frame)?).ok();
    match frame::elements(reply) {
        Some(elements) => elements.map(text).collect(),
        None => Some(vec![text(reply)?]),
    }
}

/// Field and value by turns.
fn seen(words: &[&str]) -> Option<Seen> {
    let mut seen = Seen::default();
    for pair in words.chunks(2) {
        let [field, value] = pair else { return None };
        match *field {
            "exists" => seen.exists = *value == "1",
            "state" => seen.state = (*value).to_owned(),
            "ttl" => seen.ttl_ms = value.parse().ok(),
            "owner" => seen.owner = Some((*value).to_owned()),
            "connection" => seen.connection = Some((*value).to_owned()),
            "connection_open" => seen.connection_open = true,
            "fence" => seen.fence = value.parse().ok(),
            "acquired_at" => seen.acquired_at_ms = value.parse().ok(),
            "debt" => {
                let (due, owner) = value.split_once(' ')?;
                seen.debts.push((owner.to_owned(), due.parse().ok()?));
            }
            _ => {}
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let renew = Task::Renew {
            token: Token(uuid::Uuid::nil()),
            ttl_ms: 5,
        };
        assert_eq!(
            parse_chore(&renew, b"$11\r\nrenewed 400\r\n"),
            Some(Done::Renewed { ttl_ms: 400 })
        );
        assert_eq!(
            parse_chore(&renew, b"$7\r\nlive -1\r\n"),
            Some(Done::Live { ttl_ms: None })
        );
        assert_eq!(parse_chore(&renew, b"-NOPERM no\r\n"), None);
        assert_eq!(parse_chore(&renew, b"$400\r\nfreed"), None);
    }

    #[test]
    fn an_inspection_is_read() {
        let reply = b"*8\r\n$6\r\nexists\r\n$1\r\n1\r\n$5\r\nstate\r\n$4\r\nheld\r\n$3\r\nttl\r\n$2\r\n-1\r\n\
            $4\r\ndebt\r\n$9\r\n170 any=x\r\n";
        let Some(Done::Seen(seen)) = parse_chore(&Task::Inspect, reply) else {
            panic!("an inspection")
        };
        assert!(seen.exists && seen.ttl_ms.is_none());
        assert_eq!(
            (seen.state.as_str(), seen.debts),
            ("held", vec![("any=x".to_owned(), 170)])
        );
    }
}
