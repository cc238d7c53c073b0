//! A lease as one process writes it down for the one that takes its place. What it means is the keeper's business.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::admin;
use crate::event::{ConnectionId, Token};
use crate::lock::keeper::Held;
use crate::lock::owner::Bound;

/// One lease. It holds an owner token, so it shows itself nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Legacy {
    database: u32,
    /// Percent-encoded.
    key: String,
    rule: String,
    owner: String,
    bond: Bond,
    instance: String,
    number: u64,
    token: String,
    fence: Option<u64>,
    ttl_ms: Option<u64>,
    left_ms: Option<u64>,
    held_ms: u64,
    leave_ms: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bond {
    Free,
    Connection,
    Process,
}

impl std::fmt::Debug for Legacy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Legacy")
            .field("key", &self.key)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl From<&Held> for Legacy {
    fn from(held: &Held) -> Legacy {
        Legacy {
            database: held.database,
            key: admin::encode(&held.key),
            rule: held.rule.to_string(),
            owner: held.owner.to_string(),
            bond: match held.bond {
                Bound::Free => Bond::Free,
                Bound::Connection => Bond::Connection,
                Bound::Process => Bond::Process,
            },
            instance: held.connection.instance.to_string(),
            number: held.connection.number,
            token: held.token.0.to_string(),
            fence: held.fence,
            ttl_ms: held.ttl_ms,
            left_ms: held.left_ms,
            held_ms: held.held_ms,
            leave_ms: held.leave_ms,
        }
    }
}

impl Legacy {
    /// The lease, if this is one.
    pub(super) fn held(&self) -> Option<Held> {
        Some(Held {
            database: self.database,
            key: Bytes::from(admin::client::key_bytes(&self.key)?),
            rule: self.rule.as_str().into(),
            owner: self.owner.as_str().into(),
            bond: match self.bond {
                Bond::Free => Bound::Free,
                Bond::Connection => Bound::Connection,
                Bond::Process => Bound::Process,
            },
            connection: ConnectionId {
                instance: self.instance.as_str().into(),
                number: self.number,
            },
            token: Token(Uuid::parse_str(&self.token).ok()?),
            fence: self.fence,
            ttl_ms: self.ttl_ms,
            left_ms: self.left_ms,
            held_ms: self.held_ms,
            leave_ms: self.leave_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_the_same_on_the_other_side_and_its_token_shows_nowhere() {
        let held = Held {
            database: 3,
            key: Bytes::from_static(b"lock:\xff %\n"),
            rule: "jobs".into(),
            owner: "address=10.0.0.7".into(),
            bond: Bound::Process,
            connection: ConnectionId {
                instance: "0123456789abcdef".into(),
                number: 7,
            },
            token: Token(Uuid::from_u128(0x1234_5678)),
            fence: Some(9),
            ttl_ms: Some(30_000),
            left_ms: Some(20_000),
            held_ms: 10_000,
            leave_ms: Some(300),
        };
        let legacy = Legacy::from(&held);
        assert!(!format!("{legacy:?}").contains("5678"));
        let line = serde_json::to_string(&legacy).unwrap();
        assert_eq!(serde_json::from_str::<Legacy>(&line).unwrap().held(), Some(held));
    }
}
