//! One connection as clients' tasks and trunks see it: bytes in the clear, whether or not they travel so. Non-blocking
//! reads and writes only: dropping a wait loses nothing. Whoever reads until nothing is there, and writes until nothing is
//! left, is woken when there is more to do; that holds with TLS too.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::socket::Socket;
use super::tls::{Outgoing, Tls};
use crate::config::Place;

/// One connection.
#[derive(Debug)]
pub(super) enum Stream {
    /// In the clear.
    Plain(Socket),
    /// Over TLS. Boxed, so that a plain one costs nothing for it.
    Tls(Box<Tls>),
}

impl Stream {
    /// Connects within `limit`, with TLS if that is given.
    ///
    /// # Errors
    /// What the system says, or `TimedOut`, or what is wrong with the other side's TLS.
    pub(super) async fn connect(place: &Place, tls: Option<&Outgoing>, limit: Duration) -> io::Result<Stream> {
        let deadline = Instant::now() + limit;
        let late = |text: String| io::Error::new(io::ErrorKind::TimedOut, text);
        let socket = timeout_at(deadline, Socket::connect(place))
            .await
            .map_err(|_| late(format!("no answer within {limit:?}")))??;
        let Some(tls) = tls else {
            return Ok(Stream::Plain(socket));
        };
        timeout_at(deadline, tls.begin(socket, place)).await.map_err(|_| {
            late(format!(
                "TLS: no answer within {limit:?}; perhaps the server does not speak TLS at this port"
            ))
        })?
    }

    /// What it travels by.
    pub(super) fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.socket(),
        }
    }

    /// Makes the system look for a dead peer after `idle` of silence. It counts in whole seconds, at least one.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn keep_alive(&self, idle: Duration) -> io::Result<()> {
        self.socket().keep_alive(idle)
    }

    /// Whether the other side sends no more, though what it sent may not be read yet.
    pub(super) fn is_hung_up(&self) -> bool {
        self.socket().is_hung_up()
    }

    /// Reads what is there into the beginning of `into`, and how many bytes that were; 0 at the end of the stream. One
    /// system call: in the clear, a read that does not fill `into` is known to be the last one for now.
    ///
    /// # Errors
    /// What the system says, or what is wrong with the other side's TLS.
    #[inline]
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            Stream::Plain(socket) => socket.poll_read(cx, &mut buffer),
            Stream::Tls(tls) => Pin::new(&mut **tls).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Reads what comes behind the end that was said, and how many bytes that were; what they mean is of no interest.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            Stream::Plain(socket) => socket.poll_read(cx, &mut buffer),
            Stream::Tls(tls) => tls.poll_discard(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    /// What the system says.
    #[inline]
    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_write_ready(cx)
    }

    /// Writes what fits; `WouldBlock` if nothing does. What was not written has to be written first at the next call, for
    /// a part of it may be under way.
    ///
    /// # Errors
    /// What the system says.
    #[inline]
    pub(super) fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.try_write(from),
            Stream::Tls(tls) => tls.try_write(from),
        }
    }

    /// Sends no more; the other side reads end of stream behind what was written.
    pub(super) async fn half_close(&mut self) {
        match self {
            Stream::Plain(socket) => socket.half_close().await,
            Stream::Tls(tls) => tls.half_close().await,
        }
    }

    /// The other end's address, over TCP.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        self.socket().peer_address()
    }
}
