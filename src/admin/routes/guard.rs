//! What stands before every path: which hosts are answered, how long an answer may take, which headers every answer has.
//! This is no access control: whoever reaches the port reads what it shows.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::failure::{Failure, failure};
use super::{Admin, UPGRADE};
use crate::admin::hosts::HostFault;

/// For one answer to be found.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// For a new process to take this one's place: more than it gets for that.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(25);

/// Everything that a page may load comes from here, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What every answer says.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Checks the host, bounds the time, sets the headers.
pub(super) async fn guard(State(shared): Admin, request: Request, next: Next) -> Response {
    // What names no lock and no client may be asked for by any name: scrapers and probes come by DNS.
    let harmless = matches!(request.uri().path(), "/livez" | "/readyz" | "/metrics");
    let limit = match request.uri().path() {
        UPGRADE => UPGRADE_TIMEOUT,
        _ => ANSWER_TIMEOUT,
    };
    let answered = match shared.hosts.check(request.version(), request.headers()) {
        Err(fault) if fault != HostFault::Foreign || !harmless => Err(misdirected(fault)),
        _ if guarded(&request) && shared.hosts.foreign_page_asks(request.headers()) => {
            let text = "a web page of another origin must not ask for this";
            Err(failure(StatusCode::FORBIDDEN, text))
        }
        _ => tokio::time::timeout(limit, next.run(request))
            .await
            .map_err(|_| failure(StatusCode::GATEWAY_TIMEOUT, "there was no answer in time")),
    };
    let mut response = answered.into_response();
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What a page of another origin may not even ask for, though it could not read the answer: everything that changes
/// something, or costs the server, this process or one of the few streams. The page itself opens from a link.
fn guarded(request: &Request) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD) || request.uri().path().starts_with("/api/")
}

fn misdirected(fault: HostFault) -> Failure {
    match fault {
        HostFault::Malformed => failure(StatusCode::BAD_REQUEST, "the Host header is missing or malformed"),
        HostFault::Foreign => {
            let text = "this host name is not answered: call the admin address by IP, as localhost, \
                        by the name that stands in [admin] address, or by one of [admin] hosts";
            failure(StatusCode::MISDIRECTED_REQUEST, text)
        }
    }
}
