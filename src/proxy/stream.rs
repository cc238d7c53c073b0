//! A TCP or a unix connection behind one face, with non-blocking reads and writes only: dropping a wait loses nothing.

use std::io;
use std::net::{self, SocketAddr};
use std::os::unix;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::config::Place;

const SECOND: Duration = Duration::from_secs(1);

/// One connection.
#[derive(Debug)]
pub(super) enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects within `limit`.
    ///
    /// # Errors
    /// What the system says, or `TimedOut`.
    pub(super) async fn connect(place: &Place, limit: Duration) -> io::Result<Stream> {
        let connecting = async {
            match place {
                Place::Tcp(address) => {
                    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
                    stream.set_nodelay(true)?;
                    Ok(Stream::Tcp(stream))
                }
                Place::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
            }
        };
        timeout(limit, connecting).await.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {limit:?}"),
            ))
        })
    }

    /// Makes the system look for a dead peer after `idle` of silence. It counts in whole seconds, at least one.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn keep_alive(&self, idle: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                let (idle, probe) = (idle.max(SECOND), (idle / 4).max(SECOND));
                let probes = TcpKeepalive::new().with_time(idle).with_interval(probe).with_retries(3);
                SockRef::from(stream).set_tcp_keepalive(&probes)
            }
            Stream::Unix(_) => Ok(()),
        }
    }

    /// Waits until one of `interest` is possible.
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Stream::Tcp(stream) => stream.ready(interest).await,
            Stream::Unix(stream) => stream.ready(interest).await,
        }
    }

    /// Whether the other side sends no more, though what it sent may not be read yet.
    pub(super) fn is_hung_up(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        match pin!(self.ready(Interest::READABLE)).poll(&mut nobody) {
            Poll::Ready(ready) => ready.map_or(true, |ready| ready.is_read_closed()),
            Poll::Pending => false,
        }
    }

    /// Reads what is there into the beginning of `into`, and how many bytes that were; 0 at the end of the stream. One
    /// system call: a read that does not fill `into` is known to be the last one for now.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
            Stream::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Reads what is there; `WouldBlock` if nothing is.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read(into),
            Stream::Unix(stream) => stream.try_read(into),
        }
    }

    /// Writes what fits; `WouldBlock` if nothing does.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(from),
            Stream::Unix(stream) => stream.try_write(from),
        }
    }

    /// Sends no more; the other side reads end of stream behind what was written.
    pub(super) async fn half_close(&mut self) {
        // The peer may be gone already; there is nobody left to tell.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown().await,
            Stream::Unix(stream) => stream.shutdown().await,
        };
    }

    /// The other end's address, over TCP.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }
}

/// A connection that was taken on one thread, on its way to another.
pub(super) enum Arrival {
    /// Over TCP.
    Tcp(net::TcpStream),
    /// Over a unix socket.
    Unix(unix::net::UnixStream),
}

impl Arrival {
    /// Makes it the runtime's of this thread.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn register(self) -> io::Result<Stream> {
        match self {
            Arrival::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Arrival::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }
}

impl TryFrom<Stream> for Arrival {
    type Error = io::Error;

    fn try_from(stream: Stream) -> io::Result<Arrival> {
        match stream {
            Stream::Tcp(stream) => stream.into_std().map(Arrival::Tcp),
            Stream::Unix(stream) => stream.into_std().map(Arrival::Unix),
        }
    }
}
