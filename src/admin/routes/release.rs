//! Release by force: who may, and what came of it. It is logged with who and why, and never with the token.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use subtle::ConstantTimeEq;

use super::failure::{Asked, Failure, failure};
use super::locks::{Params, Target, target};
use super::{Admin, Shared};
use crate::admin::Peer;
use crate::event::Time;
use crate::lock::chore::Done;
use crate::metrics::{Verdict, printable};

pub(super) async fn release_lock(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
    query: Asked<Params>,
) -> Result<Response, Failure> {
    authorize(&shared, peer, &headers)?;
    let target = target(&shared, &uri, query)?;
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
pub(super) fn authorize(shared: &Shared, peer: Peer, headers: &HeaderMap) -> Result<(), Failure> {
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
