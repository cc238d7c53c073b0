//! Every metric by name: what it is, its text of help and its buckets. A new metric begins with a row here. Holds no
//! values.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Seconds in these buckets (upper bounds, ascending).
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    /// The full name.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) kind: Kind,
    /// One sentence for the HELP line.
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Counter,
        help,
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Gauge,
        help,
    }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Histogram,
        help,
    }
}

pub(super) const LOCK_ACQUIRES: &str = "lockward_lock_acquires_total";
pub(super) const LOCK_SHIELDED: &str = "lockward_lock_shielded_total";
pub(super) const LOCK_RELEASES: &str = "lockward_lock_releases_total";
pub(super) const LOCK_REFUSALS: &str = "lockward_lock_refusals_total";
pub(super) const LOCK_EXPIRATIONS: &str = "lockward_lock_expirations_total";
pub(super) const LOCK_OVERLAPS: &str = "lockward_lock_overlaps_total";
pub(super) const LOCK_HOLD: &str = "lockward_lock_hold_seconds";
pub(super) const LOCK_WAIT: &str = "lockward_lock_wait_seconds";
pub(super) const LOCK_OVERRUN: &str = "lockward_lock_overrun_seconds";
pub(super) const LOCKS_HELD: &str = "lockward_locks_held";
pub(super) const LOCK_WAITERS: &str = "lockward_lock_waiters";
pub(super) const LOCKS_WITHOUT_TTL: &str = "lockward_locks_without_ttl";
pub(super) const LOCK_OLDEST_AGE: &str = "lockward_lock_oldest_age_seconds";
pub(super) const LOCK_TTL_INJECTED: &str = "lockward_lock_ttl_injected_total";
pub(super) const LOCK_TTL_REDUCED: &str = "lockward_lock_ttl_reduced_total";
pub(super) const LOCK_TAKEOVERS: &str = "lockward_lock_takeovers_total";
pub(super) const LOCK_RENEWALS: &str = "lockward_lock_renewals_total";
pub(super) const LOCK_DEBTS_DROPPED: &str = "lockward_lock_debts_dropped_total";
pub(super) const COMMANDS: &str = "lockward_commands_total";
pub(super) const REQUEST: &str = "lockward_request_seconds";
pub(super) const UPSTREAM: &str = "lockward_upstream_seconds";
pub(super) const DOWNSTREAM_CONNECTIONS: &str = "lockward_downstream_connections";
pub(super) const CONNECTIONS_REFUSED: &str = "lockward_connections_refused_total";
pub(super) const UPSTREAM_CONNECTIONS: &str = "lockward_upstream_connections";
pub(super) const UPSTREAM_UP: &str = "lockward_upstream_up";
pub(super) const UPSTREAM_CONDITION: &str = "lockward_upstream_condition";
pub(super) const UPSTREAM_CHANGES: &str = "lockward_upstream_changes_total";
pub(super) const UPSTREAM_SWITCHES: &str = "lockward_upstream_switches_total";
pub(super) const SENTINELS: &str = "lockward_sentinels";
pub(super) const PAUSED: &str = "lockward_paused";
pub(super) const TRANSFERRED: &str = "lockward_transferred_bytes_total";
pub(super) const BUILD_INFO: &str = "lockward_build_info";
pub(super) const START_TIME: &str = "lockward_start_time_seconds";
pub(super) const CONFIG_RELOADS: &str = "lockward_config_reload_total";
pub(super) const CONFIG_RELOAD_SUCCESSFUL: &str = "lockward_config_reload_successful";
pub(super) const CONFIG_RELOAD_TIME: &str = "lockward_config_reload_success_timestamp_seconds";
pub(super) const LOG_EVENTS_DROPPED: &str = "lockward_log_events_dropped_total";
pub(super) const LOCK_TABLE_DROPPED: &str = "lockward_lock_table_dropped_total";

