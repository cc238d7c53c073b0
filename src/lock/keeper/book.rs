//! The keeper's book: leases, owners, connections and watches, each findable from the others, and the timer queue. It
//! keeps these tables consistent and counts the gauges; what has to happen to a lease is decided elsewhere. Ordered
//! maps everywhere, so that equal inputs give equal outputs in equal order.

use std::collections::{BTreeMap, BTreeSet};

use super::counts::{Counts, Gauge};
use super::lease::{Lease, LeaseId, LockId, OwnerId};
use crate::event::{Owner, RuleIndex, Time, Token};

/// More leases and debts than this on one lock are not remembered (a record holds 32 debts).
const LEASES_ON_ONE_LOCK: usize = 33;

#[derive(Debug)]
pub(super) struct Presence {
    pub(super) rule: RuleIndex,
    pub(super) owner: Owner,
    /// Open connections that are this owner's, each with the number of its reasons: bound now, or a lease.
    pub(super) connections: BTreeMap<u64, u32>,
    pub(super) leases: BTreeSet<LeaseId>,
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    bound: BTreeMap<RuleIndex, OwnerId>,
    owners: BTreeSet<OwnerId>,
    leases: BTreeSet<LeaseId>,
    watching: BTreeSet<LockId>,
}

/// What a closed connection leaves behind.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) leases: BTreeSet<LeaseId>,
    /// Owners whose last connection it was.
    pub(super) owners: Vec<OwnerId>,
    /// Locks that nobody watches any more.
    pub(super) unwatched: Vec<LockId>,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    leases: BTreeMap<LeaseId, Lease>,
    /// Of all leases together.
    key_bytes: usize,
    by_lock: BTreeMap<LockId, Vec<LeaseId>>,
    owners: BTreeMap<OwnerId, Presence>,
    owner_ids: BTreeMap<(RuleIndex, Owner), OwnerId>,
    connections: BTreeMap<u64, Connection>,
    watches: BTreeMap<LockId, u32>,
    watch_count: usize,
    timers: BTreeSet<(Time, LeaseId)>,
    counts: Counts,
    ids: u64,
}

