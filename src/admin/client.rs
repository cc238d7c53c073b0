//! The other end of the admin side, for the command line: asks a running lockward to release a lock. Speaks plain HTTP to
//! one address; follows no redirects and no proxy settings.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::encoding::encode;
use super::routes::LOCKS;

/// For the whole call.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// What came of a release by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lock is released; it was held for so many milliseconds, where known.
    Freed {
        /// From acquire to now, in milliseconds.
        held_ms: Option<u64>,
    },
    /// There was no lock.
    Absent,
}

/// Why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The operator's: nobody listens there.
    #[error("cannot reach lockward's admin address {address}: {source}")]
    Connect {
        /// The address called.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The operator's: the key, token or reason does not fit into a request.
    #[error("the key, the reason or the token cannot be sent: {0}")]
    Unsendable(String),
    /// The other end's: no answer.
    #[error("lockward at {address} did not answer in time")]
    Timeout {
        /// The address called.
        address: String,
    },
    /// The other end's: it does not speak HTTP as lockward does.
    #[error("what answers at {address} is not lockward's admin side: {text}")]
    Foreign {
        /// The address called.
        address: String,
        /// What was wrong.
        text: String,
    },
    /// The other end's: it refused.
    #[error("lockward refused ({status}): {text}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its reason.
        text: String,
    },
}

/// Asks the lockward at `address` (`host:port`) to release `key` in `database`, whoever holds it.
///
/// # Errors
/// See [`ClientError`]; after a [`ClientError::Timeout`] the lock may be released or not.
pub async fn release(
    address: &str,
    token: &str,
    database: u32,
    key: &[u8],
    reason: &str,
) -> Result<Released, ClientError> {
    let path = format!(
        "{LOCKS}{}?db={database}&reason={}",
        encode(key),
        encode(reason.as_bytes())
    );
    let timed_out = || ClientError::Timeout {
        address: address.to_owned(),
    };
    let (status, body) = timeout(CALL_TIMEOUT, call(address, token, Method::DELETE, &path))
        .await
        .map_err(|_| timed_out())??;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, answer.get("released").and_then(Value::as_bool)) {
        (StatusCode::OK, Some(true)) => Ok(Released::Freed {
            held_ms: answer.get("held_ms").and_then(Value::as_u64),
        }),
        (StatusCode::NOT_FOUND, Some(false)) => Ok(Released::Absent),
        _ => match answer.get("error").and_then(Value::as_str) {
            Some(text) => Err(ClientError::Refused {
                status: status.as_u16(),
                text: text.to_owned(),
            }),
            None => Err(foreign(address, format!("it answered {status}"))),
        },
    }
}

async fn call(address: &str, token: &str, method: Method, path: &str) -> Result<(StatusCode, Bytes), ClientError> {
    let connect = |source| ClientError::Connect {
        address: address.to_owned(),
        source,
    };
    let stream = TcpStream::connect(address).await.map_err(connect)?;
    // By its IP, which the other end answers whatever name was used to find it.
    let host = stream.peer_addr().map_err(connect)?.to_string();
    let mut request = Request::builder().method(method).uri(path).header(HOST, host);
    if !token.is_empty() {
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|error| ClientError::Unsendable(error.to_string()))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| ClientError::Unsendable(error.to_string()))?;

    let strange = |error: hyper::Error| foreign(address, error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(strange)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(strange)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let mut body = body.map_err(|error| foreign(address, error.to_string()))?.aggregate();
        Ok((status, body.copy_to_bytes(body.remaining())))
    };
    // Both run here, so nothing is left behind when this future is dropped.
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        done = &mut answer => done,
        _ = &mut connection => answer.await,
    }
}

fn foreign(address: &str, text: String) -> ClientError {
    ClientError::Foreign {
        address: address.to_owned(),
        text,
    }
}
