//! The other end of the admin side, for the command line: asks a running lockward what it shows, listens to its streams,
//! and has locks released. Speaks plain HTTP to one address; follows no redirects and no proxy settings. Everything that
//! is read is bounded in size, every wait in time.

mod operating;
mod release;
mod sse;
mod stream;

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use release::{Released, release};
pub use sse::{Message, Reader, TooLong};
pub use stream::Stream;

use super::api::{LockDetail, LockList, LocksQuery, Suggestions};
use super::encoding::{decode, encode};
use super::routes::LOCKS;

/// For a whole call, or for a stream to begin.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 16 << 20;

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
    /// The operator's: the key, token, reason or a filter does not fit into a request.
    #[error("the key, the reason, the token or a filter cannot be sent: {0}")]
    Unsendable(String),
    /// The other end's: no answer.
    #[error("lockward at {address} did not answer in time")]
    Timeout {
        /// The address called.
        address: String,
    },
    /// The other end's: it does not speak HTTP as lockward does.
    #[error("what answers at {address} is not lockward's admin side, or another version of it: {text}")]
    Foreign {
        /// The address called.
        address: String,
        /// What was wrong.
        text: String,
    },
    /// The other end's: it refused.
    #[error("lockward at {address} refused ({status}): {text}")]
    Refused {
        /// The address called.
        address: String,
        /// The HTTP status.
        status: u16,
        /// Its reason.
        text: String,
    },
    /// The other end's: a stream has ended that has no end.
    #[error("lockward at {address} has gone away: {text}")]
    Gone {
        /// The address called.
        address: String,
        /// How it was noticed.
        text: String,
    },
}

/// The key's bytes, by what stands in `key_encoded`.
pub fn key_bytes(encoded: &str) -> Option<Vec<u8>> {
    decode(encoded)
}

/// What stands in `key_encoded`.
pub fn key_encoded(key: &[u8]) -> String {
    encode(key)
}

/// Asks one lockward.
#[derive(Clone, Debug)]
pub struct Client {
    address: String,
}

impl Client {
    /// A client for `host:port`; `http://` before it and a slash behind it are left out.
    pub fn new(address: &str) -> Client {
        let address = address.strip_prefix("http://").unwrap_or(address);
        Client {
            address: address.trim_end_matches('/').to_owned(),
        }
    }

