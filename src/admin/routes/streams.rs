//! What is told as it happens: single events, and the table whenever it has changed. Both cost a bounded part of the
//! time, however much happens.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::{Instant, sleep_until};

use super::failure::{Asked, Failure, asked, failure};
use super::{Admin, Shared};
use crate::admin::Backend;
use crate::admin::api::{EVENTS, Event, EventsQuery, LocksQuery, Snapshot};
use crate::admin::encoding::decode;
use crate::admin::socket::Progress;
use crate::admin::stream::{self, Carrier, Source, tell};
use crate::lock::search::Search;

/// The most streams at once: half of all connections.
pub(super) const MAX_STREAMS: usize = 32;

/// When it makes sense to ask for a stream again, in seconds.
const RETRY_AFTER: u64 = 5;

/// Events that came together go out together, up to so many bytes (and the last event).
const BATCH: usize = 64 * 1024;

/// Between two batches: spares those who make events a wake-up for each.
const BATCH_PAUSE: Duration = Duration::from_millis(10);

/// Between two snapshots, at least and at most.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(250);
const SNAPSHOT_AGE: Duration = Duration::from_secs(5);

/// Between two snapshots, measured in the time that the last one took, for all live streams together: so they take 5 %.
const SNAPSHOT_SHARE: u32 = 20;

fn carrier(shared: &Shared, progress: Arc<Progress>) -> Result<Carrier, Failure> {
    match Arc::clone(&shared.streams).try_acquire_owned() {
        Ok(permit) => Ok(Carrier {
            progress,
            ending: shared.ending.clone(),
            permit,
        }),
        Err(_) => {
            let text = format!("{MAX_STREAMS} streams are open already, and there are no more than that");
            Err(failure(StatusCode::SERVICE_UNAVAILABLE, text).retry_after(RETRY_AFTER))
        }
    }
}

pub(super) async fn events(
    State(shared): Admin,
    Extension(progress): Extension<Arc<Progress>>,
    query: Asked<EventsQuery>,
) -> Result<Response, Failure> {
    let filter = Filter::new(asked(query)?, &*shared.backend);
    let filter = filter.map_err(|text| failure(StatusCode::BAD_REQUEST, text))?;
    let carrier = carrier(&shared, progress)?;
    let events = Events {
        receiver: shared.backend.events(),
        filter,
        not_before: Instant::now(),
    };
    Ok(stream::answer(events, carrier))
}

/// Which events are told.
struct Filter {
    search: Option<Search>,
    rule: Option<String>,
    database: Option<u32>,
    kinds: Option<Vec<String>>,
}

impl Filter {
    /// Nothing behind the equals sign is the same as no filter. What no event can have is an error: a misspelt name must
    /// not pass for silence.
    fn new(query: EventsQuery, backend: &dyn Backend) -> Result<Filter, String> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let rule = filled(query.rule);
        if let Some(rule) = &rule
            && !backend.rules().iter().any(|known| known.name == *rule)
        {
            return Err(format!("rule: there is no rule {rule:?}"));
        }
        let kinds: Option<Vec<String>> =
            filled(query.event).map(|kinds| kinds.split(',').map(|kind| kind.trim().to_owned()).collect());
        let unknown = |kind: &&String| !EVENTS.contains(&kind.as_str());
        if let Some(kind) = kinds.iter().flatten().find(unknown) {
            let known = EVENTS.join(", ");
            return Err(format!("event: there is no event {kind:?}; the events are {known}"));
        }
        Ok(Filter {
            search: filled(query.pattern).as_deref().map(Search::new),
            rule,
            database: query.db,
            kinds,
        })
    }

    fn admits(&self, event: &Event) -> bool {
        let found = |search: &Search| decode(&event.key_encoded).is_some_and(|key| search.matches(&key));
        self.database.is_none_or(|database| database == event.database)
            && self.rule.as_ref().is_none_or(|rule| *rule == event.rule)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.event))
            && self.search.as_ref().is_none_or(found)
    }
}

