//! The series of the proxy itself: commands, times, connections, bytes, configuration, log. Knows no locks.

use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::catalog;
use super::kind::LogKind;
use super::unwelcome::Unwelcome;

/// One side of the proxy (metric label `side`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The clients'.
    Downstream,
    /// The server's.
    Upstream,
}

/// Which way bytes go, seen from the proxy (metric label `direction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by the proxy.
    In,
    /// Sent by the proxy.
    Out,
}

/// A counter for each outcome of something that can fail.
#[derive(Debug)]
pub(super) struct Outcomes {
    ok: Counter,
    error: Counter,
}

impl Outcomes {
    fn new(counter: impl Fn(&'static str) -> Counter) -> Self {
        Outcomes {
            ok: counter("ok"),
            error: counter("error"),
        }
    }

    /// Counts one.
    pub(super) fn count(&self, error: bool) {
        self.count_many(error, 1);
    }

    /// Counts so many alike.
    pub(super) fn count_many(&self, error: bool, count: u64) {
        if error { &self.error } else { &self.ok }.increment(count);
    }
}

/// The times of one class of commands.
#[derive(Debug)]
pub(super) struct Times {
    request: Histogram,
    upstream: Histogram,
}

impl Times {
    fn new(class: &'static str) -> Self {
        Times {
            request: histogram!(catalog::REQUEST, "class" => class),
            upstream: histogram!(catalog::UPSTREAM, "class" => class),
        }
    }

    /// Records so many commands alike, in microseconds.
    pub(super) fn record(&self, request_us: u32, upstream_us: u32, count: usize) {
        self.request.record_many(f64::from(request_us) / 1e6, count);
        self.upstream.record_many(f64::from(upstream_us) / 1e6, count);
    }
}

/// What one side of the proxy has open and has moved.
#[derive(Debug)]
pub(super) struct Traffic {
    /// Open connections.
    pub(super) connections: Gauge,
    received: Counter,
    sent: Counter,
}

impl Traffic {
    fn new(side: &'static str, connections: Gauge) -> Self {
        Traffic {
            connections,
            received: counter!(catalog::TRANSFERRED, "side" => side, "direction" => "in"),
            sent: counter!(catalog::TRANSFERRED, "side" => side, "direction" => "out"),
        }
    }

    /// Counts bytes.
    pub(super) fn moved(&self, direction: Direction, bytes: u64) {
        match direction {
            Direction::In => self.received.increment(bytes),
            Direction::Out => self.sent.increment(bytes),
        }
    }
}

/// Handles to all series of the proxy.
#[derive(Debug)]
pub(super) struct ShellSeries {
    /// By the number of the command; the last one is `other`.
    pub(super) commands: Vec<Outcomes>,
    /// Commands that are lock operations.
    pub(super) lock: Times,
    /// All other commands.
    pub(super) other: Times,
    /// The clients' side.
    pub(super) downstream: Traffic,
    /// The server's side.
    pub(super) upstream: Traffic,
    /// 1 or 0.
    pub(super) upstream_up: Gauge,
    /// 1 or 0.
    pub(super) upstream_replica: Gauge,
    /// 1 or 0.
    pub(super) upstream_full: Gauge,
    /// Restarts, and other servers in its place.
    pub(super) upstream_changes: Counter,
    /// 1 or 0.
    pub(super) upstream_no_master: Gauge,
    /// Other masters in its place.
    pub(super) upstream_switches: Counter,
    /// Sentinels that name the master.
    pub(super) sentinels_answering: Gauge,
    /// The others.
    pub(super) sentinels_silent: Gauge,
    pub(super) paused: Gauge,
    /// By reason.
    unwelcome: [Counter; Unwelcome::ALL.len()],
    /// Reloads of the configuration.
    pub(super) reloads: Outcomes,
    /// 1 or 0.
    pub(super) reload_successful: Gauge,
    /// Seconds since 1970.
    pub(super) reload_time: Gauge,
    /// By kind of line.
    log_dropped: [Counter; LogKind::ALL.len()],
    /// Of two who set a counter at once both might add.
    table_dropped: Mutex<TableDropped<Counter>>,
}

/// What the lock table left out because of its bounds, since the start (metric label `kind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableDropped<T = u64> {
    /// Leases not followed, or not to their end.
    pub leases: T,
    /// Watches not noted.
    pub watches: T,
    /// Marks given up after many failures.
    pub marks: T,
    /// Waiters forgotten before their time.
    pub waiters: T,
}

