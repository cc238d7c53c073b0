//! The numbers behind the metrics: counters, gauges and histograms with fixed buckets, whose memory is settled when they
//! are made and never grows. Counts are kept apart for each thread and added up when they are read. Knows no names and
//! no text.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use metrics::{CounterFn, GaugeFn, HistogramFn};

/// Slots in one chunk: 2 KiB for each part.
const SLOTS: usize = 256;

/// The most parts of a chunk, whatever the machine.
const MAX_PARTS: usize = 32;

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Which thread this is, in the order of their first count.
    static THREAD: usize = NEXT_THREAD.fetch_add(1, Relaxed);
}

/// One thread's slots of a chunk, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Part([AtomicU64; SLOTS]);

impl Part {
    fn add(&self, slot: usize, amount: u64) {
        if let Some(cell) = self.0.get(slot) {
            cell.fetch_add(amount, Relaxed);
        }
    }
}

/// Slots for counts. Threads are spread over the parts, so that the workers of one runtime do not pass cache lines to and
/// fro; if two threads share a part, that costs time and nothing else.
#[derive(Debug)]
struct Chunk {
    parts: Box<[Part]>,
}

impl Chunk {
    fn new() -> Self {
        let parts = (2 * available_parallelism().map_or(1, usize::from))
            .next_power_of_two()
            .min(MAX_PARTS);
        Chunk {
            parts: (0..parts)
                .map(|_| Part(std::array::from_fn(|_| AtomicU64::new(0))))
                .collect(),
        }
    }

    /// This thread's part.
    fn part(&self) -> Option<&Part> {
        // The number of parts is a power of two.
        self.parts.get(THREAD.with(|thread| *thread) & (self.parts.len() - 1))
    }

    fn add(&self, slot: usize, amount: u64) {
        if let Some(part) = self.part() {
            part.add(slot, amount);
        }
    }

    fn sum(&self, slot: usize) -> u64 {
        self.parts
            .iter()
            .filter_map(|part| part.0.get(slot))
            .fold(0, |sum, cell| sum.wrapping_add(cell.load(Relaxed)))
    }
}

/// Hands out slots. Chunks live as long as a cell in them.
#[derive(Debug, Default)]
pub(super) struct Store {
    current: Mutex<Option<(Arc<Chunk>, usize)>>,
}

impl Store {
    /// `count` slots in a row, at most [`SLOTS`].
    fn take(&self, count: usize) -> (Arc<Chunk>, usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunk, used) = match current.take() {
            Some((chunk, used)) if used + count <= SLOTS => (chunk, used),
            _ => (Arc::new(Chunk::new()), 0),
        };
        *current = Some((Arc::clone(&chunk), used + count));
        (chunk, used)
    }

    /// A counter at 0.
    pub(super) fn count(&self) -> Count {
        let (chunk, slot) = self.take(1);
        Count { chunk, slot }
    }

    /// An empty histogram. `bounds` are the upper ends of its buckets, ascending; those beyond [`MAX_BOUNDS`] are left
    /// out.
    pub(super) fn buckets(&self, bounds: &'static [f64]) -> Buckets {
        let bounds = bounds.get(..MAX_BOUNDS).unwrap_or(bounds);
        let (chunk, slot) = self.take(bounds.len() + 2);
        let first = std::array::from_fn(|octave| match octave {
            0 => 0,
            _ => bounds
                .iter()
                .filter(|bound| **bound < 2_f64.powi(octave as i32 - LOWEST))
                .count() as u8,
        });
        Buckets {
            chunk,
            slot,
            bounds,
            first,
        }
    }
}

/// A counter.
#[derive(Debug)]
pub(super) struct Count {
    chunk: Arc<Chunk>,
    slot: usize,
}

impl Count {
    /// The value now.
    pub(super) fn value(&self) -> u64 {
        self.chunk.sum(self.slot)
    }
}

impl CounterFn for Count {
    fn increment(&self, amount: u64) {
        self.chunk.add(self.slot, amount);
    }

    /// For one caller at a time: of two at once both may add.
    fn absolute(&self, value: u64) {
        self.increment(value.saturating_sub(self.value()));
    }
}

/// A gauge: the bits of an `f64`.
#[derive(Debug, Default)]
pub(super) struct Level(AtomicU64);

impl Level {
    /// The value now.
    pub(super) fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn change(&self, amount: f64) {
        // The closure always gives a value, so this cannot fail.
        let _ = self
            .0
            .fetch_update(Relaxed, Relaxed, |bits| Some((f64::from_bits(bits) + amount).to_bits()));
    }
}

impl GaugeFn for Level {
    fn increment(&self, amount: f64) {
        self.change(amount);
    }

