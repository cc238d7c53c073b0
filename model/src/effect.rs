//! What a step does to the lock, asked of the server's accounting; what is true of the leases from then on; and which
//! promise that breaks, if one.

use lockward::lock::model::{Kind, Lock as Key, Model as Accounting, NewExpiry, Outcome, Standing as Stands};

use crate::mutant::Mutant;
use crate::ops::{self, Came};
use crate::promise::{Promise, breaks, owes};
use crate::reached::{self, Reached, reached};
use crate::server::{self, LONGER, NOW, Passes, accounting, caller};
use crate::state::{Client, Fate, Holder, LeaseId, LinkId, Lock, Meaning, Request, Standing, State, Task};
use crate::world::{World, asking};

fn keep(state: &mut State, model: &Accounting) {
    state.record = server::record(model, state.record.holder);
}

fn owner_bit(world: &World, state: &State, lease: LeaseId) -> u8 {
    1 << world.bounds.owner(state.tasks[usize::from(lease)].link)
}

/// The lease ends, if it has not ended yet.
fn end(state: &mut State, lease: LeaseId, fate: Fate) {
    let task = &mut state.tasks[usize::from(lease)];
    if task.fate == Fate::Held {
        task.fate = fate;
    }
}

/// A client's request, and its answer.
pub fn execute(world: &World, state: &mut State, link: LinkId, mut request: Request) -> Request {
    let (before, _) = accounting(&world.bounds, state, None);
    let mut model = before.clone();
    let who = caller(&world.bounds, link, state.granted);
    request.served = true;
    match request.meaning {
        Meaning::Acquire | Meaning::AcquireEndless => {
            let ttl = match request.meaning {
                Meaning::AcquireEndless => NewExpiry::Never,
                _ => NewExpiry::At(NOW + LONGER),
            };
            let mut who = who;
            if world.mutant == Some(Mutant::DefaultTtlForgotten) && state.crashed & (1 << world.bounds.proxy(link)) != 0
            {
                who.default_ms = None;
            }
            let came = ops::write(&mut model, Kind::Acquire, &who, ttl, world.mutant);
            request.says = came.says;
            reached::outcome(&came.outcome, &before, &model);
            if granted(world, state, link, &came, Client::Unheard) {
                request.effect = true;
                request.lease = state.granted - 1;
            } else if model != before {
                breaks(state, Promise::RefusalChangesNothing);
            }
        }
        Meaning::Release(_) | Meaning::Stray => {
            let came = ops::release(&mut model, &who, world.mutant);
            request.says = came.says;
            reached::outcome(&came.outcome, &before, &model);
            request.effect |= before.lock.is_some() && model.lock.is_none();
            released(world, state, link, request.meaning, &before, &model);
        }
    }
    keep(state, &model);
    request
}

/// A new lease, if it is one: what is true of it from now on.
fn granted(world: &World, state: &mut State, link: LinkId, came: &Came, client: Client) -> bool {
    if !matches!(came.outcome, Outcome::Granted(_)) {
        return false;
    }
    state.tasks[usize::from(state.granted)] = Task {
        link,
        client,
        fate: Fate::Held,
    };
    state.granted += 1;
    // Clocks of two proxies, one of which is behind.
    let behind = world.mutant == Some(Mutant::FenceFromTheProxysClock) && world.bounds.proxy(link) == 1;
    let fence = state.granted - u8::from(behind);
    if fence <= state.fence {
        breaks(state, Promise::FencingTokensGrow);
    }
    state.fence = fence;
    true
}

