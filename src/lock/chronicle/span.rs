//! One lease on a timeline: when it was granted, when it was due, how it ended, and when its holder was done in truth.
//! Values; which event concerns which span is decided beside it.

use crate::event::{ConnectionId, Event, Owner, Time};
use crate::lock::DUE_MARGIN_MS;

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its holder gave it up.
    Released,
    /// Its TTL ran out.
    Expired,
    /// An operator released it.
    Forced,
    /// lockward released it after its owner had gone.
    Disconnect,
    /// Another owner overwrote it.
    TakenOver,
    /// Somebody else's release or overwrite took it away; only where a rule observes.
    Removed,
    /// Nobody here saw how.
    Ended,
}

impl Ending {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Released => "released",
            Ending::Expired => "expired",
            Ending::Forced => "forced",
            Ending::Disconnect => "disconnect",
            Ending::TakenOver => "taken_over",
            Ending::Removed => "removed",
            Ending::Ended => "ended",
        }
    }
}

/// One lease on a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Whose lease.
    pub owner: Owner,
    /// Its connection.
    pub connection: ConnectionId,
    /// When it was granted.
    pub start: Time,
    /// When its TTL runs or ran out; moves with extends and renewals.
    pub due: Option<Time>,
    /// When and how it ended; nothing while it is live. Never before the start.
    pub end: Option<(Time, Ending)>,
    /// When its holder's release came, the lease being over already. Never before the end.
    pub late: Option<Time>,
    /// Somebody else was granted the lock while its holder may have been at work.
    pub overlapped: bool,
    /// Until then its release is expected, if it ended without one.
    pub(super) owed_until: Time,
    /// The TTL as last set, in milliseconds.
    pub(super) ttl_ms: Option<u64>,
    /// Its own event has told the end; without it, the end is concluded from others.
    pub(super) told: bool,
    /// The event that it expired has come.
    pub(super) said_expired: bool,
}

impl Span {
    pub(super) fn new(event: &Event, start: Time, ttl_ms: Option<u64>) -> Span {
        Span {
            owner: event.owner.clone(),
            connection: event.connection.clone(),
            start,
            due: ttl_ms.map(|ttl| start.plus_ms(ttl)),
            end: None,
            late: None,
            overlapped: false,
            owed_until: start,
            ttl_ms,
            told: false,
            said_expired: false,
        }
    }

    /// It ended without a release, which is expected still: its holder may be at work.
    pub fn is_owed(&self, now: Time) -> bool {
        self.is_unpaid() && now < self.owed_until
    }

    /// It ended without a release, and none has come since.
    pub(super) fn is_unpaid(&self) -> bool {
        matches!(self.end, Some((_, Ending::Expired | Ending::Removed))) && self.late.is_none()
    }

    pub(super) fn is_live(&self) -> bool {
        self.end.is_none()
    }

    /// Live as far as was told, but its time is over.
    pub(super) fn has_run_out(&self, at: Time) -> bool {
        self.is_live() && self.is_past_due(at)
    }

    pub(super) fn is_past_due(&self, at: Time) -> bool {
        // Not quite there counts as well.
        self.due.is_some_and(|due| due <= at.plus_ms(DUE_MARGIN_MS))
    }

    pub(super) fn is_of(&self, event: &Event) -> bool {
        self.connection == event.connection && self.owner == event.owner
    }

    /// Ends it, for now (`told`: for good). What came later than that end came at the end.
    pub(super) fn ends(&mut self, at: Time, how: Ending, told: bool, window_ms: u64) {
        let at = at.max(self.start);
        self.end = Some((at, how));
        self.told = told;
        self.late = self.late.map(|late| late.max(at));
        self.owed_until = at.plus_ms(window_ms);
    }

    /// Another lease on the lock was granted, so this one is over: by its TTL if that had come, or else unseen.
    pub(super) fn gives_way(&mut self, at: Time, window_ms: u64) {
        if self.has_run_out(at) {
            let end = self.due.map_or(at, |due| due.min(at));
            self.ends(end, Ending::Expired, false, window_ms);
        } else if self.is_live() {
            self.ends(at, Ending::Ended, false, window_ms);
        }
    }

    /// Takes a TTL that was set at `at` as the full one.
    pub(super) fn set_ttl(&mut self, at: Time, ttl_ms: Option<u64>) {
        self.ttl_ms = ttl_ms;
        self.due = ttl_ms.map(|ttl| at.plus_ms(ttl));
    }

    /// The release came at last. Returns how long its holder had worked, in milliseconds.
    pub(super) fn paid(&mut self, at: Time, overrun_ms: Option<u64>) -> u64 {
        let end = self.end.map_or(at, |(end, _)| end);
        let late = at.max(end);
        self.late = Some(late);
        let overrun_ms = overrun_ms.unwrap_or(late.since(end) / 1000);
        (end.since(self.start) / 1000).saturating_add(overrun_ms)
    }
}
