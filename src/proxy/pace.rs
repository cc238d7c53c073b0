//! How fast connections to the server are opened while it is in trouble and shortly after: so that thousands of clients
//! that come back at once do not knock at once. While all is well nobody waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::event::Time;

/// After the server was last found away, so long connections are opened at a measured pace, in microseconds.
const TROUBLE_US: u64 = 10_000_000;
const SECOND_US: u64 = 1_000_000;

/// The pace of all workers together.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Connections a second in times of trouble; 0: as they come.
    rate: AtomicU64,
    trouble_until: AtomicU64,
    /// When the next connection may be opened.
    next: AtomicU64,
}

impl Pace {
    pub(super) fn new(rate: u32) -> Pace {
        let pace = Pace::default();
        pace.set(rate);
        pace
    }

    /// Another rate from here on.
    pub(super) fn set(&self, rate: u32) {
        self.rate.store(rate.into(), Ordering::Relaxed);
    }

    /// The server was found away.
    pub(super) fn trouble(&self, now: Time) {
        self.trouble_until
            .fetch_max(now.0.saturating_add(TROUBLE_US), Ordering::Relaxed);
    }

    /// Takes a place in the row: how long to wait for it. `None`: it would be longer than `longest`, and no place is taken.
    pub(super) fn place(&self, now: Time, longest: Duration) -> Option<Duration> {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 || now.0 >= self.trouble_until.load(Ordering::Relaxed) {
            return Some(Duration::ZERO);
        }
        let gap = SECOND_US / rate.clamp(1, SECOND_US);
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        let place = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            let place = next.max(now.0);
            (place - now.0 <= longest).then_some(place + gap)
        });
        let next = place.ok()?;
        Some(Duration::from_micros(next.saturating_sub(now.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(2);

    #[test]
    fn while_all_is_well_nobody_waits() {
        let pace = Pace::new(100);
        assert!((0..10_000).all(|_| pace.place(Time(5), LONGEST) == Some(Duration::ZERO)));
    }

    #[test]
    fn in_trouble_one_comes_after_the_other_and_the_row_has_an_end() {
        let pace = Pace::new(100);
        pace.trouble(Time(1000));
        let places: Vec<_> = (0..300).filter_map(|_| pace.place(Time(1000), LONGEST)).collect();
        assert_eq!(places.len(), 201, "those within two seconds, and the one at their end");
        assert!(
            places
                .iter()
                .zip(0..)
                .all(|(place, number)| *place == Duration::from_millis(10 * number))
        );
        assert_eq!(
            pace.place(Time(1000 + TROUBLE_US), LONGEST),
            Some(Duration::ZERO),
            "it is over"
        );
    }

    #[test]
    fn whoever_comes_late_does_not_find_the_places_of_before() {
        let pace = Pace::new(1000);
        pace.trouble(Time(0));
        assert_eq!(pace.place(Time(0), LONGEST), Some(Duration::ZERO));
        let later = Time(TROUBLE_US / 2);
        assert_eq!(pace.place(later, LONGEST), Some(Duration::ZERO));
        assert_eq!(pace.place(later, LONGEST), Some(Duration::from_millis(1)));
        pace.set(0);
        assert_eq!(pace.place(later, LONGEST), Some(Duration::ZERO), "no pace is wanted");
    }
}
