//! The gauges of the lock table for /metrics.

use crate::lock::keeper::Summary;
use crate::metrics::{RuleSummary, TableDropped, TableSummary};
use crate::proxy::shared::Shared;

/// The gauges of each rule, and what was left out of the table.
pub(super) fn all(shared: &Shared) -> TableSummary {
    let (summary, dropped) = {
        let keeper = shared.keeper();
        (keeper.summary(shared.now()), keeper.dropped())
    };
    TableSummary {
        rules: summary.iter().map(of_rule).collect(),
        dropped: TableDropped {
            leases: dropped.leases,
            watches: dropped.watches,
            marks: dropped.marks,
            waiters: dropped.waiters,
        },
    }
}

fn of_rule(summary: &Summary) -> RuleSummary {
    RuleSummary {
        held: summary.held as u64,
        waiters: summary.waiters as u64,
        without_ttl: summary.without_ttl as u64,
        oldest_age_seconds: summary.oldest_age_micros as f64 / 1e6,
    }
}
