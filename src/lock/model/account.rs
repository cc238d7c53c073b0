//! The release accounting: an owner's debts on a lock are always its expired acquires minus its releases, and a release
//! pays the oldest first. Decides; what it decides is done in `act`.

use crate::event::ReleaseOutcome;

use super::{Caller, Model, Standing};

/// Which line of the accounting fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// This debt (by its place) is paid; `doubtful`: it may have been the current lease that was given up.
    Pay { place: usize, doubtful: bool },
    /// The lock is removed.
    Remove(ReleaseOutcome),
    /// The lock is another owner's.
    Foreign,
    /// There is no lock.
    Absent,
    /// Unmanaged, and the rule refuses that.
    Refused,
}

/// The first line that fits a release by this caller.
pub(super) fn line(model: &Model, caller: &Caller) -> Line {
    let standing = model.standing();
    let current = model.holder().filter(|_| standing == Standing::Current);
    let own_lease = current.is_some_and(|holder| holder.connection == caller.connection);
    let oldest = |fits: &dyn Fn(&super::Debt) -> bool| model.debts.iter().position(fits);

    if let Some(place) = oldest(&|debt| debt.connection == caller.connection) {
        return Line::Pay {
            place,
            doubtful: own_lease,
        };
    }
    if let Some(holder) = current.filter(|_| own_lease) {
        return match oldest(&|debt| debt.owner == holder.owner && debt.open) {
            Some(place) => Line::Pay { place, doubtful: true },
            None => Line::Remove(ReleaseOutcome::Released),
        };
    }
    let same_owner = current.is_some_and(|holder| holder.owner == caller.owner);
    if let Some(place) = oldest(&|debt| debt.owner == caller.owner) {
        return Line::Pay {
            place,
            doubtful: same_owner,
        };
    }
    match standing {
        _ if same_owner => Line::Remove(ReleaseOutcome::Pooled),
        Standing::Free => Line::Absent,
        Standing::Current => Line::Foreign,
        Standing::Adrift | Standing::Alien if !model.is_of(caller) => Line::Foreign,
        Standing::Adrift | Standing::Alien | Standing::Open => Line::Remove(ReleaseOutcome::Unmanaged),
        Standing::Unmanaged if caller.allow => Line::Remove(ReleaseOutcome::Unmanaged),
        Standing::Unmanaged => Line::Refused,
    }
}
