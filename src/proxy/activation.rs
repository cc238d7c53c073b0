//! Sockets that the service manager opened before it started this process (systemd's socket activation): they take the
//! place of those that the configuration would have bound. Binds nothing, and tells the service manager nothing.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use listenfd::ListenFd;
use socket2::SockRef;
use thiserror::Error;

use super::listener::Listener;
use crate::config::{Config, HostPort, Place};

/// The `FileDescriptorName=` of the socket for HTTP. One with the name of a listener is that one's, and one of any
/// other name is the main listener's: systemd itself gives names to those that have none.
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
    Two(String),
    /// HTTP is served on TCP only.
    #[error("the socket named \"{ADMIN}\" is a unix socket; HTTP is served on TCP only")]
    AdminOnUnix,
}

/// Listening sockets that were open at the start.
#[derive(Debug, Default)]
pub struct Handed {
    /// By their names.
    clients: Vec<(String, Socket)>,
    admin: Option<TcpListener>,
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

    fn add(&mut self, name: &str, socket: Socket) -> Result<(), ActivationError> {
        match (name, socket) {
            (ADMIN, Socket::Unix(_)) => return Err(ActivationError::AdminOnUnix),
            (ADMIN, Socket::Tcp(_)) if self.admin.is_some() => return Err(ActivationError::Two("HTTP".to_owned())),
            (ADMIN, Socket::Tcp(socket)) => self.admin = Some(socket),
            (name, socket) => self.clients.push((name.to_owned(), socket)),
        }
        Ok(())
    }

    /// Finds out which socket is for which listener.
    ///
    /// # Errors
    /// Two for one.
    pub fn meant_for(mut self, config: &Config) -> Result<Handed, ActivationError> {
        let mut taken: Vec<Arc<str>> = Vec::new();
        for (name, _) in &mut self.clients {
            let meant = config.listeners.iter().find(|listener| *listener.name == **name);
            let meant = meant.unwrap_or(&config.listen.entrance);
            if taken.contains(&meant.name) {
                return Err(ActivationError::Two(format!("clients ({})", meant.section())));
            }
            taken.push(Arc::clone(&meant.name));
            *name = meant.name.to_string();
        }
        Ok(self)
    }

    /// Where the clients of a listener come in, if that was handed over.
    pub fn clients(&self, listener: &str) -> Option<Place> {
        match self
            .clients
            .iter()
            .find(|(name, _)| name == listener)
            .map(|(_, socket)| socket)?
        {
            Socket::Tcp(socket) => host_port(socket).map(Place::Tcp),
            Socket::Unix(socket) => {
                let address = socket.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                Some(Place::Unix(path.map_or_else(PathBuf::new, PathBuf::from)))
            }
        }
    }

    /// Where HTTP is served, if that was handed over.
    pub fn admin(&self) -> Option<HostPort> {
        self.admin.as_ref().and_then(host_port)
    }

    /// The socket for the clients of a listener, ready to be used by the runtime that this is called in.
    pub(super) fn clients_listener(&mut self, listener: &str) -> Option<io::Result<Listener>> {
        let place = self.clients.iter().position(|(name, _)| name == listener)?;
        let (_, socket) = self.clients.swap_remove(place);
        Some(match socket {
            Socket::Tcp(socket) => tokio::net::TcpListener::from_std(socket).map(Listener::Tcp),
            Socket::Unix(socket) => tokio::net::UnixListener::from_std(socket).map(Listener::Unix),
        })
    }

    /// The socket for HTTP, ready to be used by the runtime that this is called in.
    pub(super) fn admin_listener(&mut self) -> Option<io::Result<tokio::net::TcpListener>> {
        self.admin.take().map(tokio::net::TcpListener::from_std)
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
