//! What the admin side can see and do, on lockward's own connection. Serves no HTTP itself.

mod events;
mod gauges;
mod history;
mod locks;
mod records;
mod rules;
mod suggestions;
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{broadcast, watch};

use super::pausing::Census;
use super::reload::Reloader;
use super::shared::Shared;
use super::telling::Untold;
use super::upgrade::{self, Upgrader};
use crate::admin::api::{
    Event, Known, LockList, LocksQuery, Pause, Process, ProcessState, RecordPage, RecordsQuery, Reloaded, RuleView,
    Suggestions, Upgraded,
};
use crate::admin::{Answer, Backend, RecordsError};
use crate::event::{ConnectionId, Event as LockEvent, Release, ReleaseOutcome, What};
use crate::lock::chore::{Chore, Done, Seen, Task};
use records::Records;

/// What happened, as the event stream tells it.
pub(super) fn event(shared: &Shared, untold: &Untold) -> Event {
    events::event(shared, untold)
}

/// The admin side's powers.
pub(super) struct Admin {
    shared: Arc<Shared>,
    records: Records,
}

impl Admin {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let records = Records::new(Arc::clone(&shared));
        Admin { shared, records }
    }
}

impl Backend for Admin {
    fn ready(&self) -> Result<(), String> {
        ready(&self.shared)
    }

    fn metrics_text(&self) -> String {
        self.shared.metrics.render(&gauges::all(&self.shared))
    }

    fn rule_of(&self, key: &[u8]) -> Option<Arc<str>> {
        let policy = self.shared.policy();
        policy
            .rules
            .find(key)
            .map(|rule| Arc::clone(&policy.rules.rule(rule).name))
    }

    fn inspect(&self, database: u32, key: Bytes) -> Answer<Seen> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let task = Task::Inspect;
            let chore = Chore {
                database,
                key: key.clone(),
                task,
            };
            match shared.own.chore(chore).await {
                Ok(Done::Seen(seen)) => {
                    compare(&shared, database, &key, &seen);
                    Ok(seen)
                }
                Ok(other) => Err(format!("unexpected answer {other:?}")),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn force_release(&self, database: u32, key: Bytes) -> Answer<Done> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let before = shared
                .own
                .chore(Chore {
                    database,
                    key: key.clone(),
                    task: Task::Inspect,
                })
                .await;
            let chore = Chore {
                database,
                key: key.clone(),
                task: Task::Free { token: None },
            };
            let done = shared.own.chore(chore).await.map_err(|error| error.to_string())?;
            if let Done::Freed { held_ms } = done {
                // It is counted though it could not be seen whose lease it was.
                let owner = match before {
                    Ok(Done::Seen(seen)) => seen.owner,
                    _ => None,
                };
                forced(&shared, database, key, owner.as_deref(), held_ms);
            } else {
                shared.keeper().doubt(shared.now(), database, &key);
                shared.chores.notify_one();
            }
            Ok(done)
        })
    }

    fn reload(&self) -> Result<Reloaded, String> {
        let reloader = Reloader(Arc::clone(&self.shared));
        let changes = reloader.reload().map_err(|error| error.to_string())?;
        Ok(Reloaded {
            applied: changes.applied,
            needs_restart: changes.needs_restart,
        })
    }

    fn process(&self) -> Process {
        Process {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms: self.shared.clock.began_unix_ms,
            state: match *self.shared.draining.borrow() {
                true => ProcessState::Draining,
                false if self.shared.pausing.is_on() => ProcessState::Paused,
                false => ProcessState::Serving,
            },
        }
    }

    fn upgrade(&self) -> Result<Upgraded, String> {
        let was = self.process();
        let upgraded = Upgrader(Arc::clone(&self.shared)).upgrade();
        let upgrade::Upgraded { pid, ready } = upgraded.map_err(|error| error.to_string())?;
        Ok(Upgraded {
            pid,
            version: ready.version,
            admin: ready.admin,
            was,
        })
    }

    fn pause(&self, length: Duration, wait: Duration) -> Answer<Pause> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            if *shared.draining.borrow() {
                return Err("this lockward is draining".to_owned());
            }
            match shared.upgrading.get() {
                Some(upgrading) => {
                    let paused = upgrading.unless_under_way(|| shared.pause(length));
                    paused.map_err(|error| error.to_string())?;
                }
                None => shared.pause(length),
            }
            let census = shared.pausing.settled(wait).await;
            Ok(pause(&shared, census))
        })
    }

    fn resume(&self) -> Answer<Pause> {
        self.shared.resume("an operator asked for it");
        self.paused()
    }

    fn paused(&self) -> Answer<Pause> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { Ok(pause(&shared, shared.pausing.census().await)) })
    }

    fn rules(&self) -> Vec<RuleView> {
        rules::views(&self.shared)
    }

    fn has_rule(&self, name: &str) -> bool {
        let policy = self.shared.policy();
        policy.rules.iter().any(|(_, rule)| *rule.name == *name)
    }

    fn locks(&self, query: &LocksQuery) -> Result<LockList, String> {
        locks::list(&self.shared, query)
    }

    fn known(&self, database: u32, key: &[u8]) -> Known {
        locks::known(&self.shared, database, key)
    }

    fn records(&self, query: &RecordsQuery) -> Answer<RecordPage, RecordsError> {
        self.records.page(query)
    }

    fn suggestions(&self) -> Suggestions {
        suggestions::all(&self.shared)
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.telling.listen()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.shared.telling.changes.subscribe()
    }
}

