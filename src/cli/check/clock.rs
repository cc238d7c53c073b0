//! The server's clock against this machine's: what the difference is, how sure that is, and what depends on it. Reads no
//! clock.

use std::time::Duration;

use super::finding::Finding;
use crate::cli::shown::span;

/// From here on it is said.
const TOLERATED: Duration = Duration::from_secs(1);

/// One look at the server's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// This machine's clock when the answer had come, microseconds since 1970.
    pub(super) ours_us: i64,
    /// What the server said, microseconds since 1970.
    pub(super) server_us: i64,
    /// How long the question and its answer took, microseconds.
    pub(super) round_trip_us: i64,
}

impl Look {
    /// How far the server's clock is ahead, if its answer was half a round trip old; it is wrong by that much at most.
    fn ahead_us(self) -> i64 {
        let then = self.ours_us.saturating_sub(self.round_trip_us / 2);
        self.server_us.saturating_sub(then)
    }
}

/// The best of several looks is the shortest.
pub(super) fn judge(looks: &[Look]) -> Option<Finding> {
    let look = looks.iter().min_by_key(|look| look.round_trip_us)?;
    let ahead = look.ahead_us();
    let unsure = look.round_trip_us.unsigned_abs() / 2;
    let unsure = format!("± {}.{} ms", unsure / 1000, unsure % 1000 / 100);
    let off = Duration::from_micros(ahead.unsigned_abs());
    let sure = off.saturating_sub(Duration::from_micros(look.round_trip_us.unsigned_abs() / 2));
    let milliseconds = u64::try_from(off.as_millis()).unwrap_or(u64::MAX);
    if sure <= TOLERATED {
        return Some(Finding::ok(
            "clock",
            format!("{milliseconds} ms off this machine's, {unsure}"),
        ));
    }
    // Rounded to the tenth of a second that is shown.
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let found = format!(
        "the server's clock is {} {direction} this machine's, {unsure}",
        span(milliseconds.saturating_add(50))
    );
    let means = "leases do not depend on it, since all their times are the server's; but times in records and in logs do \
                 not fit each other, and a client that sends EXPIREAT or SET … EXAT by its own clock gets another TTL than it \
                 wants; let NTP set both clocks";
    Some(Finding::warning("clock", found).means(means).paste("timedatectl"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000;

    fn judged(ahead_us: i64, round_trip_us: i64) -> Finding {
        let look = Look {
            ours_us: NOW,
            server_us: NOW - round_trip_us / 2 + ahead_us,
            round_trip_us,
        };
        judge(&[look]).expect("a finding")
    }

    #[test]
    fn five_seconds_are_said_with_their_direction() {
        let ahead = judged(5_000_000, 800);
        assert_eq!(ahead.level, Level::Warning);
        assert_eq!(
            ahead.found,
            "the server's clock is 5.0s ahead of this machine's, ± 0.4 ms"
        );
        assert!(judged(-5_000_000, 800).found.contains("behind"));
    }

    #[test]
    fn what_the_round_trip_may_explain_is_no_difference() {
        assert_eq!(judged(999_999, 800).level, Level::Ok);
        assert_eq!(judged(1_900_000, 2_000_000).level, Level::Ok);
        assert_eq!(judged(2_100_000, 2_000_000).level, Level::Warning);
    }

    #[test]
    fn the_quickest_look_counts_and_no_answer_panics() {
        let look = |server_us, round_trip_us| Look {
            ours_us: NOW,
            server_us,
            round_trip_us,
        };
        let looks = [look(NOW + 9_000_000, 9_000_000), look(NOW, 100)];
        assert_eq!(judge(&looks).map(|finding| finding.level), Some(Level::Ok));
        assert_eq!(judge(&[]), None);
        for strange in [i64::MIN, 0, i64::MAX] {
            assert!(judge(&[look(strange, 100)]).is_some());
        }
    }
}
