//! The promises, each by a name that a counterexample is filed under. A step that breaks one leaves its number in the
//! state; what can be read off a state alone is looked at here.

use crate::state::{Client, Fate, LEASES, LINKS, LinkId, Lock, State, Task};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    EffectByTheOwnerOnly,
    DebtorChangesNothing,
    ForeignReleaseRemovesNothing,
    LateReleaseSparesTheSibling,
    RefusalChangesNothing,
    AnswersAreTruthful,
    RepliesInOrder,
    FreeAfterItsTtl,
    OneDebtForOneMissingRelease,
    NothingIsOwedBeyondTheWindow,
    HolderIsNotRefused,
    OneHolderAtATime,
    FencingTokensGrow,
}

impl Promise {
    pub const ALL: [Promise; 13] = [
        Promise::EffectByTheOwnerOnly,
        Promise::DebtorChangesNothing,
        Promise::ForeignReleaseRemovesNothing,
        Promise::LateReleaseSparesTheSibling,
        Promise::RefusalChangesNothing,
        Promise::AnswersAreTruthful,
        Promise::RepliesInOrder,
        Promise::FreeAfterItsTtl,
        Promise::OneDebtForOneMissingRelease,
        Promise::NothingIsOwedBeyondTheWindow,
        Promise::HolderIsNotRefused,
        Promise::OneHolderAtATime,
        Promise::FencingTokensGrow,
    ];

    /// Its name, with the number of the promise in DESIGN.md section 3 where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Promise::EffectByTheOwnerOnly => "1: only the owner's extend, overwrite or renewal takes effect",
            Promise::DebtorChangesNothing => "1: who owes a release changes nothing of a sibling's lease",
            Promise::ForeignReleaseRemovesNothing => "2: a foreign release removes nothing",
            Promise::LateReleaseSparesTheSibling => "2: a late release spares the sibling",
            Promise::RefusalChangesNothing => "3: a refusal changes nothing",
            Promise::AnswersAreTruthful => "4: the answer says what happened",
            Promise::RepliesInOrder => "5: one reply for each request, in order",
            Promise::FreeAfterItsTtl => "7: free after its TTL",
            Promise::OneDebtForOneMissingRelease => "accounting: at most one debt for one missing release",
            Promise::NothingIsOwedBeyondTheWindow => "accounting: nothing is owed beyond the window",
            Promise::HolderIsNotRefused => "accounting: the holder's release is done where his owner owes nothing",
            Promise::OneHolderAtATime => "two surely-held leases at once never",
            Promise::FencingTokensGrow => "fencing tokens grow",
        }
    }

    pub fn code(self) -> u8 {
        let place = Promise::ALL.iter().position(|other| *other == self).unwrap_or(0);
        u8::try_from(place + 1).unwrap_or(u8::MAX)
    }

    /// Whether it holds in this state.
    pub fn holds(self, world: &World, state: &State) -> bool {
        let kept = state.broken != self.code();
        kept && match self {
            Promise::FreeAfterItsTtl => world.bounds.endless && !world.bounds.default_ttl || has_an_end(world, state),
            Promise::OneDebtForOneMissingRelease => (0..2).all(|owner| owed(world, state, owner)),
            Promise::OneHolderAtATime => surely_held(state) <= 1,
            _ => true,
        }
    }
}

/// A lock that lockward gave has a TTL, so the very next thing that the time does can free it. A mutant that gives it by a
/// second command is left the time to send it, as long as it can.
fn has_an_end(world: &World, state: &State) -> bool {
    state.record.lock != Lock::Endless || world.gives_ttl(state)
}

fn surely_held(state: &State) -> usize {
    let sure = |task: &&Task| task.fate == Fate::Held && task.client == Client::Working;
    state.tasks.iter().filter(sure).count()
}

/// Leases that ended, less the releases that were executed: so many releases are missing, and no more may be owed. A
/// lease that does not end by its expiry owes nothing, but its release may have been taken for another's.
fn owed(world: &World, state: &State, owner: u8) -> bool {
    let mut debts = 0;
    let (mut ended, mut executed) = (0, 0);
    for lease in 0..LEASES {
        let task = &state.tasks[lease];
        if task.fate == Fate::None || world.bounds.owner(task.link) != owner {
            continue;
        }
        debts += i32::from(state.record.debts[lease]);
        ended += i32::from(task.fate != Fate::Held);
        executed += i32::from(task.client == Client::Released);
    }
    // Whoever sends a DEL too many has fewer debts, never more.
    debts <= (ended - executed).max(0)
}

/// Whether this connection owes a release. What the record says of it counts; and whatever it says, a late task at work owes
/// for the connection it acquired through, as long as every release of its owner gave up a lease of its own.
pub fn owes(world: &World, state: &State, link: LinkId) -> bool {
    let owner = world.bounds.owner(link);
    let his = |task: &&Task| task.fate != Fate::None && world.bounds.owner(task.link) == owner;
    let none_paid = state
        .tasks
        .iter()
        .filter(his)
        .all(|task| task.client != Client::Released || task.fate == Fate::Removed);
    (0..LEASES).any(|lease| {
        let task = &state.tasks[lease];
        let is_late = task.fate == Fate::Expired && matches!(task.client, Client::Working | Client::Releasing);
        let surely = is_late && none_paid && state.excused & (1 << owner) == 0;
        task.link == link && (state.record.debts[lease] > 0 || surely)
    })
}

/// Whether nothing of the owner's is outstanding: an exception that held for him is over.
pub fn is_clean(world: &World, state: &State, owner: u8) -> bool {
    let strayed = state.spent[3] & (1 << owner) != 0;
    !strayed
        && (0..LEASES).all(|lease| {
            let task = &state.tasks[lease];
            if task.fate == Fate::None || world.bounds.owner(task.link) != owner {
                return true;
            }
            let settled = match task.client {
                Client::Released | Client::Missed => true,
                Client::Deaf if !world.bounds.in_doubt => true,
                // The release of a lease that was freed excuses by itself, once it takes effect.
                Client::Deaf | Client::Releasing if task.fate == Fate::Freed => true,
                Client::Unheard | Client::Deaf | Client::Working | Client::Releasing => task.fate == Fate::Held,
            };
            settled && state.record.debts[lease] == 0 && state.record.doubts[lease] == 0
        })
}

/// The first promise that a step breaks counts.
pub fn breaks(state: &mut State, promise: Promise) {
    if state.broken == 0 {
        state.broken = promise.code();
    }
}

const _: () = assert!(LINKS <= 8 && LEASES <= 8, "bits of a byte stand for them");
