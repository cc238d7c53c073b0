//! The description of the API for programs (OpenAPI 3.1), as it stands in `admin/openapi.json`, with this version.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

const TEXT: &str = include_str!("../openapi.json");

/// Stands in the file where the version belongs.
const NO_VERSION: &str = "\"version\": \"0.0.0\"";

pub(super) async fn openapi() -> impl IntoResponse {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    (
        [(CONTENT_TYPE, "application/json")],
        TEXT.replacen(NO_VERSION, &version, 1),
    )
}
