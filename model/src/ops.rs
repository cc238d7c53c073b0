//! What the server does with one request, and what the client reads of it; with a mutant, what it would wrongly do. The
//! deciding is lockward's.

use lockward::event::{RefusalReason, ReleaseOutcome};
use lockward::lock::chore::Done;
use lockward::lock::model::{Caller, Debt, Kind, Lock as Key, Model as Accounting, NewExpiry, Outcome, Standing};

use crate::mutant::Mutant;
use crate::server::{LONGER, NOW};

/// What came of it.
pub struct Came {
    /// The answer: done or not.
    pub says: bool,
    /// What the accounting called it.
    pub outcome: Outcome,
}

fn refused() -> Outcome {
    Outcome::Contended
}

/// `SET NX` and the like.
pub fn write(model: &mut Accounting, kind: Kind, caller: &Caller, ttl: NewExpiry, mutant: Option<Mutant>) -> Came {
    let held = model.lock;
    match mutant {
        Some(Mutant::AcquireTakesWhatIsHeld) if kind == Kind::Acquire => model.lock = None,
        Some(Mutant::RefusalWritesATtl) if kind == Kind::Acquire && held.is_some() => {
            model.lock = Some(Key {
                expiry: Some(NOW + LONGER),
            });
            if let Some(lease) = model.lease.as_mut() {
                lease.due = Some(NOW + LONGER);
            }
            let outcome = refused();
            return Came { says: false, outcome };
        }
        Some(Mutant::LoserOverwrites) if kind == Kind::Overwrite => {
            if let Some(holder) = model.holder().cloned() {
                let caller = Caller {
                    owner: holder.owner,
                    connection: holder.connection,
                    ..caller.clone()
                };
                let outcome = model.write(kind, &caller, ttl, NOW);
                return Came { says: true, outcome };
            }
        }
        _ => {}
    }
    let mut caller = caller.clone();
    match mutant {
        Some(Mutant::NoDefaultTtl) => caller.default_ms = None,
        Some(Mutant::DefaultTtlBySecondCommand) if kind == Kind::Acquire => caller.default_ms = None,
        Some(Mutant::OverwriteTakesTheTtlOff) if kind == Kind::Overwrite && held.is_some() => {
            (caller.default_ms, caller.max_ms) = (None, None);
        }
        _ => {}
    }
    let owed = forgiven(model, &caller, mutant == Some(Mutant::DebtorOverwrites));
    let outcome = model.write(kind, &caller, ttl, NOW);
    remembered(model, owed);
    let says = match &outcome {
        Outcome::Contended | Outcome::Refused(..) => false,
        Outcome::Nothing => held.is_some(),
        _ => true,
    };
    Came { says, outcome }
}

/// `EXPIRE` to a later time, or `PERSIST`.
pub fn extend(model: &mut Accounting, caller: &Caller, ttl: NewExpiry, mutant: Option<Mutant>) -> Came {
    let exists = model.lock.is_some();
    let mut caller = caller.clone();
    if let (Some(Mutant::LoserExtends), Some(holder)) = (mutant, model.holder()) {
        caller.owner = holder.owner.clone();
        caller.connection = holder.connection.clone();
    }
    if mutant == Some(Mutant::PersistTakesTheTtlOff) {
        caller.max_ms = None;
    }
    let owed = forgiven(model, &caller, mutant == Some(Mutant::DebtorExtends));
    let outcome = model.extend(&caller, ttl, true, NOW);
    remembered(model, owed);
    let says = match &outcome {
        Outcome::Refused(..) => false,
        // `max_ttl` keeps the TTL on: PERSIST answers 0.
        Outcome::Extended(true) if ttl == NewExpiry::Never => false,
        Outcome::Nothing => exists,
        _ => true,
    };
    Came { says, outcome }
}

/// Takes the debts of this connection out of the record, for as long as a mutant does not look at them.
fn forgiven(model: &mut Accounting, caller: &Caller, does: bool) -> Vec<Debt> {
    let is_his = |debt: &Debt| does && debt.connection == caller.connection;
    let (owed, debts) = model.debts.drain(..).partition(is_his);
    model.debts = debts;
    owed
}

fn remembered(model: &mut Accounting, owed: Vec<Debt>) {
    model.debts.extend(owed);
    model.debts.sort_by_key(|debt| debt.number);
}

