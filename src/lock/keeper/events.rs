//! How the events of the sessions change what the keeper knows. It hands out nothing; it only plans.

use super::lease::{Elsewhere, Lease, LeaseId, LockId, Phase, SETTLE_MS, renewal_after};
use super::{Bound, Keeper, Waited};
use crate::event::{Event, Grant, Operation, Release, ReleaseOutcome, RuleIndex, Time, What};

impl Keeper {
    /// Puts in how long a lease was held where the server did not say: a connection that gives up what it holds itself,
    /// which can only be the youngest lease that it has on the lock. To be done before [`Keeper::event`].
    pub fn complete(&self, event: &mut Event) {
        if let What::Release(release) = &mut event.what
            && release.outcome == ReleaseOutcome::Released
            && release.held_ms.is_none()
        {
            let lock = (event.database, event.key.clone());
            let own =
                |lease: &Lease| lease.connection == event.connection && !matches!(lease.phase, Phase::Owed { .. });
            let leases = self.book.on_lock(&lock).rev();
            release.held_ms = leases
                .map(|(_, lease)| lease)
                .find(|lease| own(lease))
                .map(|lease| lease.held_ms(event.at));
        }
    }

    /// Takes note of one event of a session. `bond` is that of the event's owner. A grant ends the wait of its owner.
    pub fn event(&mut self, event: &Event, bond: Bound) -> Option<Waited> {
        if is_by_asker(&event.what) {
            self.bound(event.connection.number, event.rule, &event.owner);
        }
        match &event.what {
            What::Granted(grant) => {
                self.grant(event, grant, bond);
                return self.waiters.granted(event);
            }
            What::Contended { .. } if self.is_too_long(&event.key) => self.dropped.waiters += 1,
            What::Contended { .. } => {
                self.waiters.contended(event);
                self.waiters.forget_old(event.at);
            }
            What::Release(release) => self.release(event, release),
            What::Extended { ttl_ms, .. } | What::Overwritten { ttl_ms, .. } => self.ttl_changed(event, *ttl_ms),
            What::TakenOver => {
                // Open to all from now on, and nothing is owed for it.
                let taken = self.current(&lock_of(event));
                if let Some(id) = taken.filter(|id| self.book.lease(*id).is_some_and(|l| !l.has_run_out(event.at))) {
                    self.book.remove(id);
                }
            }
            What::Expired { .. } => self.seen_ended(event, true),
            What::Ended => self.seen_ended(event, false),
            What::Refused(refusal) if refusal.operation == Operation::Overwrite => self.swept_away(event),
            What::AcquireFailed | What::Refused(_) | What::Renewal(_) | What::DebtsDropped { .. } => {}
        }
        None
    }

    fn grant(&mut self, event: &Event, grant: &Grant, bond: Bound) {
        let lock = lock_of(event);
        self.supersede(&lock, event.at);
        if self.is_too_long(&event.key) || !self.make_room(event.rule, event.key.len()) {
            self.dropped.leases += 1;
            return;
        }
        let renews = self.rule(event.rule).is_some_and(|rule| rule.renew);
        let closed = self.departed.get(&event.connection.number).copied();
        let lease = Lease {
            connected: closed.is_none(),
            // What is not told of is not marked, so that it is.
            elsewhere: match self.companion {
                Elsewhere::Before => Elsewhere::Before,
                Elsewhere::Nowhere | Elsewhere::After => Elsewhere::Nowhere,
            },
            renew_at: renews.then(|| renewal_after(event.at, grant.ttl_ms)),
            ..Lease::new(event, grant, bond)
        };
        let (id, crowded) = self.book.insert(lease);
        self.dropped.leases += u64::from(crowded);
        if let Some(how) = closed {
            self.leave_lease(id, event.at, how);
        }
        self.plan(id);
    }

    /// A grant shows that every older lease on the lock has ended. How, its own event or the server will say.
    pub(super) fn supersede(&mut self, lock: &LockId, at: Time) {
        let older: Vec<LeaseId> = self
            .book
            .on_lock(lock)
            .filter(|(_, lease)| lease.is_held())
            .map(|(id, _)| id)
            .collect();
        for id in older {
            self.book.change(id, |lease| {
                let given_up = !lease.is_past_due(at);
                lease.phase = Phase::Unsure {
                    check_at: at.plus_ms(SETTLE_MS),
                    superseded: true,
                    given_up,
                };
            });
            self.plan(id);
        }
    }

    /// Makes room for one more lease with a key of so many bytes.
    pub(super) fn make_room(&mut self, rule: RuleIndex, key: usize) -> bool {
        while self.book.len() >= self.limits.leases || self.book.key_bytes() + key > self.limits.key_bytes {
            let Some(id) = self.expendable(rule) else { return false };
            self.book.remove(id);
            self.dropped.leases += 1;
        }
        true
    }

