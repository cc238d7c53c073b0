//! What the results of chores mean for the leases they spoke of.

use super::lease::{Elsewhere, Lease, LeaseId, LockId, MarkState, Phase, SETTLE_MS, Step, backoff, renewal_after};
use super::{Failed, Keeper};
use crate::event::{Release, ReleaseOutcome, Renewal, Time, Token, What};
use crate::lock::chore::{Chore, Done, Task};

/// After so many failures (about two minutes) a mark is given up: without it a lock stays longer, never shorter.
const MARK_ATTEMPTS: u32 = 10;

impl Keeper {
    /// Tells what came of a chore that a tick handed out. Chores of others (by force, looking) are ignored.
    pub fn done(&mut self, at: Time, chore: &Chore, result: Result<&Done, Failed>) {
        let lock = (chore.database, chore.key.clone());
        match &chore.task {
            Task::Renew { token, ttl_ms } => self.step_done(at, &lock, *token, |keeper, id, _| {
                keeper.renewed(at, id, *ttl_ms, result);
            }),
            Task::Check { token } => self.step_done(at, &lock, *token, |keeper, id, sent| {
                keeper.checked(at, id, sent, result);
            }),
            Task::Free { token: Some(token) } => self.step_done(at, &lock, *token, |keeper, id, _| {
                keeper.freed(at, id, result);
            }),
            Task::Gone { .. } | Task::DropDebts { .. } => self.marked(at, &lock, &chore.task, result.is_ok()),
            Task::Free { token: None } | Task::Inspect => return,
        }
        self.queue.under_way = self.queue.under_way.saturating_sub(1);
        if self.queue.len() > 0 {
            self.queue.wake(at);
        }
    }

    fn marked(&mut self, at: Time, lock: &LockId, task: &Task, done: bool) {
        for id in self.marked_by(lock, task, MarkState::Sent) {
            let attempts = self
                .book
                .lease(id)
                .and_then(|lease| lease.mark)
                .map_or(0, |mark| mark.attempts);
            if done {
                self.set_mark_state(id, MarkState::Done);
            } else if attempts >= MARK_ATTEMPTS {
                self.set_mark_state(id, MarkState::Done);
                self.dropped.marks += 1;
            } else {
                self.set_mark_state(id, MarkState::RetryAt(backoff(at, attempts)));
                self.book
                    .change(id, |lease| lease.mark.as_mut().map(|mark| mark.attempts += 1));
            }
            if !self.forget_settled(id) {
                self.plan(id);
            }
        }
    }

    fn step_done(&mut self, at: Time, lock: &LockId, token: Token, then: impl FnOnce(&mut Keeper, LeaseId, Time)) {
        // A lease that was released meanwhile is not known any more, and the result says nothing.
        let Some(id) = self.book.find(lock, token) else { return };
        let sent = self.book.lease(id).and_then(|lease| lease.pending?.sent).unwrap_or(at);
        then(self, id, sent);
        self.plan(id);
    }

    fn renewed(&mut self, at: Time, id: LeaseId, asked_ms: u64, result: Result<&Done, Failed>) {
        let Some(lease) = self.book.lease(id) else { return };
        if matches!(result, Ok(Done::Renewed { .. })) {
            self.outbox.push(lease.event(at, What::Renewal(Renewal::Extended)));
            self.queue.wake(at);
        }
        self.book.change(id, |lease| {
            lease.pending = None;
            match result {
                Ok(Done::Renewed { ttl_ms }) => {
                    lease.attempts = 0;
                    lease.renewals += 1;
                    let due = at.plus_ms(*ttl_ms);
                    match lease.ttl_ms {
                        Some(full) if full == asked_ms => {
                            lease.due = Some(due);
                            lease.renew_at = Some(renewal_after(at, Some(full)));
                        }
                        // The client set another TTL meanwhile, and which came last is not known: set the client's.
                        Some(_) => {
                            lease.due = lease.due.map(|known| known.min(due));
                            lease.renew_at = Some(at);
                        }
                        None => lease.phase = unsure(at),
                    }
                }
                Ok(Done::Doubtful) => lease.renewal_over = true,
                // The client's own release may be on its way to us, so this is said only when a look confirms it.
                Ok(_) => {
                    lease.renewal_over = true;
                    lease.lost = true;
                    if lease.is_live() {
                        lease.phase = unsure(at.plus_ms(SETTLE_MS));
                    }
                }
                Err(Failed) => lease.renew_at = Some(lease.renewal_retry(at)),
            }
        });
    }

