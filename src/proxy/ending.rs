//! How the process ends: what it waits for until then, and in which order it lets go of sockets, leases and clients.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::shared::Shared;

/// How long clients get to come to a command boundary once a drain was asked for.
pub const DRAIN: Duration = Duration::from_secs(5);

/// Waits for one of the two; whether it was the upgrade.
pub(super) async fn stopped_or_upgraded(shared: &Shared, stop: impl Future<Output = ()>) -> bool {
    let upgraded = async {
        match shared.upgrading.get() {
            Some(upgrading) => upgrading.done().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => false,
        () = upgraded => true,
    }
}

/// Tells the new process, if there is one, of the leases.
pub(super) async fn bequeath(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    let telling = tokio::task::spawn_blocking(move || {
        if let Some(upgrading) = shared.upgrading.get() {
            upgrading.settle();
            upgrading.bequeath(&shared);
        }
    });
    // It does not panic; and if it did, nothing would depend on it.
    let _ = telling.await;
}

/// No new clients, and an end for those that are there.
pub(super) async fn drain_clients(shared: &Shared, drain: &watch::Sender<bool>, mut clients: JoinHandle<()>) {
    if let Some(upgrading) = shared.upgrading.get() {
        upgrading.let_go();
    }
    tracing::info!(
        clients = shared.clients.len(),
        "draining: no new clients, each one closed at a command boundary"
    );
    // Nobody is left to hear it only if everything has ended already.
    let _ = drain.send(true);
    shared.resume("this lockward drains");
    if timeout(DRAIN, &mut clients).await.is_err() {
        tracing::warn!(
            clients = shared.clients.len(),
            "closing clients that came to no command boundary"
        );
        // The worker threads end with it.
        clients.abort();
    }
}
