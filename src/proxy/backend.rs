//! What the admin side can see and do, on lockward's own connection. Serves no HTTP itself.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::shared::Shared;
use crate::admin::{Answer, Backend};
use crate::event::{ConnectionId, Event, Release, ReleaseOutcome, What};
use crate::lock::chore::{Chore, Done, Seen, Task};
use crate::lock::rule::{Mode, Rule};

/// The admin side's powers.
pub(super) struct Admin(pub Arc<Shared>);

impl Backend for Admin {
    fn ready(&self) -> Result<(), String> {
        if *self.0.draining.borrow() {
            return Err("draining".to_owned());
        }
        let state = self.0.own.state();
        let state = state.borrow();
        match (&state.error, state.up) {
            (_, true) => Ok(()),
            (Some(error), false) => Err(error.clone()),
            (None, false) => Err("the server has not answered yet".to_owned()),
        }
    }

    fn metrics_text(&self) -> String {
        self.0.metrics.render(&self.0.table())
    }

    fn rule_of(&self, key: &[u8]) -> Option<Arc<str>> {
        let policy = self.0.policy.load();
        policy
            .rules
            .find(key)
            .map(|rule| Arc::clone(&policy.rules.rule(rule).name))
    }

    fn inspect(&self, database: u32, key: Bytes) -> Answer<Seen> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            match shared
                .own
                .chore(Chore {
                    database,
                    key,
                    task: Task::Inspect,
                })
                .await
            {
                Ok(Done::Seen(seen)) => Ok(seen),
                Ok(other) => Err(format!("unexpected answer {other:?}")),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn force_release(&self, database: u32, key: Bytes) -> Answer<Done> {
        let shared = Arc::clone(&self.0);
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
            if let (Done::Freed { held_ms }, Ok(Done::Seen(seen))) = (&done, before) {
                forced(&shared, database, key, &seen, *held_ms);
            }
            Ok(done)
        })
    }

    fn rules(&self) -> Value {
        Value::Array(self.0.policy.load().rules.list().iter().map(rule).collect())
    }
}

/// Tells metrics, log and keeper of a release by force.
fn forced(shared: &Shared, database: u32, key: Bytes, seen: &Seen, held_ms: Option<u64>) {
    let Some(rule) = shared.policy.load().rules.find(&key) else {
        return;
    };
    let nobody = ConnectionId {
        instance: "admin".into(),
        number: 0,
    };
    let event = Event {
        at: shared.now(),
        database,
        key,
        rule,
        owner: seen.owner.as_deref().unwrap_or("nobody").into(),
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

fn rule(rule: &Rule) -> Value {
    let patterns: Vec<_> = rule
        .patterns
        .iter()
        .map(|pattern| String::from_utf8_lossy(pattern).into_owned())
        .collect();
    let mode = match rule.mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    };
    json!({
        "name": *rule.name,
        "patterns": patterns,
        "mode": mode,
        "default_ttl_ms": rule.default_ttl_ms,
        "max_ttl_ms": rule.max_ttl_ms,
        "late_release_window_ms": rule.late_release_window_ms,
        "renew": rule.renew,
        "release_on_disconnect": rule.release_on_disconnect,
    })
}
