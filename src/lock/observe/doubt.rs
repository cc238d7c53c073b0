//! A lease that a script of its owner's may have given up. No answer tells, so somebody has to look whether the lock is
//! still there; who looks, and how, is not known here.

use bytes::Bytes;

use super::{Observatory, milliseconds};
use crate::event::{ConnectionId, Event, Owner, Release, ReleaseOutcome, RuleIndex, Time, What};

/// Which lease of which lock.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// The lock's database.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    pub(super) rule: RuleIndex,
    pub(super) owner: Owner,
    pub(super) connection: ConnectionId,
    pub(super) acquired_at: i64,
}

impl Observatory {
    /// The leases that are in doubt since the last call.
    pub fn take_doubts(&mut self) -> Vec<Doubt> {
        std::mem::take(&mut self.doubts)
    }

    /// The lock was looked for, and is gone. If the lease is still the one in doubt, its owner's script gave it up.
    pub fn gone_since(&mut self, doubt: Doubt, at: Time) -> Option<Event> {
        self.now = self.now.max(at);
        let followed = self.locks.get_mut(&(doubt.database, doubt.key.clone()))?;
        let model = &mut followed.model;
        let same = model
            .holder()
            .is_some_and(|holder| holder.connection == doubt.connection && holder.acquired_at == doubt.acquired_at);
        let now = milliseconds(at);
        let ran_out = model
            .lock
            .is_none_or(|lock| lock.expiry.is_some_and(|expiry| expiry < now));
        if !same || ran_out {
            return None;
        }
        model.lock = None;
        model.settle_early();
        let release = Release {
            outcome: ReleaseOutcome::SelfChecked,
            held_ms: u64::try_from(now - doubt.acquired_at).ok(),
            overrun_ms: None,
        };
        Some(Event {
            at,
            database: doubt.database,
            key: doubt.key,
            rule: doubt.rule,
            owner: doubt.owner,
            connection: doubt.connection,
            what: What::Release(release),
        })
    }
}