    /// What can be forgotten for a lease of this rule: debts go first, then leases that need no care. Without its debt a
    /// connection's end is not marked, and a lock may stay longer.
    fn expendable(&self, rule: RuleIndex) -> Option<LeaseId> {
        if let Some(debt) = self.book.oldest_debt() {
            return Some(debt);
        }
        let careless = (0..=u16::MAX).map(RuleIndex).zip(&self.rules);
        let careless = careless.filter(|(_, settings)| !settings.renew && !settings.release_on_disconnect);
        let gauges = careless.filter_map(|(index, _)| Some((index, self.book.gauge(index)?)));
        let fullest = gauges.max_by_key(|(index, gauge)| (gauge.held.len(), *index == rule));
        fullest.and_then(|(_, gauge)| gauge.held.first()).map(|(_, id)| *id)
    }

    fn release(&mut self, event: &Event, release: &Release) {
        match release.outcome {
            ReleaseOutcome::Released => {
                let number = event.connection.number;
                self.given_up(event, release.held_ms, |lease| lease.connection.number == number);
            }
            ReleaseOutcome::Pooled => self.given_up(event, release.held_ms, |lease| is_owners(lease, event)),
            ReleaseOutcome::SelfChecked | ReleaseOutcome::Forced => self.given_up(event, release.held_ms, |_| true),
            ReleaseOutcome::Late => {
                self.paid(event);
                self.swept_away(event);
            }
            // The server has no such lease: the one known here ended unseen.
            ReleaseOutcome::Absent | ReleaseOutcome::Unmanaged => {
                if let Some(id) = self.current(&lock_of(event)) {
                    self.ask(id, event.at.plus_ms(SETTLE_MS));
                }
            }
            ReleaseOutcome::Foreign => {
                self.foreign_try(event);
                self.swept_away(event);
            }
            // The keeper's own work, and it knows already.
            ReleaseOutcome::Disconnect => {}
        }
    }

    /// Somebody else tried to release the lease that holds the lock.
    fn foreign_try(&mut self, event: &Event) {
        let Some(id) = self.current(&lock_of(event)) else {
            return;
        };
        let own = self.book.lease(id).is_some_and(|lease| lease.owner == event.owner);
        if own {
            // The lock is another's, says the server: this lease ended past this proxy.
            return self.ask(id, event.at.plus_ms(SETTLE_MS));
        }
        self.book.change(id, |lease| lease.foreign_tries += 1);
    }

    /// In observe mode the server has done as it was told, whoever asked: a lease that enforce mode had kept is gone.
    fn swept_away(&mut self, event: &Event) {
        let current = self.current(&lock_of(event));
        let observed = |lease: &Lease| lease.is_observed() && lease.granted <= event.at;
        if let Some(id) = current.filter(|id| self.book.lease(*id).is_some_and(observed)) {
            self.ask(id, event.at.plus_ms(SETTLE_MS));
        }
    }

    /// One of the matching leases was released. Two sessions' events may have changed places on their way, so it can also
    /// be a lease that gave way to a newer one before it was due: the time it was held tells, or else the oldest goes.
    fn given_up(&mut self, event: &Event, held_ms: Option<u64>, matches: impl Fn(&Lease) -> bool) {
        let lock = lock_of(event);
        let current = self.current(&lock);
        let candidates = self.book.on_lock(&lock);
        let candidates =
            candidates.filter(|(id, lease)| (lease.is_given_up() || current == Some(*id)) && matches(lease));
        let granted = held_ms.map(|held_ms| event.at.0.saturating_sub(held_ms.saturating_mul(1000)));
        let ended = candidates.min_by_key(|(_, lease)| granted.map_or(0, |granted| lease.granted.0.abs_diff(granted)));
        if let Some(id) = ended.map(|(id, _)| id) {
            self.book.remove(id);
        }
    }

