//! A TLS connection with the face of a plain one: what is written counts as written once it is with the system in its
//! encrypted form, and whoever reads until nothing is there has seen all that was decrypted. Knows no certificates.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::mem;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::{Connection, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use super::explain;
use crate::proxy::socket::Socket;

/// Encrypted bytes read at once.
const CHUNK: usize = 64 * 1024;
/// While the handshake lasts. What comes behind it in the same read has to fit into the connection's own buffer (16 KiB).
const HANDSHAKE_CHUNK: usize = 4 * 1024;
/// What the first byte of a TLS connection can be: the kinds of its records.
const RECORDS: RangeInclusive<u8> = 0x14..=0x17;
/// What goes into one record (RFC 8446, 5.1). No more is encrypted at once: of a record that is only partly out the other
/// side can read nothing, so what does not count as written was not heard.
const RECORD: usize = 16 * 1024;
/// Records that one TLS 1.2 connection sends at most. rustls stops a little behind that, since keys cannot be changed
/// there, and takes what is written then for sent.
const MOST_RECORDS: u64 = (1 << 24) - (1 << 16);
/// How long the end may take to be said.
const END: Duration = Duration::from_secs(1);

thread_local! {
    // One for each thread, not for each connection. Taken while it is used: whoever finds it gone makes another.
    static ENCRYPTED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

fn with_encrypted<T>(use_it: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = ENCRYPTED.take();
    buffer.resize(CHUNK, 0);
    let result = use_it(&mut buffer);
    ENCRYPTED.set(buffer);
    result
}

/// One connection over TLS.
pub(in crate::proxy) struct Tls {
    socket: Socket,
    // Writing takes no `&mut`, as with a socket; a connection is never used by two threads at once.
    state: RefCell<State>,
}

struct State {
    connection: Connection,
    /// So many bytes at the front of what the caller wants to write are encrypted, and their end is not out yet.
    encrypted: usize,
    /// Records that were written.
    records: u64,
    /// Something was read.
    heard: bool,
    /// What broke it. Told to whoever reads behind what came before.
    broken: Option<rustls::Error>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the state: there are keys in it.
        f.debug_struct("Tls")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// What came of a handshake that failed.
pub(super) enum HandshakeError {
    /// The other side left before it had said a byte.
    Silent,
    /// Its first byte is none of TLS.
    NotTls,
    /// Its TLS is not ours, or its certificate.
    Tls(rustls::Error),
    /// The connection broke.
    Io(io::Error),
}

type Handshake = Result<(), HandshakeError>;

struct Out<'a>(&'a Socket);

impl Write for Out<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.try_write(from)
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    /// Writes out what is encrypted; `WouldBlock`: not all of it fitted.
    fn write_out(&mut self, socket: &Socket) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Out(socket)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Takes decrypted bytes. `None`: the other side sends no more.
    fn take_decrypted(&mut self, into: &mut [u8]) -> Option<usize> {
        let mut taken = 0;
        while let Some(room) = into.get_mut(taken..).filter(|room| !room.is_empty()) {
            match self.connection.reader().read(room) {
                Ok(0) if taken == 0 => return None,
                Ok(0) => break,
                Ok(len) => taken += len,
                // Nothing for now; or the connection ended without saying so, which the socket says too.
                Err(_) => break,
            }
        }
        Some(taken)
    }

    /// Decrypts into `into`, as far as that has room, and what is more is kept. `None`: the other side sends no more.
    fn decrypt(&mut self, mut bytes: &[u8], into: &mut [u8]) -> Option<usize> {
        let mut taken = 0;
        while !bytes.is_empty() && self.broken.is_none() {
            // Nothing is taken behind the end that the other side has said.
            let fed = match self.connection.read_tls(&mut bytes) {
                Ok(fed) => fed,
                Err(error) => {
                    self.broken = Some(rustls::Error::General(error.to_string()));
                    break;
                }
            };
            self.broken = self.connection.process_new_packets().err();
            match self.take_decrypted(into.get_mut(taken..).unwrap_or_default()) {
                Some(len) => taken += len,
                None if taken == 0 => return None,
                None => break,
            }
            if fed == 0 {
                break;
            }
        }
        Some(taken)
    }

    /// Whether it may send no more under its keys.
    fn is_worn_out(&self) -> bool {
        self.records >= MOST_RECORDS && self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_2)
    }

    fn handshake_step(&mut self, socket: &mut Socket, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Handshake> {
        let buffer = buffer.get_mut(..HANDSHAKE_CHUNK).unwrap_or_default();
        let mut buffer = ReadBuf::new(buffer);
        // Who only looks whether the port is open may also leave by a reset.
        let left = |error| {
            if self.heard {
                HandshakeError::Io(error)
            } else {
                HandshakeError::Silent
            }
        };
        ready!(socket.poll_read(cx, &mut buffer)).map_err(left)?;
        let bytes = buffer.filled();
        let begins = !mem::replace(&mut self.heard, true);
        Poll::Ready(match bytes.first() {
            None if begins => Err(HandshakeError::Silent),
            None => Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into())),
            Some(first) if begins && !RECORDS.contains(first) => Err(HandshakeError::NotTls),
            Some(_) => {
                self.decrypt(bytes, &mut []);
                self.broken
                    .as_ref()
                    .map_or(Ok(()), |error| Err(HandshakeError::Tls(error.clone())))
            }
        })
    }
}

