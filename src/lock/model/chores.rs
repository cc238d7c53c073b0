//! What lockward does on its own account, by owner token. The scripts' chores, said a second time.

use crate::event::Token;
use crate::lock::chore::Done;

use super::{Lock, Model, Standing};

impl Model {
    /// The lease of this token gets at least so long a TTL, unless a payment under it is doubtful.
    pub fn renew(&mut self, token: Token, ttl_ms: i64, now: i64) -> Done {
        self.ripen(now);
        self.settle_early();
        if !self.is_current(token) {
            return Done::Lost;
        }
        if self.lease.as_ref().is_some_and(|lease| !lease.doubts.is_empty()) {
            return Done::Doubtful;
        }
        let mut left = ttl_ms;
        if let Some(expiry) = self.lock.and_then(|lock| lock.expiry) {
            left = left.max(expiry - now);
            let expiry = Some(now + left);
            self.lock = Some(Lock { expiry });
            if let Some(lease) = self.lease.as_mut() {
                lease.due = expiry;
            }
        }
        Done::Renewed {
            ttl_ms: u64::try_from(left).unwrap_or(0),
        }
    }

    /// The lock is removed, if this token's lease holds it, or in any case.
    pub fn free(&mut self, token: Option<Token>, now: i64) -> Done {
        self.ripen(now);
        self.settle_early();
        if token.is_some_and(|token| !self.is_current(token)) {
            return Done::Lost;
        }
        if self.lock.is_none() {
            return Done::Absent;
        }
        let held_ms = self
            .holder()
            .map(|holder| u64::try_from(now - holder.acquired_at).unwrap_or(0));
        self.lock = None;
        self.settle_early();
        Done::Freed { held_ms }
    }

    /// What became of this token's lease.
    pub fn check(&mut self, token: Token, now: i64) -> Done {
        self.ripen(now);
        self.settle_early();
        if self.holder().is_some_and(|holder| holder.token == token) {
            let left = self.lock.and_then(|lock| lock.expiry).map(|expiry| expiry - now);
            return Done::Live {
                ttl_ms: left.map(|left| u64::try_from(left).unwrap_or(0)),
            };
        }
        match &self.expired {
            Some(expired) if expired.holder.token == token => Done::Expired,
            _ => Done::Ended,
        }
    }

    fn is_current(&self, token: Token) -> bool {
        self.standing() == Standing::Current && self.holder().is_some_and(|holder| holder.token == token)
    }
}
