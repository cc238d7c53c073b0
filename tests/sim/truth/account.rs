//! Releases and what is owed, counted by the simulator itself: an owner's debts on a lock are its expired acquires minus
//! its releases. Says when a release must remove a lock, and when it must not.

use super::ledger::{Account, Owing};
use super::{Incarnation, Standing};
use crate::coverage::Place;
use crate::plan::Conduct;
use crate::request::Meaning;
use crate::resp::Reply;
use crate::server::keyspace::{By, Change, Seen};
use crate::world::World;

/// The edges of windows, in milliseconds.
const EDGE_MS: i64 = 10;
/// A client that has been gone for so long, in microseconds, is marked as gone in the records.
const MARKED_US: u64 = 2_500_000;

impl World {
    fn account(&mut self, db: usize, key: &[u8], owner: &str) -> &mut Account {
        self.truth
            .accounts
            .entry((db, key.to_vec(), owner.to_owned()))
            .or_default()
    }

    fn account_of(&mut self, inc: &Incarnation) -> &mut Account {
        self.account(inc.db, &inc.key, &inc.owner)
    }

    /// From here on the accounting on this lock is not checked for its owner, until nothing is left of it.
    pub fn taint(&mut self, inc: &Incarnation) {
        if inc.managed {
            self.account_of(inc).tainted = true;
        }
    }

    pub fn expired(&mut self, change: &Change) {
        let Some(inc) = self.truth.incarnations.get_mut(&change.incarnation) else {
            return;
        };
        inc.alive = false;
        let inc = inc.clone();
        self.truth.ended_at.insert((inc.db, inc.key.clone()), self.now);
        let at = change.was.unwrap_or_else(|| self.server_ms());
        self.note(|| format!("{} of {} expires, sent {}", inc.key.escape_ascii(), inc.owner, inc.sent));
        if !inc.managed {
            return;
        }
        if inc.direct {
            self.taint(&inc);
        }
        self.account_of(&inc).owed_again(change.incarnation, at);
        if !inc.opened && (!inc.sent || inc.direct) {
            let (incarnation, client) = (change.incarnation, inc.client);
            self.owes(
                &inc,
                Owing {
                    incarnation,
                    client,
                    since: at,
                    paid_under: None,
                },
            );
        }
        self.settle(&inc);
    }

    fn owes(&mut self, inc: &Incarnation, owing: Owing) {
        let account = self.account_of(inc);
        account.busy_since = Some(account.busy_since.map_or(owing.since, |since| since.min(owing.since)));
        account.expired_of.push(owing.client);
        account.owing.push(owing);
    }

    /// Forgets what is too old, and begins anew when nothing is left.
    fn settle(&mut self, inc: &Incarnation) {
        let window = self.plan.rules[inc.rule].late_release_window_ms as i64;
        let now = self.server_ms();
        let living = self
            .truth
            .living(inc.db, &inc.key)
            .is_some_and(|(_, live)| live.owner == inc.owner && live.managed);
        let account = self.account_of(inc);
        account
            .owing
            .retain(|owing| owing.paid_under.is_some() || owing.since + window + EDGE_MS >= now);
        if account.owing.is_empty() && !living {
            *account = Account::default();
        }
    }

    /// A release has arrived, whatever becomes of it.
    pub fn release_received(&mut self, number: usize, db: usize, key: &[u8]) {
        let (task, client) = (self.requests[number].task, self.requests[number].client);
        let mut found = None;
        for (incarnation, inc) in &self.truth.incarnations {
            let his = task.is_some() && inc.task == task && inc.db == db && inc.key == key && !inc.sent && inc.managed
                // Nothing is owed for a lease that was taken over.
                && !inc.opened;
            if his && self.is_owner(inc, client) && (inc.alive || self.still_owes(inc, *incarnation)) {
                found = Some(*incarnation);
                break;
            }
        }
        self.stray_release(client, db, key, found);
        let Some(incarnation) = found else { return };
        let Some(inc) = self.truth.incarnations.get_mut(&incarnation) else {
            return;
        };
        inc.sent = true;
        let inc = inc.clone();
        self.account_of(&inc).pay(incarnation);
        let account = self.account_of(&inc).clone();
        self.note(|| format!("#{number} is the release of {inc:?}; left: {account:?}"));
    }

    fn still_owes(&self, inc: &Incarnation, incarnation: u64) -> bool {
        let account = self.truth.accounts.get(&(inc.db, inc.key.clone(), inc.owner.clone()));
        account.is_some_and(|account| account.owing.iter().any(|owing| owing.incarnation == incarnation))
    }