impl Book {
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// The bytes of the keys of all leases.
    pub(super) fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    pub(super) fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.leases.iter().map(|(id, lease)| (*id, lease))
    }

    /// The leases from this number on.
    pub(super) fn leases_from(&self, first: LeaseId) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.leases.range(first..).map(|(id, lease)| (*id, lease))
    }

    /// Changes a lease and counts it anew. The caller plans its timer afterwards.
    pub(super) fn change<T>(&mut self, id: LeaseId, change: impl FnOnce(&mut Lease) -> T) -> Option<T> {
        let lease = self.leases.get_mut(&id)?;
        self.counts.subtract(id, lease);
        let result = change(lease);
        self.counts.add(id, lease);
        Some(result)
    }

    /// All leases known on a lock, in the order of their grants.
    pub(super) fn on_lock(&self, lock: &LockId) -> impl DoubleEndedIterator<Item = (LeaseId, &Lease)> {
        let ids = self.by_lock.get(lock).map(Vec::as_slice).unwrap_or_default();
        ids.iter()
            .filter_map(|id| self.leases.get(id).map(|lease| (*id, lease)))
    }

    pub(super) fn find(&self, lock: &LockId, token: Token) -> Option<LeaseId> {
        self.on_lock(lock)
            .find(|(_, lease)| lease.token == token)
            .map(|(id, _)| id)
    }

    /// Takes a lease in; its `owner_id` is found here. Returns its number, and whether an older one made room for it.
    pub(super) fn insert(&mut self, mut lease: Lease) -> (LeaseId, bool) {
        self.ids += 1;
        let id = self.ids;
        lease.owner_id = self.owner_id(lease.rule, &lease.owner);
        if lease.connected {
            let number = lease.connection.number;
            self.link(number, lease.owner_id);
            self.connections.entry(number).or_default().leases.insert(id);
        }
        if let Some(presence) = self.owners.get_mut(&lease.owner_id) {
            presence.leases.insert(id);
        }
        let on_lock = self.by_lock.entry(lease.lock()).or_default();
        lease.has_forerunners = !on_lock.is_empty();
        on_lock.push(id);
        let crowded_out = (on_lock.len() > LEASES_ON_ONE_LOCK)
            .then(|| on_lock.first().copied())
            .flatten();
        self.counts.add(id, &lease);
        self.key_bytes += lease.key.len();
        self.leases.insert(id, lease);
        if let Some(oldest) = crowded_out {
            self.remove(oldest);
        }
        (id, crowded_out.is_some())
    }

    pub(super) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.key_bytes -= lease.key.len();
        self.counts.subtract(id, &lease);
        if let Some(time) = lease.timer {
            self.timers.remove(&(time, id));
        }
        let lock = lease.lock();
        if let Some(ids) = self.by_lock.get_mut(&lock) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_lock.remove(&lock);
            }
        }
        if let Some(presence) = self.owners.get_mut(&lease.owner_id) {
            presence.leases.remove(&id);
        }
        if lease.connected {
            if let Some(connection) = self.connections.get_mut(&lease.connection.number) {
                connection.leases.remove(&id);
            }
            self.unlink(lease.connection.number, lease.owner_id);
        }
        self.tidy(lease.owner_id);
        Some(lease)
    }

    pub(super) fn presence(&self, owner: OwnerId) -> Option<&Presence> {
        self.owners.get(&owner)
    }

    /// Whether the owner has an open connection here.
    pub(super) fn is_here(&self, owner: OwnerId) -> bool {
        self.owners
            .get(&owner)
            .is_some_and(|presence| !presence.connections.is_empty())
    }

    /// The connection has this owner under this rule from now on. Returns the owners that came or went by it.
    pub(super) fn bind(&mut self, number: u64, rule: RuleIndex, owner: &Owner) -> [Option<OwnerId>; 2] {
        let bound = self
            .connections
            .get(&number)
            .and_then(|connection| connection.bound.get(&rule))
            .copied();
        if bound
            .and_then(|id| self.owners.get(&id))
            .is_some_and(|presence| presence.owner == *owner)
        {
            return [None, None];
        }
        let id = self.owner_id(rule, owner);
        let came = (!self.is_here(id)).then_some(id);
        self.link(number, id);
        self.connections.entry(number).or_default().bound.insert(rule, id);
        let mut went = None;
        if let Some(old) = bound {
            self.unlink(number, old);
            went = (!self.is_here(old)).then_some(old);
            self.tidy(old);
        }
        [came, went]
    }

    /// Forgets a connection and says what it leaves behind. Its leases stay, as those of a closed connection.
    pub(super) fn disconnect(&mut self, number: u64) -> Left {
        let Some(connection) = self.connections.remove(&number) else {
            return Left::default();
        };
        for id in &connection.leases {
            if let Some(lease) = self.leases.get_mut(id) {
                lease.connected = false;
            }
        }
        let mut left = Left {
            leases: connection.leases,
            ..Left::default()
        };
        for id in connection.owners {
            if let Some(presence) = self.owners.get_mut(&id) {
                presence.connections.remove(&number);
                if presence.connections.is_empty() {
                    left.owners.push(id);
                }
            }
        }
        for lock in connection.watching {
            self.watch_count -= 1;
            if self.drop_watch(&lock) {
                left.unwatched.push(lock);
            }
        }
        left
    }

    /// Forgets an owner who has neither connections nor leases.
    pub(super) fn tidy(&mut self, owner: OwnerId) {
        let empty = |presence: &Presence| presence.connections.is_empty() && presence.leases.is_empty();
        if self.owners.get(&owner).is_some_and(empty)
            && let Some(presence) = self.owners.remove(&owner)
        {
            // After a change of the rules the name can be somebody else's.
            let name = (presence.rule, presence.owner);
            if self.owner_ids.get(&name) == Some(&owner) {
                self.owner_ids.remove(&name);
            }
        }
    }

    /// Notes that the connection watches the lock. Returns false if `limit` watches are noted already.
    pub(super) fn watch(&mut self, number: u64, lock: LockId, limit: usize) -> bool {
        let connection = self.connections.entry(number).or_default();
        if connection.watching.contains(&lock) {
            return true;
        }
        if self.watch_count >= limit {
            return false;
        }
        self.watch_count += 1;
        connection.watching.insert(lock.clone());
        *self.watches.entry(lock).or_default() += 1;
        true
    }

    /// The connection watches the lock no more. Returns whether nobody does now.
    pub(super) fn unwatch(&mut self, number: u64, lock: &LockId) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        if !connection.watching.remove(lock) {
            return false;
        }
        self.watch_count -= 1;
        self.drop_watch(lock)
    }

    pub(super) fn is_watched(&self, lock: &LockId) -> bool {
        self.watches.contains_key(lock)
    }

    /// Puts a lease into the timer queue, or takes it out.
    pub(super) fn set_timer(&mut self, id: LeaseId, time: Option<Time>) {
        let Some(lease) = self.leases.get_mut(&id) else { return };
        if lease.timer == time {
            return;
        }
        if let Some(old) = lease.timer {
            self.timers.remove(&(old, id));
        }
        if let Some(new) = time {
            self.timers.insert((new, id));
        }
        lease.timer = time;
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Takes the first lease whose time has come out of the timer queue.
    pub(super) fn pop_timer(&mut self, at: Time) -> Option<LeaseId> {
        let (time, id) = *self.timers.first()?;
        if time > at {
            return None;
        }
        self.set_timer(id, None);
        Some(id)
    }

    pub(super) fn gauge(&self, rule: RuleIndex) -> Option<&Gauge> {
        self.counts.gauges.get(&rule)
    }

    /// How many leases hold their locks.
    pub(super) fn held(&self) -> usize {
        self.counts.gauges.values().map(|gauge| gauge.held.len()).sum()
    }

    /// The debt that is dropped next.
    pub(super) fn oldest_debt(&self) -> Option<LeaseId> {
        self.counts.owed.first().map(|(_, id)| *id)
    }

    /// Moves everything to the rules' new places; leases, owners and bonds of rules that are gone are forgotten.
    pub(super) fn renumber(&mut self, place: impl Fn(RuleIndex) -> Option<RuleIndex>) {
        let lost: Vec<LeaseId> = self
            .leases()
            .filter(|(_, l)| place(l.rule).is_none())
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            self.remove(id);
        }
        self.owner_ids.clear();
        for (id, presence) in &mut self.owners {
            // An owner of a rule that is gone keeps its old number until its connections close; nothing asks for it.
            if let Some(rule) = place(presence.rule) {
                presence.rule = rule;
                self.owner_ids.insert((rule, presence.owner.clone()), *id);
            }
        }
        for connection in self.connections.values_mut() {
            let bound = std::mem::take(&mut connection.bound);
            connection.bound = bound
                .into_iter()
                .filter_map(|(rule, id)| Some((place(rule)?, id)))
                .collect();
        }
        self.counts = Counts::default();
        for (id, lease) in &mut self.leases {
            lease.rule = place(lease.rule).unwrap_or(lease.rule);
            self.counts.add(*id, lease);
        }
    }

    fn owner_id(&mut self, rule: RuleIndex, owner: &Owner) -> OwnerId {
        if let Some(id) = self.owner_ids.get(&(rule, owner.clone())) {
            return *id;
        }
        self.ids += 1;
        self.owner_ids.insert((rule, owner.clone()), self.ids);
        let presence = Presence {
            rule,
            owner: owner.clone(),
            connections: BTreeMap::new(),
            leases: BTreeSet::new(),
        };
        self.owners.insert(self.ids, presence);
        self.ids
    }

    fn link(&mut self, number: u64, owner: OwnerId) {
        self.connections.entry(number).or_default().owners.insert(owner);
        if let Some(presence) = self.owners.get_mut(&owner) {
            *presence.connections.entry(number).or_default() += 1;
        }
    }

    fn unlink(&mut self, number: u64, owner: OwnerId) {
        let Some(presence) = self.owners.get_mut(&owner) else {
            return;
        };
        let Some(reasons) = presence.connections.get_mut(&number) else {
            return;
        };
        *reasons -= 1;
        if *reasons == 0 {
            presence.connections.remove(&number);
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.owners.remove(&owner);
            }
        }
    }

    fn drop_watch(&mut self, lock: &LockId) -> bool {
        let Some(watchers) = self.watches.get_mut(lock) else {
            return true;
        };
        *watchers -= 1;
        if *watchers == 0 {
            self.watches.remove(lock);
            return true;
        }
        false
    }
}
