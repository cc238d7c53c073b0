//! Holding clients back, and letting them go on: who may, for how long, and how many are under way.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};

use super::Admin;
use super::failure::{Asked, Failure, asked, failure};
use super::release::authorize;
use crate::admin::Peer;
use crate::admin::api::{Pause, PauseQuery};
use crate::config;

/// If nobody says otherwise.
const LENGTH: Duration = Duration::from_secs(30);
/// So that nobody is held for ever.
const LONGEST: Duration = Duration::from_secs(300);
/// The answer itself has ten seconds.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

pub(super) async fn pause(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Asked<PauseQuery>,
) -> Result<Json<Pause>, Failure> {
    authorize(&shared, peer, &headers)?;
    let PauseQuery { length, wait } = asked(query)?;
    let length = time("for", length.as_deref(), LENGTH, LONGEST)?;
    let wait = time("wait", wait.as_deref(), Duration::ZERO, LONGEST_WAIT)?;
    tracing::warn!(target: "lockward::audit", who = %peer.0, ?length, "an operator asked to hold clients back");
    let paused = shared.backend.pause(length, wait).await;
    paused.map(Json).map_err(|text| failure(StatusCode::CONFLICT, text))
}

pub(super) async fn resume(
    State(shared): Admin,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<Pause>, Failure> {
    authorize(&shared, peer, &headers)?;
    tracing::warn!(target: "lockward::audit", who = %peer.0, "an operator asked to let clients go on");
    told(shared.backend.resume().await)
}

pub(super) async fn paused(State(shared): Admin) -> Result<Json<Pause>, Failure> {
    told(shared.backend.paused().await)
}

fn told(pause: Result<Pause, String>) -> Result<Json<Pause>, Failure> {
    pause
        .map(Json)
        .map_err(|text| failure(StatusCode::INTERNAL_SERVER_ERROR, text))
}

/// A time that was asked for.
fn time(name: &str, text: Option<&str>, default: Duration, longest: Duration) -> Result<Duration, Failure> {
    let Some(text) = text else { return Ok(default) };
    let wrong = |text: String| failure(StatusCode::BAD_REQUEST, format!("{name}: {text}"));
    let time = config::parse_duration(text).map(Duration::from_millis).map_err(wrong)?;
    match time <= longest {
        true => Ok(time),
        false => Err(wrong(format!("at most {} s", longest.as_secs()))),
    }
}
