//! lockward's own upstream connection: the chores, the probes, the scripts. One task holds one connection, connects
//! again when it is lost, and says at each moment whether the server is there and what it can do.
//!
//! What it deliberately does not do: it carries no client's command, sends nothing twice, and keeps nobody waiting: while
//! the server is away, when the queue is full or when no answer comes in time, the caller gets an error.

pub(crate) mod facts;
pub mod look;
mod prepare;
mod task;
pub(super) mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::config::Server;
use crate::lock::chore::{Chore, Done, encode_chore, parse_chore};
use crate::lock::features::Features;
use crate::lock::script::Script;
use crate::proxy::tls::Certificates;
use crate::proxy::whereabouts::Whereabouts;
use crate::resp::encode;

/// The settings of the own connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The prefix of record keys; the probes name a key below it that nobody else uses.
    pub prefix: String,
    /// How long a connect may take.
    pub connect_timeout: Duration,
    /// How long an answer may take. After that the connection counts as dead.
    pub call_timeout: Duration,
    /// Without anything to do a PING goes out so often.
    pub idle_ping: Duration,
    /// The longest pause between two connects; the shortest is a fortieth of it.
    pub longest_pause: Duration,
    /// What TLS goes by, where the server speaks it.
    pub certificates: Arc<Certificates>,
    /// Calls that wait for their turn; one more is an error.
    pub queue: usize,
}

impl Settings {
    /// The usual settings: 2 s to connect, 2 s to answer, a PING every 5 s, pauses up to 2 s, a queue of 1024.
    pub fn new(prefix: &str) -> Self {
        Settings {
            prefix: prefix.to_owned(),
            connect_timeout: Duration::from_secs(2),
            call_timeout: Duration::from_secs(2),
            idle_ping: Duration::from_secs(5),
            longest_pause: Duration::from_secs(2),
            certificates: Arc::default(),
            queue: 1024,
        }
    }
}

/// What is known of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Connected, authenticated and probed.
    pub up: bool,
    /// Which newer lock commands it has. Kept while it is away.
    pub features: Features,
    /// Its name and version, such as `redis 7.0.15` or `valkey 9.1.2`; empty if it does not say. Kept while it is away.
    pub version: String,
    /// What is wrong: why it is away, or, while up, why the scripts could not be loaded.
    pub error: Option<String>,
}

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnError {
    /// The server is away; nothing was sent.
    #[error("the server is not reachable: {0}")]
    Away(String),
    /// The queue is full; nothing was sent.
    #[error("too many calls are waiting for the server")]
    Full,
    /// No answer in time. It may have been done.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The connection was lost before the answer came. It may have been done.
    #[error("the connection was lost before the answer came: {0}")]
    Lost(String),
    /// The server answered with an error.
    #[error("the server refused it: {0}")]
    Refused(String),
    /// The server's answer is none that the scripts give.
    #[error("the server's answer cannot be read")]
    Unreadable,
}

/// One call on its way to the task.
#[derive(Debug)]
struct Call {
    database: Option<u32>,
    request: Bytes,
    replies: usize,
    answer: oneshot::Sender<Result<Vec<Bytes>, OwnError>>,
}

/// The own connection, as the rest of the proxy holds it. When the last handle is dropped the connection is closed.
#[derive(Clone, Debug)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    state: watch::Receiver<State>,
    settings: Arc<Settings>,
}

/// Starts the own connection to the server at this place on the current tokio runtime, as the user of `server`. It connects
/// by itself, now and whenever it has to.
pub fn spawn(server: Server, whereabouts: Whereabouts, settings: Settings) -> Handle {
    let settings = Arc::new(settings);
    let (calls, queue) = mpsc::channel(settings.queue.max(1));
    let (publish, state) = watch::channel(State::default());
    tokio::spawn(task::run(server, whereabouts, settings.clone(), queue, publish));
    Handle { calls, state, settings }
}

impl Handle {
    /// Does a chore in its database.
    ///
    /// # Errors
    ///
    /// See [`OwnError`].
    pub async fn chore(&self, chore: Chore) -> Result<Done, OwnError> {
        let mut request = BytesMut::new();
        encode_chore(&chore, &self.settings.prefix, &mut request);
        let reply = self.one(Some(chore.database), request.freeze()).await?;
        if let Some(text) = wire::error_text(&reply) {
            return Err(OwnError::Refused(text));
        }
        parse_chore(&chore.task, &reply).ok_or(OwnError::Unreadable)
    }

    /// Sends one command and returns the bytes of its whole reply, an error reply too. `database`: `None` for commands
    /// that are the same in every database. Not for blocking commands and not for those that change the connection.
    ///
    /// # Errors
    ///
    /// See [`OwnError`]; an error of the server is a reply here.
    pub async fn command(&self, database: Option<u32>, arguments: Vec<Bytes>) -> Result<Bytes, OwnError> {
        let mut request = BytesMut::new();
        encode::command(&mut request, arguments.iter().map(|argument| &argument[..]));
        self.one(database, request.freeze()).await
    }

    /// What is known of the server, now and at each change.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Loads all scripts again (after SCRIPT FLUSH).
    ///
    /// # Errors
    ///
    /// See [`OwnError`]; `Refused` if the server does not take one of them.
    pub async fn reload_scripts(&self) -> Result<(), OwnError> {
        let replies = self.call(None, prepare::script_loads(), Script::ALL.len()).await?;
        match replies.iter().find_map(|reply| wire::error_text(reply)) {
            Some(text) => Err(OwnError::Refused(text)),
            None => Ok(()),
        }
    }

    async fn one(&self, database: Option<u32>, request: Bytes) -> Result<Bytes, OwnError> {
        self.call(database, request, 1).await?.pop().ok_or(OwnError::Unreadable)
    }

    async fn call(&self, database: Option<u32>, request: Bytes, replies: usize) -> Result<Vec<Bytes>, OwnError> {
        let deadline = Instant::now() + self.settings.call_timeout;
        let (answer, answered) = oneshot::channel();
        let call = Call {
            database,
            request,
            replies,
            answer,
        };
        self.calls.try_send(call).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => OwnError::Full,
            mpsc::error::TrySendError::Closed(_) => OwnError::Away("the own connection was stopped".to_owned()),
        })?;
        match tokio::time::timeout_at(deadline, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(OwnError::Lost("the own connection was stopped".to_owned())),
            Err(_) => Err(OwnError::TimedOut),
        }
    }
}
