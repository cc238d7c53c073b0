//! Looks at everything that lockward knows, which may take milliseconds: on threads that may block, two at once, so that
//! no client's commands wait for them; and how often the live streams may look. What is read comes from elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::failure::{Failure, failure};
use crate::admin::Backend;

/// The most readings at once; more wait.
const MOST_READINGS: usize = 2;

/// Between two snapshots of all streams, measured in the time that the first took: so they take 5 %.
const SHARE: u32 = 20;

/// Between two snapshots of one stream, at least and at most.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(250);
pub(super) const SNAPSHOT_AGE: Duration = Duration::from_secs(5);

/// The reading came to no end.
#[derive(Debug)]
pub(super) struct Broken;

/// What to answer then.
pub(super) fn broken(_: Broken) -> Failure {
    let text = "the reading failed inside lockward; see its log";
    failure(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// Where everybody reads.
#[derive(Clone)]
pub(super) struct Readings {
    backend: Arc<dyn Backend>,
    permits: Arc<Semaphore>,
    /// When the snapshots told so far are paid for.
    paid: Arc<Mutex<Instant>>,
}

impl Readings {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Readings {
        Readings {
            backend,
            permits: Arc::new(Semaphore::new(MOST_READINGS)),
            paid: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Reads when it is its turn. If nobody waits any more, a reading under way still keeps its place until it is over.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Backend) -> T + Send + 'static,
    ) -> Result<T, Broken> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Broken)?;
        let backend = Arc::clone(&self.backend);
        let reading = spawn_blocking(move || {
            let read = read(&*backend);
            drop(permit);
            read
        });
        reading.await.map_err(|_| Broken)
    }

    /// When a stream may make its next snapshot, if its last one took so long until now.
    pub(super) fn next(&self, now: Instant, took: Duration) -> Instant {
        next_snapshot(&self.paid, now, took)
    }
}

/// Each snapshot is paid for with its share of the time, one after the other, the first ones of new streams too; but no
/// stream waits longer than its table may be old.
fn next_snapshot(paid: &Mutex<Instant>, now: Instant, took: Duration) -> Instant {
    let mut paid = paid.lock().unwrap_or_else(PoisonError::into_inner);
    let due = (*paid).max(now) + took.saturating_mul(SHARE);
    *paid = due.min(now + SNAPSHOT_AGE);
    (*paid).max(now + SNAPSHOT_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(paid: &Mutex<Instant>, now: Instant, took_ms: u64) -> Duration {
        next_snapshot(paid, now, Duration::from_millis(took_ms)) - now
    }

    #[test]
    fn snapshots_are_paid_for_one_after_the_other_and_nobody_waits_for_ever() {
        let now = Instant::now();
        let paid = Mutex::new(now);
        let milliseconds = Duration::from_millis;
        assert_eq!(next(&paid, now, 1), milliseconds(250), "never more often than that");
        assert_eq!(next(&paid, now, 20), milliseconds(420));
        // A new stream waits for those that are there, and they for it.
        assert_eq!(next(&paid, now, 25), milliseconds(920));
        assert_eq!(next(&paid, now + milliseconds(900), 25), milliseconds(520));
        for _ in 0..100 {
            assert!(next(&paid, now, 1000) <= SNAPSHOT_AGE);
        }
        assert_eq!(next(&paid, now, 0), SNAPSHOT_AGE);
        assert_eq!(next(&paid, now + SNAPSHOT_AGE, 1), SNAPSHOT_PAUSE);
    }
}
