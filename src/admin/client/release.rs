//! A release by force.

use hyper::{Method, StatusCode};
use serde_json::Value;

use super::{Client, ClientError, LOCKS, encode};

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
    let client = Client::new(address);
    let path = format!(
        "{LOCKS}{}?db={database}&reason={}",
        encode(key),
        encode(reason.as_bytes())
    );
    let (status, body) = client.call(Method::DELETE, &path, token).await?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, answer.get("released").and_then(Value::as_bool)) {
        (StatusCode::OK, Some(true)) => Ok(Released::Freed {
            held_ms: answer.get("held_ms").and_then(Value::as_u64),
        }),
        (StatusCode::NOT_FOUND, Some(false)) => Ok(Released::Absent),
        _ => Err(client.refused(status, &body)),
    }
}
