//! The server: lockward's own accounting (`lockward::lock::model`, which a differential test keeps equal to the Lua
//! scripts), asked with times made up for the purpose. Nothing here decides about a lock. What is remembered of the times
//! is their order: debts are as old as their leases, and whether an expiry or the end of a window comes first is the
//! explorer's choice. The answers a client reads are made here from the outcomes, as the session does it.

use lockward::event::{ConnectionId, Owner, Token};
use lockward::lock::model::{Caller, Debt, Holder as Holding, Lease, Lock as Key, Model as Accounting};

use crate::bounds::Bounds;
use crate::state::{Due, Holder, LEASES, LeaseId, LinkId, Lock, Record, State};

pub const NOW: i64 = 1_000_000;
const WINDOW: i64 = 100_000;
/// When a lock with a TTL expires; when one that drifts away from its lease does; what an extend asks for.
const TTL: i64 = 10_000;
const FURTHER: i64 = 20_000;
pub const LONGER: i64 = 15_000;
/// `default_ttl`: not what a lock had before.
const DEFAULT: i64 = 12_000;
/// `max_ttl`: more than anybody asks for, so that nothing is cut.
const MOST: i64 = 50_000;
/// Between the expiries of two leases.
const APART: i64 = 100;
const IN_WINDOW: i64 = NOW - WINDOW / 2;
const OUT_OF_WINDOW: i64 = NOW - 2 * WINDOW;
/// What is over is over by more than the tolerance.
const PAST: i64 = 3;

/// What the time does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passes {
    /// The lock's TTL.
    Expiry,
    /// The due time of a lease whose lock expires at another time, or is gone.
    Due,
    /// The window of the oldest debt or doubtful payment.
    Window(LeaseId),
}

thread_local! {
    static OWNERS: [Owner; 2] = ["A".into(), "B".into()];
    static INSTANCES: [std::sync::Arc<str>; 2] = ["P".into(), "Q".into()];
}

pub fn owner(bounds: &Bounds, link: LinkId) -> Owner {
    OWNERS.with(|names| names[usize::from(bounds.owner(link))].clone())
}

pub fn connection(bounds: &Bounds, link: LinkId) -> ConnectionId {
    ConnectionId {
        instance: INSTANCES.with(|names| names[usize::from(bounds.proxy(link))].clone()),
        number: u64::from(link) + 1,
    }
}

pub fn token(lease: LeaseId) -> Token {
    Token(uuid::Uuid::from_u128(u128::from(lease) + 1))
}

/// Who asks through this connection; a lease that he gets has this number.
pub fn caller(bounds: &Bounds, link: LinkId, lease: LeaseId) -> Caller {
    Caller {
        owner: owner(bounds, link),
        connection: connection(bounds, link),
        token: token(lease),
        allow: bounds.allow,
        window_ms: WINDOW,
        default_ms: bounds.default_ttl.then_some(DEFAULT),
        max_ms: bounds.max_ttl.then_some(MOST),
    }
}

/// The accounting as it stands, and the moment: nothing has happened yet, or this is just about to be over.
pub fn accounting(bounds: &Bounds, state: &State, passes: Option<Passes>) -> (Accounting, i64) {
    let record = &state.record;
    let mut model = Accounting {
        window_ms: WINDOW,
        ..Accounting::default()
    };
    let debt = |lease: usize| {
        let place = i64::try_from(lease).unwrap_or(0) * APART;
        let aged = record.aged & (1 << lease) != 0;
        let link = state.tasks[lease].link;
        Debt {
            number: lease as u64 + 1,
            owner: owner(bounds, link),
            connection: connection(bounds, link),
            due: match passes {
                Some(Passes::Window(ends)) if usize::from(ends) == lease => NOW - WINDOW,
                _ if aged => OUT_OF_WINDOW + place,
                _ => IN_WINDOW + place,
            },
            open: record.open & (1 << lease) != 0,
        }
    };
    let list = |counts: &[u8; LEASES]| {
        let each = counts.iter().enumerate();
        each.flat_map(|(lease, count)| (0..*count).map(move |_| lease))
            .map(debt)
            .collect::<Vec<_>>()
    };
    model.debts = list(&record.debts);
    let elsewhere = if passes == Some(Passes::Due) { TTL / 2 } else { FURTHER };
    model.lock = match record.lock {
        Lock::Absent => None,
        Lock::Endless => Some(Key { expiry: None }),
        Lock::Timed => Some(Key {
            expiry: Some(NOW + TTL),
        }),
    };
    if record.holder != Holder::None {
        let holder = match record.holder {
            Holder::Lease(lease) => Some(Holding {
                owner: owner(bounds, state.tasks[usize::from(lease)].link),
                connection: connection(bounds, state.tasks[usize::from(lease)].link),
                open: record.holder_open,
                owing: record.owing,
                token: token(lease),
                acquired_at: NOW - 1,
            }),
            Holder::None | Holder::Open => None,
        };
        model.lease = Some(Lease {
            holder,
            due: match record.due {
                Due::InLine => model.lock.and_then(|key| key.expiry),
                Due::Never => None,
                Due::Elsewhere => Some(NOW + elsewhere),
            },
            doubts: list(&record.doubts),
        });
    }
    let now = match passes {
        None | Some(Passes::Window(_)) => NOW,
        Some(Passes::Expiry) => NOW + TTL + PAST,
        Some(Passes::Due) => NOW + elsewhere + PAST,
    };
    (model, now)
}

/// What is to be remembered of it. `last`: whose lease it was before this step.
pub fn record(model: &Accounting, last: Holder) -> Record {
    let mut record = Record::default();
    let expiry = model.lock.map(|key| key.expiry);
    record.lock = match expiry {
        None => Lock::Absent,
        Some(None) => Lock::Endless,
        Some(Some(_)) => Lock::Timed,
    };
    let mut count = |debts: &[Debt]| {
        let mut counts = [0; LEASES];
        for debt in debts {
            let lease = lease_of(debt, last);
            counts[lease] += 1;
            record.open |= u8::from(debt.open) << lease;
            record.aged |= u8::from(NOW - debt.due >= WINDOW) << lease;
        }
        counts
    };
    record.debts = count(&model.debts);
    let Some(lease) = &model.lease else { return record };
    record.doubts = count(&lease.doubts);
    record.due = match (expiry, lease.due) {
        (Some(None), None) => Due::InLine,
        (_, None) => Due::Never,
        (Some(Some(expiry)), Some(due)) if expiry == due => Due::InLine,
        (_, Some(_)) => Due::Elsewhere,
    };
    record.holder = Holder::Open;
    if let Some(holder) = &lease.holder {
        let number = u8::try_from(holder.token.0.as_u128() - 1).unwrap_or(0);
        record.holder = Holder::Lease(number);
        record.holder_open = holder.open;
        record.owing = holder.owing;
    }
    record
}

/// A debt whose time was still to come before this step is the last lease's; the others have their lease's number.
fn lease_of(debt: &Debt, last: Holder) -> usize {
    match last {
        Holder::Lease(lease) if debt.due >= NOW => usize::from(lease),
        _ => usize::try_from(debt.number - 1).unwrap_or(0),
    }
}
