//! A rate limit for log lines: so many in each second, then silence and a count. Reads no clock.

use std::sync::{Mutex, PoisonError};

use crate::event::Time;

/// Lines of one kind in one second, where nothing else is said.
const LINES: u32 = 20;

/// The second, in microseconds.
const WINDOW_US: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Window {
    start: Time,
    lines: u32,
    dropped: u64,
}

/// Whether a line may be written, and how many were dropped before it and not yet told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Write it.
    Write {
        /// Lines dropped since the last one that was written.
        dropped: u64,
    },
    /// Leave it out.
    Drop,
}

/// The limit of one kind of line.
#[derive(Debug)]
pub(crate) struct Limit {
    lines: u32,
    window: Mutex<Window>,
}

impl Default for Limit {
    fn default() -> Limit {
        Limit::of(LINES)
    }
}

impl Limit {
    /// So many lines a second.
    pub(crate) fn of(lines: u32) -> Limit {
        Limit {
            lines,
            window: Mutex::default(),
        }
    }

    /// Asks for one line.
    pub(crate) fn ask(&self, now: Time) -> Verdict {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(window.start) >= WINDOW_US {
            window.start = now;
            window.lines = 0;
        }
        if window.lines >= self.lines {
            window.dropped += 1;
            return Verdict::Drop;
        }
        window.lines += 1;
        Verdict::Write {
            dropped: std::mem::take(&mut window.dropped),
        }
    }

    /// The lines dropped and not yet told, once the second is over.
    pub(crate) fn settle(&self, now: Time) -> u64 {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(window.start) >= WINDOW_US {
            std::mem::take(&mut window.dropped)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_in_a_second_then_a_count() {
        let limit = Limit::default();
        let start = Time(5_000_000);
        let written = (0..100).filter(|_| limit.ask(start) != Verdict::Drop).count();
        assert_eq!(written, 20);
        assert_eq!(limit.settle(start), 0);
        assert_eq!(limit.ask(start.plus_ms(1000)), Verdict::Write { dropped: 80 });
        assert_eq!(limit.ask(start.plus_ms(1001)), Verdict::Write { dropped: 0 });
    }

    #[test]
    fn a_count_without_a_next_line_is_told_when_settled() {
        let limit = Limit::default();
        assert_eq!((0..25).filter(|_| limit.ask(Time(1)) == Verdict::Drop).count(), 5);
        assert_eq!(limit.settle(Time(1).plus_ms(1000)), 5);
        assert_eq!(limit.settle(Time(1).plus_ms(2000)), 0);
    }
}