fn pause(shared: &Shared, census: Census) -> Pause {
    Pause {
        left_ms: shared.pausing.left().map(|left| left.as_millis() as u64),
        under_way: census.under_way,
        blocked: census.blocked,
    }
}

/// Whether clients should be sent here, or why not.
pub(super) fn ready(shared: &Shared) -> Result<(), String> {
    if *shared.draining.borrow() {
        return Err("draining".to_owned());
    }
    if let Some(left) = shared.pausing.left() {
        return Err(format!("paused, for {} s at most", left.as_secs() + 1));
    }
    let state = shared.own.state();
    let state = state.borrow();
    match (&state.error, state.up) {
        (_, true) if shared.condition.load().replica => Err("the server is a replica and refuses writes".to_owned()),
        (_, true) => Ok(()),
        (Some(error), false) => Err(error.clone()),
        (None, false) => Err("the server has not answered yet".to_owned()),
    }
}

/// If the server knows no lock, or another holder than this proxy, the lease known here is looked at. (Under an observe
/// rule there is no record that could name a holder.)
fn compare(shared: &Shared, database: u32, key: &Bytes, seen: &Seen) {
    let known = shared.keeper().holder(database, key);
    let other = known.is_some() && seen.owner.is_some() && known.as_deref() != seen.owner.as_deref();
    if other || !seen.exists {
        shared.keeper().doubt(shared.now(), database, key);
        shared.chores.notify_one();
    }
}

/// Tells metrics, log and keeper of a release by force.
fn forced(shared: &Shared, database: u32, key: Bytes, owner: Option<&str>, held_ms: Option<u64>) {
    let Some(rule) = shared.policy().rules.find(&key) else {
        return;
    };
    let nobody = ConnectionId {
        instance: "admin".into(),
        number: 0,
    };
    let event = LockEvent {
        at: shared.now(),
        database,
        key,
        rule,
        owner: owner.unwrap_or("nobody").into(),
        connection: nobody,
        what: What::Release(Release {
            outcome: ReleaseOutcome::Forced,
            held_ms,
            overrun_ms: None,
        }),
    };
    shared.witnessed(&mut vec![crate::session::Witnessed {
        event,
        bound: crate::lock::owner::Bound::Free,
    }]);
}
