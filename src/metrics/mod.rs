//! The metrics: a bounded recorder behind the `metrics` facade, fed from events only. Everything is registered once, at
//! the start, so that every series of a rule exists with 0 before anything happens; the hot path looks up no names and
//! takes no lock. Also the log of what happens to locks. Labels come from the configuration and from fixed sets: never
//! keys, never clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use metrics::{describe_counter, describe_gauge, describe_histogram, with_local_recorder};

mod catalog;
mod cells;
mod kind;
mod limit;
mod lock_log;
pub mod log;
mod printable;
mod process;
mod recorder;
mod rule;
mod shell;
mod text;
mod unwelcome;

pub use kind::LogKind;
pub(crate) use limit::{Limit, Verdict};
pub use lock_log::LockLog;
pub use printable::printable;
pub use recorder::Recorder;
pub use rule::RuleSummary;
pub use shell::{Direction, Side, TableDropped};
pub use text::CONTENT_TYPE;
pub use unwelcome::{Unwelcome, UnwelcomeLog};

use crate::event::{Event, RuleIndex};
use catalog::{CATALOG, Kind};
use rule::RuleSeries;
use shell::ShellSeries;

/// What the lock table says at this moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableSummary {
    /// By position of the rule in the configuration in force.
    pub rules: Vec<RuleSummary>,
    /// What was left out of the table.
    pub dropped: TableDropped,
}

/// Commands that were answered, all alike.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// The position in the list of names; any other number: `other`.
    pub command: usize,
    /// The answer was an error.
    pub error: bool,
    /// It was a lock operation.
    pub lock: bool,
    /// How many.
    pub count: u32,
    /// The time to the answer, in microseconds.
    pub request_us: u32,
    /// The part of it that the server took, in microseconds.
    pub upstream_us: u32,
}

/// The rules in force and all that ever were: counters do not go away at a reload.
#[derive(Debug, Default)]
struct Rules {
    current: Vec<(Arc<str>, Arc<RuleSeries>)>,
    all: BTreeMap<Arc<str>, Arc<RuleSeries>>,
}

/// All metrics of one proxy.
#[derive(Debug)]
pub struct Metrics {
    recorder: Recorder,
    shell: ShellSeries,
    rules: ArcSwap<Rules>,
}

