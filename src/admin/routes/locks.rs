//! Locks: the table of those that this proxy knows, one of them with all that is known, and the records of all proxies in
//! the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use serde::Deserialize;

use super::failure::{Asked, Failure, asked, failure};
use super::reading::broken;
use super::{Admin, LOCKS, Shared};
use crate::admin::RecordsError;
use crate::admin::api::{LockDetail, LockList, LocksQuery, Record, RecordPage, RecordsQuery};
use crate::admin::encoding::decode;

/// When it makes sense to ask for records again, in seconds.
const RETRY_AFTER: u64 = 1;

pub(super) async fn list(State(shared): Admin, query: Asked<LocksQuery>) -> Result<Json<LockList>, Failure> {
    let query = asked(query)?;
    let list = shared.readings.read(move |backend| backend.locks(&query)).await;
    let list = list.map_err(broken)?;
    list.map(Json).map_err(|text| failure(StatusCode::BAD_REQUEST, text))
}

pub(super) async fn records(State(shared): Admin, query: Asked<RecordsQuery>) -> Result<Json<RecordPage>, Failure> {
    match shared.backend.records(&asked(query)?).await {
        Ok(page) => Ok(Json(page)),
        Err(RecordsError::Query(text)) => Err(failure(StatusCode::BAD_REQUEST, text)),
        Err(RecordsError::Busy) => {
            let text = "records were asked for a moment ago, or are being read: this is kept slow to spare the server";
            Err(failure(StatusCode::TOO_MANY_REQUESTS, text).retry_after(RETRY_AFTER))
        }
        Err(RecordsError::Upstream(text)) => Err(failure(StatusCode::BAD_GATEWAY, text)),
    }
}

/// What can stand behind the question mark of one lock. A misspelt name is an error: it must not fall back to database 0.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct Params {
    db: u32,
    reason: String,
}

/// One lock, as a request names it.
pub(super) struct Target {
    pub(super) database: u32,
    pub(super) key: Bytes,
    pub(super) rule: Arc<str>,
    pub(super) reason: String,
}

pub(super) fn target(shared: &Shared, uri: &Uri, query: Asked<Params>) -> Result<Target, Failure> {
    let Params { db, reason } = asked(query)?;
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

pub(super) async fn one(State(shared): Admin, uri: Uri, query: Asked<Params>) -> Result<Json<LockDetail>, Failure> {
    let Target {
        database, key, rule, ..
    } = target(&shared, &uri, query)?;
    // What is known here is shown though the server is away: that is when people look.
    let (seen, server_error) = match shared.backend.inspect(database, key.clone()).await {
        Ok(seen) => (Some(seen), None),
        Err(text) => (None, Some(text)),
    };
    Ok(Json(LockDetail {
        record: Record::new(database, &key, Some(&rule), seen),
        server_error,
        known: shared.backend.known(database, &key),
    }))
}
