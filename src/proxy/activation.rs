//! Sockets that were open before this process was started: the service manager's (systemd's socket activation), which take
//! the place of those that the configuration would have bound, or those of the lockward that this one follows. Binds
//! nothing, and tells the service manager nothing.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use listenfd::ListenFd;
use socket2::{Domain, SockRef};
use thiserror::Error;

use super::handover::Origin;
use super::heir::{Heir, Inheritance};
use super::listener::Listener;
use crate::config::{Config, HostPort, Place};

/// The `FileDescriptorName=` of the socket for HTTP; one of any other name is for clients.
const ADMIN: &str = "admin";

/// What is wrong with what was handed over. The operator's: it stands in a socket unit.
#[derive(Debug, Error)]
pub enum ActivationError {
    /// Not a listening stream socket.
    #[error("socket {number} of those handed over by the service manager is of no use: {source}")]
    Socket {
        /// Which, counted from 0.
        number: usize,
        /// What the system says.
        source: io::Error,
    },
    /// More than one of a kind.
    #[error("the service manager handed over two sockets for {0}; there can be one")]
    Two(&'static str),
    /// HTTP is served on TCP only.
    #[error("the socket named \"{ADMIN}\" is a unix socket; HTTP is served on TCP only")]
    AdminOnUnix,
    /// Another lockward has started this one, and does not hand over as it should.
    #[error("the lockward that started this one did not hand over its sockets: {0}")]
    Inheritance(io::Error),
}

/// Listening sockets that were open at the start.
#[derive(Debug, Default)]
pub struct Handed {
    clients: Option<(Socket, Origin)>,
    admin: Option<(TcpListener, Origin)>,
    /// The lockward that handed them over.
    heir: Option<Heir>,
    /// Its clock.
    pub(super) clock: Duration,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Handed {
    /// Takes them over, if they were meant for this process. To be called once, before there are threads: it also takes
    /// the variables that tell of them out of the environment.
    ///
    /// # Errors
    /// A socket that cannot be meant.
    pub fn take() -> Result<Handed, ActivationError> {
        if let Some((heir, inheritance)) = Heir::find().map_err(ActivationError::Inheritance)? {
            return Handed::inherit(heir, inheritance).map_err(ActivationError::Inheritance);
        }
        let mut handed = Handed::default();
        // Those of a parent that did not take its own out of the environment are not ours.
        let meant = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
        if !meant {
            return Ok(handed);
        }
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut sockets = ListenFd::from_env();
        for number in 0..sockets.len() {
            let name = names.next().unwrap_or_default();
            let socket = socket(&mut sockets, number).map_err(|source| ActivationError::Socket { number, source })?;
            handed.add(name, socket)?;
        }
        Ok(handed)
    }

    fn inherit(heir: Heir, inheritance: Inheritance) -> io::Result<Handed> {
        let Inheritance {
            opening,
            sockets: [clients, admin],
        } = inheritance;
        let clients = match SockRef::from(&clients).domain()? {
            Domain::UNIX => Socket::Unix(clients.into()),
            _ => Socket::Tcp(clients.into()),
        };
        Ok(Handed {
            clients: Some((clients, opening.clients)),
            admin: Some((admin.into(), opening.admin)),
            heir: Some(heir),
            clock: Duration::from_micros(opening.clock),
        })
    }

    fn add(&mut self, name: &str, socket: Socket) -> Result<(), ActivationError> {
        let origin = |place: Option<Place>| Origin {
            place: place.map_or_else(String::new, |place| place.to_string()),
            manager: true,
        };
        match (name, socket) {
            (ADMIN, Socket::Unix(_)) => return Err(ActivationError::AdminOnUnix),
            (ADMIN, Socket::Tcp(_)) if self.admin.is_some() => return Err(ActivationError::Two("HTTP")),
            (ADMIN, Socket::Tcp(socket)) => {
                let origin = origin(host_port(&socket).map(Place::Tcp));
                self.admin = Some((socket, origin));
            }
            (_, _) if self.clients.is_some() => return Err(ActivationError::Two("clients")),
            (_, socket) => {
                let origin = origin(place(&socket));
                self.clients = Some((socket, origin));
            }
        }
        Ok(())
    }

    /// The lockward whose place this one takes.
    pub fn heir(&self) -> Option<Heir> {
        self.heir.clone()
    }

    /// Lets go of what came from another lockward and is not where these settings want it. What the service manager opened
    /// stays.
    pub fn fit(&mut self, config: &Config) {
        let meant = |origin: &Origin, wanted: &str| origin.manager || origin.place == wanted;
        let (clients, admin) = (config.listen.place.to_string(), config.admin.address.to_string());
        self.clients.take_if(|(_, origin)| !meant(origin, &clients));
        self.admin.take_if(|(_, origin)| !meant(origin, &admin));
    }

    /// Whether there is a socket for clients.
    pub fn has_clients(&self) -> bool {
        self.clients.is_some()
    }

    /// Where clients come in, if the service manager has opened that.
    pub fn clients(&self) -> Option<Place> {
        let (socket, origin) = self.clients.as_ref()?;
        origin.manager.then(|| place(socket))?
    }

    /// Where HTTP is served, if the service manager has opened that.
    pub fn admin(&self) -> Option<HostPort> {
        let (socket, origin) = self.admin.as_ref()?;
        origin.manager.then(|| host_port(socket))?
    }

    /// The socket for clients, ready to be used by the runtime that this is called in.
    pub(super) fn clients_listener(&mut self) -> Option<io::Result<Listener>> {
        Some(match self.clients.take()?.0 {
            Socket::Tcp(socket) => tokio::net::TcpListener::from_std(socket).map(Listener::Tcp),
            Socket::Unix(socket) => tokio::net::UnixListener::from_std(socket).map(Listener::Unix),
        })
    }

    /// The socket for HTTP, ready to be used by the runtime that this is called in.
    pub(super) fn admin_listener(&mut self) -> Option<io::Result<tokio::net::TcpListener>> {
        self.admin
            .take()
            .map(|(socket, _)| tokio::net::TcpListener::from_std(socket))
    }

    /// Where both come from: those that these settings name, or the service manager.
    pub(super) fn origins(&self, config: &Config) -> [Origin; 2] {
        let named = |place: String| Origin { place, manager: false };
        let clients = self.clients.as_ref().map(|(_, origin)| origin.clone());
        let admin = self.admin.as_ref().map(|(_, origin)| origin.clone());
        [
            clients.unwrap_or_else(|| named(config.listen.place.to_string())),
            admin.unwrap_or_else(|| named(config.admin.address.to_string())),
        ]
    }
}

fn place(socket: &Socket) -> Option<Place> {
    match socket {
        Socket::Tcp(socket) => host_port(socket).map(Place::Tcp),
        Socket::Unix(socket) => {
            let address = socket.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            Some(Place::Unix(path.map_or_else(PathBuf::new, PathBuf::from)))
        }
    }
}

fn host_port(socket: &TcpListener) -> Option<HostPort> {
    socket.local_addr().ok().map(|address| HostPort {
        host: address.ip().to_string(),
        port: address.port(),
    })
}

/// One of them, of whichever kind it is; listening, and not blocking.
fn socket(sockets: &mut ListenFd, number: usize) -> io::Result<Socket> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    if let Ok(Some(socket)) = sockets.take_unix_listener(number) {
        listens(&socket)?;
        socket.set_nonblocking(true)?;
        return Ok(Socket::Unix(socket));
    }
    let socket = sockets.take_tcp_listener(number)?.ok_or_else(gone)?;
    listens(&socket)?;
    socket.set_nonblocking(true)?;
    Ok(Socket::Tcp(socket))
}

fn listens(socket: &impl AsFd) -> io::Result<()> {
    match SockRef::from(socket).is_listener()? {
        true => Ok(()),
        // Accept=yes in the unit, which is for a process for each client.
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it does not listen (Accept= must be no)",
        )),
    }
}
