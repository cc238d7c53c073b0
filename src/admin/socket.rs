//! One accepted connection as the HTTP library sees it: a peer that takes nothing of what is to be written is given up,
//! and the end of what a peer sends means that it is gone only where it would otherwise be told things for ever. Knows no
//! HTTP.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Without any byte taken by the peer while some wait to be written.
const WRITE_STALL: Duration = Duration::from_secs(15);

/// What the system holds for a peer that reads slowly; it doubles this. Left to itself it would hold megabytes, and what
/// a stream tells would be old news by the time it is read.
const SEND_BUFFER: usize = 64 * 1024;

/// A peer that is gone without a word is asked after so long, and given up after as many unanswered questions.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

/// How far the one request of a connection has come.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU8);

const HEARD: u8 = 1;
const STREAMING: u8 = 2;

impl Progress {
    /// The head of the request is here.
    pub(super) fn heard(&self) {
        self.0.fetch_max(HEARD, Ordering::Relaxed);
    }

    /// The answer is a stream without end.
    pub(super) fn streaming(&self) {
        self.0.fetch_max(STREAMING, Ordering::Relaxed);
    }

    /// Whether the answer is a stream without end.
    pub(super) fn is_streaming(&self) -> bool {
        self.0.load(Ordering::Relaxed) == STREAMING
    }

    /// Whether there is an answer to be waited for that has an end.
    fn is_answering(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HEARD
    }
}

/// The connection.
pub(super) struct Socket {
    stream: TcpStream,
    progress: Arc<Progress>,
    stall: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// Takes the connection; sets what the system is to do with it.
    pub(super) fn new(stream: TcpStream, progress: Arc<Progress>) -> Socket {
        let socket = SockRef::from(&stream);
        // Without these it works all the same, only slower or with more memory.
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        let probes = TcpKeepalive::new().with_time(PROBE).with_interval(PROBE);
        #[cfg(not(target_os = "openbsd"))]
        let probes = probes.with_retries(PROBES);
        let _ = socket.set_tcp_keepalive(&probes);
        #[cfg(target_os = "linux")]
        let _ = socket.set_tcp_user_timeout(Some(PROBE * PROBES));
        Socket {
            stream,
            progress,
            stall: None,
        }
    }

    /// Turns waiting for the peer into a fault when it has lasted too long.
    fn patient<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(WRITE_STALL)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() == before && buffer.remaining() > 0 && self.progress.is_answering() {
            // A peer may close its sending side and still wait for the answer. Should the answer become a stream, the
            // first piece of it leads here again.
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patient(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.patient(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