/// A release was executed. `before` and `after`: what the server had and has.
fn released(world: &World, state: &mut State, link: LinkId, meaning: Meaning, before: &Accounting, after: &Accounting) {
    let owner = world.bounds.owner(link);
    let lease = match meaning {
        Meaning::Release(lease) => Some(lease),
        _ => None,
    };
    if let Some(lease) = lease {
        let task = &mut state.tasks[usize::from(lease)];
        task.client = Client::Released;
        let task = *task;
        // The narrower exception: for this release, and for what it brings about.
        if world.own_only && is_late_and_closed(state, &task) {
            state.excused |= 1 << owner;
        }
        // It is one too many, and taken for another's.
        if task.fate == Fate::Freed && before != after {
            reached(Reached::ReleaseOfAFreedLease);
            state.excused |= 1 << owner;
        }
    } else {
        state.spent[3] |= 1 << owner;
        state.excused |= 1 << owner;
    }
    let current = state.victim();
    if before.lock.is_some() && after.lock.is_none() {
        if let Some(victim) = current {
            took_away(world, state, link, lease, victim);
        }
        return;
    }
    let paid = before.debts.len() > after.debts.len();
    if before.lock != after.lock || (!paid && before.lock.is_some() && before != after) {
        breaks(state, Promise::RefusalChangesNothing);
    }
    let is_his = current.is_some() && current == lease && before.standing() == Stands::Current;
    let name = server::owner(&world.bounds, link);
    if is_his && before.debts.iter().all(|debt| debt.owner != name) {
        breaks(state, Promise::HolderIsNotRefused);
    }
}

/// A release of this lease (or of none) has removed the lock under the victim's.
fn took_away(world: &World, state: &mut State, link: LinkId, lease: Option<LeaseId>, victim: LeaseId) {
    let owner = world.bounds.owner(link);
    let robbed = state.tasks[usize::from(victim)];
    let robs = robbed.is_live() && lease != Some(victim);
    if world.bounds.owner(robbed.link) != owner {
        breaks(state, Promise::ForeignReleaseRemovesNothing);
    } else if robs && state.excused & (1 << owner) == 0 {
        if excepted(world, state, link, robbed.link) {
            reached(Reached::Excepted);
        } else {
            breaks(state, Promise::LateReleaseSparesTheSibling);
        }
    } else if robs {
        reached(Reached::AfterTheWindow);
    }
    end(state, victim, if robs { Fate::Robbed } else { Fate::Removed });
}

/// The second exception of promise 2: the release comes through the very connection that took the current lease, while the
/// owner owes a release from a connection that its client closed. Debts of one owner being alike, it need not be this
/// task's own; `World::own_only` shows what becomes of a promise that says so.
fn excepted(world: &World, state: &State, link: LinkId, taken: LinkId) -> bool {
    let owner = world.bounds.owner(link);
    let owed = state
        .tasks
        .iter()
        .zip(state.record.debts)
        .filter(|(_, debts)| *debts > 0);
    let mut his = owed.filter(|(task, _)| world.bounds.owner(task.link) == owner);
    link == taken && !world.own_only && his.any(|(task, _)| is_late_and_closed(state, task))
}

fn is_late_and_closed(state: &State, task: &Task) -> bool {
    task.fate == Fate::Expired && state.links[usize::from(task.link)].standing == Standing::Closed
}

/// An extend, or a write that needs no NX. `None`: it would be a lease too many.
pub fn meddle(world: &World, state: &mut State, link: LinkId, kind: Option<Kind>, ttl: NewExpiry) -> Option<()> {
    let (before, _) = accounting(&world.bounds, state, None);
    let mut model = before.clone();
    let who = caller(&world.bounds, link, state.granted);
    let came = match kind {
        None => ops::extend(&mut model, &who, ttl, world.mutant),
        Some(kind) => ops::write(&mut model, kind, &who, ttl, world.mutant),
    };
    if matches!(came.outcome, Outcome::Granted(_)) && state.granted + asking(state) >= world.bounds.leases {
        return None;
    }
    reached::outcome(&came.outcome, &before, &model);
    let effect = before.lock != model.lock;
    let taken = state.victim().map(|lease| state.tasks[usize::from(lease)].link);
    let is_siblings = taken.is_some_and(|taken| taken != link && world.bounds.owner(taken) == world.bounds.owner(link));
    if is_siblings && before.standing() == Stands::Current && owes(world, state, link) {
        match kind {
            _ if effect => breaks(state, Promise::DebtorChangesNothing),
            None => reached(Reached::DebtorsExtendRefused),
            Some(_) => reached(Reached::DebtorsOverwriteRefused),
        }
    }
    if came.says != effect {
        breaks(state, Promise::AnswersAreTruthful);
    }
    if !came.says && before.lock.is_some() && model != before {
        breaks(state, Promise::RefusalChangesNothing);
    }
    if let Some(victim) = state.victim().filter(|_| effect) {
        let bit = owner_bit(world, state, victim);
        let gives_a_ttl = kind.is_none() && state.record.lock == Lock::Endless;
        if came.outcome == Outcome::TakenOver {
            end(state, victim, Fate::Opened);
            state.excused |= bit;
        } else if bit != 1 << world.bounds.owner(link) {
            if gives_a_ttl {
                reached(Reached::TtlRepaired);
            } else {
                breaks(state, Promise::EffectByTheOwnerOnly);
            }
        }
    }
    let usable = state.links[usize::from(link)].is_usable();
    let client = if usable { Client::Working } else { Client::Deaf };
    if granted(world, state, link, &came, client) && usable {
        state.links[usize::from(link)].standing = Standing::Open;
    }
    keep(state, &model);
    Some(())
}

