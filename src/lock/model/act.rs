//! The operations: each asks the table or the accounting, then changes lock and record accordingly.

use crate::event::{ConnectionId, Operation, Owner, RefusalReason, ReleaseOutcome};
use crate::lock::decision::{Column, Verdict, decide};

use super::account::{Line, line};
use super::{Caller, Granted, Holder, Kind, Lease, Lock, MOST_DEBTS, Model, NewExpiry, Outcome, REPAIR_MS, Standing};

impl Model {
    /// `SET … NX`, `SET`, `GETSET` and whatever else writes the lock. `expiry` is what the command itself leaves.
    pub fn write(&mut self, kind: Kind, caller: &Caller, expiry: NewExpiry, now: i64) -> Outcome {
        self.ripen(now);
        let column = match kind {
            Kind::Acquire => Column::Acquire,
            Kind::Overwrite => Column::Overwrite,
            Kind::Takeover => Column::Takeover,
        };
        match decide(self.row(caller), column) {
            Verdict::Grant => {
                self.set_expiry(expiry);
                self.grant(caller, now)
            }
            Verdict::SameLease => {
                let give = caller.max_ms.or(caller.default_ms);
                let reduced = self.rewrite(expiry, give, caller, now);
                Outcome::Overwritten(reduced)
            }
            Verdict::RuleLease if self.allowed(caller) => {
                self.set_expiry(expiry);
                self.grant(caller, now)
            }
            Verdict::RuleLease => Outcome::Refused(Operation::Overwrite, RefusalReason::Unmanaged),
            Verdict::AsBefore => {
                self.written_as_before(expiry, caller, now);
                Outcome::Nothing
            }
            Verdict::Open => {
                self.open(expiry, caller, now);
                Outcome::TakenOver
            }
            Verdict::Refuse => Outcome::Refused(Operation::Overwrite, self.reason(caller)),
            Verdict::Contended | Verdict::AsRedis | Verdict::Accounting => Outcome::Contended,
            Verdict::Rule | Verdict::RefuseUnlessRepair => Outcome::Nothing,
        }
    }

    /// A takeover of an unmanaged lock; the record of one that is open follows.
    fn written_as_before(&mut self, expiry: NewExpiry, caller: &Caller, now: i64) {
        if self.standing() == Standing::Open {
            self.rewrite(expiry, caller.default_ms.or(caller.max_ms), caller, now);
        } else {
            self.set_expiry(expiry);
        }
    }

    /// A takeover of another owner's lock.
    fn open(&mut self, expiry: NewExpiry, caller: &Caller, now: i64) {
        if self.alien.is_some() {
            return self.set_expiry(expiry);
        }
        let due = self.lock.and_then(|lock| lock.expiry);
        self.lease = Some(Lease {
            holder: None,
            due,
            doubts: Vec::new(),
        });
        self.rewrite(expiry, caller.default_ms.or(caller.max_ms), caller, now);
    }

    /// `EXPIRE` and its sisters to this expiry, which lies in the future, or `PERSIST`. `repairs`: it is one that may
    /// give a TTL to another's lease.
    pub fn extend(&mut self, caller: &Caller, expiry: NewExpiry, repairs: bool, now: i64) -> Outcome {
        self.ripen(now);
        let refuse = |reason| Outcome::Refused(Operation::Extend, reason);
        match decide(self.row(caller), Column::Extend) {
            Verdict::SameLease => self.extended(caller, expiry, now),
            Verdict::Rule if self.allowed(caller) => match self.standing() {
                Standing::Adrift | Standing::Open => self.extended(caller, expiry, now),
                _ => {
                    self.set_expiry(expiry);
                    Outcome::Nothing
                }
            },
            Verdict::Rule => refuse(RefusalReason::Unmanaged),
            Verdict::RefuseUnlessRepair if repairs && self.repaired_by(caller, expiry, now) => {
                self.extended(caller, expiry, now)
            }
            Verdict::Refuse | Verdict::RefuseUnlessRepair => refuse(self.reason(caller)),
            _ => {
                self.settle_early();
                Outcome::Nothing
            }
        }
    }