    /// Every account that the release can touch although its acquire is none of it.
    fn stray_release(&mut self, client: usize, db: usize, key: &[u8], found: Option<u64>) {
        let right = found
            .and_then(|number| self.truth.incarnations.get(&number))
            .map(|inc| inc.owner.clone());
        let mut strays: Vec<Incarnation> = Vec::new();
        let recent = self
            .truth
            .incarnations
            .values()
            .filter(|inc| inc.db == db && inc.key == key && inc.managed);
        for inc in recent {
            if right.as_ref() != Some(&inc.owner) && self.is_owner(inc, client) {
                strays.push(inc.clone());
            }
        }
        for inc in strays {
            self.taint(&inc);
            self.settle(&inc);
        }
        // A connection whose identity has changed has debts under two names.
        if self.clients[client].renamed {
            let all: Vec<Incarnation> = self
                .truth
                .incarnations
                .values()
                .filter(|inc| inc.db == db && inc.key == key)
                .cloned()
                .collect();
            all.iter().for_each(|inc| self.taint(inc));
        }
    }

    /// A lock key was removed by a command that may remove it.
    pub fn removed(&mut self, by: Option<By>, incarnation: u64, inc: &Incarnation) {
        if let Some(inc) = self.truth.incarnations.get_mut(&incarnation) {
            inc.alive = false;
            inc.direct |= by == Some(By::Direct);
        }
        self.truth.ended_at.insert((inc.db, inc.key.clone()), self.now);
        let standing = self.standing(inc);
        let now = self.server_ms();
        if inc.managed {
            self.account_of(inc).owed_again(incarnation, now);
        }
        let lost = Owing {
            incarnation: 0,
            client: inc.client,
            since: inc.due.map_or(now, |due| due.max(now)),
            paid_under: None,
        };
        match by {
            Some(By::Request(number)) => match self.requests[number].meaning {
                Meaning::Release => self.removed_by_release(number, incarnation, inc, standing),
                Meaning::SelfChecked => {
                    // Until the reconcile has come, lockward may take it for expired.
                    if inc.managed && inc.due.is_some() {
                        self.owes(
                            inc,
                            Owing {
                                client: usize::MAX,
                                ..lost
                            },
                        );
                    }
                    if self.requests[number].task != inc.task {
                        self.taint(inc);
                    }
                }
                Meaning::Flush => {}
                _ => self.taint(inc),
            },
            Some(By::Direct) if inc.managed => {
                self.taint(inc);
                self.owes(inc, lost);
            }
            _ => self.taint(inc),
        }
        self.settle(inc);
    }

    /// A reconcile on this lock has run: what was gone is known to be gone.
    pub fn reconciled(&mut self, db: usize, key: &[u8]) {
        // So near to its due time a lease counts as expired.
        let soon = self.server_ms() + 3;
        let names: Vec<_> = self
            .truth
            .accounts
            .keys()
            .filter(|name| name.0 == db && name.1 == key)
            .cloned()
            .collect();
        for name in names {
            if let Some(account) = self.truth.accounts.get_mut(&name) {
                account
                    .owing
                    .retain(|owing| owing.incarnation != 0 || owing.client != usize::MAX || owing.since <= soon);
            }
        }
    }

    /// What a rule's window and the account say about checking at all.
    fn is_checked(&self, inc: &Incarnation) -> bool {
        let window = self.plan.rules[inc.rule].late_release_window_ms as i64;
        let account = self.truth.accounts.get(&(inc.db, inc.key.clone(), inc.owner.clone()));
        let clean = self.plan.conduct_of(&inc.key) == Conduct::Clean;
        let fresh = |account: &Account| {
            !account.tainted
                && account
                    .busy_since
                    .is_none_or(|since| self.server_ms() < since + window - EDGE_MS)
        };
        clean && inc.managed && !inc.direct && !inc.opened && account.is_none_or(fresh)
    }

    fn removed_by_release(&mut self, number: usize, incarnation: u64, inc: &Incarnation, standing: Standing) {
        let Some(now) = self.truth.incarnations.get(&incarnation).cloned() else {
            return;
        };
        let window = self.plan.rules[inc.rule].late_release_window_ms;
        if now.sent || window == 0 || !inc.managed || inc.opened {
            return;
        }
        if standing != Standing::Current || !self.is_checked(inc) {
            // Its own release is still to come, and meets somebody's debt.
            let (client, since) = (inc.client, inc.due.unwrap_or(0).max(self.server_ms()));
            return self.owes(
                inc,
                Owing {
                    incarnation,
                    client,
                    since,
                    paid_under: None,
                },
            );
        }
        let client = self.requests[number].client;
        let account = self.account_of(inc).clone();
        let gone = account
            .expired_of
            .iter()
            .find(|client| **client == usize::MAX || self.clients[**client].gone_since.is_some());
        if let Some(gone) = gone.filter(|_| client == inc.client) {
            // The documented exception: the debt stays, and the lease's own release will pay it.
            let since = account.busy_since.unwrap_or(0);
            self.owes(
                inc,
                Owing {
                    incarnation,
                    client: *gone,
                    since,
                    paid_under: None,
                },
            );
            self.coverage.exceptions += 1;
            return;
        }
        let text = format!(
            "#{number} of task {:?} removed {inc:?}, whose task is at work ({account:?})",
            self.requests[number].task
        );
        self.violated("2 sibling", text);
    }

