//! Which kinds of things the exploration has come by. What was never reached was never checked, so a run fails that has
//! not come by all of them. One set for the whole process, as the explorer's threads share nothing else.

use std::sync::atomic::{AtomicBool, Ordering};

use lockward::event::{Operation, ReleaseOutcome};
use lockward::lock::model::{Model as Accounting, Outcome, Standing};

use crate::server::Passes;

macro_rules! kinds {
    ($($kind:ident => $words:literal,)*) => {
        #[derive(Clone, Copy, Debug)]
        pub enum Reached { $($kind,)* }
        const WORDS: &[&str] = &[$($words,)*];
    };
}

kinds! {
    Granted => "granted",
    Contended => "contended",
    Released => "released",
    Pooled => "pooled",
    Late => "late",
    LateOnAFreeLock => "late, the lock free",
    Doubtful => "doubtful payment",
    DoubtSettled => "doubt settled by a release",
    DoubtReturned => "doubtful payment returned",
    DoubtOutOfWindow => "doubt out of the window",
    Foreign => "foreign",
    Absent => "absent",
    Unmanaged => "unmanaged, done",
    UnmanagedRefused => "unmanaged, refused",
    Extended => "extended",
    ExtendRefused => "extend refused",
    DebtorsExtendRefused => "extend refused, a release being owed",
    Overwritten => "overwritten",
    OverwriteRefused => "overwrite refused",
    DebtorsOverwriteRefused => "overwrite refused, a release being owed",
    TakenOver => "taken over",
    Adrift => "adrift",
    TtlRepaired => "TTL given by another",
    Renewed => "renewed",
    NotRenewed => "not renewed",
    RenewedLate => "renewed once more, nobody there",
    HeldLong => "max_hold over",
    TtlKept => "PERSIST kept from taking the TTL",
    Freed => "freed, unheard of",
    ReleaseOfAFreedLease => "exception: release of a freed lease",
    OpenedAnew => "connection opened anew",
    MarkedGone => "marked gone",
    WindowEnded => "window ended",
    LateArrival => "request served after its connection was gone",
    Excepted => "exception: its own connection closed",
    AfterTheWindow => "exception: after the window",
}

static SEEN: [AtomicBool; WORDS.len()] = [const { AtomicBool::new(false) }; WORDS.len()];

pub fn reached(kind: Reached) {
    let seen = &SEEN[kind as usize];
    // Mostly it is there already, and a write would cost the other thread.
    if !seen.load(Ordering::Relaxed) {
        seen.store(true, Ordering::Relaxed);
    }
}

/// What was reached, and what was not.
pub fn summary() -> (Vec<&'static str>, Vec<&'static str>) {
    let seen = |place: usize| SEEN[place].load(Ordering::Relaxed);
    let (yes, no): (Vec<usize>, Vec<usize>) = (0..WORDS.len()).partition(|place| seen(*place));
    let words = |places: Vec<usize>| places.into_iter().map(|place| WORDS[place]).collect();
    (words(yes), words(no))
}

/// What the server's answer to a release, an extend or a write came to.
pub fn outcome(outcome: &Outcome, before: &Accounting, after: &Accounting) {
    let existed = before.lock.is_some();
    let kind = match outcome {
        Outcome::Granted(_) => Reached::Granted,
        Outcome::Contended => Reached::Contended,
        Outcome::Release { outcome, refused, .. } => match outcome {
            ReleaseOutcome::Released => Reached::Released,
            ReleaseOutcome::Pooled => Reached::Pooled,
            ReleaseOutcome::Late if existed => Reached::Late,
            ReleaseOutcome::Late => Reached::LateOnAFreeLock,
            ReleaseOutcome::Foreign => Reached::Foreign,
            ReleaseOutcome::Absent => Reached::Absent,
            _ if refused.is_some() => Reached::UnmanagedRefused,
            _ => Reached::Unmanaged,
        },
        Outcome::Refused(Operation::Extend, _) => Reached::ExtendRefused,
        Outcome::Refused(..) => Reached::OverwriteRefused,
        Outcome::Extended(true) if before == after => Reached::TtlKept,
        Outcome::Extended(_) => Reached::Extended,
        Outcome::Overwritten(_) => Reached::Overwritten,
        Outcome::TakenOver => Reached::TakenOver,
        Outcome::Nothing => return,
    };
    reached(kind);
    let doubts = |model: &Accounting| model.lease.as_ref().map_or(0, |lease| lease.doubts.len());
    if doubts(after) > doubts(before) {
        reached(Reached::Doubtful);
    }
    if doubts(before) > 0 && existed && after.lock.is_none() {
        reached(Reached::DoubtSettled);
    }
    if before.standing() == Standing::Adrift {
        reached(Reached::Adrift);
    }
}

/// What the time did.
pub fn passed(passes: Passes, before: &Accounting, after: &Accounting) {
    if matches!(passes, Passes::Window(_)) {
        return reached(Reached::WindowEnded);
    }
    let doubts = before.lease.as_ref().map_or(&[][..], |lease| &lease.doubts);
    if after.lease.is_none() && !doubts.is_empty() {
        let returned = after.debts.len() > before.debts.len();
        reached(if returned {
            Reached::DoubtReturned
        } else {
            Reached::DoubtOutOfWindow
        });
    }
}
