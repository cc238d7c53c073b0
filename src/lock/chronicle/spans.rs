//! The leases of one lock as a row on a timeline, told from the events as they come: the word that a lease expired may
//! come after the next grant, or after its late release, and two sessions' events may change places. So an end that is
//! only concluded from others is corrected by its own event. A ring: the oldest make room.

use std::collections::VecDeque;

use super::span::{Ending, Span};
use crate::event::{Action, DropReason, Event, Grant, Operation, Refusal, RefusalReason, Release, ReleaseOutcome};
use crate::event::{Renewal, Time, What};

/// The server's word on how long a lease was held names it, if its grant was heard within so much of that moment.
const NAMES_WITHIN_US: u64 = 5_000_000;

/// What an event taught besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// How long a holder worked, from its grant to its release, in milliseconds; whether its TTL had run out before.
    Worked { ms: u64, late: bool },
    /// A lease that was taken without a TTL has one of so many milliseconds now.
    GotTtl(u64),
}

/// The leases of one lock, in the order of their grants.
#[derive(Debug, Default)]
pub(super) struct Spans {
    ring: VecDeque<Span>,
}

impl Spans {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Span> {
        self.ring.iter()
    }

    /// Bytes in use, owners counted once for each span.
    pub(super) fn bytes(&self) -> usize {
        let owners: usize = self.ring.iter().map(|span| span.owner.len()).sum();
        self.ring.capacity() * size_of::<Span>() + owners
    }

    /// Takes note of one event. `window_ms` is the rule's `late_release_window`; `most`: no more spans than this.
    pub(super) fn event(&mut self, event: &Event, window_ms: u64, most: usize) -> Option<Learned> {
        match &event.what {
            What::Granted(grant) => self.granted(event, grant, window_ms, most),
            What::Release(release) => return self.released(event, release, window_ms, most),
            What::Refused(refusal) => self.refused(event, refusal, window_ms),
            What::Extended { ttl_ms, .. } | What::Overwritten { ttl_ms, .. } => {
                return self.ttl_changed(event, *ttl_ms);
            }
            What::TakenOver => self.taken_over(event, window_ms),
            What::Expired { held_ms } => self.expired(event, held_ms.unwrap_or(0), window_ms),
            What::Ended => self.ended(event, window_ms),
            What::Renewal(Renewal::Extended) => self.renewed(event),
            What::DebtsDropped {
                reason: DropReason::Cap,
                count,
            } => self.forgiven(event.at, *count),
            // What fell out of the window is not owed any more without being told.
            What::DebtsDropped {
                reason: DropReason::Window,
                ..
            } => {}
            What::Contended { .. } | What::AcquireFailed | What::Renewal(Renewal::Lost | Renewal::Capped) => {}
        }
        None
    }

    fn granted(&mut self, event: &Event, grant: &Grant, window_ms: u64, most: usize) {
        if let Some(last) = self.ring.back_mut() {
            last.gives_way(event.at, window_ms);
            last.overlapped |= grant.overlap && (last.is_unpaid() || !last.told);
        }
        for span in &mut self.ring {
            // Of what was taken away from its holder, the server knows nothing.
            let removed = matches!(span.end, Some((_, Ending::Removed)));
            span.overlapped |= removed && span.is_owed(event.at) && span.owner != event.owner;
        }
        self.make_room(most);
        self.ring.push_back(Span::new(event, event.at, grant.ttl_ms));
    }

    /// For one more; before it comes, or else the ring doubles its room for it.
    fn make_room(&mut self, most: usize) {
        while self.ring.len() >= most.max(1) {
            self.ring.pop_front();
        }
    }

    fn released(&mut self, event: &Event, release: &Release, window_ms: u64, most: usize) -> Option<Learned> {
        let worked = release.held_ms.map(|ms| Learned::Worked { ms, late: false });
        let (how, fits): (Ending, &dyn Fn(&Span) -> bool) = match release.outcome {
            ReleaseOutcome::Released => (Ending::Released, &|span| span.connection == event.connection),
            ReleaseOutcome::Pooled => (Ending::Released, &|span| span.owner == event.owner),
            ReleaseOutcome::SelfChecked => (Ending::Released, &|_| true),
            ReleaseOutcome::Disconnect => (Ending::Disconnect, &|span| span.is_of(event)),
            ReleaseOutcome::Forced => (Ending::Forced, &|_| true),
            ReleaseOutcome::Late => return self.paid(event, release.overrun_ms, window_ms),
            ReleaseOutcome::Unmanaged => return self.gave_up_adrift(event, window_ms),
            ReleaseOutcome::Foreign | ReleaseOutcome::Absent => return self.gave_up_what_was_removed(event),
        };
        self.given_up(event, release.held_ms, how, fits, (window_ms, most));
        // Nobody worked until lockward or an operator ended it.
        worked.filter(|_| how == Ending::Released)
    }

