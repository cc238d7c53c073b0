//! Answers that say no: one JSON object with one field, `error`.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An answer that says no.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    text: String,
    retry_after: Option<u64>,
}

impl Failure {
    /// Says after how many seconds it makes sense to ask again.
    pub(super) fn retry_after(mut self, seconds: u64) -> Failure {
        self.retry_after = Some(seconds);
        self
    }
}

/// An answer that says no.
pub(super) fn failure(status: StatusCode, text: impl Into<String>) -> Failure {
    Failure {
        status,
        text: text.into(),
        retry_after: None,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.text }))).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// What stands behind the question mark, read or not.
pub(super) type Asked<T> = Result<Query<T>, QueryRejection>;

/// What was asked for; else an answer that names the parameter.
pub(super) fn asked<T>(asked: Asked<T>) -> Result<T, Failure> {
    match asked {
        Ok(Query(query)) => Ok(query),
        Err(rejection) => Err(failure(StatusCode::BAD_REQUEST, rejection.body_text())),
    }
}
