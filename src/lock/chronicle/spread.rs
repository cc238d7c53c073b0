//! How a length of time is spread: a histogram with a relative error of one percent and a fixed size, made when the first
//! value comes. Lengths beyond a day count as a day, but for the greatest, which is exact.

use hdrhistogram::Histogram;

/// The longest that is told apart, in milliseconds.
const A_DAY_MS: u64 = 86_400_000;
/// Significant digits.
const DIGITS: u8 = 2;

/// What is known of many lengths of time.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    histogram: Option<Box<Histogram<u64>>>,
    max_ms: u64,
}

impl Spread {
    pub(super) fn record(&mut self, ms: u64) {
        if self.histogram.is_none() {
            // These bounds are good ones.
            self.histogram = Histogram::new_with_bounds(1, A_DAY_MS, DIGITS).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(ms);
            self.max_ms = self.max_ms.max(ms);
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// This part of them, 0 to 1, was at most so many milliseconds; 0 without any.
    pub fn quantile_ms(&self, quantile: f64) -> u64 {
        let histogram = self.histogram.as_ref();
        histogram.map_or(0, |histogram| histogram.value_at_quantile(quantile).min(self.max_ms))
    }

    /// The greatest, in milliseconds.
    pub fn max_ms(&self) -> u64 {
        self.max_ms
    }

    /// Bytes in use besides itself.
    pub(super) fn bytes(&self) -> usize {
        let histogram = self.histogram.as_ref();
        histogram.map_or(0, |histogram| {
            size_of::<Histogram<u64>>() + histogram.distinct_values() * size_of::<u64>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_within_one_percent_and_the_greatest_is_exact() {
        let mut spread = Spread::default();
        assert_eq!((spread.count(), spread.quantile_ms(0.5), spread.max_ms()), (0, 0, 0));
        (1..=10_000).for_each(|ms| spread.record(ms));
        for (quantile, exact) in [(0.5, 5000), (0.95, 9500), (0.99, 9900), (0.999, 9990)] {
            let told = spread.quantile_ms(quantile);
            assert!((exact..=exact + exact / 100).contains(&told), "{quantile}: {told}");
        }
        assert_eq!((spread.count(), spread.max_ms()), (10_000, 10_000));
        spread.record(u64::MAX);
        assert_eq!(spread.max_ms(), u64::MAX);
        assert!(spread.quantile_ms(1.0) >= A_DAY_MS);
    }

    #[test]
    fn it_stays_as_large_as_it_is_made() {
        let mut spread = Spread::default();
        assert_eq!(spread.bytes(), 0);
        spread.record(0);
        let made = spread.bytes();
        assert!(made < 22 * 1024, "{made}");
        [1, 100, 86_400_000, u64::MAX]
            .into_iter()
            .for_each(|ms| spread.record(ms));
        assert_eq!((spread.bytes(), spread.count()), (made, 5));
    }
}
