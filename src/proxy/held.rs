//! How much all clients together have lying in lockward: requests that are not complete yet, answers that are not read.
//! Counts; who is closed when it is too much is the client's task's business.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A client with fewer bytes is not counted: most have none most of the time.
const COUNTED_FROM: usize = 16 * 1024;

/// The bytes of all clients that are counted.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: AtomicUsize,
}

impl Held {
    /// How much counts of so many bytes.
    #[inline]
    pub(super) fn counted(bytes: usize) -> usize {
        if bytes < COUNTED_FROM { 0 } else { bytes }
    }

    /// A client has so many that had `before`; what all have together now.
    pub(super) fn change(&self, before: usize, now: usize) -> usize {
        if now >= before {
            self.bytes.fetch_add(now - before, Ordering::Relaxed) + (now - before)
        } else {
            self.bytes.fetch_sub(before - now, Ordering::Relaxed) - (before - now)
        }
    }

    /// What all have together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
