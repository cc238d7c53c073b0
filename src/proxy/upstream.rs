//! A client's own connection to the server, and how it begins: connected, counted, and told what the server has to know
//! of the client. Knows no commands beyond whether they were refused.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::client::{Moved, flush};
use super::shared::Shared;
use super::stream::Stream;
use crate::config::Place;
use crate::metrics::{Metrics, Side};
use crate::resp::encode;
use crate::resp::reply::ReplyScanner;
use crate::session::Handshake;

/// After so long a silence the system looks whether the server is still there: a subscriber only listens, and its own
/// keep-alive ends here.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Answers to a handshake are short; a server that says more is none.
const LONGEST: usize = 64 * 1024;
/// So long a client waits for its turn to connect while the server is in trouble. Who would have to wait for longer is told
/// so: it comes again, and the place is for somebody who is still there.
const LONGEST_ROW: Duration = Duration::from_millis(500);
/// So long one does that was held back meanwhile: it was to notice nothing. Trouble is over after that time.
const LONGEST_ROW_OF_HELD: Duration = Duration::from_secs(10);
const NOAUTH: &[u8] = b"-NOAUTH";

/// A connection to the server, counted as long as it lives.
pub(super) struct Own {
    /// The socket.
    pub stream: Stream,
    /// The number of the server that it leads to.
    pub number: u64,
    metrics: Arc<Metrics>,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.metrics.closed(Side::Upstream);
    }
}

/// Why a client could not be introduced to the server.
#[derive(Debug, Error)]
pub(super) enum Refused {
    /// No connection, or it broke.
    #[error("{0}")]
    Unreachable(#[from] io::Error),
    /// Nobody has tried: too many wait for their turn.
    #[error("too many clients come back at once (upstream.reconnect_rate)")]
    Crowded,
    /// The server became another one meanwhile.
    #[error("the sentinels name another master")]
    Switched,
    /// The server does not know the client any more: its own words, one line of RESP.
    #[error("the server refused the client")]
    ByServer(Bytes),
}

/// A connection that knows the client.
pub(super) struct Entered {
    /// The connection.
    pub own: Own,
    /// The server asks for a login that the client has not made.
    pub asks_login: bool,
}

/// Connects. `held`: the client was held back while the server was away, and waits for its turn for longer.
///
/// # Errors
/// What the system says, or `TimedOut`, or that too many want the same.
pub(super) async fn connect(shared: &Shared, held: bool) -> Result<Own, Refused> {
    loop {
        let (place, number) = shared.whereabouts.now().map_err(io::Error::other)?;
        let own = tokio::select! {
            // What is ready counts, unless it leads to a server that is the right one no more.
            biased;
            () = shared.whereabouts.moved_from(number) => continue,
            stream = dial(shared, &place, held) => Own {
                stream: stream?,
                number,
                metrics: Arc::clone(&shared.metrics),
            },
        };
        shared.metrics.opened(Side::Upstream);
        return Ok(own);
    }
}

async fn dial(shared: &Shared, place: &Place, held: bool) -> Result<Stream, Refused> {
    let longest = if held {
        LONGEST_ROW_OF_HELD
    } else {
        shared.connect_timeout.min(LONGEST_ROW)
    };
    let wait = shared.pace.place(shared.now(), longest).ok_or(Refused::Crowded)?;
    if !wait.is_zero() {
        sleep(wait).await;
    }
    let tls = shared.door.certificates.outgoing();
    let stream = Stream::connect(place, tls.as_deref(), shared.connect_timeout)
        .await
        .inspect_err(|_| shared.pace.trouble(shared.now()))?;
    if let Err(error) = stream.keep_alive(KEEP_ALIVE) {
        tracing::debug!(%error, "no keep-alive for the server");
    }
    Ok(stream)
}

/// Connects and tells the server who the client is, and asks whether it may come in; once more if the server is another
/// one by then. `held` as in [`connect`].
///
/// # Errors
/// No connection within the connect timeout, or the server's refusal.
pub(super) async fn enter(shared: &Shared, mut handshake: Handshake, held: bool) -> Result<Entered, Refused> {
    encode::command(&mut handshake.bytes, [b"PING".as_slice()]);
    match introduce(shared, &handshake, held).await {
        Err(Refused::Switched) => introduce(shared, &handshake, held).await,
        entered => entered,
    }
}

async fn introduce(shared: &Shared, handshake: &Handshake, held: bool) -> Result<Entered, Refused> {
    let mut own = connect(shared, held).await?;
    let number = own.number;
    let conversation = async {
        tokio::select! {
            biased;
            () = shared.whereabouts.moved_from(number) => Err(Refused::Switched),
            answers = converse(&mut own.stream, handshake) => Ok(answers?),
        }
    };
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into());
    let answers = timeout(shared.connect_timeout, conversation)
        .await
        .unwrap_or_else(late)?;
    let Some((ping, told)) = answers.split_last() else {
        return Err(Refused::Unreachable(io::ErrorKind::UnexpectedEof.into()));
    };
    if let Some(refusal) = told.iter().find(|answer| answer.first() == Some(&b'-')) {
        return Err(Refused::ByServer(refusal.clone()));
    }
    Ok(Entered {
        asks_login: ping.starts_with(NOAUTH),
        own,
    })
}

/// Says all commands and reads one answer to each, and one more to the question behind them.
async fn converse(stream: &mut Stream, handshake: &Handshake) -> io::Result<Vec<Bytes>> {
    let (mut bytes, commands) = (handshake.bytes.clone(), handshake.commands);
    loop {
        match flush(stream, &mut bytes) {
            Moved::Done => break,
            Moved::Full => poll_fn(|cx| stream.poll_write_ready(cx)).await?,
            Moved::Gone => return Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
    let mut heard = BytesMut::new();
    let mut answers = Vec::new();
    let mut part = [0; 1024];
    loop {
        match poll_fn(|cx| stream.poll_read(cx, &mut part)).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => heard.extend_from_slice(part.get(..len).unwrap_or_default()),
        }
        while let Some(length) = whole(&heard)? {
            answers.push(heard.copy_to_bytes(length));
        }
        if answers.len() > commands && heard.is_empty() {
            return Ok(answers);
        }
        if answers.len() > commands || heard.len() > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server said more than it was asked",
            ));
        }
    }
}

/// The length of the answer at the front, once it is whole.
fn whole(heard: &[u8]) -> io::Result<Option<usize>> {
    if heard.is_empty() {
        return Ok(None);
    }
    let step = ReplyScanner::new()
        .scan(heard)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(step.done.then_some(step.taken))
}
