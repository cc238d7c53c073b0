//! The keeper's counts: the leases of each rule that hold their lock, by age, and the debts by the time they end. Counts;
//! decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::lease::{Lease, LeaseId, Phase};
use crate::event::{RuleIndex, Time};

#[derive(Debug, Default)]
pub(super) struct Gauge {
    pub(super) held: BTreeSet<(Time, LeaseId)>,
    pub(super) without_ttl: usize,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) gauges: BTreeMap<RuleIndex, Gauge>,
    /// Debts by the time at which they are dropped.
    pub(super) owed: BTreeSet<(Time, LeaseId)>,
}

impl Counts {
    pub(super) fn add(&mut self, id: LeaseId, lease: &Lease) {
        if let Phase::Owed { until } = lease.phase {
            self.owed.insert((until, id));
        } else if lease.is_held() {
            let gauge = self.gauges.entry(lease.rule).or_default();
            gauge.held.insert((lease.granted, id));
            gauge.without_ttl += usize::from(lease.ttl_ms.is_none());
        }
    }

    pub(super) fn subtract(&mut self, id: LeaseId, lease: &Lease) {
        if let Phase::Owed { until } = lease.phase {
            self.owed.remove(&(until, id));
        } else if lease.is_held()
            && let Some(gauge) = self.gauges.get_mut(&lease.rule)
        {
            gauge.held.remove(&(lease.granted, id));
            gauge.without_ttl -= usize::from(lease.ttl_ms.is_none());
        }
    }
}