    fn extended(&mut self, caller: &Caller, expiry: NewExpiry, now: i64) -> Outcome {
        let had_ttl = self.lock.is_some_and(|lock| lock.expiry.is_some());
        if expiry == NewExpiry::Never {
            if had_ttl && caller.max_ms.is_some() {
                return Outcome::Extended(true);
            }
            if !had_ttl {
                return Outcome::Nothing;
            }
        }
        Outcome::Extended(self.rewrite(expiry, None, caller, now))
    }

    /// Whether this gives a current lease without TTL one that leaves its holder time.
    fn repaired_by(&self, caller: &Caller, expiry: NewExpiry, now: i64) -> bool {
        let least = caller.max_ms.map_or(REPAIR_MS, |max| max.min(REPAIR_MS));
        let without = self.lock.is_some_and(|lock| lock.expiry.is_none());
        let enough = matches!(expiry, NewExpiry::At(at) if at - now >= least);
        self.standing() == Standing::Current && without && enough
    }

    /// `DEL`, or any other command that would remove the lock and whose condition holds. Where the lock is not to be
    /// removed, the outcome says why.
    pub fn release(&mut self, caller: &Caller, now: i64) -> Outcome {
        self.ripen(now);
        let existed = self.lock.is_some();
        let (mut held_ms, mut overrun_ms, mut expired) = (None, None, None);
        let line = line(self, caller);
        let (outcome, refused) = match line {
            Line::Pay { place, doubtful } => {
                let debt = self.debts.remove(place);
                overrun_ms = Some((now - debt.due).max(0));
                expired = self.expired.take_if(|expired| expired.debt == debt.number);
                if let Some(lease) = self.lease.as_mut().filter(|_| doubtful) {
                    let place = lease
                        .doubts
                        .iter()
                        .take_while(|other| other.number < debt.number)
                        .count();
                    lease.doubts.insert(place, debt);
                }
                (ReleaseOutcome::Late, existed.then_some(RefusalReason::Late))
            }
            Line::Remove(outcome) => {
                if outcome != ReleaseOutcome::Unmanaged {
                    held_ms = self.holder().map(|holder| (now - holder.acquired_at).max(0));
                }
                self.lock = None;
                (outcome, None)
            }
            Line::Foreign => (ReleaseOutcome::Foreign, Some(RefusalReason::Foreign)),
            Line::Absent => (ReleaseOutcome::Absent, None),
            Line::Refused => (ReleaseOutcome::Unmanaged, Some(RefusalReason::Unmanaged)),
        };
        self.settle_early();
        Outcome::Release {
            outcome,
            held_ms,
            overrun_ms,
            refused,
            expired,
        }
    }

    /// A compare command or a script of the client's ran: the record is brought in line with what it left.
    pub fn reconcile(&mut self, caller: &Caller, now: i64) -> Outcome {
        self.ripen(now);
        let held_ms = self.holder().map(|holder| (now - holder.acquired_at).max(0));
        match self.standing() {
            Standing::Free if self.lease.is_some() => {
                self.settle_early();
                let outcome = ReleaseOutcome::SelfChecked;
                match held_ms {
                    None => Outcome::Nothing,
                    Some(_) => Outcome::Release {
                        outcome,
                        held_ms,
                        overrun_ms: None,
                        refused: None,
                        expired: None,
                    },
                }
            }
            Standing::Open if !self.in_line() => self.follow(),
            Standing::Adrift if self.is_of(caller) => self.follow(),
            _ => Outcome::Nothing,
        }
    }

    fn follow(&mut self) -> Outcome {
        if let (Some(lock), Some(lease)) = (self.lock, self.lease.as_mut()) {
            lease.due = lock.expiry;
        }
        Outcome::Extended(false)
    }

    /// The connection was closed by its client.
    pub fn gone(&mut self, connection: &ConnectionId, now: i64) {
        self.ripen(now);
        self.settle_early();
        let lease = self.lease.as_mut();
        if let Some(lease) = lease {
            if let Some(holder) = lease.holder.as_mut().filter(|holder| holder.connection == *connection) {
                holder.open = false;
            }
            lease
                .doubts
                .iter_mut()
                .filter(|debt| debt.connection == *connection)
                .for_each(|debt| debt.open = false);
        }
        self.debts
            .iter_mut()
            .filter(|debt| debt.connection == *connection)
            .for_each(|debt| debt.open = false);
        let last = self.expired.as_mut().map(|expired| &mut expired.holder);
        if let Some(last) = last.filter(|last| last.connection == *connection) {
            last.open = false;
        }
    }

