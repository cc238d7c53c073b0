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
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use super::failure::{Asked, Failure, asked, failure};
use super::reading::{Broken, Readings, SNAPSHOT_AGE, broken};
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

/// So many bytes of keys and patterns are compared in one go before others are served: about a millisecond.
const COMPARED_AT_ONCE: usize = 1_000_000;
/// Between two batches: spares those who make events a wake-up for each.
const BATCH_PAUSE: Duration = Duration::from_millis(10);

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
            && !backend.has_rule(rule)
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
        let search = filled(query.pattern).as_deref().map(Search::new).transpose();
        Ok(Filter {
            search: search.map_err(|fault| fault.to_string())?,
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

impl Filter {
    /// How many bytes it takes to look at an event, by the encoded key.
    fn cost(&self, event: &Event) -> usize {
        let length = event.key_encoded.len();
        self.search.as_ref().map_or(0, |search| length + search.cost(length))
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
        let mut compared = 0;
        while out.len() < BATCH {
            if compared > COMPARED_AT_ONCE {
                // Others have to be served too; what is missed meanwhile is told.
                self.not_before = Instant::now() + BATCH_PAUSE;
                return;
            }
            match self.receiver.try_recv() {
                Ok(event) => {
                    compared += self.filter.cost(&event);
                    self.take(&event, out);
                }
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
        readings: shared.readings.clone(),
        changes: shared.backend.changes(),
        query,
        first: None,
        took: None,
        earliest: Instant::now(),
        latest: Instant::now(),
    };
    // Now, so that a query that makes no sense is refused.
    let first = live.snapshot().await.map_err(broken)?;
    live.first = Some(first.map_err(|text| failure(StatusCode::BAD_REQUEST, text))?);
    Ok(stream::answer(live, carrier))
}

struct Live {
    readings: Readings,
    changes: watch::Receiver<()>,
    query: LocksQuery,
    first: Option<Bytes>,
    /// How long the last one took.
    took: Option<Duration>,
    /// When the next snapshot may be made, and when it must be, if nothing changes.
    earliest: Instant,
    latest: Instant,
}

impl Live {
    /// The next snapshot, or what is wrong with the query.
    async fn snapshot(&mut self) -> Result<Result<Bytes, String>, Broken> {
        // What changes from here on is told the next time. If this is given up half-way, the next one is due at once.
        self.changes.mark_unchanged();
        self.latest = Instant::now();
        let query = self.query.clone();
        let reading = self.readings.read(move |backend| {
            let begun = Instant::now();
            let table = match backend.locks(&query) {
                Ok(table) => table,
                Err(text) => return (Err(text), begun.elapsed()),
            };
            let snapshot = Snapshot {
                table,
                rules: backend.rules(),
                not_ready: backend.ready().err(),
            };
            let mut out = String::new();
            tell(None, "snapshot", &snapshot, &mut out);
            (Ok(out.into()), begun.elapsed())
        });
        let (out, took) = reading.await?;
        let now = Instant::now();
        // One that took long only since the machine had other things to do is no measure.
        self.earliest = self.readings.next(now, took.min(self.took.unwrap_or(took)));
        self.took = Some(took);
        self.latest = now + SNAPSHOT_AGE;
        Ok(out)
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
        let broken = |_| "reading the table failed inside lockward".to_owned();
        self.snapshot().await.map_err(broken)?
    }
}