    /// The release was executed: if the lock is still there, somebody must owe something.
    pub fn release_done(&mut self, number: usize, db: usize, key: &[u8], reply: &Reply) {
        let client = self.requests[number].client;
        let existed = self.requests[number]
            .before(key)
            .and_then(|seen| seen.entry.as_ref())
            .map(|entry| entry.incarnation);
        let Some((incarnation, inc)) = self.truth.living(db, key) else {
            return;
        };
        let (inc, window) = (inc.clone(), self.plan.rules[inc.rule].late_release_window_ms);
        let owner = self.is_owner(&inc, client);
        if inc.managed && inc.sent && self.requests[number].task == inc.task {
            let unpaid = |owing: &&mut Owing| owing.paid_under.is_none();
            if let Some(oldest) = self
                .account_of(&inc)
                .owing
                .iter_mut()
                .filter(unpaid)
                .min_by_key(|owing| owing.since)
            {
                oldest.paid_under = Some(incarnation);
            }
        }
        let fails = reply.is_error() || self.plan.conduct_of(key) != Conduct::Clean;
        if existed != Some(incarnation) || !owner || self.standing(&inc) != Standing::Current || fails {
            return;
        }
        if !self.is_checked(&inc) || !(inc.sent || window == 0) {
            return;
        }
        let account = self.account_of(&inc).clone();
        let marked = |client: &usize| self.is_marked(*client, key);
        let all_gone = client == inc.client && account.expired_of.iter().all(marked);
        if window == 0 || account.owing.is_empty() || all_gone {
            let text = format!("#{number} was a good release of {inc:?}, and the lock is still there ({account:?})");
            self.violated("2 sibling", text);
        }
    }

    /// Whether this client's end is in the lock's record by now: long enough ago, nothing in between, and lockward has
    /// heard of all its leases (a client may be gone before the answer to its acquire has come).
    fn is_marked(&self, client: usize, key: &[u8]) -> bool {
        let Some(connection) = self.clients.get(client) else {
            return false;
        };
        let leases = self.truth.incarnations.values();
        let leases = leases
            .filter(|inc| inc.managed && inc.client == client && inc.key == key)
            .count();
        let since = connection
            .gone_since
            .filter(|since| *since > self.last_trouble + 1_000_000);
        since.is_some_and(|since| self.now - since > MARKED_US)
            && connection.opened > self.last_trouble
            && connection.grants_seen.get(key).is_some_and(|seen| *seen >= leases)
    }

    /// A connection ended. Owners that are processes end with their last one, and their debts with them.
    pub fn truth_hears_of_end(&mut self, client: usize) {
        let ended: Vec<Incarnation> = self
            .truth
            .incarnations
            .values()
            .filter(|inc| self.ends_with(inc, client))
            .cloned()
            .collect();
        ended.iter().for_each(|inc| self.taint(inc));
    }

    fn ends_with(&self, inc: &Incarnation, client: usize) -> bool {
        inc.managed && inc.owner.contains("process") && self.owner_of(inc.rule, client) == inc.owner
    }

    /// The caller's row of the decision table, and whether he has a debt of his own.
    pub fn place(&self, db: usize, seen: &Seen, client: usize) -> (Place, bool) {
        let on_lock = self
            .truth
            .accounts
            .iter()
            .filter(|(name, _)| name.0 == db && name.1 == seen.key);
        let own_debt = on_lock
            .flat_map(|(_, account)| &account.owing)
            .any(|owing| owing.client == client);
        (self.row(seen, client, own_debt), own_debt)
    }

    fn row(&self, seen: &Seen, client: usize, own_debt: bool) -> Place {
        let Some(entry) = &seen.entry else { return Place::Free };
        let Some(inc) = self.truth.incarnations.get(&entry.incarnation) else {
            return Place::Unmanaged;
        };
        match self.standing(inc) {
            Standing::Unmanaged | Standing::Open | Standing::Vague => Place::Unmanaged,
            Standing::Adrift if self.is_owner(inc, client) => Place::Unmanaged,
            Standing::Adrift => Place::Other,
            Standing::Current if inc.client == client => Place::Holder,
            Standing::Current if !self.is_owner(inc, client) => Place::Other,
            Standing::Current if own_debt => Place::Debtor,
            Standing::Current => Place::Sibling,
        }
    }
}
