//! Sockets that were open before this process was started: the service manager's (systemd's socket activation), which take
//! the place of those that the configuration would have bound, or those of the lockward that this one follows. Binds
//! nothing, and tells the service manager nothing.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use listenfd::ListenFd;
use socket2::{Domain, SockRef};
use thiserror::Error;

use super::handover::{Origin, Origins};
use super::heir::{Heir, Inheritance};
use super::listener::Listener;
use super::unix;
use crate::config::{Config, Entrance, HostPort, Place};

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
    /// The one before served there, and this one has no such listener.
    #[error(
        "the service manager opened {place} for the listener \"{listener}\", which is not among the listeners any more: take \
         it out of the socket unit, and restart"
    )]
    Gone {
        /// What it was called.
        listener: String,
        /// Where.
        place: String,
    },
    /// While two processes are there, a lock could be held in both places.
    #[error(
        "the lockward whose place this one takes has its locks in {before}, and these settings say {now}: while both are \
         there a lock could be held twice. Restart instead (upstream.url, records.prefix)"
    )]
    OtherLocks {
        /// The old process' place.
        before: String,
        /// The place of these settings.
        now: String,
    },
    /// Another lockward has started this one, and does not hand over as it should.
    #[error("the lockward that started this one did not hand over its sockets: {0}")]
    Inheritance(io::Error),
}

/// Listening sockets that were open at the start.
#[derive(Debug, Default)]
pub struct Handed {
    clients: Vec<Client>,
    admin: Option<(TcpListener, Origin)>,
    /// The lockward that handed them over.
    heir: Option<Heir>,
    /// Where its locks are.
    locks: String,
    /// Its clock.
    pub(super) clock: Duration,
}

/// One for the clients of a listener.
#[derive(Debug)]
struct Client {
    socket: Socket,
    origin: Origin,
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
        let Inheritance { opening, sockets } = inheritance;
        let mut handed = Handed {
            heir: Some(heir),
            locks: opening.origins.locks,
            clock: Duration::from_micros(opening.clock),
            ..Handed::default()
        };
        let mut sockets = sockets.into_iter();
        for (origin, socket) in opening.origins.clients.into_iter().zip(sockets.by_ref()) {
            let socket = match SockRef::from(&socket).domain()? {
                Domain::UNIX => Socket::Unix(socket.into()),
                _ => Socket::Tcp(socket.into()),
            };
            handed.clients.push(Client { socket, origin });
        }
        handed.admin = sockets.next().map(|socket| (socket.into(), opening.origins.admin));
        Ok(handed)
    }

    fn add(&mut self, name: &str, socket: Socket) -> Result<(), ActivationError> {
        let origin = |listener: &str, place: Option<Place>| Origin {
            listener: listener.to_owned(),
            place: place.map_or_else(String::new, |place| place.to_string()),
            manager: true,
        };
        match (name, socket) {
            (ADMIN, Socket::Unix(_)) => return Err(ActivationError::AdminOnUnix),
            (ADMIN, Socket::Tcp(_)) if self.admin.is_some() => return Err(ActivationError::Two("HTTP".to_owned())),
            (ADMIN, Socket::Tcp(socket)) => {
                let origin = origin("", host_port(&socket).map(Place::Tcp));
                self.admin = Some((socket, origin));
            }
            (name, socket) => {
                let origin = origin(name, place(&socket));
                self.clients.push(Client { socket, origin });
            }
        }
        Ok(())
    }

    /// Finds out which socket is for which listener, and lets go of what came from another lockward and is not where these
    /// settings want it. What the service manager opened stays.
    ///
    /// # Errors
    /// Two for one, or one for none; or the locks are elsewhere.
    pub fn meant_for(mut self, config: &Config) -> Result<Handed, ActivationError> {
        let now = locks(config);
        if !self.locks.is_empty() && self.locks != now {
            let before = self.locks;
            return Err(ActivationError::OtherLocks { before, now });
        }
        let mut taken: Vec<Arc<str>> = Vec::new();
        let mut clients = std::mem::take(&mut self.clients);
        let named = |origin: &Origin| config.entrances().find(|one| *one.name == *origin.listener);
        let at = |one: &Entrance, origin: &Origin| one.place.to_string() == origin.place;
        // Several listeners may have the same place, with port 0: each finds its own before others get what is left.
        let same = |origin: &Origin| named(origin).filter(|one| at(one, origin));
        clients.sort_by_key(|client| (!client.origin.manager, same(&client.origin).is_none()));
        for mut client in clients {
            let origin = &mut client.origin;
            let meant = if origin.manager {
                match named(origin) {
                    Some(named) => named,
                    // From the manager itself it may have any name.
                    None if self.heir.is_none() => &config.listen.entrance,
                    None => {
                        return Err(ActivationError::Gone {
                            listener: origin.listener.clone(),
                            place: origin.place.clone(),
                        });
                    }
                }
            } else {
                let free = |one: &&Entrance| !taken.contains(&one.name);
                let left = || config.entrances().filter(free).find(|one| at(one, origin));
                let Some(meant) = same(origin).filter(free).or_else(left) else {
                    continue;
                };
                meant
            };
            if taken.contains(&meant.name) {
                return Err(ActivationError::Two(format!("clients ({})", meant.section())));
            }
            taken.push(Arc::clone(&meant.name));
            origin.listener = meant.name.to_string();
            self.clients.push(client);
        }
        let admin = config.admin.address.to_string();
        self.admin
            .take_if(|(_, origin)| !origin.manager && origin.place != admin);
        Ok(self)
    }

    /// The lockward whose place this one takes.
    pub fn heir(&self) -> Option<Heir> {
        self.heir.clone()
    }

    /// The places of the sockets for clients, as whoever opened them names them.
    pub fn places(&self) -> Vec<String> {
        self.clients.iter().map(|client| client.origin.place.clone()).collect()
    }

    fn client(&self, listener: &str) -> Option<&Client> {
        self.clients.iter().find(|client| client.origin.listener == listener)
    }

    /// Where the clients of a listener come in, if the service manager has opened that.
    pub fn clients(&self, listener: &str) -> Option<Place> {
        let client = self.client(listener)?;
        client.origin.manager.then(|| place(&client.socket))?
    }

    /// Where HTTP is served, if the service manager has opened that.
    pub fn admin(&self) -> Option<HostPort> {
        let (socket, origin) = self.admin.as_ref()?;
        origin.manager.then(|| host_port(socket))?
    }

    /// The socket for the clients of a listener, ready to be used by the runtime that this is called in.
    /// A unix socket that the service manager did not open gets the rights that these settings name.
    pub(super) fn clients_listener(&mut self, entrance: &Entrance) -> Option<io::Result<Listener>> {
        let is_it = |client: &Client| *client.origin.listener == *entrance.name;
        let place = self.clients.iter().position(is_it)?;
        let Client { socket, origin } = self.clients.swap_remove(place);
        Some(match (socket, &entrance.place) {
            (Socket::Tcp(socket), _) => tokio::net::TcpListener::from_std(socket).map(Listener::Tcp),
            (Socket::Unix(socket), Place::Unix(path)) if !origin.manager => {
                let given = unix::give(path, &entrance.rights);
                given.and_then(|()| tokio::net::UnixListener::from_std(socket).map(Listener::Unix))
            }
            (Socket::Unix(socket), _) => tokio::net::UnixListener::from_std(socket).map(Listener::Unix),
        })
    }

    /// The socket for HTTP, ready to be used by the runtime that this is called in.
    pub(super) fn admin_listener(&mut self) -> Option<io::Result<tokio::net::TcpListener>> {
        self.admin
            .take()
            .map(|(socket, _)| tokio::net::TcpListener::from_std(socket))
    }

    /// Where all of them come from: the places that these settings name, or the service manager.
    pub(super) fn origins(&self, config: &Config) -> Origins {
        let named = |listener: &str, place: String| Origin {
            listener: listener.to_owned(),
            place,
            manager: false,
        };
        let clients = config.entrances().map(|entrance| {
            let handed = self.client(&entrance.name).map(|client| client.origin.clone());
            handed.unwrap_or_else(|| named(&entrance.name, entrance.place.to_string()))
        });
        let admin = self.admin.as_ref().map(|(_, origin)| origin.clone());
        Origins {
            clients: clients.collect(),
            admin: admin.unwrap_or_else(|| named("", config.admin.address.to_string())),
            locks: locks(config),
        }
    }
}

