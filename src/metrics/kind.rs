//! The kinds of log lines about locks: each has a word, a level, a sentence and a rate limit of its own. Writes nothing.

/// One kind of log line (field `kind`, metric label `kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// A release, extend or overwrite was refused, or in observe mode would have been.
    Refusal,
    /// A release was refused on a lock that has no TTL: it stays until somebody acts.
    Stuck,
    /// A release came after its lease had expired.
    Overrun,
    /// A lock was granted whose last holder, somebody else, never released it.
    Overlap,
    /// Renewal found its lease gone.
    LeaseLost,
    /// Renewal ended at `max_hold`.
    RenewalCapped,
    /// `default_ttl` gave a TTL.
    TtlInjected,
    /// A lock was acquired without a TTL.
    WithoutTtl,
    /// Another owner took the lock over.
    Takeover,
    /// An operator released a lock.
    Forced,
    /// Owed releases were dropped unpaid.
    DebtsDropped,
}

impl LogKind {
    /// Every kind, in the order of its variants.
    pub const ALL: [LogKind; 11] = [
        LogKind::Refusal,
        LogKind::Stuck,
        LogKind::Overrun,
        LogKind::Overlap,
        LogKind::LeaseLost,
        LogKind::RenewalCapped,
        LogKind::TtlInjected,
        LogKind::WithoutTtl,
        LogKind::Takeover,
        LogKind::Forced,
        LogKind::DebtsDropped,
    ];

    /// The word used in labels and log lines.
    pub fn word(self) -> &'static str {
        match self {
            LogKind::Refusal => "refusal",
            LogKind::Stuck => "stuck",
            LogKind::Overrun => "overrun",
            LogKind::Overlap => "overlap",
            LogKind::LeaseLost => "lease_lost",
            LogKind::RenewalCapped => "renewal_capped",
            LogKind::TtlInjected => "ttl_injected",
            LogKind::WithoutTtl => "without_ttl",
            LogKind::Takeover => "takeover",
            LogKind::Forced => "forced",
            LogKind::DebtsDropped => "debts_dropped",
        }
    }

    /// Whether somebody should look: a warning, else a note.
    pub(super) fn warns(self) -> bool {
        match self {
            LogKind::Refusal
            | LogKind::Stuck
            | LogKind::Overrun
            | LogKind::Overlap
            | LogKind::LeaseLost
            | LogKind::RenewalCapped
            | LogKind::Takeover
            | LogKind::Forced => true,
            LogKind::TtlInjected | LogKind::WithoutTtl | LogKind::DebtsDropped => false,
        }
    }

    /// The sentence of the line.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            LogKind::Refusal => "an operation on a lock was refused (observed: would have been)",
            LogKind::Stuck => {
                "a release of a lock without TTL was refused, so the lock stays until somebody acts: \
                 release it with `lockward release KEY`, and set `default_ttl` or another `owner` in its rule"
            }
            LogKind::Overrun => "a holder overran its lease: its release came after the expiry",
            LogKind::Overlap => "a lock was granted whose last holder never released it: two may be at work",
            LogKind::LeaseLost => "a lease that was being renewed is lost",
            LogKind::RenewalCapped => "renewal of a lease ended at max_hold: it ends by its TTL",
            LogKind::TtlInjected => "a lock acquired without TTL was given default_ttl",
            LogKind::WithoutTtl => {
                "a lock was acquired without TTL; unless its client sets one it stays until released \
                 (said once a minute for each rule)"
            }
            LogKind::Takeover => "a lock was taken over by another owner and is open to all",
            LogKind::Forced => "a lock was released by force",
            LogKind::DebtsDropped => "owed releases were dropped unpaid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_list() {
        assert!(
            LogKind::ALL
                .iter()
                .enumerate()
                .all(|(index, kind)| *kind as usize == index)
        );
    }
}