    fn decrement(&self, amount: f64) {
        self.change(-amount);
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

/// Values from 2^-16 (15 microseconds) to 2^24 are told apart by their power of two.
const OCTAVES: usize = 40;
const LOWEST: i32 = 16;

/// The most buckets of a histogram.
pub(super) const MAX_BOUNDS: usize = 64;

/// A histogram of seconds with fixed buckets. One slot for each bound, one for what lies beyond, one for the sum in
/// microseconds (whole numbers add up exactly, and 64 bits of them last 580,000 years).
#[derive(Debug)]
pub(super) struct Buckets {
    chunk: Arc<Chunk>,
    slot: usize,
    bounds: &'static [f64],
    /// For each power of two: the first bucket that a value of that size can belong to.
    first: [u8; OCTAVES],
}

/// A histogram as read at one moment.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    /// Upper bound and number of observations at or under it.
    pub(super) cumulative: Vec<(f64, u64)>,
    /// Number of all observations.
    pub(super) count: u64,
    /// Sum of all observations in seconds.
    pub(super) sum: f64,
}

impl Buckets {
    /// The bucket of a value. Its power of two leads near it: there are two or three bounds for each.
    fn bucket(&self, value: f64) -> usize {
        // Less than nothing is nothing, and a zero with a sign would have an exponent of its own.
        let value = if value > 0.0 { value } else { 0.0 };
        let exponent = (value.to_bits() >> 52) as i32 - 1023;
        let octave = (exponent + LOWEST).clamp(0, OCTAVES as i32 - 1) as usize;
        let mut bucket = self.first.get(octave).map_or(0, |first| usize::from(*first));
        while self.bounds.get(bucket).is_some_and(|bound| *bound < value) {
            bucket += 1;
        }
        bucket
    }

    /// Reads the histogram. The count is the sum of the buckets, so the two never disagree, though others count on.
    pub(super) fn read(&self) -> Reading {
        let mut count = 0;
        let mut cumulative = Vec::with_capacity(self.bounds.len());
        for (index, bound) in self.bounds.iter().enumerate() {
            count += self.chunk.sum(self.slot + index);
            cumulative.push((*bound, count));
        }
        count += self.chunk.sum(self.slot + self.bounds.len());
        let sum = self.chunk.sum(self.slot + self.bounds.len() + 1) as f64 / 1e6;
        Reading { cumulative, count, sum }
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    /// Seconds; less than nothing counts as nothing, what is no number is left out.
    fn record_many(&self, value: f64, count: usize) {
        if value.is_nan() {
            return;
        }
        let Some(part) = self.chunk.part() else { return };
        part.add(self.slot + self.bucket(value), count as u64);
        // A float to integer cast saturates, and makes negative values 0.
        let microseconds = (value * 1e6 + 0.5) as u64;
        part.add(
            self.slot + self.bounds.len() + 1,
            microseconds.saturating_mul(count as u64),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: &[f64] = &[0.001, 0.01, 0.1];

    #[test]
    fn a_value_on_a_bound_counts_under_it() {
        let buckets = Store::default().buckets(BOUNDS);
        for value in [0.0, 0.001, 0.0011, 0.01, 0.1, 0.11, f64::INFINITY.min(5.0)] {
            buckets.record(value);
        }
        let reading = buckets.read();
        assert_eq!(reading.cumulative, vec![(0.001, 2), (0.01, 4), (0.1, 5)]);
        assert_eq!(reading.count, 7);
        assert!((reading.sum - 5.2221).abs() < 1e-9, "{}", reading.sum);
    }

    #[test]
    fn every_value_finds_the_bucket_that_a_search_finds() {
        const MANY: &[f64] = &[0.000_025, 0.000_05, 0.000_1, 0.001, 0.5, 1.0, 2.5, 10.0, 86_400.0];
        let buckets = Store::default().buckets(MANY);
        let near = |bound: &f64| [bound.next_down(), *bound, bound.next_up(), bound * 0.7, bound * 1.4];
        for value in MANY
            .iter()
            .flat_map(near)
            .chain([0.0, -0.0, -1.0, 1e-9, 1e9, f64::INFINITY])
        {
            let searched = MANY.iter().filter(|bound| **bound < value).count();
            assert_eq!(buckets.bucket(value), searched, "{value}");
        }
    }

    #[test]
    fn odd_values_do_no_harm() {
        let buckets = Store::default().buckets(BOUNDS);
        buckets.record(f64::NAN);
        buckets.record(-1.0);
        assert_eq!((buckets.read().count, buckets.read().sum), (1, 0.0));
    }

    #[test]
    fn threads_that_count_at_once_lose_nothing() {
        let store = Store::default();
        let (count, buckets) = (store.count(), store.buckets(BOUNDS));
        std::thread::scope(|scope| {
            for _ in 0..MAX_PARTS + 4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        count.increment(1);
                        buckets.record(0.002);
                    }
                });
            }
        });
        let all = (MAX_PARTS as u64 + 4) * 10_000;
        assert_eq!(count.value(), all);
        assert_eq!(buckets.read().count, all);
        assert!((buckets.read().sum - all as f64 * 0.002).abs() < 1e-6);
    }

    #[test]
    fn cells_never_share_a_slot_and_chunks_are_filled() {
        let store = Store::default();
        let counts: Vec<Count> = (0..3 * SLOTS).map(|_| store.count()).collect();
        for (amount, count) in counts.iter().enumerate() {
            count.increment(amount as u64);
        }
        assert!(
            counts
                .iter()
                .enumerate()
                .all(|(amount, count)| count.value() == amount as u64)
        );
        let chunks: std::collections::BTreeSet<_> = counts.iter().map(|count| Arc::as_ptr(&count.chunk)).collect();
        assert_eq!(chunks.len(), 3);
    }

    #[test]
    fn gauges_go_up_and_down() {
        let level = Level::default();
        level.set(3.0);
        level.increment(2.0);
        level.decrement(1.0);
        assert_eq!(level.value(), 4.0);
    }
}
