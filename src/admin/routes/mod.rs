//! What each path answers, and what holds for all of them. Errors are JSON objects with one field, `error`. Reads and
//! changes nothing by itself: see [`Backend`].

mod failure;
mod guard;
mod locks;
mod openapi;
mod page;
mod pause;
mod reading;
mod release;
mod reload;
mod streams;
mod upgrade;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use tokio::sync::{Semaphore, watch};

use super::Backend;
use super::api::{Process, RuleView, Suggestions};
use super::hosts::Hosts;
use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, Limit};
use failure::{Failure, failure};
use reading::Readings;

/// Where single locks are.
pub(super) const LOCKS: &str = "/api/v1/locks/";

/// The one call that may take long.
pub(super) const UPGRADE: &str = "/-/upgrade";

struct Shared {
    backend: Arc<dyn Backend>,
    token: String,
    hosts: Hosts,
    started: Instant,
    bad_tokens: Limit,
    streams: Arc<Semaphore>,
    readings: Readings,
    ending: watch::Receiver<bool>,
}

type Admin = State<Arc<Shared>>;

/// All paths. `ending` becomes true when streams have to end.
pub(super) fn router(
    backend: Arc<dyn Backend>,
    token: String,
    hosts: &[String],
    ending: watch::Receiver<bool>,
) -> Router {
    let shared = Arc::new(Shared {
        readings: Readings::new(Arc::clone(&backend)),
        backend,
        token,
        hosts: Hosts::new(hosts),
        started: Instant::now(),
        bad_tokens: Limit::default(),
        streams: Arc::new(Semaphore::new(streams::MAX_STREAMS)),
        ending,
    });
    paths()
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| router.route(path, methods))
        .merge(page::routes())
        .fallback(async || failure(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            failure(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard::guard))
        .with_state(shared)
}

/// What is asked for by programs; the page is not. All of it stands in the OpenAPI file.
fn paths() -> [(&'static str, MethodRouter<Arc<Shared>>); 18] {
    let lock = get(locks::one).delete(release::release_lock);
    [
        ("/metrics", get(metrics)),
        ("/livez", get(async || "ok\n")),
        ("/readyz", get(ready)),
        ("/api/v1/rules", get(rules)),
        ("/api/v1/suggestions", get(suggestions)),
        ("/api/v1/locks", get(locks::list)),
        // The empty key is a key; the wildcard does not match it.
        (LOCKS, lock.clone()),
        ("/api/v1/locks/{*key}", lock),
        ("/api/v1/records", get(locks::records)),
        ("/api/v1/events", get(streams::events)),
        ("/api/v1/live", get(streams::live)),
        ("/api/v1/openapi.json", get(openapi::openapi)),
        ("/api/v1/process", get(process)),
        ("/api/v1/pause", get(pause::paused)),
        ("/-/reload", post(reload::reload)),
        ("/-/pause", post(pause::pause)),
        ("/-/resume", post(pause::resume)),
        (UPGRADE, post(upgrade::upgrade)),
    ]
}

async fn rules(State(shared): Admin) -> Json<Vec<RuleView>> {
    Json(shared.backend.rules())
}

async fn process(State(shared): Admin) -> Json<Process> {
    Json(shared.backend.process())
}

async fn suggestions(State(shared): Admin) -> Result<Json<Suggestions>, Failure> {
    let suggestions = shared.readings.read(|backend| backend.suggestions()).await;
    suggestions.map(Json).map_err(reading::broken)
}

async fn metrics(State(shared): Admin) -> impl IntoResponse {
    ([(CONTENT_TYPE, METRICS_TYPE)], shared.backend.metrics_text())
}

async fn ready(State(shared): Admin) -> Response {
    match shared.backend.ready() {
        Ok(()) => "ok\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_path_is_described_and_nothing_else_is() {
        let file: serde_json::Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
        let described: BTreeSet<String> = file["paths"].as_object().unwrap().keys().cloned().collect();
        let served: BTreeSet<String> = paths()
            .iter()
            .filter(|(path, _)| *path != LOCKS)
            .map(|(path, _)| path.replace("{*", "{"))
            .collect();
        assert_eq!(described, served);
    }
}
