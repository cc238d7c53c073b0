//! What all histories share: the rules, the connections, and when two accounts of a lock are the same.

use lockward::event::{ConnectionId, Owner};
use lockward::lock::model::Model;
use lockward::lock::rule::{DeniedWrite, Mode, OwnerPart, Rule, Unmanaged};

use super::view::{View, alike};

fn rules() -> Vec<Rule> {
    let rule = |allow: bool, window: u64, default: Option<u64>, max: Option<u64>| Rule {
        name: "r".into(),
        patterns: Vec::new(),
        mode: Mode::Enforce,
        owner: vec![OwnerPart::Any],
        unmanaged: if allow { Unmanaged::Allow } else { Unmanaged::Refuse },
        fencing: max.is_some(),
        emulate: false,
        denied_write: if allow { DeniedWrite::Error } else { DeniedWrite::Nil },
        default_ttl_ms: default,
        max_ttl_ms: max,
        late_release_window_ms: window,
        renew: false,
        max_hold_ms: 600_000,
        release_on_disconnect: false,
        disconnect_grace_ms: 5000,
        contention_shield_ms: None,
    };
    vec![
        rule(true, 120_000, None, None),
        rule(false, 120_000, None, None),
        rule(true, 300, None, None),
        rule(false, 300, Some(100), None),
        rule(true, 1000, None, Some(150)),
        rule(true, 1000, Some(90), Some(12_000)),
        rule(true, 0, None, None),
    ]
}

thread_local! {
    pub static RULES: Vec<Rule> = rules();
    pub static CONNECTIONS: [(ConnectionId, Owner); 5] = connections();
}

fn connections() -> [(ConnectionId, Owner); 5] {
    let connection = |instance: &str, number| ConnectionId {
        instance: instance.into(),
        number,
    };
    let (one, two) = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb");
    [
        (connection(one, 1), "address=10.0.0.1".into()),
        (connection(one, 2), "address=10.0.0.1".into()),
        (connection(two, 1), "address=10.0.0.1".into()),
        (connection(two, 2), "address=10.0.0.2".into()),
        (connection(one, 3), "address=10.0.0.2".into()),
    ]
}

pub fn wall_clock() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the end of time")
}

/// In place of a number that the server is not asked for: how long a connection held what it gives up itself.
pub const UNTOLD: i64 = i64::MIN;

pub fn close(one: &[i64], other: &[i64], slack: i64) -> bool {
    let alike = |(one, other): (&i64, &i64)| *other == UNTOLD || (one - other).abs() <= slack;
    one.len() == other.len() && one.iter().zip(other).all(alike)
}

/// Whether lock and record are what the model says, a moment after the step or a moment later.
pub fn agrees(model: &Model, view: &View, end: i64, last: i64, slack: i64) -> bool {
    [end, last].iter().any(|&now| {
        let (mut model, mut seen) = (model.clone(), view.model());
        model.ripen(now);
        seen.ripen(now);
        alike(&model, &seen, slack) && view.ends_in_time(&model, slack)
    })
}

/// The server's own numbers for the lock's expiry and the lease's beginning.
pub fn adopt(model: &mut Model, view: &View) {
    let begun = view
        .model()
        .lease
        .and_then(|lease| lease.holder)
        .map(|holder| holder.acquired_at);
    if let (Some(holder), Some(begun)) = (model.lease.as_mut().and_then(|lease| lease.holder.as_mut()), begun) {
        holder.acquired_at = begun;
    }
    let Some(lock) = view.lock else { return };
    if let (Some(known), Some(lease)) = (model.lock, model.lease.as_mut())
        && known.expiry == lease.due
    {
        lease.due = lock.expiry;
    }
    model.lock = Some(lock);
}

/// Whether something ends between these moments.
pub fn edge(model: &Model, from: i64, to: i64) -> bool {
    let lease = model.lease.as_ref();
    let due = lease.and_then(|lease| lease.due);
    let doubts = lease.iter().flat_map(|lease| &lease.doubts);
    let debts = model.debts.iter().chain(doubts).map(|debt| debt.due + model.window_ms);
    let expiry = model.lock.and_then(|lock| lock.expiry);
    expiry
        .into_iter()
        .chain(due)
        .chain(due.map(|due| due + model.window_ms))
        .chain(debts)
        .any(|at| from <= at && at <= to)
}