/// Every metric of the recorder. The figures of the process stand in `process`.
pub(super) const CATALOG: [Metric; 38] = [
    counter(
        LOCK_ACQUIRES,
        "Acquires of locks by outcome: granted, contended (the lock is held), error (of the server).",
    ),
    counter(
        LOCK_SHIELDED,
        "Contended acquires that were answered without asking the server (contention_shield).",
    ),
    counter(
        LOCK_RELEASES,
        "Releases of locks by outcome; late, foreign and absent ones released nothing.",
    ),
    counter(
        LOCK_REFUSALS,
        "Releases, extends and overwrites that were refused, or in observe mode would have been.",
    ),
    counter(
        LOCK_EXPIRATIONS,
        "Leases that ended by their TTL with their release still owed.",
    ),
    counter(
        LOCK_OVERLAPS,
        "Acquires of a lock whose last holder, somebody else, never released it: two may have been at work.",
    ),
    histogram(LOCK_HOLD, "Time from acquire to the end of the lease."),
    histogram(
        LOCK_WAIT,
        "Time from the first refused acquire to the grant, by owner and key.",
    ),
    histogram(LOCK_OVERRUN, "Time from the expiry of a lease to its late release."),
    gauge(LOCKS_HELD, "Locks held now, as far as this proxy knows."),
    gauge(LOCK_WAITERS, "Owners refused a lock lately that have not got it since."),
    gauge(LOCKS_WITHOUT_TTL, "Locks held now that have no TTL."),
    gauge(LOCK_OLDEST_AGE, "Age of the lock that is held longest, 0 without one."),
    counter(LOCK_TTL_INJECTED, "Acquires without a TTL that were given default_ttl."),
    counter(
        LOCK_TTL_REDUCED,
        "Acquires, extends and overwrites whose TTL was cut or kept by max_ttl.",
    ),
    counter(
        LOCK_TAKEOVERS,
        "Locks taken over by another owner with GETSET or SET GET, and open to all since.",
    ),
    counter(
        LOCK_RENEWALS,
        "Renewals of leases by outcome: extended, lost, capped (max_hold reached).",
    ),
    counter(
        LOCK_DEBTS_DROPPED,
        "Owed releases dropped unpaid by reason: window (too old), cap (too many).",
    ),
    counter(
        COMMANDS,
        "Commands of clients answered, by name and outcome of the answer.",
    ),
    histogram(
        REQUEST,
        "Time from a client's command to its answer, as the client sees it at the proxy.",
    ),
    histogram(
        UPSTREAM,
        "The part of request_seconds that was spent waiting for the server.",
    ),
    gauge(DOWNSTREAM_CONNECTIONS, "Open connections of clients."),
    counter(
        CONNECTIONS_REFUSED,
        "Connections of clients that were closed for what they are, by reason: no TLS where it is spoken, TLS or HTTP where it is not, no certificate, a TLS handshake that failed or took too long, a PROXY header that is faulty, missing, not expected, or from nobody who is trusted; or for what they had lying here (buffers).",
    ),
    gauge(UPSTREAM_CONNECTIONS, "Open connections to the server."),
    gauge(UPSTREAM_UP, "Whether the server could be reached last time: 1 or 0."),
    gauge(
        UPSTREAM_CONDITION,
        "Whether the server is a replica (refuses writes) or full (refuses acquires), or no_master: the sentinels name none: 1 or 0.",
    ),
    gauge(PAUSED, "1 while clients are held back by an operator."),
    counter(
        UPSTREAM_CHANGES,
        "How often the server turned out to be another process than before.",
    ),
    counter(
        UPSTREAM_SWITCHES,
        "How often the sentinels named another master, and all went over to it.",
    ),
    gauge(
        SENTINELS,
        "Sentinels in upstream.url by state: answering (it names the master) or silent; both 0 without sentinels.",
    ),
    counter(
        TRANSFERRED,
        "Bytes received (in) and sent (out) on the side of the clients and of the server.",
    ),
    gauge(BUILD_INFO, "Always 1; the version stands in the label."),
    gauge(START_TIME, "When this proxy began, in seconds since 1970."),
    counter(CONFIG_RELOADS, "Reloads of the configuration by outcome."),
    gauge(
        CONFIG_RELOAD_SUCCESSFUL,
        "Whether the last load of the configuration succeeded: 1 or 0.",
    ),
    gauge(
        CONFIG_RELOAD_TIME,
        "When the configuration in force was loaded, in seconds since 1970.",
    ),
    counter(
        LOG_EVENTS_DROPPED,
        "Log lines about locks left out by the rate limit, by kind.",
    ),
    counter(
        LOCK_TABLE_DROPPED,
        "What the lock table left out because of its bounds, by kind: lease, watch, mark, waiter (each try for a key that is too long counts as one).",
    ),
];

/// One command: from 25 us (a proxied GET on a fast machine takes about 60 us) to 10 s.
const COMMAND_BUCKETS: &[f64] = &[
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
    2.5, 10.0,
];

/// How long locks are held: from 1 ms to a day.
const HOLD_BUCKETS: &[f64] = &[
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0,
    86_400.0,
];

/// How long clients wait for locks: from 1 ms to an hour.
const WAIT_BUCKETS: &[f64] = &[
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0,
];

/// How far leases are overrun: from 1 ms to an hour.
const OVERRUN_BUCKETS: &[f64] = &[
    0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

/// The buckets of the histogram called `name`, in seconds.
pub(super) fn buckets(name: &str) -> &'static [f64] {
    match name {
        LOCK_HOLD => HOLD_BUCKETS,
        LOCK_WAIT => WAIT_BUCKETS,
        LOCK_OVERRUN => OVERRUN_BUCKETS,
        _ => COMMAND_BUCKETS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::cells::MAX_BOUNDS;

    #[test]
    fn names_and_texts_keep_to_the_conventions() {
        for metric in &CATALOG {
            assert!(metric.name.starts_with("lockward_"), "{}", metric.name);
            assert!(
                metric.help.ends_with('.') && !metric.help.contains('\n'),
                "{}",
                metric.name
            );
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{}",
                metric.name
            );
            assert!(
                metric.kind != Kind::Histogram || metric.name.ends_with("_seconds"),
                "{}",
                metric.name
            );
            assert_eq!(
                CATALOG.iter().filter(|other| other.name == metric.name).count(),
                1,
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn buckets_ascend() {
        for metric in CATALOG.iter().filter(|metric| metric.kind == Kind::Histogram) {
            let bounds = buckets(metric.name);
            assert!(
                bounds.windows(2).all(|pair| pair[0] < pair[1]) && bounds.len() <= MAX_BOUNDS,
                "{}",
                metric.name
            );
        }
    }
}
