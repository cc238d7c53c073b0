//! Having a new process take this one's place: who may, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::Admin;
use super::failure::{Failure, failure};
use super::release::authorize;
use crate::admin::Peer;
use crate::admin::api::Upgraded;

/// How long this process may take to let go of the admin address.
const LETTING_GO: Duration = Duration::from_secs(1);

pub(super) async fn upgrade(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<Upgraded>, Failure> {
    authorize(&shared, peer, &headers)?;
    tracing::warn!(target: "lockward::audit", who = %peer.0, "an operator asked for an upgrade");
    let backend = Arc::clone(&shared.backend);
    // It goes on to its end though the operator hangs up.
    let outcome = tokio::task::spawn_blocking(move || backend.upgrade()).await;
    let broken = "the upgrade failed inside lockward; see its log";
    let upgraded = outcome
        .map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, broken))?
        .map_err(|text| failure(StatusCode::CONFLICT, text))?;
    // Whoever asks anything after this answer asks the new process.
    let mut ending = shared.ending.clone();
    let _ = timeout(LETTING_GO, ending.wait_for(|ending| *ending)).await;
    Ok(Json(upgraded))
}