    /// One of the fitting leases was released: the one that was held for so long, or else the oldest whose end is not
    /// told. One that this proxy has never heard of was granted through another: it is taken in with its end.
    fn given_up(
        &mut self,
        event: &Event,
        held_ms: Option<u64>,
        how: Ending,
        fits: &dyn Fn(&Span) -> bool,
        (window_ms, most): (u64, usize),
    ) {
        let start = held_ms.map(|held_ms| Time(event.at.0.saturating_sub(held_ms.saturating_mul(1000))));
        let distance = |span: &Span| start.map_or(0, |start| span.start.0.abs_diff(start.0));
        let places = 0..self.ring.len();
        let open = places.filter_map(|place| Some((place, self.ring.get(place)?)));
        let open = open.filter(|(_, span)| !span.told && fits(span) && distance(span) <= NAMES_WITHIN_US);
        let place = open.min_by_key(|(_, span)| distance(span)).map(|(place, _)| place);
        let next = place.and_then(|place| self.ring.get(place + 1)).map(|next| next.start);
        match (place.and_then(|place| self.ring.get_mut(place)), start) {
            (Some(span), _) => span.ends(next.map_or(event.at, |next| next.min(event.at)), how, true, window_ms),
            (None, Some(start)) => {
                let mut span = Span::new(event, start, None);
                span.ends(event.at, how, true, window_ms);
                self.make_room(most);
                let place = self.ring.partition_point(|other| other.start <= start);
                self.ring.insert(place, span);
            }
            (None, None) => {}
        }
    }

    /// A late release: for the connection's own lease that ran out, or else for the owner's oldest that is owed. Of several
    /// the length of the overrun tells which.
    fn paid(&mut self, event: &Event, overrun_ms: Option<u64>, window_ms: u64) -> Option<Learned> {
        let at = event.at;
        let owes = |span: &Span| span.has_run_out(at) || (span.is_owed(at) && !is_removed(span));
        let expiry = overrun_ms.map(|overrun_ms| at.0.saturating_sub(overrun_ms.saturating_mul(1000)));
        let distance = |span: &Span| match (expiry, span.end.map_or(span.due, |(end, _)| Some(end))) {
            (Some(expiry), Some(end)) => end.0.abs_diff(expiry),
            _ => 0,
        };
        let debts = |whose: &dyn Fn(&Span) -> bool| {
            let places = (0..self.ring.len()).filter(|place| {
                let span = self.ring.get(*place);
                span.is_some_and(|span| owes(span) && whose(span))
            });
            places.min_by_key(|place| self.ring.get(*place).map(&distance))
        };
        let place =
            debts(&|span| span.connection == event.connection).or_else(|| debts(&|span| span.owner == event.owner));
        let Some(span) = place.and_then(|place| self.ring.get_mut(place)) else {
            return self.gave_up_what_was_removed(event);
        };
        if !span.told {
            let end = span.end.map_or(span.due, |(end, _)| Some(end)).unwrap_or(at);
            span.ends(end.min(at), Ending::Expired, true, window_ms);
        }
        let ms = span.paid(at, overrun_ms);
        Some(Learned::Worked { ms, late: true })
    }

    /// A release whose lease was taken away before: its holder is done only now.
    fn gave_up_what_was_removed(&mut self, event: &Event) -> Option<Learned> {
        let owed = |span: &Span| is_removed(span) && span.is_owed(event.at);
        let own = |span: &Span| owed(span) && span.connection == event.connection;
        let owners = |span: &Span| owed(span) && span.owner == event.owner;
        let place = self
            .ring
            .iter()
            .position(own)
            .or_else(|| self.ring.iter().position(owners))?;
        let ms = self.ring.get_mut(place)?.paid(event.at, None);
        Some(Learned::Worked { ms, late: false })
    }

