//! What each path answers. Errors are JSON objects with one field, `error`. Calls that change something need the token
//! and are logged with who and why. Reads and changes nothing by itself: see [`Backend`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::encoding::{decode, encode};
use super::hosts::{HostFault, Hosts};
use super::{Backend, Peer};
use crate::event::Time;
use crate::lock::chore::{Done, Seen};
use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, Limit, Verdict, printable};

/// For one answer to be found.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where single locks are.
pub(super) const LOCKS: &str = "/api/v1/locks/";

struct Shared {
    backend: Arc<dyn Backend>,
    token: String,
    hosts: Hosts,
    started: Instant,
    bad_tokens: Limit,
}

type Admin = State<Arc<Shared>>;

/// All paths.
pub(super) fn router(backend: Arc<dyn Backend>, token: String, hosts: &[String]) -> Router {
    let shared = Arc::new(Shared {
        backend,
        token,
        hosts: Hosts::new(hosts),
        started: Instant::now(),
        bad_tokens: Limit::default(),
    });
    let lock = get(show_lock).delete(release_lock);
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route(
            "/api/v1/rules",
            get(async |State(shared): Admin| Json(shared.backend.rules())),
        )
        // The empty key is a key; the wildcard does not match it.
        .route(LOCKS, lock.clone())
        .route("/api/v1/locks/{*key}", lock)
        .fallback(async || failure(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            failure(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Stands before every path: checks the host, bounds the time, sets the headers that every answer has.
async fn guard(State(shared): Admin, request: Request, next: Next) -> Response {
    // What names no lock and no client may be asked for by any name: scrapers and probes come by DNS.
    let harmless = matches!(request.uri().path(), "/livez" | "/readyz" | "/metrics");
    let answered = match shared.hosts.check(request.version(), request.headers()) {
        Err(fault) if fault != HostFault::Foreign || !harmless => Err(misdirected(fault)),
        _ => tokio::time::timeout(ANSWER_TIMEOUT, next.run(request))
            .await
            .map_err(|_| failure(StatusCode::GATEWAY_TIMEOUT, "there was no answer in time")),
    };
    let mut response = answered.into_response();
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn misdirected(fault: HostFault) -> Failure {
    match fault {
        HostFault::Malformed => failure(StatusCode::BAD_REQUEST, "the Host header is missing or malformed"),
        HostFault::Foreign => {
            let text = "this host name is not answered: call the admin address by IP, as localhost, \
                        or by the name that stands in [admin] address";
            failure(StatusCode::MISDIRECTED_REQUEST, text)
        }
    }
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

/// What can stand behind the question mark. A misspelt name is an error: it must not fall back to database 0.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(default)]
    db: u32,
    #[serde(default)]
    reason: String,
}

/// One lock, as a request names it.
struct Target {
    database: u32,
    key: Bytes,
    rule: Arc<str>,
    reason: String,
}

type Asked = Result<Query<Params>, QueryRejection>;

fn target(shared: &Shared, uri: &Uri, asked: Asked) -> Result<Target, Failure> {
    let Query(Params { db, reason }) =
        asked.map_err(|rejection| failure(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let key = uri
        .path()
        .strip_prefix(LOCKS)
        .and_then(decode)
        .map(Bytes::from)
        .ok_or_else(|| {
            failure(
                StatusCode::BAD_REQUEST,
                "the key is not percent-encoded: a % is not followed by two hex digits",
            )
        })?;
    let rule = shared
        .backend
        .rule_of(&key)
        .ok_or_else(|| failure(StatusCode::NOT_FOUND, "no lock rule matches this key, so it is no lock"))?;
    Ok(Target {
        database: db,
        key,
        rule,
        reason,
    })
}

async fn show_lock(State(shared): Admin, uri: Uri, asked: Asked) -> Result<Json<Value>, Failure> {
    let target = target(&shared, &uri, asked)?;
    let seen = shared.backend.inspect(target.database, target.key.clone()).await;
    let seen = seen.map_err(|text| failure(StatusCode::BAD_GATEWAY, text))?;
    Ok(Json(describe(&target, &seen)))
}

fn describe(target: &Target, seen: &Seen) -> Value {
    // Every field by name: a new one does not compile until it is shown, or left out on purpose.
    let Seen {
        exists,
        state,
        ttl_ms,
        owner,
        connection,
        connection_open,
        fence,
        acquired_at_ms,
        debts,
    } = seen;
    let debts: Vec<Value> = debts
        .iter()
        .map(|(owner, expired)| json!({ "owner": owner, "expired_at_ms": expired }))
        .collect();
    json!({
        "key": String::from_utf8_lossy(&target.key),
        "key_encoded": encode(&target.key),
        "database": target.database,
        "rule": &*target.rule,
        "exists": exists,
        "state": state,
        "ttl_ms": ttl_ms,
        "owner": owner,
        "connection": connection,
        "connection_open": connection_open,
        "fence": fence,
        "acquired_at_ms": acquired_at_ms,
        "debts": debts,
    })
}

async fn release_lock(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
    asked: Asked,
) -> Result<Response, Failure> {
    authorize(&shared, peer, &headers)?;
    let target = target(&shared, &uri, asked)?;
    // On a task of its own: if the operator hangs up, it is done and logged all the same.
    let task = tokio::spawn(release(shared, peer, target));
    let broken = "the release failed inside lockward; see its log";
    task.await
        .map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, broken))
}

async fn release(shared: Arc<Shared>, peer: Peer, target: Target) -> Response {
    let why = if target.reason.trim().is_empty() {
        "no reason given"
    } else {
        target.reason.trim()
    };
    let (who, why) = (peer.0.to_string(), printable(why.as_bytes()));
    let done = shared.backend.force_release(target.database, target.key.clone()).await;
    let (result, response) = match done {
        Ok(Done::Freed { held_ms }) => (
            "released".to_owned(),
            Json(json!({ "released": true, "held_ms": held_ms })).into_response(),
        ),
        Ok(Done::Absent) => {
            let body = Json(json!({ "released": false, "error": "there is no lock to release" }));
            ("absent".to_owned(), (StatusCode::NOT_FOUND, body).into_response())
        }
        Ok(
            other @ (Done::Renewed { .. }
            | Done::Doubtful
            | Done::Lost
            | Done::Marked
            | Done::Live { .. }
            | Done::Expired
            | Done::Ended
            | Done::Seen(_)),
        ) => {
            let text = format!("the release came to an unexpected end: {other:?}");
            (text.clone(), failure(StatusCode::BAD_GATEWAY, text).into_response())
        }
        Err(text) => (
            format!("failed: {}", printable(text.as_bytes())),
            failure(StatusCode::BAD_GATEWAY, text).into_response(),
        ),
    };
    tracing::warn!(
        target: "lockward::audit",
        rule = &*target.rule,
        database = target.database,
        key = printable(&target.key),
        who,
        why,
        result,
        "an operator asked to release a lock by force"
    );
    response
}

/// Whether the request carries the token. Compared in constant time, so that its beginning cannot be guessed bit by bit.
fn authorize(shared: &Shared, peer: Peer, headers: &HeaderMap) -> Result<(), Failure> {
    if shared.token.is_empty() {
        let text = "no admin token is configured, so nothing can be changed here: set `token` in [admin]";
        return Err(failure(StatusCode::FORBIDDEN, text));
    }
    let given = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
    if given.is_some_and(|token| token.ct_eq(shared.token.as_bytes()).into()) {
        return Ok(());
    }
    let now = Time(u64::try_from(shared.started.elapsed().as_micros()).unwrap_or(u64::MAX));
    if let Verdict::Write { dropped } = shared.bad_tokens.ask(now) {
        tracing::warn!(target: "lockward::audit", who = %peer.0, dropped, "a call without the admin token was refused");
    }
    let text = "this call needs the admin token: Authorization: Bearer TOKEN, as `token` in [admin] has it";
    Err(failure(StatusCode::UNAUTHORIZED, text))
}

/// The token of an Authorization header with the scheme Bearer (in any case, RFC 9110).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// An answer that says no.
struct Failure {
    status: StatusCode,
    text: String,
}

fn failure(status: StatusCode, text: impl Into<String>) -> Failure {
    Failure {
        status,
        text: text.into(),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.text }))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