/// Where the locks are by these settings.
fn locks(config: &Config) -> String {
    format!("{} (records {})", config.upstream.server.target, config.records.prefix)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(listeners: &[(&str, &str)]) -> Config {
        let listener =
            |(name, place): &(&str, &str)| format!("[[listeners]]\nname = \"{name}\"\naddress = \"{place}\"\n");
        let text: String = listeners.iter().map(listener).collect();
        let text = format!("[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"redis://127.0.0.1:1\"\n{text}");
        Config::parse(&text, Path::new("test"), std::iter::empty())
            .unwrap()
            .config
    }

    /// Sockets of these listeners and places, and their ports.
    fn inherited(origins: &[(&str, &str)], manager: bool) -> (Handed, Vec<u16>) {
        let (line, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut handed = Handed {
            heir: Some(Heir::over(line).unwrap()),
            ..Handed::default()
        };
        let mut ports = Vec::new();
        for (listener, place) in origins {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            ports.push(socket.local_addr().unwrap().port());
            let origin = Origin {
                listener: (*listener).to_owned(),
                place: (*place).to_owned(),
                manager,
            };
            let socket = Socket::Tcp(socket);
            handed.clients.push(Client { socket, origin });
        }
        (handed, ports)
    }

    fn port(handed: &Handed, listener: &str) -> Option<u16> {
        match &handed.client(listener)?.socket {
            Socket::Tcp(socket) => Some(socket.local_addr().unwrap().port()),
            Socket::Unix(_) => None,
        }
    }

    #[test]
    fn listeners_at_equal_places_find_their_own_and_others_what_is_left() {
        let any = "127.0.0.1:0";
        let was = [("listen", any), ("gone", any), ("one", any), ("two", any)];
        let (handed, ports) = inherited(&was, false);
        let now = config(&[("two", any), ("new", any), ("one", "127.0.0.1:7")]);
        let handed = handed.meant_for(&now).unwrap();
        let found = ["listen", "two", "new", "one"].map(|name| port(&handed, name));
        assert_eq!(found, [Some(ports[0]), Some(ports[3]), Some(ports[1]), None]);
        assert_eq!(handed.places(), [any; 3]);
    }

    #[test]
    fn a_socket_of_the_manager_whose_listener_is_gone_is_nobody_elses() {
        let was = [("listen", "127.0.0.1:1"), ("tls", "127.0.0.1:2")];
        let known = inherited(&was, true).0.meant_for(&config(&[("tls", "127.0.0.1:3")]));
        assert_eq!(known.unwrap().places(), ["127.0.0.1:1", "127.0.0.1:2"]);
        let (handed, _) = inherited(&was[1..], true);
        let error = handed.meant_for(&config(&[])).unwrap_err().to_string();
        assert!(error.contains("127.0.0.1:2 for the listener \"tls\""), "{error}");
        // From the manager itself a name may be anything.
        let (mut handed, _) = inherited(&was[1..], true);
        handed.heir = None;
        assert!(handed.meant_for(&config(&[])).unwrap().client("listen").is_some());
    }
}
