//! Having a new process take this one's place: who may, and what came of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};

use super::Admin;
use super::failure::{Failure, failure};
use super::release::authorize;
use crate::admin::Peer;
use crate::admin::api::Upgraded;

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
    outcome
        .map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, broken))?
        .map(Json)
        .map_err(|text| failure(StatusCode::CONFLICT, text))
}