struct Events {
    receiver: broadcast::Receiver<Arc<Event>>,
    filter: Filter,
    not_before: Instant,
}

impl Events {
    fn take(&self, event: &Event, out: &mut String) {
        if self.filter.admits(event) {
            tell(Some(event.id), "lock", event, out);
        }
    }

    /// What is there already, as far as there is room.
    fn take_the_rest(&mut self, out: &mut String) {
        while out.len() < BATCH {
            match self.receiver.try_recv() {
                Ok(event) => self.take(&event, out),
                Err(TryRecvError::Lagged(count)) => missed(count, out),
                Err(TryRecvError::Empty | TryRecvError::Closed) => {
                    self.not_before = Instant::now() + BATCH_PAUSE;
                    return;
                }
            }
        }
    }
}

fn missed(count: u64, out: &mut String) {
    tell(None, "missed", &json!({ "missed": count }), out);
}

impl Source for Events {
    async fn next(&mut self) -> Result<Bytes, String> {
        let mut out = String::new();
        // Whenever this waits, nothing is in hand that could be lost.
        while out.is_empty() {
            sleep_until(self.not_before).await;
            match self.receiver.recv().await {
                Ok(event) => self.take(&event, &mut out),
                Err(RecvError::Lagged(count)) => missed(count, &mut out),
                Err(RecvError::Closed) => return Err("there will be no more events".to_owned()),
            }
            self.take_the_rest(&mut out);
        }
        Ok(out.into())
    }
}

pub(super) async fn live(
    State(shared): Admin,
    Extension(progress): Extension<Arc<Progress>>,
    query: Asked<LocksQuery>,
) -> Result<Response, Failure> {
    let query = asked(query)?;
    let carrier = carrier(&shared, progress)?;
    let mut live = Live {
        backend: Arc::clone(&shared.backend),
        changes: shared.backend.changes(),
        streams: Arc::clone(&shared.streams),
        query,
        first: None,
        earliest: Instant::now(),
        latest: Instant::now(),
    };
    // Now, so that a query that makes no sense is refused.
    let first = live.snapshot();
    live.first = Some(first.map_err(|text| failure(StatusCode::BAD_REQUEST, text))?);
    Ok(stream::answer(live, carrier))
}

struct Live {
    backend: Arc<dyn Backend>,
    changes: watch::Receiver<()>,
    streams: Arc<Semaphore>,
    query: LocksQuery,
    first: Option<Bytes>,
    /// When the next snapshot may be made, and when it must be, if nothing changes.
    earliest: Instant,
    latest: Instant,
}

impl Live {
    fn snapshot(&mut self) -> Result<Bytes, String> {
        let begun = Instant::now();
        // What changes from here on is told the next time.
        self.changes.mark_unchanged();
        let snapshot = Snapshot {
            table: self.backend.locks(&self.query)?,
            rules: self.backend.rules(),
            not_ready: self.backend.ready().err(),
        };
        let mut out = String::new();
        tell(None, "snapshot", &snapshot, &mut out);
        let now = Instant::now();
        let streams = MAX_STREAMS.saturating_sub(self.streams.available_permits()).max(1);
        let factor = SNAPSHOT_SHARE.saturating_mul(u32::try_from(streams).unwrap_or(u32::MAX));
        let share = (now - begun).saturating_mul(factor);
        self.earliest = now + share.max(SNAPSHOT_PAUSE);
        self.latest = now + SNAPSHOT_AGE;
        Ok(out.into())
    }
}

impl Source for Live {
    async fn next(&mut self) -> Result<Bytes, String> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        sleep_until(self.earliest).await;
        tokio::select! {
            changed = self.changes.changed() => {
                changed.map_err(|_| "there will be no more changes".to_owned())?;
            }
            () = sleep_until(self.latest) => {}
        }
        self.snapshot()
    }
}