/// Somebody writes past the proxy: nothing is promised to whom that concerns.
pub fn stranger(world: &World, state: &mut State, sets: bool) -> Option<()> {
    if !sets && state.record.lock == Lock::Absent {
        return None;
    }
    state.spent[1] += 1;
    if let Holder::Lease(lease) = state.record.holder {
        state.excused |= owner_bit(world, state, lease);
        end(state, lease, Fate::Disturbed);
    }
    let (mut model, _) = accounting(&world.bounds, state, None);
    model.lock = sets.then_some(Key {
        expiry: Some(NOW + LONGER),
    });
    keep(state, &model);
    Some(())
}

/// A chore for this lease; whether it changed the lock.
fn chore(
    world: &World,
    state: &mut State,
    lease: LeaseId,
    does: fn(&mut Accounting, &lockward::lock::model::Caller, Option<Mutant>),
) -> bool {
    let (before, _) = accounting(&world.bounds, state, None);
    let mut model = before.clone();
    let who = caller(&world.bounds, state.tasks[usize::from(lease)].link, lease);
    does(&mut model, &who, world.mutant);
    let effect = before.lock != model.lock;
    if effect && state.victim() != Some(lease) {
        breaks(state, Promise::EffectByTheOwnerOnly);
    }
    keep(state, &model);
    effect
}

pub fn renew(world: &World, state: &mut State, lease: LeaseId) {
    let effect = chore(world, state, lease, ops::renew);
    state.renewals &= !(1 << lease);
    // One may have been on its way.
    if world.bounds.max_hold && effect && !world.may_renew(state, lease) {
        reached(Reached::RenewedLate);
        if state.renewed_late & (1 << lease) != 0 {
            breaks(state, Promise::FreeAfterItsTtl);
        }
        state.renewed_late |= 1 << lease;
    }
    reached(if effect { Reached::Renewed } else { Reached::NotRenewed });
}

pub fn free(world: &World, state: &mut State, lease: LeaseId) {
    if chore(world, state, lease, ops::free) {
        reached(Reached::Freed);
        end(state, lease, Fate::Freed);
    }
}

pub fn mark(world: &World, state: &mut State, link: LinkId) {
    let (mut model, _) = accounting(&world.bounds, state, None);
    ops::gone(&mut model, &caller(&world.bounds, link, 0), world.mutant);
    reached(Reached::MarkedGone);
    keep(state, &model);
}

pub fn time(world: &World, state: &mut State, passes: Passes) {
    let (before, now) = accounting(&world.bounds, state, Some(passes));
    let mut model = before.clone();
    ops::ripen(&mut model, now, world.mutant);
    reached::passed(passes, &before, &model);
    if passes == Passes::Expiry && model.lock.is_some() {
        breaks(state, Promise::FreeAfterItsTtl);
    }
    if let Passes::Window(lease) = passes {
        let number = u64::from(lease) + 1;
        if model.debts.iter().any(|debt| debt.number == number) {
            breaks(state, Promise::NothingIsOwedBeyondTheWindow);
        }
        state.excused |= owner_bit(world, state, lease);
    } else if let Holder::Lease(lease) = state.record.holder
        && model.lease.is_none()
    {
        end(state, lease, Fate::Expired);
    }
    keep(state, &model);
}
