//! When a lease needs a chore, and in which order chores go out. Here alone anything is handed out; what comes back is
//! read elsewhere.

use std::collections::VecDeque;

use super::Keeper;
use super::lease::{Lease, LeaseId, LockId, MarkKind, MarkState, Pending, Phase, Step};
use crate::event::{Event, Renewal, Time, What};
use crate::lock::DUE_MARGIN_MS;
use crate::lock::chore::{Chore, Task};

/// Leases looked at in one tick; the rest a millisecond later.
const TIMERS_PER_TICK: usize = 10_000;

/// Chores waiting for their turn, in three classes that take turns, so that a flood in one delays no other.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Renewals and releases.
    urgent: VecDeque<Job>,
    checks: VecDeque<Job>,
    marks: VecDeque<Job>,
    turn: usize,
    /// When the next tick is due for what waits here (or for events).
    ready_at: Option<Time>,
    /// A millisecond after the last tick.
    not_before: Time,
    pub(super) under_way: usize,
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Step(LeaseId, Step),
    Mark(LeaseId),
}

impl Queue {
    /// A tick is wanted at `at`.
    pub(super) fn wake(&mut self, at: Time) {
        self.ready_at = Some(self.ready_at.map_or(at, |ready| ready.min(at)));
    }

    pub(super) fn push_mark(&mut self, at: Time, id: LeaseId) {
        self.marks.push_back(Job::Mark(id));
        self.wake(at);
    }

    fn push_step(&mut self, at: Time, id: LeaseId, step: Step) {
        let class = if step == Step::Check {
            &mut self.checks
        } else {
            &mut self.urgent
        };
        class.push_back(Job::Step(id, step));
        self.wake(at);
    }

    pub(super) fn len(&self) -> usize {
        self.urgent.len() + self.checks.len() + self.marks.len()
    }

    /// Drops the jobs of leases that are not known any more.
    fn keep(&mut self, is_known: impl Fn(LeaseId) -> bool) {
        for class in [&mut self.urgent, &mut self.checks, &mut self.marks] {
            class.retain(|job| match job {
                Job::Step(id, _) | Job::Mark(id) => is_known(*id),
            });
        }
    }

    fn pop(&mut self) -> Option<Job> {
        for _ in 0..3 {
            self.turn = (self.turn + 1) % 3;
            let class = match self.turn {
                0 => &mut self.urgent,
                1 => &mut self.checks,
                _ => &mut self.marks,
            };
            if let Some(job) = class.pop_front() {
                return Some(job);
            }
        }
        None
    }
}

impl Keeper {
    /// When [`Keeper::tick`] is due; `None`: not before something else happens.
    pub fn deadline(&self) -> Option<Time> {
        let has_room = self.queue.under_way < self.limits.chores_under_way;
        let wants = !self.outbox.is_empty() || (self.queue.len() > 0 && has_room);
        let ready = self.queue.ready_at.filter(|_| wants);
        let timer = self.book.next_timer().map(|timer| timer.max(self.queue.not_before));
        [ready, timer].into_iter().flatten().min()
    }

    /// How many chores are handed out and not yet done.
    pub fn under_way(&self) -> usize {
        self.queue.under_way
    }

    /// Looks at every lease whose time has come, and hands out chores and events. `at` never goes back.
    pub fn tick(&mut self, at: Time, chores: &mut Vec<Chore>, events: &mut Vec<Event>) {
        self.waiters.forget_old(at);
        let mut looked_at = 0;
        while looked_at < TIMERS_PER_TICK
            && let Some(id) = self.book.pop_timer(at)
        {
            self.look_at(id, at);
            looked_at += 1;
        }
        // Leases that come and go while the server answers no chores must not pile up here.
        if self.queue.len() > 2 * self.book.len() + 1024 {
            let book = &self.book;
            self.queue.keep(|id| book.lease(id).is_some());
        }
        self.hand_out(at, chores);
        events.append(&mut self.outbox);
        // What is left over waits for the next tick, so that one tick never takes long.
        self.queue.not_before = at.plus_ms(1);
        self.queue.ready_at = (self.queue.len() > 0).then_some(self.queue.not_before);
    }

    /// Puts the lease where it belongs in the timer queue.
    pub(super) fn plan(&mut self, id: LeaseId) {
        let Some(lease) = self.book.lease(id) else { return };
        let step = match lease.phase {
            _ if lease.pending.is_some() => None,
            Phase::Owed { until } => Some(until),
            Phase::Unsure { check_at, .. } => Some(check_at),
            Phase::Live => {
                let due = lease.due.map(|due| due.plus_ms(DUE_MARGIN_MS));
                let renewal = lease.renew_at.filter(|_| self.may_renew(lease));
                let renewal = renewal.filter(|renew_at| lease.due.is_none_or(|due| *renew_at < due));
                [due, renewal, lease.leave_at, lease.endless_look()]
                    .into_iter()
                    .flatten()
                    .min()
            }
        };
        let mark = lease.mark.and_then(|mark| match mark.state {
            MarkState::RetryAt(time) => Some(time),
            MarkState::Queued | MarkState::Sent | MarkState::Done => None,
        });
        let next = [step, mark].into_iter().flatten().min();
        self.book.set_timer(id, next);
    }

    /// Whether renewals go on for this lease: its owner is here and nobody here watches the lock.
    fn may_renew(&self, lease: &Lease) -> bool {
        lease.is_live()
            && !lease.is_observed()
            && !lease.renewal_over
            && lease.renew_at.is_some()
            && lease.ttl_ms.is_some()
            && self.book.is_here(lease.owner_id)
            && !self.book.is_watched(&lease.lock())
    }