impl ShellSeries {
    /// Registers every series, all at 0, with the recorder in scope. `started` is in seconds since 1970.
    pub(super) fn new(command_names: &[&'static str], started: f64) -> Self {
        let command = |name: &'static str| {
            Outcomes::new(|outcome| counter!(catalog::COMMANDS, "command" => name, "outcome" => outcome))
        };
        let table_dropped = |kind: &'static str| counter!(catalog::LOCK_TABLE_DROPPED, "kind" => kind);
        gauge!(catalog::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        gauge!(catalog::START_TIME).set(started);
        let series = ShellSeries {
            commands: command_names.iter().copied().chain(["other"]).map(command).collect(),
            lock: Times::new("lock"),
            other: Times::new("other"),
            downstream: Traffic::new("downstream", gauge!(catalog::DOWNSTREAM_CONNECTIONS)),
            upstream: Traffic::new("upstream", gauge!(catalog::UPSTREAM_CONNECTIONS)),
            upstream_up: gauge!(catalog::UPSTREAM_UP),
            upstream_replica: gauge!(catalog::UPSTREAM_CONDITION, "condition" => "replica"),
            upstream_full: gauge!(catalog::UPSTREAM_CONDITION, "condition" => "full"),
            upstream_changes: counter!(catalog::UPSTREAM_CHANGES),
            upstream_no_master: gauge!(catalog::UPSTREAM_CONDITION, "condition" => "no_master"),
            upstream_switches: counter!(catalog::UPSTREAM_SWITCHES),
            sentinels_answering: gauge!(catalog::SENTINELS, "state" => "answering"),
            sentinels_silent: gauge!(catalog::SENTINELS, "state" => "silent"),
            paused: gauge!(catalog::PAUSED),
            unwelcome: Unwelcome::ALL.map(|reason| counter!(catalog::CONNECTIONS_REFUSED, "reason" => reason.word())),
            reloads: Outcomes::new(|outcome| counter!(catalog::CONFIG_RELOADS, "outcome" => outcome)),
            reload_successful: gauge!(catalog::CONFIG_RELOAD_SUCCESSFUL),
            reload_time: gauge!(catalog::CONFIG_RELOAD_TIME),
            log_dropped: LogKind::ALL.map(|kind| counter!(catalog::LOG_EVENTS_DROPPED, "kind" => kind.word())),
            table_dropped: Mutex::new(TableDropped {
                leases: table_dropped("lease"),
                watches: table_dropped("watch"),
                marks: table_dropped("mark"),
                waiters: table_dropped("waiter"),
            }),
        };
        series.reload_successful.set(1.0);
        series.reload_time.set(started);
        series
    }

    /// The series of one side.
    pub(super) fn traffic(&self, side: Side) -> &Traffic {
        match side {
            Side::Downstream => &self.downstream,
            Side::Upstream => &self.upstream,
        }
    }

    /// Sets what the lock table has left out so far.
    pub(super) fn table_dropped(&self, dropped: &TableDropped) {
        let counters = self.table_dropped.lock().unwrap_or_else(PoisonError::into_inner);
        counters.leases.absolute(dropped.leases);
        counters.watches.absolute(dropped.watches);
        counters.marks.absolute(dropped.marks);
        counters.waiters.absolute(dropped.waiters);
    }

    /// Counts one connection that was closed.
    pub(super) fn unwelcome(&self, reason: Unwelcome) {
        if let Some(counter) = self.unwelcome.get(reason as usize) {
            counter.increment(1);
        }
    }

    /// Counts one log line that was left out.
    pub(super) fn log_dropped(&self, kind: LogKind) {
        if let Some(counter) = self.log_dropped.get(kind as usize) {
            counter.increment(1);
        }
    }
}