    /// A release of a lock without a live record: the holder's, if its expiry was changed past lockward.
    fn gave_up_adrift(&mut self, event: &Event, window_ms: u64) -> Option<Learned> {
        let live = self.ring.back_mut().filter(|span| span.is_live());
        let own = live.filter(|span| span.connection == event.connection || span.owner == event.owner);
        let Some(span) = own else {
            return self.gave_up_what_was_removed(event);
        };
        span.ends(event.at, Ending::Released, false, window_ms);
        None
    }

    /// Where a rule only observes, what would have been refused was done: the lock is gone, or somebody else's.
    fn refused(&mut self, event: &Event, refusal: &Refusal, window_ms: u64) {
        let takes_away = match (refusal.action, refusal.operation, refusal.reason) {
            (Action::Refused, _, _) | (_, Operation::Extend, _) | (_, _, RefusalReason::Unmanaged) => false,
            (Action::Observed, Operation::Release | Operation::Overwrite, _) => true,
        };
        let Some(span) = self.ring.back_mut().filter(|span| takes_away && span.is_live()) else {
            return;
        };
        if span.connection == event.connection {
            span.ends(event.at, Ending::Released, true, window_ms);
        } else if !span.is_past_due(event.at) {
            span.ends(event.at, Ending::Removed, true, window_ms);
        }
    }

    fn ttl_changed(&mut self, event: &Event, ttl_ms: Option<u64>) -> Option<Learned> {
        let span = self.ring.back_mut().filter(|span| span.is_live())?;
        // Past its due time it cannot be this lease that somebody else gave a TTL to.
        if span.owner != event.owner && span.is_past_due(event.at) {
            return None;
        }
        let had_none = span.ttl_ms.is_none();
        span.set_ttl(event.at, ttl_ms);
        ttl_ms.filter(|_| had_none).map(Learned::GotTtl)
    }

    fn renewed(&mut self, event: &Event) {
        let live = self.ring.back_mut().filter(|span| span.is_live() && span.is_of(event));
        if let Some(span) = live {
            span.set_ttl(event.at, span.ttl_ms);
        }
    }

    fn taken_over(&mut self, event: &Event, window_ms: u64) {
        let live = self
            .ring
            .back_mut()
            .filter(|span| span.is_live() && !span.is_past_due(event.at));
        if let Some(span) = live {
            span.ends(event.at, Ending::TakenOver, true, window_ms);
        }
    }

    /// The oldest of this connection that nobody has called expired yet, and that can have been held for so long.
    fn expired(&mut self, event: &Event, held_ms: u64, window_ms: u64) {
        let can_be = |span: &&mut Span| {
            let open = !span.told || matches!(span.end, Some((_, Ending::Expired)));
            span.is_of(event)
                && open
                && !span.said_expired
                && span.start.plus_ms(held_ms) <= event.at.plus_ms(NOTICED_MS)
        };
        if let Some(span) = self.ring.iter_mut().find(can_be) {
            let end = span.start.plus_ms(held_ms).min(event.at);
            span.ends(end, Ending::Expired, true, window_ms);
            span.said_expired = true;
        }
    }

    /// Whether the end of this lease has been told already: that it was found out afterwards as well is no news.
    pub(super) fn knows_the_end(&self, event: &Event) -> bool {
        let mut own = self.ring.iter().filter(|span| span.is_of(event));
        own.next_back().is_some_and(|span| span.told) && own.all(|span| span.told)
    }

    /// Its end was found out afterwards: when exactly, the next grant may have told.
    fn ended(&mut self, event: &Event, window_ms: u64) {
        if let Some(span) = self.ring.iter_mut().find(|span| !span.told && span.is_of(event)) {
            let end = span.end.map_or(event.at, |(end, _)| end);
            span.ends(end, Ending::Ended, true, window_ms);
        }
    }

    /// So many owed releases are not waited for any more, the oldest first.
    fn forgiven(&mut self, at: Time, count: u32) {
        let owed = self.ring.iter_mut().filter(|span| span.is_owed(at));
        for span in owed.take(usize::try_from(count).unwrap_or(usize::MAX)) {
            span.owed_until = at;
        }
    }
}

/// The keeper's clock and the chronicle's are one, but a millisecond may be rounded away.
const NOTICED_MS: u64 = 2;

fn is_removed(span: &Span) -> bool {
    matches!(span.end, Some((_, Ending::Removed)))
}
