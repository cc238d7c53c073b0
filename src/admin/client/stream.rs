//! One stream of server-sent events from lockward, message by message. Does not reconnect: whoever listens decides that.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::sse::{Message, Reader};
use super::{Client, ClientError, Connection};

/// lockward sends a heartbeat every ten seconds; after so long without a byte it, or the way to it, is gone.
const SILENCE: Duration = Duration::from_secs(35);

/// A stream that is open.
#[derive(Debug)]
pub struct Stream {
    client: Client,
    body: Incoming,
    reader: Reader,
    ready: VecDeque<Message>,
    _connection: Connection,
}

impl Stream {
    pub(super) fn new(client: Client, body: Incoming, connection: Connection) -> Stream {
        Stream {
            client,
            body,
            reader: Reader::default(),
            ready: VecDeque::new(),
            _connection: connection,
        }
    }

    /// The next message. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The stream has ended, which it never does by itself, or what comes is no such stream.
    pub async fn next(&mut self) -> Result<Message, ClientError> {
        loop {
            match self.ready.pop_front() {
                Some(message) if message.event == "end" => return Err(self.client.gone(reason(&message.data))),
                Some(message) => return Ok(message),
                None => {}
            }
            let frame = timeout(SILENCE, self.body.frame())
                .await
                .map_err(|_| self.client.gone(format!("nothing came for {} s", SILENCE.as_secs())))?;
            let frame = match frame {
                None => return Err(self.client.gone("the stream has ended".to_owned())),
                Some(Err(error)) => return Err(self.client.gone(error.to_string())),
                Some(Ok(frame)) => frame,
            };
            if let Some(bytes) = frame.data_ref() {
                self.reader
                    .read(bytes, &mut self.ready)
                    .map_err(|error| self.client.foreign(error.to_string()))?;
            }
        }
    }

    /// What a message of this stream says.
    ///
    /// # Errors
    /// It is not what this version of lockward says.
    pub fn parse<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ClientError> {
        serde_json::from_str(&message.data).map_err(|error| self.client.foreign(error.to_string()))
    }
}

/// Why the other end says that it ends.
fn reason(data: &str) -> String {
    let said: Value = serde_json::from_str(data).unwrap_or_default();
    let reason = said.get("reason").and_then(Value::as_str);
    reason.unwrap_or("it said that the stream ends").to_owned()
}
