//! The recorder behind the `metrics` facade: names and labels to cells of fixed size. Names are looked up when a metric
//! is registered and when all are read, never when something is counted. Writes no text.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};

use super::catalog::Kind;
use super::cells::{Buckets, Count, Level, Store};

/// Series beyond this many are registered as nothing. Far more than any configuration asks for; it bounds the memory if
/// other code uses the facade with labels of its own.
const MAX_SERIES: usize = 200_000;

/// The labels of one series, ascending by name.
pub(super) type Labels = Vec<(String, String)>;

/// One metric and its series.
#[derive(Debug)]
pub(super) struct Family {
    /// What it is.
    pub(super) kind: Kind,
    /// Text for the HELP line.
    pub(super) help: String,
    /// Values by labels.
    pub(super) series: BTreeMap<Labels, Series>,
}

/// Where the values of a series are.
#[derive(Clone, Debug)]
pub(super) enum Series {
    /// A counter.
    Counter(Arc<Count>),
    /// A gauge.
    Gauge(Arc<Level>),
    /// A histogram.
    Histogram(Arc<Buckets>),
}

#[derive(Debug, Default)]
struct Registry {
    families: BTreeMap<String, Family>,
    series: usize,
}

/// Keeps the values of metrics in memory whose size is settled at registration, scraped or not. (The stock exporter keeps
/// each sample of a histogram until it is scraped: measured 157 MiB for 10 million.)
pub struct Recorder {
    store: Store,
    registry: Mutex<Registry>,
    bounds: fn(&str) -> &'static [f64],
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder without metrics. `bounds` gives the upper ends of the buckets, ascending, for a histogram's name.
    pub fn new(bounds: fn(&str) -> &'static [f64]) -> Self {
        Recorder {
            store: Store::default(),
            registry: Mutex::default(),
            bounds,
        }
    }

    /// How many series are registered.
    pub fn series(&self) -> usize {
        self.registry().series
    }

    /// Shows all metrics, by name.
    pub(super) fn visit(&self, mut visit: impl FnMut(&str, &Family)) {
        for (name, family) in &self.registry().families {
            visit(name, family);
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        // Nothing in here panics while it holds the lock; a poisoned one still holds whole values.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, kind: Kind, name: &str, help: &str) {
        self.registry().family(kind, name).help = help.to_owned();
    }

    /// The series of this key, made if it is new; `None` if the name belongs to another kind or there are too many.
    fn register(&self, kind: Kind, key: &Key) -> Option<Series> {
        let mut registry = self.registry();
        let full = registry.series >= MAX_SERIES;
        let family = registry.family(kind, key.name());
        if family.kind != kind {
            return None;
        }
        match family.series.entry(labels(key)) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(_) if full => None,
            Entry::Vacant(entry) => {
                let series = entry
                    .insert(match kind {
                        Kind::Counter => Series::Counter(Arc::new(self.store.count())),
                        Kind::Gauge => Series::Gauge(Arc::default()),
                        Kind::Histogram => Series::Histogram(Arc::new(self.store.buckets((self.bounds)(key.name())))),
                    })
                    .clone();
                registry.series += 1;
                Some(series)
            }
        }
    }
}

impl Registry {
    fn family(&mut self, kind: Kind, name: &str) -> &mut Family {
        self.families.entry(plain_name(name)).or_insert_with(|| Family {
            kind,
            help: String::new(),
            series: BTreeMap::new(),
        })
    }
}

/// The name with whatever Prometheus does not take in names replaced.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut text: String = name.chars().map(plain).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    text
}

fn labels(key: &Key) -> Labels {
    let mut labels: Labels = key
        .labels()
        .map(|label| (plain_name(label.key()), label.value().to_owned()))
        .collect();
    labels.sort();
    labels.dedup_by(|later, earlier| later.0 == earlier.0);
    labels
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(Kind::Counter, name.as_str(), &help);
    }

    fn describe_gauge(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(Kind::Gauge, name.as_str(), &help);
    }

    fn describe_histogram(&self, name: KeyName, _unit: Option<Unit>, help: SharedString) {
        self.describe(Kind::Histogram, name.as_str(), &help);
    }

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        match self.register(Kind::Counter, key) {
            Some(Series::Counter(count)) => Counter::from_arc(count),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        match self.register(Kind::Gauge, key) {
            Some(Series::Gauge(level)) => Gauge::from_arc(level),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        match self.register(Kind::Histogram, key) {
            Some(Series::Histogram(buckets)) => Histogram::from_arc(buckets),
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics::{counter, gauge, histogram, with_local_recorder};

    use super::*;

    fn recorder() -> Recorder {
        Recorder::new(|_| &[1.0, 2.0])
    }

    #[test]
    fn the_same_labels_in_another_order_are_the_same_series() {
        let recorder = recorder();
        with_local_recorder(&recorder, || {
            counter!("c", "a" => "1", "b" => "2").increment(1);
            counter!("c", "b" => "2", "a" => "1").increment(1);
        });
        assert_eq!(recorder.series(), 1);
        recorder.visit(|_, family| match family.series.values().next() {
            Some(Series::Counter(count)) => assert_eq!(count.value(), 2),
            other => panic!("{other:?}"),
        });
    }

    #[test]
    fn a_name_keeps_its_first_kind() {
        let recorder = recorder();
        with_local_recorder(&recorder, || {
            counter!("x").increment(1);
            gauge!("x").set(7.0);
            histogram!("x").record(1.0);
        });
        assert_eq!(recorder.series(), 1);
    }

    #[test]
    fn names_that_prometheus_cannot_read_are_mended() {
        assert_eq!(plain_name("tokio.tasks-now"), "tokio_tasks_now");
        assert_eq!(plain_name("9lives"), "_9lives");
        assert_eq!(plain_name(""), "_");
    }
}