    fn checked(&mut self, at: Time, id: LeaseId, sent: Time, result: Result<&Done, Failed>) {
        let Some(lease) = self.book.lease(id) else { return };
        let looked = lease.pending.is_some_and(|pending| pending.step == Step::Look);
        let Ok(done) = result else {
            return self.check_failed(at, id, looked);
        };
        let Done::Live { ttl_ms } = done else {
            return self.found_ended(at, id, *done == Done::Expired);
        };
        if matches!(lease.phase, Phase::Unsure { check_at, .. } if check_at > sent) {
            // Asked again meanwhile: this answer may be older than the reason.
            self.book.change(id, |lease| lease.pending = None);
            return;
        }
        if lease.is_superseded() {
            // Asked after the newer grant was known: the two grants' events have changed places on their way.
            self.supersede(&lease.lock(), at);
        }
        let Some(lease) = self.book.lease(id) else { return };
        let moved = lease.was_moved(sent, at, *ttl_ms);
        let (companion, is_superseded) = (self.companion, lease.is_superseded());
        self.book.change(id, |lease| {
            lease.has_forerunners |= is_superseded;
            if companion == Elsewhere::Nowhere {
                lease.elsewhere = companion;
            }
            lease.pending = None;
            lease.attempts = 0;
            lease.phase = Phase::Live;
            lease.lost = false;
            lease.said_ended = false;
            if moved {
                // Somebody extended it through another proxy. Of the full TTL only what is left can be seen.
                lease.ttl_ms = ttl_ms.map(|left| left.max(lease.ttl_ms.unwrap_or(0)));
                lease.leave_at = None;
                let later = |due| ttl_ms.is_none_or(|left| at.plus_ms(left) > due);
                lease.extensions += u64::from(lease.due.is_some_and(later));
            }
            lease.due = ttl_ms.map(|left| at.plus_ms(left));
            lease.endless_look_at = lease.next_endless_look(at);
        });
        let leaves = |lease: &Lease| lease.leave_at.is_some_and(|leave_at| leave_at <= at);
        if looked && self.book.lease(id).is_some_and(leaves) {
            self.begin(id, at, Step::Free);
        }
    }

    fn check_failed(&mut self, at: Time, id: LeaseId, looked: bool) {
        self.book.change(id, |lease| {
            let again = backoff(at, lease.attempts);
            lease.attempts += 1;
            lease.pending = None;
            match &mut lease.phase {
                Phase::Unsure { check_at, .. } => *check_at = again,
                Phase::Live if looked => {
                    lease.leave_at = lease.leave_at.map(|_| again);
                    lease.endless_look_at = again;
                }
                Phase::Live | Phase::Owed { .. } => {}
            }
        });
    }

    /// The server says that the lease has ended.
    fn found_ended(&mut self, at: Time, id: LeaseId, expired: bool) {
        let Some(lease) = self.book.lease(id) else { return };
        let may_have_run_out = !expired && !lease.said_ended && lease.is_past_due(at) && lease.is_held();
        if may_have_run_out {
            self.book.change(id, |lease| {
                lease.pending = None;
                lease.said_ended = true;
                lease.phase = unsure(at.plus_ms(SETTLE_MS));
            });
            return;
        }
        // What was released through another process was not lost.
        if lease.lost && [self.companion, lease.elsewhere] == [Elsewhere::Nowhere; 2] {
            self.outbox.push(lease.event(at, What::Renewal(Renewal::Lost)));
        }
        let counted = matches!(lease.phase, Phase::Owed { .. });
        if !counted && !expired {
            self.outbox.push(lease.event(at, What::Ended));
        }
        self.queue.wake(at);
        self.book.change(id, |lease| lease.pending = None);
        match (counted, expired) {
            (false, true) => self.expired(id, at),
            (false, false) => {
                self.book.remove(id);
            }
            (true, _) => {}
        }
    }

    fn freed(&mut self, at: Time, id: LeaseId, result: Result<&Done, Failed>) {
        let Some(lease) = self.book.lease(id) else { return };
        match result {
            Ok(Done::Freed { held_ms }) => {
                let held_ms = Some(held_ms.unwrap_or_else(|| lease.held_ms(at)));
                let release = Release {
                    outcome: ReleaseOutcome::Disconnect,
                    held_ms,
                    overrun_ms: None,
                };
                self.outbox.push(lease.event(at, What::Release(release)));
                self.queue.wake(at);
                self.book.remove(id);
            }
            Ok(_) => {
                self.book.change(id, |lease| {
                    lease.pending = None;
                    lease.leave_at = None;
                });
                self.ask(id, at);
            }
            // It may have been done all the same; the next look tells.
            Err(Failed) => self.check_failed(at, id, true),
        }
    }
}

fn unsure(check_at: Time) -> Phase {
    Phase::Unsure {
        check_at,
        superseded: false,
        given_up: false,
    }
}
