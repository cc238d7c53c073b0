//! What an operator has a running lockward do: have its place taken, hold clients back; and which process answers.

use std::time::Duration;

use hyper::Method;

use super::{Client, ClientError};
use crate::admin::api::{Pause, PauseQuery, Process, Upgraded};

/// For a new process to come to serve: more than the other end gives it.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(28);

impl Client {
    /// The process that answers.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn process(&self) -> Result<Process, ClientError> {
        self.get("/api/v1/process").await
    }

    /// Has it hold clients back.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn pause(&self, token: &str, query: &PauseQuery) -> Result<Pause, ClientError> {
        let path = format!("/-/pause{}", self.query(query)?);
        self.parse(self.call(Method::POST, &path, token).await?)
    }

    /// Has it let clients go on.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn resume(&self, token: &str) -> Result<Pause, ClientError> {
        self.parse(self.call(Method::POST, "/-/resume", token).await?)
    }

    /// Has a new process take its place.
    ///
    /// # Errors
    /// See [`ClientError`]; after a [`ClientError::Timeout`] it may have done so or not.
    pub async fn upgrade(&self, token: &str) -> Result<Upgraded, ClientError> {
        let answer = self.call_within(UPGRADE_TIMEOUT, Method::POST, "/-/upgrade", token);
        self.parse(answer.await?)
    }
}
