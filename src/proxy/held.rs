//! How much all clients together have lying in lockward: requests that are not complete yet, answers that are not read, and
//! what answers due are to be read by. Counts, and says whose turn it is if that is too much; closes nobody.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// A client with fewer bytes is not counted: most have none most of the time.
const COUNTED_FROM: usize = 16 * 1024;

/// The bytes of all clients that are counted.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: AtomicUsize,
    clients: AtomicUsize,
    crowded: watch::Sender<()>,
}

impl Held {
    /// How much counts of so many bytes.
    #[inline]
    pub(super) fn counted(bytes: usize) -> usize {
        if bytes < COUNTED_FROM { 0 } else { bytes }
    }

    /// A client has so many that had `before`; what all have together now.
    pub(super) fn change(&self, before: usize, now: usize) -> usize {
        match (before, now) {
            (0, 1..) => self.clients.fetch_add(1, Ordering::Relaxed),
            (1.., 0) => self.clients.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
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

    /// Whether a client with so many has half of its share of them, or more: if there is too much, such a one is to go, and
    /// not whoever happens to be the last.
    pub(super) fn is_large(&self, bytes: usize) -> bool {
        bytes >= self.bytes() / self.clients.load(Ordering::Relaxed).max(1) / 2
    }

    /// There is too much, and whoever noticed it has little of it.
    pub(super) fn is_crowded(&self) {
        self.crowded.send_replace(());
    }

    /// Changes when others are to look for the largest.
    pub(super) fn crowded(&self) -> watch::Receiver<()> {
        self.crowded.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_their_share_are_large() {
        let held = Held::default();
        assert_eq!(held.change(0, 90_000), 90_000);
        assert_eq!(held.change(0, 20_000), 110_000);
        assert!(held.is_large(90_000) && held.is_large(28_000) && !held.is_large(20_000));
        assert_eq!(held.change(90_000, 0), 20_000);
        assert!(held.is_large(20_000), "alone, it has all");
        assert_eq!(held.change(20_000, 0), 0);
        assert!(held.is_large(0));
    }
}
