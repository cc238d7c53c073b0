//! Event streams (the HTML standard, "server-sent events"): the body that is told piece by piece until its source or
//! lockward ends, with a comment now and then so that both ends know of each other. What is told comes from elsewhere.

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use super::socket::Progress;

/// Without anything to tell a comment goes out so often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The type of an event stream.
const STREAM_TYPE: &str = "text/event-stream";

/// Comments, which readers pass over.
const GREETING: &str = ": lockward\n\n";
const ALIVE: &str = ":\n\n";

/// Where what is told comes from.
pub(super) trait Source: Send + 'static {
    /// Waits for the next piece. The error is the reason why there will be none. The future may be dropped at any time:
    /// nothing is lost by it.
    fn next(&mut self) -> impl Future<Output = Result<Bytes, String>> + Send;
}

/// What a stream needs of the connection that carries it.
pub(super) struct Carrier {
    /// The connection.
    pub(super) progress: Arc<Progress>,
    /// Becomes true when lockward ends.
    pub(super) ending: watch::Receiver<bool>,
    /// The place among the streams that there may be.
    pub(super) permit: OwnedSemaphorePermit,
}

/// The answer that tells what the source has.
pub(super) fn answer(source: impl Source, carrier: Carrier) -> Response {
    let Carrier {
        progress,
        ending,
        permit,
    } = carrier;
    let telling = Telling {
        source,
        ending,
        stage: Stage::Beginning,
    };
    let mut response = Response::new(Body::new(Stream {
        step: Box::pin(telling.step()),
        progress,
        _permit: permit,
    }));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(STREAM_TYPE));
    response
}

/// Appends one event. JSON has no line ends, so that its text is one line.
pub(super) fn tell(id: Option<u64>, event: &str, data: &impl Serialize, out: &mut String) {
    let Ok(data) = serde_json::to_string(data) else {
        return;
    };
    if let Some(id) = id {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "id: {id}");
    }
    let _ = write!(out, "event: {event}\ndata: {data}\n\n");
}

fn end(reason: &str) -> Bytes {
    let mut text = String::new();
    tell(None, "end", &json!({ "reason": reason }), &mut text);
    text.into()
}

enum Stage {
    Beginning,
    Middle,
    Over,
}

struct Telling<S> {
    source: S,
    ending: watch::Receiver<bool>,
    stage: Stage,
}

impl<S: Source> Telling<S> {
    async fn step(mut self) -> (Self, Option<Bytes>) {
        let piece = match self.stage {
            Stage::Beginning => {
                self.stage = Stage::Middle;
                Some(GREETING.into())
            }
            Stage::Middle => Some(self.piece().await),
            Stage::Over => None,
        };
        (self, piece)
    }

    async fn piece(&mut self) -> Bytes {
        let reason = tokio::select! {
            biased;
            // An error means that nobody is left who could say so: the same.
            _ = self.ending.wait_for(|ending| *ending) => "lockward ends".to_owned(),
            piece = self.source.next() => match piece {
                Ok(piece) => return piece,
                Err(reason) => reason,
            },
            () = sleep(HEARTBEAT) => return ALIVE.into(),
        };
        self.stage = Stage::Over;
        end(&reason)
    }
}

type Step<S> = Pin<Box<dyn Future<Output = (Telling<S>, Option<Bytes>)> + Send>>;

/// The body. The next piece is made when the connection has room for it, so a slow reader costs no memory.
struct Stream<S> {
    step: Step<S>,
    progress: Arc<Progress>,
    _permit: OwnedSemaphorePermit,
}

impl<S: Source> hyper::body::Body for Stream<S> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // Here and not before: for HEAD there is no body.
        self.progress.streaming();
        let (telling, piece) = ready!(self.step.as_mut().poll(context));
        self.step = Box::pin(telling.step());
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}
