//! What follows when connections close and owners come and go: marks in the records, releases after the grace, the end
//! and the return of renewal. Only a close by the client says anything about its tasks.

use super::lease::{Elsewhere, Lease, LeaseId, LockId, Mark, MarkKind, MarkState, OwnerId, Phase};
use super::{Bound, Closing, Keeper};
use crate::event::{ConnectionId, Time};

impl Keeper {
    /// A downstream connection was closed.
    pub fn closed(&mut self, at: Time, connection: &ConnectionId, how: Closing) {
        let number = connection.number;
        self.remember_departed(number, how);
        let left = self.book.disconnect(number);
        for lock in &left.unwatched {
            self.plan_lock(lock);
        }
        if how == Closing::ByClient {
            for id in &left.leases {
                self.mark_end(*id, at);
            }
            for owner in &left.owners {
                self.owner_left(*owner, at);
            }
        }
        for id in left.leases {
            if !self.forget_settled(id) {
                self.plan(id);
            }
        }
        for owner in left.owners {
            self.presence_changed(owner);
            self.book.tidy(owner);
        }
    }

    /// A lease whose grant arrives after its connection was closed.
    pub(super) fn leave_lease(&mut self, id: LeaseId, at: Time, how: Closing) {
        let Some(owner) = self.book.lease(id).map(|lease| lease.owner_id) else {
            return;
        };
        if how == Closing::ByClient {
            self.mark_end(id, at);
            if !self.book.is_here(owner) {
                self.last_connection_left(id, at);
            }
        }
    }

    /// An owner came or went: renewal and release on disconnect of its leases are planned anew.
    pub(super) fn presence_changed(&mut self, owner: OwnerId) {
        let here = self.book.is_here(owner);
        for id in self.leases_of(owner) {
            if here {
                self.book.change(id, |lease| lease.leave_at = None);
            }
            self.plan(id);
        }
    }

    /// Forgets a debt that needs no further mark. Returns whether it did.
    pub(super) fn forget_settled(&mut self, id: LeaseId) -> bool {
        let Some(lease) = self.book.lease(id) else { return true };
        let is_debt = matches!(lease.phase, Phase::Owed { .. });
        let mark_open = lease.mark.is_some_and(|mark| mark.state != MarkState::Done);
        let mark_to_come = lease.connected || (lease.bond == Bound::Process && self.book.is_here(lease.owner_id));
        let settled = is_debt && !mark_open && !mark_to_come;
        if settled {
            self.book.remove(id);
        }
        settled
    }

    fn owner_left(&mut self, owner: OwnerId, at: Time) {
        for id in self.leases_of(owner) {
            self.last_connection_left(id, at);
        }
    }

    /// The last connection of the lease's owner here was closed by the client. It says nothing while there are two
    /// processes: the owner may have another one there.
    fn last_connection_left(&mut self, id: LeaseId, at: Time) {
        if self.companion != Elsewhere::Nowhere {
            return;
        }
        let Some(lease) = self.book.lease(id) else { return };
        let Some(rule) = self.rule(lease.rule) else { return };
        let leaves = rule.release_on_disconnect && !lease.is_observed();
        let leave_at = at.plus_ms(rule.disconnect_grace_ms);
        if lease.bond == Bound::Process {
            self.mark(id, at, MarkKind::DropDebts);
        }
        self.book.change(id, |lease| {
            // Also if a younger grant is known: should the server say that this one lives, it is to be freed.
            if leaves && !matches!(lease.phase, Phase::Owed { .. }) {
                lease.leave_at = Some(leave_at);
            }
        });
        self.plan(id);
    }

    fn mark_end(&mut self, id: LeaseId, at: Time) {
        let Some(lease) = self.book.lease(id) else { return };
        let kind = match lease.bond {
            Bound::Free => MarkKind::Gone,
            Bound::Connection => MarkKind::DropDebts,
            Bound::Process if self.companion != Elsewhere::Nowhere || self.book.is_here(lease.owner_id) => {
                MarkKind::Gone
            }
            Bound::Process => MarkKind::DropDebts,
        };
        self.mark(id, at, kind);
    }

    /// Queues a mark, once for all leases on the lock that it speaks of.
    fn mark(&mut self, id: LeaseId, at: Time, kind: MarkKind) {
        let Some(lease) = self.book.lease(id) else { return };
        let debts = self.rule(lease.rule).is_some_and(|rule| rule.window_ms > 0);
        let known = |lease: &Lease| lease.mark.is_some_and(|mark| mark.kind == kind);
        if lease.is_observed() || !debts || known(lease) {
            return;
        }
        self.book.change(id, |lease| {
            lease.mark = Some(Mark {
                kind,
                state: MarkState::Queued,
                attempts: 0,
            })
        });
        self.queue.push_mark(at, id);
    }

    fn leases_of(&self, owner: OwnerId) -> Vec<LeaseId> {
        self.book
            .presence(owner)
            .map(|presence| presence.leases.iter().copied().collect())
            .unwrap_or_default()
    }

    fn remember_departed(&mut self, number: u64, how: Closing) {
        if self.departed.insert(number, how).is_none() {
            self.departed_order.push_back(number);
        }
        while self.departed_order.len() > self.limits.departed {
            if let Some(oldest) = self.departed_order.pop_front() {
                self.departed.remove(&oldest);
            }
        }
    }

    /// All leases on the lock are planned anew.
    pub(super) fn plan_lock(&mut self, lock: &LockId) {
        for id in self.book.on_lock(lock).map(|(id, _)| id).collect::<Vec<_>>() {
            self.plan(id);
        }
    }
}
