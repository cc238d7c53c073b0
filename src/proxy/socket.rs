//! A TCP or a unix connection behind one face, with non-blocking reads and writes only: dropping a wait loses nothing.
//! Its bytes as they are; what they mean, and TLS, is others' business.

use std::io::{self, IoSlice};
use std::net::{self, SocketAddr};
use std::os::unix;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::config::Place;

const SECOND: Duration = Duration::from_secs(1);

/// One connection, in the clear.
#[derive(Debug)]
pub(super) enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Connects.
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn connect(place: &Place) -> io::Result<Socket> {
        match place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Place::Unix(path) => UnixStream::connect(path).await.map(Socket::Unix),
        }
    }

    /// Makes the system look for a dead peer after `idle` of silence. It counts in whole seconds, at least one.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn keep_alive(&self, idle: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                let (idle, probe) = (idle.max(SECOND), (idle / 4).max(SECOND));
                let probes = TcpKeepalive::new().with_time(idle).with_interval(probe).with_retries(3);
                SockRef::from(stream).set_tcp_keepalive(&probes)
            }
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Whether the other side sends no more, though what it sent may not be read yet.
    pub(super) fn is_hung_up(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        let readiness = async {
            match self {
                Socket::Tcp(stream) => stream.ready(Interest::READABLE).await,
                Socket::Unix(stream) => stream.ready(Interest::READABLE).await,
            }
        };
        match pin!(readiness).poll(&mut nobody) {
            Poll::Ready(ready) => ready.map_or(true, |ready| ready.is_read_closed()),
            Poll::Pending => false,
        }
    }

    /// Reads what is there into what is not filled; nothing at the end of the stream. One system call: a read that does not
    /// fill it is known to be the last one for now.
    ///
    /// # Errors
    /// What the system says.
    #[inline]
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    /// What the system says.
    #[inline]
    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_write_ready(cx),
            Socket::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Writes what fits; `WouldBlock` if nothing does.
    ///
    /// # Errors
    /// What the system says.
    #[inline]
    pub(super) fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write(from),
            Socket::Unix(stream) => stream.try_write(from),
        }
    }

    /// The same from several places, one behind the other.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn try_write_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(from),
            Socket::Unix(stream) => stream.try_write_vectored(from),
        }
    }

    /// Keeps what does not fill a packet, for at most 200 ms, until more comes or the stream ends (tcp(7), TCP_CORK).
    pub(super) fn hold_back(&self) {
        if let Socket::Tcp(stream) = self {
            // Without it the end comes a moment later.
            let _ = SockRef::from(stream).set_tcp_cork(true);
        }
    }

    /// Sends no more; the other side reads end of stream behind what was written.
    pub(super) async fn half_close(&mut self) {
        // The peer may be gone already; there is nobody left to tell.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown().await,
            Socket::Unix(stream) => stream.shutdown().await,
        };
    }

    /// Whether it is a unix socket.
    pub(super) fn is_unix(&self) -> bool {
        matches!(self, Socket::Unix(_))
    }

    /// The other end's address, over TCP, as long as there is another end.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.peer_addr().ok(),
            Socket::Unix(_) => None,
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
    pub(super) fn register(self) -> io::Result<Socket> {
        match self {
            Arrival::Tcp(stream) => TcpStream::from_std(stream).map(Socket::Tcp),
            Arrival::Unix(stream) => UnixStream::from_std(stream).map(Socket::Unix),
        }
    }
}

impl TryFrom<Socket> for Arrival {
    type Error = io::Error;

    fn try_from(stream: Socket) -> io::Result<Arrival> {
        match stream {
            Socket::Tcp(stream) => stream.into_std().map(Arrival::Tcp),
            Socket::Unix(stream) => stream.into_std().map(Arrival::Unix),
        }
    }
}