    /// The owner ended with its connection.
    pub fn drop_debts(&mut self, owner: &Owner, now: i64) {
        self.ripen(now);
        self.settle_early();
        self.debts.retain(|debt| debt.owner != *owner);
        if let Some(lease) = self.lease.as_mut() {
            lease.doubts.retain(|debt| debt.owner != *owner);
            if let Some(holder) = lease.holder.as_mut().filter(|holder| holder.owner == *owner) {
                holder.owing = false;
                holder.open = false;
            }
        }
    }

    /// Why an operation is refused.
    fn reason(&self, caller: &Caller) -> RefusalReason {
        let owes = |debt: &super::Debt| debt.connection == caller.connection || debt.owner == caller.owner;
        if self.debts.iter().any(owes) {
            RefusalReason::Late
        } else {
            RefusalReason::Foreign
        }
    }

    fn set_expiry(&mut self, expiry: NewExpiry) {
        let kept = self.lock.and_then(|lock| lock.expiry);
        let expiry = match expiry {
            NewExpiry::Keep => kept,
            NewExpiry::Never => None,
            NewExpiry::At(at) => Some(at),
        };
        self.lock = Some(Lock { expiry });
    }

    /// The lock gets this expiry, and the record follows. `give`: the TTL for a lock that would lose its own. Whether a
    /// TTL was given or cut.
    fn rewrite(&mut self, expiry: NewExpiry, give: Option<i64>, caller: &Caller, now: i64) -> bool {
        let had_ttl = self.lock.is_some_and(|lock| lock.expiry.is_some());
        self.set_expiry(expiry);
        let mut expiry = self.lock.and_then(|lock| lock.expiry);
        let mut reduced = false;
        if let (None, true, Some(give)) = (expiry, had_ttl, give) {
            expiry = Some(now + give);
            reduced = true;
        }
        if let (Some(at), Some(max)) = (expiry, caller.max_ms)
            && at - now > max
        {
            expiry = Some(now + max);
            reduced = true;
        }
        self.lock = Some(Lock { expiry });
        if let Some(lease) = self.lease.as_mut() {
            lease.due = expiry;
        }
        reduced
    }

    /// A new lease on the lock, which has just been taken.
    fn grant(&mut self, caller: &Caller, now: i64) -> Outcome {
        let mut granted = Granted {
            expired: self.expired.take(),
            ..Granted::default()
        };
        let mut expiry = self.lock.and_then(|lock| lock.expiry);
        if let (None, Some(default)) = (expiry, caller.default_ms) {
            expiry = Some(now + default);
            granted.injected = true;
        }
        if let (Some(at), Some(max)) = (expiry, caller.max_ms)
            && at - now > max
        {
            expiry = Some(now + max);
            granted.reduced = true;
        }
        self.lock = Some(Lock { expiry });
        self.alien = None;
        self.window_ms = caller.window_ms;
        let next = self.next_number();
        // The window may be another one from here on.
        self.lease = None;
        let before = self.debts.len();
        self.debts
            .retain(|debt| caller.window_ms > 0 && now - debt.due < caller.window_ms);
        let dropped = u32::try_from(before - self.debts.len()).unwrap_or(u32::MAX);
        granted.dropped_by_window = std::mem::take(&mut self.stale) + dropped;
        granted.overlap = granted.expired.as_ref().is_some_and(|expired| {
            let last = &expired.holder;
            let other = last.owner != caller.owner || (last.connection != caller.connection && last.open);
            other && self.debts.iter().any(|debt| debt.number == expired.debt)
        });
        let too_many = self.debts.len().saturating_sub(MOST_DEBTS);
        self.debts.drain(..too_many);
        granted.dropped_by_cap = u32::try_from(too_many).unwrap_or(u32::MAX);
        let holder = Holder {
            owner: caller.owner.clone(),
            connection: caller.connection.clone(),
            open: true,
            owing: true,
            token: caller.token,
            acquired_at: now,
        };
        self.lease = Some(Lease {
            holder: Some(holder),
            due: expiry,
            doubts: Vec::new(),
        });
        debug_assert!(self.debts.iter().all(|debt| debt.number < next));
        Outcome::Granted(granted)
    }
}
