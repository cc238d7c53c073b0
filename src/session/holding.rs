//! Holding a client back while the server is out of reach on purpose: what it asks waits where it is, and what is under way
//! is answered. Knows no time.

use super::{Session, Stage};

impl Session {
    /// Begins no request from here on, or goes on with what has waited; [`advance`](Self::advance) does. Who leaves is not
    /// held.
    pub fn hold(&mut self, held: bool) {
        self.held = held && !self.is_leaving();
    }

    /// Whether nothing new is sent. A request that is half sent is finished, and so is a transaction.
    pub(super) fn is_held(&self) -> bool {
        self.held && !self.streaming && !self.in_transaction
    }

    /// Whether something that was read waits for the end of that.
    pub(super) fn keeps_waiting(&self) -> bool {
        self.is_held() && !self.requests.is_empty()
    }

    /// Whether the client is held back and has sent nothing yet that waits for the end of that.
    pub fn waits_empty_handed(&self) -> bool {
        self.is_held() && self.stage == Stage::Open && self.requests.is_empty()
    }

    /// Whether the client is held back and would not notice if its own connection to the server were another one.
    pub fn may_lose_line(&self) -> bool {
        self.is_held() && self.leaves_no_state()
    }

    /// Whether the server owes the client an answer soon, or is told the rest of something.
    pub fn is_under_way(&self) -> bool {
        let due = !self.pending.is_empty() && !self.pending.blocks();
        due || self.streaming || self.in_transaction
    }
}
