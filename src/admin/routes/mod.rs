//! What each path answers, and what holds for all of them. Errors are JSON objects with one field, `error`. Reads and
//! changes nothing by itself: see [`Backend`].

mod failure;
mod guard;
mod locks;
mod page;
mod release;
mod streams;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::{Semaphore, watch};

use super::Backend;
use super::hosts::Hosts;
use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, Limit};
use failure::failure;

/// Where single locks are.
pub(super) const LOCKS: &str = "/api/v1/locks/";

struct Shared {
    backend: Arc<dyn Backend>,
    token: String,
    hosts: Hosts,
    started: Instant,
    bad_tokens: Limit,
    streams: Arc<Semaphore>,
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
        backend,
        token,
        hosts: Hosts::new(hosts),
        started: Instant::now(),
        bad_tokens: Limit::default(),
        streams: Arc::new(Semaphore::new(streams::MAX_STREAMS)),
        ending,
    });
    let lock = get(locks::one).delete(release::release_lock);
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .merge(page::routes())
        .route(
            "/api/v1/rules",
            get(async |State(shared): Admin| Json(shared.backend.rules())),
        )
        .route(
            "/api/v1/suggestions",
            get(async |State(shared): Admin| Json(shared.backend.suggestions())),
        )
        .route("/api/v1/locks", get(locks::list))
        // The empty key is a key; the wildcard does not match it.
        .route(LOCKS, lock.clone())
        .route("/api/v1/locks/{*key}", lock)
        .route("/api/v1/records", get(locks::records))
        .route("/api/v1/events", get(streams::events))
        .route("/api/v1/live", get(streams::live))
        .fallback(async || failure(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            failure(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard::guard))
        .with_state(shared)
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
