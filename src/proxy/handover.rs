//! The words between a lockward and the one that takes its place: a unix socket pair, the child's end of which is its
//! standard input. First the listening sockets, then lines of JSON. Starts no process and decides nothing.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Names the process that hands over, to the one that it started: nobody else has that parent.
pub(super) const VARIABLE: &str = "LOCKWARD_TAKES_OVER_FROM";
/// The most sockets that are handed over: the clients', and that for HTTP.
const SOCKETS: usize = 64;
/// No line is longer, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Nor is the first one, which comes in one piece: three dozen places of a hundred bytes.
const LONGEST_OPENING: usize = 32 * 1024;

/// Where a socket that is handed over comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// The listener's name; empty for the main one, and for HTTP.
    #[serde(default)]
    pub listener: String,
    /// The place that the configuration named for it.
    pub place: String,
    /// The service manager opened it, whatever the configuration says.
    pub manager: bool,
}

/// Where all of them come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origins {
    /// Of the sockets for clients, in their order.
    pub clients: Vec<Origin>,
    /// Of the socket for HTTP, which comes last.
    pub admin: Origin,
    /// Where the locks are that clients find behind them: the server, and how the records are called there.
    #[serde(default)]
    pub locks: String,
}

/// The first line, which the sockets come with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    /// Where they come from.
    pub origins: Origins,
    /// The old process' clock, in microseconds: the new one goes on from there.
    #[serde(default)]
    pub clock: u64,
}

/// What the new process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// It could serve, and waits to be told so.
    Ready(Ready),
    /// It serves.
    Serving,
    /// It cannot, and ends.
    Failed(String),
}

/// The new process, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Its version.
    pub version: String,
    /// Where it serves HTTP.
    pub admin: String,
    /// The places, as the old process names them, whose sockets it took and did not bind itself. (Listeners may have other
    /// names there.)
    pub took_clients: Vec<String>,
    /// Why clients should not be sent to it.
    pub not_ready: Option<String>,
}

/// What the old process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Take clients.
    Go,
    /// The service manager knows the new process.
    Main,
    /// A lease that is held.
    Lease(Box<super::legacy::Legacy>),
}

/// Sends the sockets, and what they are.
///
/// # Errors
/// What the system says.
pub(super) fn send_sockets(to: &UnixStream, opening: &Opening, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let line = line(opening)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "too many sockets to hand over"));
    }
    // It fits at once: the pair is new, and its buffers are empty.
    let sent = sendmsg(to, &[IoSlice::new(&line)], &mut control, SendFlags::NOSIGNAL)?;
    match sent == line.len() {
        true => Ok(()),
        false => Err(ErrorKind::WriteZero.into()),
    }
}

/// Takes the sockets, and what they are.
///
/// # Errors
/// What the system says, or `InvalidData` if this is something else.
pub(super) fn take_sockets(from: &UnixStream) -> io::Result<(Opening, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST_OPENING];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(from.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let mut sockets = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            sockets.extend(received);
        }
    }
    let opening: Opening = serde_json::from_slice(bytes.get(..message.bytes).unwrap_or_default())?;
    match sockets.len() == opening.origins.clients.len() + 1 {
        true => Ok((opening, sockets)),
        false => Err(io::Error::new(
            ErrorKind::InvalidData,
            "there are not as many sockets as it says",
        )),
    }
}

/// Says one thing.
///
/// # Errors
/// What the system says.
pub(super) fn say(mut to: &UnixStream, what: &impl Serialize) -> io::Result<()> {
    to.write_all(&line(what)?)
}

fn line(what: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    Ok(line)
}

/// Lines from the other side.
pub(super) struct Lines {
    from: UnixStream,
    held: Vec<u8>,
}

impl Lines {
    /// Those that come here. Nobody else is to read it.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn new(from: &UnixStream) -> io::Result<Lines> {
        Ok(Lines {
            from: from.try_clone()?,
            held: Vec::new(),
        })
    }

    /// The next one; `None` at the end. Without a deadline it waits for ever.
    ///
    /// # Errors
    /// `TimedOut` or `WouldBlock` at the deadline, `InvalidData` for what is none, or what the system says.
    pub(super) fn next<T: DeserializeOwned>(&mut self, deadline: Option<Instant>) -> io::Result<Option<T>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.held) {
                let rest = self.held.split_off(end + 1);
                let line = std::mem::replace(&mut self.held, rest);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.held.len() > LONGEST_LINE {
                return Err(io::Error::new(ErrorKind::InvalidData, "a line without end"));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            self.from
                .set_read_timeout(left.map(|left| left.max(Duration::from_millis(1))))?;
            let mut part = [0; 4096];
            match self.from.read(&mut part) {
                Ok(0) => return Ok(None),
                Ok(len) => self.held.extend_from_slice(part.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sockets_arrive_with_what_they_are() {
        let (old, new) = UnixStream::pair().unwrap();
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let origin = |place: &str| Origin {
            listener: place.to_owned(),
            place: place.to_owned(),
            manager: false,
        };
        let opening = Opening {
            origins: Origins {
                clients: vec![origin("here"), origin("there")],
                admin: origin("elsewhere"),
                locks: String::new(),
            },
            clock: 7,
        };
        send_sockets(&old, &opening, &listeners.each_ref().map(AsFd::as_fd)).unwrap();
        let (got, sockets) = take_sockets(&new).unwrap();
        assert_eq!((got.origins, got.clock), (opening.origins, 7));
        assert_eq!(sockets.len(), 3);
        for (listener, socket) in listeners.into_iter().zip(sockets) {
            let taken = TcpListener::from(socket);
            assert_eq!(taken.local_addr().unwrap(), listener.local_addr().unwrap());
        }
    }

    #[test]
    fn lines_come_one_by_one_and_not_for_ever() {
        let (old, new) = UnixStream::pair().unwrap();
        let mut lines = Lines::new(&new).unwrap();
        say(&old, &Word::Serving).unwrap();
        say(&old, &Word::Failed("two\nlines".to_owned())).unwrap();
        assert!(matches!(lines.next(None).unwrap(), Some(Word::Serving)));
        assert!(matches!(lines.next(None).unwrap(), Some(Word::Failed(text)) if text == "two\nlines"));
        let soon = Some(Instant::now() + Duration::from_millis(5));
        assert!(lines.next::<Word>(soon).is_err(), "nothing more was said");
        (&old).write_all(b"{\"ready\": 3}\n").unwrap();
        assert_eq!(lines.next::<Word>(None).unwrap_err().kind(), ErrorKind::InvalidData);
        drop(old);
        assert!(lines.next::<Word>(None).unwrap().is_none());
    }

    #[test]
    fn what_brings_no_sockets_is_refused() {
        let (old, new) = UnixStream::pair().unwrap();
        (&old).write_all(b"{}\n").unwrap();
        assert!(take_sockets(&new).is_err());
        let one = br#"{"origins":{"clients":[],"admin":{"place":"a","manager":false}}}"#;
        (&old).write_all(one).unwrap();
        assert!(take_sockets(&new).is_err());
    }
}
