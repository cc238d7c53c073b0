//! Grants whose answer has not been written to the client yet. If it never is, nobody knows of the lease, and nothing is
//! owed for it. Counts bytes; knows no socket.

use std::collections::VecDeque;

use crate::event::Event;

/// The shortest answer that tells of a grant: `:1` and its line end, in bytes.
const SHORTEST: u64 = 4;

/// Grants on their way to the client.
#[derive(Default)]
pub(super) struct Unheard {
    /// Bytes written to the client so far.
    written: u64,
    /// Each grant, and how many bytes are written when its answer is.
    grants: VecDeque<(u64, Event)>,
}

impl Unheard {
    /// The answer to a grant comes behind `waiting` bytes that are not written yet.
    pub(super) fn push(&mut self, waiting: usize, event: &Event) {
        let until = self.written.saturating_add(waiting as u64).saturating_add(SHORTEST);
        self.grants.push_back((until, event.clone()));
    }

    /// So many bytes were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64);
        while self.grants.front().is_some_and(|(until, _)| *until <= self.written) {
            self.grants.pop_front();
        }
        if self.grants.is_empty() {
            self.grants = VecDeque::new();
        }
    }

    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.grants)
            .into_iter()
            .map(|(_, event)| event)
            .collect()
    }
}
