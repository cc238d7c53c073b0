//! The live page: four files that are built in. They load nothing from elsewhere and need no build step.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub(super) async fn index() -> impl IntoResponse {
    let text = include_str!("../page/index.html");
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], text)
}

pub(super) async fn style() -> impl IntoResponse {
    let text = include_str!("../page/page.css");
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], text)
}

pub(super) async fn script() -> impl IntoResponse {
    let text = include_str!("../page/page.js");
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], text)
}

pub(super) async fn icon() -> impl IntoResponse {
    ([(CONTENT_TYPE, "image/svg+xml")], include_str!("../page/icon.svg"))
}
