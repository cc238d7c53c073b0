//! The mutants: the protocol with one thing wrong. Each has a configuration in which it is looked for, and the promises by
//! one of which it has to be caught. One that could not be told from the protocol is not listed.

use crate::promise::Promise;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    PlainDel,
    NoOwnerCheck,
    NoDebts,
    LoserExtends,
    LoserOverwrites,
    CurrentLeaseFirst,
    DebtsTwice,
    NothingReturns,
    ReturnsInAddition,
    RenewalWithoutToken,
    CloseDropsTheOwnersDebts,
    CloseMarksTheOwnersDebts,
    RefusalWritesATtl,
    AcquireIsRetried,
    ReleaseIsRetried,
    WindowNeverEnds,
    LateReleaseRemoves,
    ReleaseForgetsDebts,
    FenceFromTheProxysClock,
    SaysDoneWithoutEffect,
    AcquireTakesWhatIsHeld,
    RepliesSwapped,
    UnheardFreedWithoutToken,
    PooledReleaseRefused,
    NoDefaultTtl,
}

/// One row of the list.
pub struct Row {
    pub mutant: Mutant,
    pub name: &'static str,
    /// What is wrong with it.
    pub wrong: &'static str,
    /// Where it is looked for.
    pub bounds: &'static str,
    /// What has to catch it, first of all.
    pub caught_by: Promise,
}

const fn row(mutant: Mutant, name: &'static str, bounds: &'static str, caught_by: Promise, wrong: &'static str) -> Row {
    Row {
        mutant,
        name,
        wrong,
        bounds,
        caught_by,
    }
}

#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row(Mutant::PlainDel, "plain-del", "small", Promise::ForeignReleaseRemovesNothing,
        "a release removes whatever lock is there, as on a server without lockward"),
    row(Mutant::NoOwnerCheck, "no-owner-check", "small", Promise::ForeignReleaseRemovesNothing,
        "whoever releases counts as the holder's owner"),
    row(Mutant::NoDebts, "no-debts", "small", Promise::LateReleaseSparesTheSibling,
        "a lease that expires owes nothing"),
    row(Mutant::CurrentLeaseFirst, "current-lease-first", "small", Promise::LateReleaseSparesTheSibling,
        "a release gives up the current lease of its owner before it pays a debt"),
    row(Mutant::LateReleaseRemoves, "late-release-removes", "small", Promise::LateReleaseSparesTheSibling,
        "a release that pays a debt removes a sibling's lease as well"),
    row(Mutant::DebtsTwice, "debts-twice", "small", Promise::OneDebtForOneMissingRelease,
        "an expiry adds two debts"),
    row(Mutant::NothingReturns, "nothing-returns", "small", Promise::LateReleaseSparesTheSibling,
        "a lease with a doubtful payment expires, and nothing is owed for it"),
    row(Mutant::ReturnsInAddition, "returns-in-addition", "small", Promise::OneDebtForOneMissingRelease,
        "the doubtful payment returns in addition to the lease's own debt"),
    row(Mutant::ReleaseForgetsDebts, "release-forgets-debts", "small", Promise::LateReleaseSparesTheSibling,
        "a release deletes the record, although it has debts"),
    row(Mutant::WindowNeverEnds, "window-never-ends", "small", Promise::NothingIsOwedBeyondTheWindow,
        "debts are never dropped"),
    row(Mutant::CloseDropsTheOwnersDebts, "close-drops-debts", "small", Promise::LateReleaseSparesTheSibling,
        "the end of one connection of a pool drops the owner's debts"),
    row(Mutant::CloseMarksTheOwnersDebts, "close-marks-debts", "pool-of-three", Promise::LateReleaseSparesTheSibling,
        "the end of one connection marks the debts of its owner's other connections closed"),
    row(Mutant::LoserExtends, "loser-extends", "small", Promise::EffectByTheOwnerOnly,
        "anybody may extend"),
    row(Mutant::LoserOverwrites, "loser-overwrites", "small", Promise::EffectByTheOwnerOnly,
        "anybody may overwrite"),
    row(Mutant::RenewalWithoutToken, "renewal-without-token", "small", Promise::EffectByTheOwnerOnly,
        "a renewal that comes after its lease has expired extends the next one"),
    row(Mutant::UnheardFreedWithoutToken, "free-without-token", "small", Promise::EffectByTheOwnerOnly,
        "a lease that nobody heard of is freed without its token"),
    row(Mutant::RefusalWritesATtl, "refusal-writes-a-ttl", "small", Promise::RefusalChangesNothing,
        "a refused acquire sets the TTL"),
    row(Mutant::AcquireTakesWhatIsHeld, "acquire-takes-what-is-held", "small", Promise::OneHolderAtATime,
        "an acquire is granted although the lock is held"),
    row(Mutant::AcquireIsRetried, "retried-acquire", "small", Promise::AnswersAreTruthful,
        "a proxy sends an acquire twice, and the second answer is the client's"),
    row(Mutant::ReleaseIsRetried, "retried-release", "small", Promise::LateReleaseSparesTheSibling,
        "a proxy sends a release twice, and the second answer is the client's"),
    row(Mutant::SaysDoneWithoutEffect, "says-done", "small", Promise::AnswersAreTruthful,
        "a release that was refused answers 1 where there is a lock"),
    row(Mutant::RepliesSwapped, "replies-swapped", "pipeline", Promise::RepliesInOrder,
        "the later of two answers is delivered first"),
    row(Mutant::PooledReleaseRefused, "pooled-release-refused", "small", Promise::HolderIsNotRefused,
        "only the connection that acquired a lease may release it"),
    row(Mutant::NoDefaultTtl, "no-default-ttl", "endless", Promise::FreeAfterItsTtl,
        "default_ttl gives no TTL"),
    row(Mutant::FenceFromTheProxysClock, "fence-from-the-proxy", "small", Promise::FencingTokensGrow,
        "fencing tokens come from the clocks of the proxies, one of which is behind"),
];
