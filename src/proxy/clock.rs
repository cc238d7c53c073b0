//! The clock of the process. One that has taken another's place goes on with that one's, so that leases keep their age.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::event::Time;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// When it stood at zero.
    zero: Instant,
    began: Instant,
    /// The same moment in milliseconds since 1970.
    zero_unix_ms: u64,
    /// When this process began, in milliseconds since 1970.
    pub began_unix_ms: u64,
}

impl Clock {
    /// One that stands at `at` now.
    pub(super) fn at(at: Duration) -> Clock {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock {
            began: Instant::now(),
            zero: Instant::now().checked_sub(at).unwrap_or_else(Instant::now),
            zero_unix_ms: since_1970.saturating_sub(at).as_millis() as u64,
            began_unix_ms: since_1970.as_millis() as u64,
        }
    }

    /// Microseconds since zero.
    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The same, counted from the beginning of this process.
    pub(super) fn age(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The moment in milliseconds since 1970, by the wall clock as it stood when the process began.
    pub(super) fn unix_ms(&self, at: Time) -> u64 {
        self.zero_unix_ms.saturating_add(at.0 / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_where_another_stood() {
        let hour = Duration::from_secs(3600);
        let (old, new) = (Clock::at(Duration::ZERO), Clock::at(hour));
        assert!(new.now().since(old.now()) >= 3_599_000_000);
        assert!(new.unix_ms(new.now()).abs_diff(old.unix_ms(old.now())) < 1000);
        assert!(new.began_unix_ms.abs_diff(old.began_unix_ms) < 1000);
    }
}