    /// A release paid a debt: a lease known here has expired, even if nobody has looked yet.
    fn paid(&mut self, event: &Event) {
        let lock = &lock_of(event);
        let owes = |lease: &Lease| match lease.phase {
            Phase::Owed { .. } => !lease.paid,
            Phase::Live | Phase::Unsure { given_up: false, .. } => lease.is_past_due(event.at),
            Phase::Unsure { .. } => false,
        };
        let own = |lease: &Lease| lease.connection == event.connection;
        let debt_of = |who: &dyn Fn(&Lease) -> bool| {
            let mut debts = self.book.on_lock(lock).filter(|(_, lease)| owes(lease) && who(lease));
            debts.next().map(|(id, lease)| (id, lease.phase))
        };
        let own_debt = debt_of(&own);
        let Some((id, phase)) = own_debt.or_else(|| debt_of(&|lease| is_owners(lease, event))) else {
            return;
        };
        let is_own = own_debt.is_some();
        if !matches!(phase, Phase::Owed { .. }) {
            self.expired(id, event.at);
        }
        // A payment under a lease of the same owner may come back (the accounting's third rule): then the debt is kept,
        // so that its connection's end is marked. Paid by its own connection beside somebody else's lease, it is done.
        let current_is_own = self.current(lock).and_then(|id| self.book.lease(id)).is_some_and(own);
        if is_own && !current_is_own {
            self.book.remove(id);
        } else {
            self.book.change(id, |lease| lease.paid = true);
        }
    }

    fn ttl_changed(&mut self, event: &Event, ttl_ms: Option<u64>) {
        let Some(id) = self.current(&lock_of(event)) else {
            return;
        };
        // Past its due time it cannot be this lease that somebody else gave a TTL to.
        let other = |lease: &Lease| lease.owner != event.owner && lease.is_past_due(event.at);
        if self.book.lease(id).is_some_and(other) {
            return;
        }
        self.book.change(id, |lease| {
            // The first TTL of a lease that had none is no extension: `SETNX`, then `EXPIRE`.
            lease.extensions += u64::from(lease.ttl_ms.is_some());
            lease.set_ttl(event.at, ttl_ms);
            lease.phase = Phase::Live;
        });
        self.plan(id);
    }

    /// A script or the observe model saw that a lease had ended; whose, the event says. That it expired only the keeper
    /// tells metrics and logs (`Shared::witnessed` leaves the others' word out), so that it is counted once; that an
    /// observed one ended otherwise the model has told.
    fn seen_ended(&mut self, event: &Event, expired: bool) {
        let ended = |lease: &Lease| match lease.phase {
            Phase::Owed { .. } => false,
            _ if lease.connection != event.connection || !is_owners(lease, event) => false,
            _ => lease.is_observed() || (expired && (lease.is_superseded() || lease.is_past_due(event.at))),
        };
        let found = self.book.on_lock(&lock_of(event)).find(|(_, lease)| ended(lease));
        match found.map(|(id, lease)| (id, lease.is_observed())) {
            Some((id, _)) if expired => self.expired(id, event.at),
            Some((id, _)) => _ = self.book.remove(id),
            None => {}
        }
    }

    /// The lease on the lock that has not ended as far as is known: mostly the youngest, but grants can arrive the other
    /// way round.
    pub(super) fn current(&self, lock: &LockId) -> Option<LeaseId> {
        let mut held = self.book.on_lock(lock).filter(|(_, lease)| lease.is_held());
        held.next_back().map(|(id, _)| id)
    }

    /// The lease ended by its TTL: said once, and its debt is kept as long as it counts.
    pub(super) fn expired(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        let held_ms = Some(lease.held_ms(lease.due.unwrap_or(at)));
        self.outbox.push(lease.event(at, What::Expired { held_ms }));
        self.queue.wake(at);
        self.becomes_owed(id, at);
    }

    fn becomes_owed(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        let window_ms = self.rule(lease.rule).map_or(0, |rule| rule.window_ms);
        let until = lease.due.unwrap_or(at).plus_ms(window_ms);
        if window_ms == 0 || until <= at {
            self.book.remove(id);
            return;
        }
        self.book.change(id, |lease| {
            lease.phase = Phase::Owed { until };
            lease.leave_at = None;
        });
        if !self.forget_settled(id) {
            self.plan(id);
        }
    }
}

/// Whether the lease is of the event's owner: as the server sees it, which knows no rules. One lock can be acquired
/// under one of them and released under another, by another listener.
fn is_owners(lease: &Lease, event: &Event) -> bool {
    lease.owner == event.owner
}

fn lock_of(event: &Event) -> LockId {
    (event.database, event.key.clone())
}

/// Whether the event's connection is that of somebody who asked, just now.
fn is_by_asker(what: &What) -> bool {
    match what {
        What::Granted(_)
        | What::Contended { .. }
        | What::AcquireFailed
        | What::Refused(_)
        | What::Extended { .. }
        | What::Overwritten { .. }
        | What::TakenOver => true,
        What::Release(release) => !matches!(release.outcome, ReleaseOutcome::Disconnect | ReleaseOutcome::Forced),
        What::Expired { .. } | What::Ended | What::Renewal(_) | What::DebtsDropped { .. } => false,
    }
}
