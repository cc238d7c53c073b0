//! Does what the keeper asks for, on lockward's own connection, and tells it what came of it. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::shared::Shared;
use crate::event::What;
use crate::lock::chore::{Chore, Done};
use crate::lock::keeper::Failed;
use crate::metrics::printable;

/// How long the task sleeps at most; log lines that were dropped are told about so often.
const IDLE: Duration = Duration::from_secs(1);

/// Runs until the process ends.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut under_way: JoinSet<(Chore, Option<Done>)> = JoinSet::new();
    loop {
        tick(&shared, &mut under_way);
        let rest = shared.rest(IDLE);
        tokio::select! {
            () = sleep(rest) => {}
            () = shared.chores.notified() => {}
            Some(finished) = under_way.join_next() => {
                // A chore's task neither panics nor is cancelled.
                if let Ok((chore, done)) = finished {
                    shared.keeper().done(shared.now(), &chore, done.as_ref().ok_or(Failed));
                }
            }
        }
    }
}

fn tick(shared: &Arc<Shared>, under_way: &mut JoinSet<(Chore, Option<Done>)>) {
    let (mut chores, mut events) = (Vec::new(), Vec::new());
    shared.keeper().tick(shared.now(), &mut chores, &mut events);
    shared.log.settle(shared.now());
    shared.door.log.settle(shared.now());
    super::scouting::say_unmet(shared);
    for event in events {
        if let What::Release(_) = event.what {
            // Nobody asked for it, so somebody may wonder where the lock went.
            let (key, owner) = (printable(&event.key), &event.owner);
            tracing::info!(key, %owner, database = event.database, "a lock was released: its owner has disconnected");
        }
        shared.heard(event);
    }
    for chore in chores {
        let own = shared.own.clone();
        under_way.spawn(async move {
            let done = own.chore(chore.clone()).await;
            if let Err(error) = &done {
                let (database, key, task) = (chore.database, printable(&chore.key), &chore.task);
                tracing::debug!(%error, database, key, ?task, "a chore was not done");
            }
            (chore, done.ok())
        });
    }
}