impl Metrics {
    /// Registers all metrics: `rule_names` by position in the configuration, `command_names` by the number that
    /// [`Metrics::command`] gets; `other` is added behind them. Counts as the first load of the configuration.
    pub fn new(rule_names: &[Arc<str>], command_names: &[&'static str]) -> Self {
        let recorder = Recorder::new(catalog::buckets);
        let shell = with_local_recorder(&recorder, || {
            describe();
            ShellSeries::new(command_names, unix_seconds())
        });
        let metrics = Metrics {
            recorder,
            shell,
            rules: ArcSwap::default(),
        };
        metrics.set_rules(rule_names);
        metrics
    }

    /// Puts other rules in force. Series of rules that are gone stay, with their gauges at 0; a rule with the name of an
    /// earlier one goes on with its series. Events made under the old rules are counted by position under the new ones,
    /// so hand them in before.
    pub fn set_rules(&self, rule_names: &[Arc<str>]) {
        with_local_recorder(&self.recorder, || {
            let mut rules = Rules {
                current: Vec::new(),
                all: self.rules.load().all.clone(),
            };
            for name in rule_names {
                let series = rules
                    .all
                    .entry(Arc::clone(name))
                    .or_insert_with(|| Arc::new(RuleSeries::new(name)));
                rules.current.push((Arc::clone(name), Arc::clone(series)));
            }
            self.rules.store(Arc::new(rules));
        });
    }

    /// Counts commands that were answered.
    pub fn commands(&self, settled: &Settled) {
        if let Some(outcomes) = self.shell.commands.get(settled.command).or(self.shell.commands.last()) {
            outcomes.count_many(settled.error, settled.count.into());
        }
        let times = if settled.lock {
            &self.shell.lock
        } else {
            &self.shell.other
        };
        times.record(settled.request_us, settled.upstream_us, settled.count as usize);
    }

    /// Counts what happened to a lock. Events of a rule that is not in force are left out.
    pub fn event(&self, event: &Event) {
        if let Some((_, series)) = self.rules.load().current.get(usize::from(event.rule.0)) {
            series.event(event);
        }
    }

    /// A connection was opened.
    pub fn opened(&self, side: Side) {
        self.shell.traffic(side).connections.increment(1.0);
    }

    /// A connection was closed.
    pub fn closed(&self, side: Side) {
        self.shell.traffic(side).connections.decrement(1.0);
    }

    /// A connection of a client was closed for what it is.
    pub fn unwelcome(&self, reason: Unwelcome) {
        self.shell.unwelcome(reason);
    }

    /// Bytes were received or sent.
    pub fn moved(&self, side: Side, direction: Direction, bytes: u64) {
        self.shell.traffic(side).moved(direction, bytes);
    }

    /// Clients are held back, or are not.
    pub fn paused(&self, paused: bool) {
        self.shell.paused.set(f64::from(u8::from(paused)));
    }

    /// The server could be reached, or could not.
    pub fn upstream_up(&self, up: bool) {
        self.shell.upstream_up.set(f64::from(u8::from(up)));
    }

    /// What the server says of itself: a replica refuses writes, a full one acquires.
    pub fn upstream_condition(&self, replica: bool, full: bool) {
        self.shell.upstream_replica.set(f64::from(u8::from(replica)));
        self.shell.upstream_full.set(f64::from(u8::from(full)));
    }

    /// The server is another process than before.
    pub fn upstream_changed(&self) {
        self.shell.upstream_changes.increment(1);
    }

    /// Whether a master is known, where sentinels have to say so.
    pub fn master_known(&self, known: bool) {
        self.shell.upstream_no_master.set(f64::from(u8::from(!known)));
    }

    /// The master is another one than before.
    pub fn upstream_switched(&self) {
        self.shell.upstream_switches.increment(1);
    }

    /// How many sentinels name the master, and how many do not.
    pub fn sentinels(&self, answering: usize, silent: usize) {
        self.shell.sentinels_answering.set(answering as f64);
        self.shell.sentinels_silent.set(silent as f64);
    }

    /// The configuration was loaded again, or could not be.
    pub fn config_reload(&self, ok: bool) {
        self.shell.reloads.count(!ok);
        self.shell.reload_successful.set(f64::from(u8::from(ok)));
        if ok {
            self.shell.reload_time.set(unix_seconds());
        }
    }

    /// A log line was left out.
    pub fn log_dropped(&self, kind: LogKind) {
        self.shell.log_dropped(kind);
    }

    /// An owner that was refused has got its lock, so many microseconds after the first refusal.
    pub fn waited(&self, rule: RuleIndex, micros: u64) {
        if let Some((_, series)) = self.rules.load().current.get(usize::from(rule.0)) {
            series.waited(micros);
        }
    }

    /// How many series there are. Settled when the rules are.
    pub fn series(&self) -> usize {
        self.recorder.series()
    }

    /// Writes all metrics in the Prometheus text format, the gauges of the rules and what was left out of the lock table as
    /// `table` has them.
    pub fn render(&self, table: &TableSummary) -> String {
        self.set_gauges(table);
        self.shell.table_dropped(&table.dropped);
        let mut out = String::with_capacity(64 * 1024);
        text::write(&self.recorder, &mut out);
        process::write(&mut out);
        out
    }

    fn set_gauges(&self, table: &TableSummary) {
        let rules = self.rules.load();
        let mut summaries: BTreeMap<&str, RuleSummary> =
            rules.all.keys().map(|name| (&**name, RuleSummary::default())).collect();
        // Two rules may have one name, and then share their series.
        for ((name, _), summary) in rules.current.iter().zip(&table.rules) {
            if let Some(sum) = summaries.get_mut(&**name) {
                sum.held += summary.held;
                sum.waiters += summary.waiters;
                sum.without_ttl += summary.without_ttl;
                sum.oldest_age_seconds = sum.oldest_age_seconds.max(summary.oldest_age_seconds);
            }
        }
        for (name, series) in &rules.all {
            series.summary(&summaries.get(&**name).copied().unwrap_or_default());
        }
    }
}

fn describe() {
    for metric in &CATALOG {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.help),
            Kind::Histogram => describe_histogram!(metric.name, metric.help),
        }
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_millis() as f64 / 1e3)
}
