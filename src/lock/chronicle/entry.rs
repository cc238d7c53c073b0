//! One entry of a lock's history: what happened, without what nobody may read (the owner token) and what the history
//! knows anyway (the key). Says what belongs together; it keeps nothing.

use crate::event::{Action, ConnectionId, DropReason, Event, Operation, Owner, Refusal, Release, ReleaseOutcome};
use crate::event::{Renewal, Time, What};

/// One thing that happened to a lock, or several like it in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The number of the event, among all that the chronicle was told; of several, of the last.
    pub id: u64,
    /// When; of several, the first.
    pub at: Time,
    /// The last of several, or the same as `at`.
    pub until: Time,
    /// So many events like this one.
    pub count: u64,
    /// They were not all of one owner; the owner and connection shown are the first's.
    pub several: bool,
    /// Who asked, or whose lease it was.
    pub owner: Owner,
    /// Through which connection.
    pub connection: ConnectionId,
    /// What happened.
    pub what: Happening,
}

/// What happened. As [`What`], without the token, and a refused release is one with its refusal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    /// A new lease.
    Granted(Granted),
    /// An acquire was refused because the lock is held.
    Contended,
    /// An acquire ended in a server error.
    AcquireFailed,
    /// A release, and what was done about it if it was not in order.
    Release(Release, Option<Action>),
    /// An extend or overwrite was refused, or would have been. (A release whose own entry is not to be found, too.)
    Refused(Refusal),
    /// The expiry was changed. TTL left in milliseconds, and whether `max_ttl` cut it.
    Extended(Option<u64>, bool),
    /// The value was overwritten under the same lease. TTL left in milliseconds, and whether `max_ttl` cut it.
    Overwritten(Option<u64>, bool),
    /// A takeover opened the lock to all.
    TakenOver,
    /// A lease ended by its TTL; held for so many milliseconds.
    Expired(Option<u64>),
    /// A lease ended in a way that was only found out afterwards.
    Ended,
    /// What became of a renewal.
    Renewal(Renewal),
    /// So many debts were dropped unpaid.
    DebtsDropped(DropReason, u32),
}

/// What there is to say of a new lease.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Granted {
    /// Its TTL in milliseconds; `None`: none.
    pub ttl_ms: Option<u64>,
    /// The fencing token, where the rule asks for one.
    pub fence: Option<u64>,
    /// From the first refused try of its owner to this grant, in milliseconds.
    pub waited_ms: Option<u64>,
    /// `default_ttl` gave the TTL.
    pub injected: bool,
    /// `max_ttl` cut the TTL.
    pub reduced: bool,
    /// The last holder, somebody else, still owes its release.
    pub overlap: bool,
}

impl Entry {
    /// An entry for one event. `waited_ms` is what the keeper says of a grant.
    pub fn new(id: u64, event: &Event, waited_ms: Option<u64>) -> Entry {
        Entry {
            id,
            at: event.at,
            until: event.at,
            count: 1,
            several: false,
            owner: event.owner.clone(),
            connection: event.connection.clone(),
            what: happening(&event.what, waited_ms),
        }
    }

    /// Takes in an event that is one more of the same in a row. Returns whether it was.
    pub(super) fn takes(&mut self, id: u64, event: &Event) -> bool {
        let same = match (&mut self.what, &event.what) {
            (Happening::Contended, What::Contended { .. }) => {
                self.several |= self.owner != event.owner;
                true
            }
            (Happening::AcquireFailed, What::AcquireFailed) => self.connection == event.connection,
            (Happening::Renewal(Renewal::Extended), What::Renewal(Renewal::Extended)) => {
                self.connection == event.connection
            }
            (Happening::Release(known, None), What::Release(release)) => {
                let absent = |release: &Release| release.outcome == ReleaseOutcome::Absent;
                absent(known) && absent(release) && self.connection == event.connection
            }
            // Heartbeats; the last TTL stands.
            (Happening::Extended(ttl, cut), What::Extended { ttl_ms, reduced }) => {
                let same = self.connection == event.connection && *cut == *reduced;
                if same {
                    *ttl = *ttl_ms;
                }
                same
            }
            _ => false,
        };
        if same {
            self.id = id;
            self.count += 1;
            self.until = self.until.max(event.at);
        }
        same
    }

    /// Takes in the refusal that belongs to this release. Returns whether it did.
    pub(super) fn refused(&mut self, event: &Event, refusal: &Refusal) -> bool {
        match &mut self.what {
            Happening::Release(release, action @ None)
                if refusal.operation == Operation::Release
                    && is_refusable(release.outcome)
                    && self.connection == event.connection =>
            {
                *action = Some(refusal.action);
                true
            }
            _ => false,
        }
    }
}

/// Whether a release with this outcome may have been kept from being done.
pub fn is_refusable(outcome: ReleaseOutcome) -> bool {
    match outcome {
        ReleaseOutcome::Late | ReleaseOutcome::Foreign | ReleaseOutcome::Unmanaged => true,
        ReleaseOutcome::Released
        | ReleaseOutcome::Pooled
        | ReleaseOutcome::Absent
        | ReleaseOutcome::SelfChecked
        | ReleaseOutcome::Disconnect
        | ReleaseOutcome::Forced => false,
    }
}

fn happening(what: &What, waited_ms: Option<u64>) -> Happening {
    match what {
        What::Granted(grant) => Happening::Granted(Granted {
            ttl_ms: grant.ttl_ms,
            fence: grant.fence,
            waited_ms,
            injected: grant.ttl_injected,
            reduced: grant.ttl_reduced,
            overlap: grant.overlap,
        }),
        What::Contended { .. } => Happening::Contended,
        What::AcquireFailed => Happening::AcquireFailed,
        What::Release(release) => Happening::Release(*release, None),
        What::Refused(refusal) => Happening::Refused(*refusal),
        What::Extended { ttl_ms, reduced } => Happening::Extended(*ttl_ms, *reduced),
        What::Overwritten { ttl_ms, reduced } => Happening::Overwritten(*ttl_ms, *reduced),
        What::TakenOver => Happening::TakenOver,
        What::Expired { held_ms } => Happening::Expired(*held_ms),
        What::Ended => Happening::Ended,
        What::Renewal(renewal) => Happening::Renewal(*renewal),
        What::DebtsDropped { reason, count } => Happening::DebtsDropped(*reason, *count),
    }
}
