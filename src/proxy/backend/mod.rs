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

use bytes::Bytes;
use tokio::sync::{broadcast, watch};

use super::reload::Reloader;
use super::shared::Shared;
use super::telling::Untold;
use crate::admin::api::{
    Event, Known, LockList, LocksQuery, RecordPage, RecordsQuery, Reloaded, RuleView, Suggestions,
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
        if *self.shared.draining.borrow() {
            return Err("draining".to_owned());
        }
        let state = self.shared.own.state();
        let state = state.borrow();
        match (&state.error, state.up) {
            (_, true) if self.shared.condition.load().replica => {
                Err("the server is a replica and refuses writes".to_owned())
            }
            (_, true) => Ok(()),
            (Some(error), false) => Err(error.clone()),
            (None, false) => Err("the server has not answered yet".to_owned()),
        }
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
