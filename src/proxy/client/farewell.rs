//! How a client is sent away in a drain, so that it loses nothing: at a moment in which it asks for nothing, and with the
//! end of the stream in the same packet as its last answer, so that whoever looks before it asks again sees it. Who was
//! silent for a while is less likely to ask just now, and is closed as it is.

use std::task::Context;
use std::time::Duration;

use super::Client;
use crate::event::Time;
use crate::session::Next;

/// Who has been silent for so long is sent away without waiting for its next request. And who has come so lately is not
/// sent away with its first answer: that is to its login or name, and what it came for follows without another look.
const SILENT: Duration = Duration::from_millis(500);

impl Client {
    /// A drain was asked for; to be said again every now and then. `last`: there is little time left, so nothing more is
    /// read of the client.
    pub(in crate::proxy) fn leave(&mut self, now: Time, last: bool) {
        self.leaving = true;
        if last {
            self.session.leave();
        } else if !self.session.is_leaving() && (self.session.leaves_at_once() || self.is_silent(now)) {
            self.session.leave_soon();
        }
        // What was held back goes on.
        self.session.advance(now);
        self.wake();
    }

    fn is_silent(&self, now: Time) -> bool {
        let since = now.since(self.active.max(self.session.heard()));
        u128::from(since) >= SILENT.as_micros()
    }

    /// Whether the client has nothing under way, and nothing of it is to be read: what is to be written to it is its last.
    /// That is not written yet, so that the end can go with it.
    #[cold]
    pub(super) fn says_farewell(&mut self, cx: &mut Context<'_>) -> bool {
        let settled_in = u128::from(self.worker.shared.now().since(self.came)) >= SILENT.as_micros();
        if settled_in && self.session.is_asking() {
            self.session.leave_soon();
        }
        // Who has sent more meanwhile is served first.
        while self.session.is_leaving() && self.session.next() == Next::Close {
            if !self.session.hears() || self.read_downstream(cx).is_pending() {
                return true;
            }
        }
        false
    }
}