    /// Where it asks.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The lock table, or the part of it that is asked for.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn locks(&self, query: &LocksQuery) -> Result<LockList, ClientError> {
        self.get(&format!("/api/v1/locks{}", self.query(query)?)).await
    }

    /// One lock, given percent-encoded, with its history.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn lock(&self, key_encoded: &str, database: u32) -> Result<LockDetail, ClientError> {
        self.get(&format!("{LOCKS}{key_encoded}?db={database}")).await
    }

    /// Advice.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn suggestions(&self) -> Result<Suggestions, ClientError> {
        self.get("/api/v1/suggestions").await
    }

    /// Whether clients should be sent there.
    ///
    /// # Errors
    /// See [`ClientError`]; that it refuses says why they should not.
    pub async fn ready(&self) -> Result<(), ClientError> {
        self.probe("/readyz").await
    }

    /// Whether it lives.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn live(&self) -> Result<(), ClientError> {
        self.probe("/livez").await
    }

    async fn probe(&self, path: &str) -> Result<(), ClientError> {
        match self.call(Method::GET, path, "").await? {
            (StatusCode::OK, body) if &body[..] == b"ok\n" => Ok(()),
            (StatusCode::OK, _) => Err(self.foreign("its answer is not \"ok\"".to_owned())),
            (StatusCode::SERVICE_UNAVAILABLE, reason) => Err(ClientError::Refused {
                address: self.address.clone(),
                status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
                text: String::from_utf8_lossy(&reason).trim().to_owned(),
            }),
            (status, body) => Err(self.refused(status, &body)),
        }
    }

    /// Listens to `/api/v1/events` or `/api/v1/live`, given without its beginning.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn listen<Q: Serialize>(&self, name: &str, query: &Q) -> Result<Stream, ClientError> {
        let path = format!("/api/v1/{name}{}", self.query(query)?);
        let connecting = self.send(Method::GET, &path, "", "text/event-stream");
        let (response, connection) = timeout(CALL_TIMEOUT, connecting)
            .await
            .map_err(|_| self.timed_out())??;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = self.body(response).await?;
            return Err(self.refused(status, &body));
        }
        Ok(Stream::new(self.clone(), response.into_body(), connection))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let answer = self.call(Method::GET, path, "").await?;
        self.parse(answer)
    }

    fn parse<T: DeserializeOwned>(&self, (status, body): (StatusCode, Bytes)) -> Result<T, ClientError> {
        if status != StatusCode::OK {
            return Err(self.refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| self.foreign(error.to_string()))
    }

    /// One request and its whole answer.
    async fn call(&self, method: Method, path: &str, token: &str) -> Result<(StatusCode, Bytes), ClientError> {
        self.call_within(CALL_TIMEOUT, method, path, token).await
    }

    async fn call_within(
        &self,
        limit: Duration,
        method: Method,
        path: &str,
        token: &str,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let whole = async {
            let (response, _connection) = self.send(method, path, token, "application/json").await?;
            let status = response.status();
            Ok((status, self.body(response).await?))
        };
        timeout(limit, whole).await.map_err(|_| self.timed_out())?
    }

    /// Sends a request; the answer's body comes as long as the connection is kept.
    async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        accept: &'static str,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        let connect = |source| ClientError::Connect {
            address: self.address.clone(),
            source,
        };
        let unsendable = |text: String| ClientError::Unsendable(text);
        let stream = TcpStream::connect(&self.address).await.map_err(connect)?;
        // By its IP, which the other end answers whatever name was used to find it.
        let host = stream.peer_addr().map_err(connect)?.to_string();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(ACCEPT, accept);
        if !token.is_empty() {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| unsendable(error.to_string()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|error| unsendable(error.to_string()))?;
        let strange = |error: hyper::Error| self.foreign(error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(strange)?;
        let connection = Connection(tokio::spawn(async move {
            // What goes wrong here is told where the answer is read.
            let _ = connection.await;
        }));
        let response = sender.send_request(request).await.map_err(strange)?;
        Ok((response, connection))
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let mut body = body.map_err(|error| self.foreign(error.to_string()))?.aggregate();
        Ok(body.copy_to_bytes(body.remaining()))
    }

    /// What stands behind the question mark.
    fn query<Q: Serialize>(&self, query: &Q) -> Result<String, ClientError> {
        let fields = serde_json::to_value(query).map_err(|error| ClientError::Unsendable(error.to_string()))?;
        let mut text = String::new();
        for (name, value) in fields.as_object().into_iter().flatten() {
            let value = match value {
                Value::Null => continue,
                Value::String(value) => value.clone(),
                value => value.to_string(),
            };
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(&format!("{name}={}", encode(value.as_bytes())));
        }
        Ok(text)
    }

    fn timed_out(&self) -> ClientError {
        ClientError::Timeout {
            address: self.address.clone(),
        }
    }

    fn foreign(&self, text: String) -> ClientError {
        ClientError::Foreign {
            address: self.address.clone(),
            text,
        }
    }

    fn gone(&self, text: String) -> ClientError {
        ClientError::Gone {
            address: self.address.clone(),
            text,
        }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> ClientError {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        match answer.get("error").and_then(Value::as_str) {
            Some(text) => ClientError::Refused {
                address: self.address.clone(),
                status: status.as_u16(),
                text: text.to_owned(),
            },
            None => self.foreign(format!("it answered {status}")),
        }
    }
}

/// The task that moves the bytes of one connection; it ends with this.
#[derive(Debug)]
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::{EventsQuery, Sort};

    #[test]
    fn filters_stand_behind_the_question_mark() {
        let client = Client::new("http://[::1]:9180/");
        assert_eq!(client.address(), "[::1]:9180");
        let query = LocksQuery {
            pattern: Some("lock:&é*".to_owned()),
            db: Some(3),
            warned: true,
            sort: Sort::Ttl,
            ..LocksQuery::default()
        };
        let mut parts: Vec<String> = client
            .query(&query)
            .unwrap()
            .trim_start_matches('?')
            .split('&')
            .map(str::to_owned)
            .collect();
        parts.sort();
        assert_eq!(parts, ["db=3", "pattern=lock:%26%C3%A9%2A", "sort=ttl", "warned=true"]);
        assert_eq!(client.query(&EventsQuery::default()).unwrap(), "");
    }
}