/// `DEL`.
pub fn release(model: &mut Accounting, caller: &Caller, mutant: Option<Mutant>) -> Came {
    let existed = model.lock.is_some();
    let current = model
        .holder()
        .filter(|_| model.standing() == Standing::Current)
        .cloned();
    let owners = current.as_ref().is_some_and(|holder| holder.owner == caller.owner);
    let mut caller = caller.clone();
    let mut stash: Vec<Debt> = Vec::new();
    match mutant {
        Some(Mutant::PlainDel) if existed => {
            model.lock = None;
            model.settle_early();
            return removed(ReleaseOutcome::Unmanaged);
        }
        Some(Mutant::NoOwnerCheck) => {
            if let Some(holder) = &current {
                caller.owner = holder.owner.clone();
            }
        }
        Some(Mutant::CurrentLeaseFirst) if owners => stash = std::mem::take(&mut model.debts),
        Some(Mutant::PooledReleaseRefused)
            if owners && model.debts.is_empty() && current.is_some_and(|held| held.connection != caller.connection) =>
        {
            let outcome = refused();
            return Came { says: false, outcome };
        }
        _ => {}
    }
    let outcome = model.release(&caller, NOW);
    model.debts.append(&mut stash);
    let Outcome::Release {
        outcome: line, refused, ..
    } = &outcome
    else {
        return Came { says: false, outcome };
    };
    let mut says = existed && refused.is_none();
    match mutant {
        Some(Mutant::LateReleaseRemoves) if owners && *refused == Some(RefusalReason::Late) => {
            model.lock = None;
            model.settle_early();
            says = true;
        }
        Some(Mutant::ReleaseForgetsDebts) if matches!(line, ReleaseOutcome::Released | ReleaseOutcome::Pooled) => {
            model.debts.clear();
        }
        Some(Mutant::SaysDoneWithoutEffect) => says = existed,
        _ => {}
    }
    Came { says, outcome }
}

fn removed(outcome: ReleaseOutcome) -> Came {
    Came {
        says: true,
        outcome: Outcome::Release {
            outcome,
            held_ms: None,
            overrun_ms: None,
            refused: None,
            expired: None,
        },
    }
}

/// The renewal of this lease.
pub fn renew(model: &mut Accounting, caller: &Caller, mutant: Option<Mutant>) {
    let token = match (mutant, model.holder()) {
        (Some(Mutant::RenewalWithoutToken), Some(holder)) => holder.token,
        _ => caller.token,
    };
    let done = model.renew(token, LONGER, NOW);
    if mutant == Some(Mutant::RenewalTakesTheTtlOff) && matches!(done, Done::Renewed { .. }) {
        model.lock = Some(Key { expiry: None });
        if let Some(lease) = model.lease.as_mut() {
            lease.due = None;
        }
    }
}

/// The lease is freed, as nobody can know of it.
pub fn free(model: &mut Accounting, caller: &Caller, mutant: Option<Mutant>) {
    let token = (mutant != Some(Mutant::UnheardFreedWithoutToken)).then_some(caller.token);
    let done = model.free(token, NOW);
    if mutant == Some(Mutant::FreeForgetsDebts) && matches!(done, Done::Freed { .. }) {
        model.debts.clear();
    }
}

/// The connection was closed by its client.
pub fn gone(model: &mut Accounting, caller: &Caller, mutant: Option<Mutant>) {
    match mutant {
        Some(Mutant::CloseDropsTheOwnersDebts) => model.drop_debts(&caller.owner, NOW),
        Some(Mutant::CloseMarksTheOwnersDebts) => {
            for debt in model.debts.iter_mut().filter(|debt| debt.owner == caller.owner) {
                debt.open = false;
            }
            model.gone(&caller.connection, NOW);
        }
        _ => model.gone(&caller.connection, NOW),
    }
}

/// The time comes.
pub fn ripen(model: &mut Accounting, now: i64, mutant: Option<Mutant>) {
    let before = model.clone();
    model.ripen(now);
    let last = before.lease.filter(|_| model.lease.is_none());
    let Some(last) = last else {
        if mutant == Some(Mutant::WindowNeverEnds) {
            model.debts = before.debts;
        }
        return;
    };
    let own = last.holder.zip(last.due).map(|(holder, due)| Debt {
        number: u64::from(u8::MAX),
        owner: holder.owner,
        connection: holder.connection,
        due,
        open: holder.open,
    });
    match mutant {
        Some(Mutant::NoDebts) => model.debts = before.debts,
        Some(Mutant::DebtsTwice) => model.debts.extend(own),
        Some(Mutant::NothingReturns) if !last.doubts.is_empty() => model.debts = before.debts,
        Some(Mutant::ReturnsInAddition) if !last.doubts.is_empty() => model.debts.extend(own),
        _ => {}
    }
}
