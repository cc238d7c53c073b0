//! Reading the configuration anew: who may, and what came of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};

use super::Admin;
use super::failure::{Failure, failure};
use super::release::authorize;
use crate::admin::Peer;
use crate::admin::api::Reloaded;

pub(super) async fn reload(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<Reloaded>, Failure> {
    authorize(&shared, peer, &headers)?;
    tracing::warn!(target: "lockward::audit", who = %peer.0, "an operator asked to reload the configuration");
    let backend = Arc::clone(&shared.backend);
    // It goes on to its end though the operator hangs up.
    let outcome = tokio::task::spawn_blocking(move || backend.reload()).await;
    let broken = "the reload failed inside lockward; see its log";
    outcome
        .map_err(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, broken))?
        .map(Json)
        .map_err(|text| failure(StatusCode::UNPROCESSABLE_ENTITY, text))
}
