//! What is wrong with a lease that holds its lock, or soon will be, as values. Words for it stand elsewhere.

use super::lease::Lease;
use crate::event::Time;

/// Nobody looks at what lasts shorter: below it a lease is never held for long, in milliseconds.
const LONG_FROM_MS: u64 = 1000;
/// A lease with a shorter TTL always is near its expiry, in milliseconds.
const SHORTEST_TTL_MS: u64 = 1000;
/// Less than one part in so many of its TTL is left: the expiry is near.
const NEAR_PART: u64 = 5;
/// With more left than this no expiry is near, however long the TTL, in milliseconds.
const NEAR_MS: u64 = 60_000;

/// Something about a lease that somebody should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The lock has no TTL.
    NoTtl,
    /// Held for at least a second, and longer than 99 of 100 leases under its rule.
    LongHeld {
        /// 99 of 100 are held no longer, in milliseconds.
        usual_ms: u64,
    },
    /// Of a TTL of at least a second less than a fifth is left, and at most a minute, and it was neither renewed nor
    /// extended so far: whoever holds it does not look after it, and may not be done in time.
    NearExpiry {
        /// What is left; 0 if it has run out and the server has not said yet what became of the lease.
        left_ms: u64,
        /// The full TTL.
        ttl_ms: u64,
    },
    /// Other owners tried to release this lease.
    ForeignRelease {
        /// So often.
        tries: u64,
    },
    /// Earlier leases of the lock ended by their TTL, and their releases have not come.
    Overrun {
        /// So many.
        owed: u64,
    },
}

/// All that is wrong with the lease at `at`. `owed` leases of its lock are owed; 99 of 100 leases of its rule are held no
/// longer than `usual_ms`, where that is known.
pub(super) fn warnings(lease: &Lease, owed: u64, usual_ms: Option<u64>, at: Time) -> impl Iterator<Item = Warning> {
    let held_ms = lease.held_ms(at);
    let long_held = usual_ms.filter(|usual_ms| held_ms > *usual_ms && held_ms >= LONG_FROM_MS);
    let tries = lease.foreign_tries;
    [
        lease.ttl_ms.is_none().then_some(Warning::NoTtl),
        long_held.map(|usual_ms| Warning::LongHeld { usual_ms }),
        near_expiry(lease, at),
        (tries > 0).then_some(Warning::ForeignRelease { tries }),
        (owed > 0).then_some(Warning::Overrun { owed }),
    ]
    .into_iter()
    .flatten()
}

fn near_expiry(lease: &Lease, at: Time) -> Option<Warning> {
    let (ttl_ms, due) = (lease.ttl_ms?, lease.due?);
    let left_ms = due.since(at) / 1000;
    let near = left_ms <= NEAR_MS && left_ms < ttl_ms / NEAR_PART;
    let untouched = lease.renewals == 0 && lease.extensions == 0;
    (near && untouched && ttl_ms >= SHORTEST_TTL_MS).then_some(Warning::NearExpiry { left_ms, ttl_ms })
}