impl Tls {
    pub(super) fn new(socket: Socket, mut connection: Connection) -> Tls {
        // What may wait to be written is bounded by whoever writes: it gives no more until that is out.
        connection.set_buffer_limit(None);
        Tls {
            socket,
            state: RefCell::new(State {
                connection,
                encrypted: 0,
                records: 0,
                heard: false,
                broken: None,
            }),
        }
    }

    pub(in crate::proxy) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Goes on with the handshake.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Handshake> {
        let Tls { socket, state } = self;
        let state = state.get_mut();
        loop {
            match state.write_out(socket) {
                Ok(()) if !state.connection.is_handshaking() => return Poll::Ready(Ok(())),
                Ok(()) => {
                    let stepped = with_encrypted(|buffer| state.handshake_step(socket, cx, buffer));
                    if let Err(error) = ready!(stepped) {
                        // The other side is told why, if there is room.
                        let _ = state.write_out(socket);
                        return Poll::Ready(Err(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(socket.poll_write_ready(cx)).map_err(HandshakeError::Io)?;
                }
                Err(error) => return Poll::Ready(Err(HandshakeError::Io(error))),
            }
        }
    }

    fn poll_decrypted(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let Tls { socket, state } = self;
        let state = state.get_mut();
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            match state.take_decrypted(into) {
                None => return Poll::Ready(Ok(0)),
                Some(0) => {}
                Some(len) => return Poll::Ready(Ok(len)),
            }
            if let Some(error) = &state.broken {
                let error = explain::broken(error);
                // The other side is told why, if there is room.
                let _ = state.write_out(socket);
                return Poll::Ready(Err(error));
            }
            // Answers to what was read (a new key, an alert) go out without being asked for.
            if let Err(error) = state.write_out(socket) {
                if error.kind() != io::ErrorKind::WouldBlock {
                    return Poll::Ready(Err(error));
                }
                // If there is room already the next turn finds it.
                let _ = socket.poll_write_ready(cx);
            }
            let read = with_encrypted(|buffer| {
                // No more than can be taken out again, but for one record.
                let room = into.len().min(CHUNK);
                let mut buffer = ReadBuf::new(buffer.get_mut(..room).unwrap_or_default());
                ready!(socket.poll_read(cx, &mut buffer))?;
                Poll::Ready(io::Result::Ok(match buffer.filled() {
                    [] => None,
                    bytes => state.decrypt(bytes, into),
                }))
            });
            match ready!(read)? {
                None => return Poll::Ready(Ok(0)),
                Some(0) => {}
                Some(len) => return Poll::Ready(Ok(len)),
            }
        }
    }

    /// Writes what fits. What it says was not written has to come first at the next call: a part of it may be encrypted
    /// already.
    // A call of its own: what it needs of the stack is not set aside where nothing is encrypted.
    #[inline(never)]
    pub(in crate::proxy) fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        let state = &mut *self.state.borrow_mut();
        if state.encrypted == 0 {
            if state.is_worn_out() {
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, explain::WORN_OUT));
            }
            let part = from.get(..from.len().min(RECORD)).unwrap_or_default();
            state.encrypted = state.connection.writer().write(part)?;
            state.records += 1;
        }
        state.write_out(&self.socket)?;
        let written = mem::take(&mut state.encrypted);
        if written > from.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(written)
    }

    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.state.get_mut().write_out(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.socket.poll_write_ready(cx))?,
                done => return Poll::Ready(done),
            }
        }
    }

    /// Reads what comes, and looks at nothing: the end was said.
    pub(in crate::proxy) fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket.poll_read(cx, into)
    }

    /// Says that no more comes, and closes this direction.
    pub(in crate::proxy) async fn half_close(&mut self) {
        self.state.get_mut().connection.send_close_notify();
        // The peer may be gone already, or take nothing; then nobody is left to tell.
        let _ = timeout(END, poll_fn(|cx| self.poll_write_out(cx))).await;
        self.socket.half_close().await;
    }
}

impl AsyncRead for Tls {
    // A call of its own: what it needs of the stack is not set aside where nothing is encrypted.
    #[inline(never)]
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let len = ready!(self.poll_decrypted(cx, into.initialize_unfilled()))?;
        into.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tls {
    /// As [`Tls::try_write`]: what was not written has to come first at the next call.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.try_write(from) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.socket.poll_write_ready(cx))?,
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_out(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.get_mut().connection.send_close_notify();
        self.poll_write_out(cx)
    }
}