    fn look_at(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        if let Some(mark) = lease.mark
            && matches!(mark.state, MarkState::RetryAt(time) if time <= at)
        {
            self.set_mark_state(id, MarkState::Queued);
            self.queue.push_mark(at, id);
        }
        let Some(lease) = self.book.lease(id) else { return };
        match lease.phase {
            _ if lease.pending.is_some() => {}
            Phase::Owed { until } if until <= at => {
                self.book.remove(id);
            }
            Phase::Unsure { check_at, .. } if check_at <= at => self.ask_now(id, at),
            Phase::Live => self.look_at_live(id, at),
            Phase::Owed { .. } | Phase::Unsure { .. } => {}
        }
        self.plan(id);
    }

    fn look_at_live(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        if lease.due.is_some_and(|due| due.plus_ms(DUE_MARGIN_MS) <= at) {
            self.ask(id, at);
            self.ask_now(id, at);
        } else if [lease.leave_at, lease.endless_look()]
            .into_iter()
            .flatten()
            .any(|look_at| look_at <= at)
        {
            self.begin(id, at, Step::Look);
        } else if lease.renew_at.is_some_and(|renew_at| renew_at <= at) && self.may_renew(lease) {
            let max_hold_ms = self.rule(lease.rule).map_or(0, |rule| rule.max_hold_ms);
            if at < lease.granted.plus_ms(max_hold_ms) {
                self.begin(id, at, Step::Renew);
            } else {
                self.outbox.push(lease.event(at, What::Renewal(Renewal::Capped)));
                self.book.change(id, |lease| lease.renewal_over = true);
            }
        }
    }

    fn ask_now(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        if !lease.is_observed() {
            self.begin(id, at, Step::Check);
        } else if lease.is_past_due(at) && !lease.is_given_up() {
            self.expired(id, at);
        } else {
            // Nothing on the server can be asked about it: it ended, and the observed traffic did not say how.
            self.outbox.push(lease.event(at, What::Ended));
            self.book.remove(id);
        }
    }

    pub(super) fn begin(&mut self, id: LeaseId, at: Time, step: Step) {
        self.book
            .change(id, |lease| lease.pending = Some(Pending { step, sent: None }));
        self.queue.push_step(at, id, step);
    }

    fn hand_out(&mut self, at: Time, chores: &mut Vec<Chore>) {
        let room = self.limits.chores_under_way.saturating_sub(self.queue.under_way);
        let mut left = room.min(self.limits.chores_per_tick);
        while left > 0
            && let Some(job) = self.queue.pop()
        {
            let chore = match job {
                Job::Step(id, step) => self.step_chore(id, step, at),
                Job::Mark(id) => self.mark_chore(id),
            };
            if let Some(chore) = chore {
                chores.push(chore);
                self.queue.under_way += 1;
                left -= 1;
            }
        }
    }

    /// The chore of a queued step, if it is still wanted when its turn comes.
    fn step_chore(&mut self, id: LeaseId, step: Step, at: Time) -> Option<Chore> {
        let lease = self.book.lease(id)?;
        if !lease
            .pending
            .is_some_and(|pending| pending.step == step && pending.sent.is_none())
        {
            return None;
        }
        let token = lease.token;
        let task = match (step, lease.ttl_ms) {
            (Step::Renew, Some(ttl_ms)) if self.may_renew(lease) && lease.due.is_some_and(|due| at < due) => {
                Some(Task::Renew { token, ttl_ms })
            }
            (Step::Renew, _) => None,
            (Step::Check, _) => (!lease.is_live()).then_some(Task::Check { token }),
            (Step::Look, _) => lease.leave_at.or(lease.endless_look()).map(|_| Task::Check { token }),
            (Step::Free, _) => lease.leave_at.map(|_| Task::Free { token: Some(token) }),
        };
        let chore = task.map(|task| Chore {
            database: lease.database,
            key: lease.key.clone(),
            task,
        });
        let pending = chore.is_some().then_some(Pending { step, sent: Some(at) });
        self.book.change(id, |lease| {
            lease.pending = pending;
            if step == Step::Renew && lease.due.is_some_and(|due| due <= at) {
                // Too late for this one: the look after the due time decides.
                lease.renew_at = lease.due;
            }
        });
        self.plan(id);
        chore
    }

    /// The chore of a queued mark; it speaks for every lease on the lock that wants the same.
    fn mark_chore(&mut self, id: LeaseId) -> Option<Chore> {
        let lease = self.book.lease(id)?;
        let mark = lease.mark.filter(|mark| mark.state == MarkState::Queued)?;
        let chore = Chore {
            database: lease.database,
            key: lease.key.clone(),
            task: lease.mark_task(mark.kind),
        };
        for id in self.marked_by(&lease.lock(), &chore.task, MarkState::Queued) {
            self.set_mark_state(id, MarkState::Sent);
        }
        Some(chore)
    }

    /// The leases on the lock whose mark in this state is this task.
    pub(super) fn marked_by(&self, lock: &LockId, task: &Task, state: MarkState) -> Vec<LeaseId> {
        let wants = |lease: &Lease| match (
            lease.mark.filter(|mark| mark.state == state).map(|mark| mark.kind),
            task,
        ) {
            (Some(MarkKind::Gone), Task::Gone { connection }) => lease.connection == *connection,
            (Some(MarkKind::DropDebts), Task::DropDebts { owner }) => lease.owner == *owner,
            _ => false,
        };
        self.book
            .on_lock(lock)
            .filter(|(_, lease)| wants(lease))
            .map(|(id, _)| id)
            .collect()
    }

    pub(super) fn set_mark_state(&mut self, id: LeaseId, state: MarkState) {
        self.book.change(id, |lease| {
            if let Some(mark) = &mut lease.mark {
                mark.state = state;
            }
        });
    }
}
