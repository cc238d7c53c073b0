//! The sockets: listeners, one task for each downstream connection, lockward's own upstream connection. Decides nothing
//! about commands or locks; it carries bytes to the core and does what the core says.

pub mod activation;
mod announced;
mod backend;
mod client;
mod clients;
mod clock;
mod condition;
mod door;
mod ending;
mod handover;
mod heir;
mod held;
mod keeping;
mod legacy;
mod listener;
mod noticed;
pub mod own;
mod pace;
mod pausing;
mod peer;
mod pools;
pub mod pulse;
mod reload;
mod scouting;
pub(crate) mod sentinel;
mod shared;
mod socket;
mod stream;
mod telling;
pub mod tls;
mod trunk;
mod unix;
mod upgrade;
mod upstream;
pub mod whereabouts;
mod worker;
mod workers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::admin;
use crate::config::Config;
use crate::lock::features::Features;
use crate::metrics::log::LogHandle;
use activation::Handed;
use clock::Clock;
pub use ending::DRAIN;
use handover::Origins;
pub use handover::Ready;
pub use heir::Heir;
use listener::Listener;
use own::Handle;
use pulse::Pulse;
use reload::Reloading;
pub use reload::{ReloadError, Reloader, Reread};
use shared::Shared;
use tls::Certificates;
use upgrade::Upgrading;
pub use upgrade::{Successor, UpgradeError, Upgraded, Upgrader};
use whereabouts::Whereabouts;
use workers::Workers;

/// How long a process that is to take another one's place waits for the server's first answer.
const LONGEST_CONTACT: Duration = Duration::from_secs(2);

/// What kept the proxy from starting.
#[derive(Debug, Error)]
pub enum StartError {
    /// The clients' address cannot be bound.
    #[error("cannot listen for clients on {place}: {source}")]
    Listen {
        /// Where.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// The admin address cannot be bound.
    #[error("cannot listen for HTTP on {place}: {source}")]
    Admin {
        /// Where.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("{0}")]
    Certificates(#[from] tls::CertificateFault),
    /// No thread could be started.
    #[error("cannot start a worker thread: {0}")]
    Workers(io::Error),
}

/// A proxy that listens, and does not serve yet.
pub struct Proxy {
    backend: Arc<dyn admin::Backend>,
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    workers: Workers,
    admin: TcpListener,
    admin_hosts: Vec<String>,
    token: String,
    origins: Origins,
    drain: watch::Sender<bool>,
    /// The server was asked, and has answered or had its time to.
    asked: bool,
}

/// How it came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The places, as this one's settings name them, with whose sockets another process serves.
    pub sockets_in_use: Vec<String>,
}

impl Proxy {
    /// Binds all addresses and begins to connect to the server.
    ///
    /// # Errors
    /// An address that cannot be bound, or a certificate that is of no use.
    pub async fn bind(config: &Config) -> Result<Proxy, StartError> {
        Proxy::take_over(config, Handed::default()).await
    }

    /// As [`Proxy::bind`], with sockets that are open already in place of those that the configuration names.
    ///
    /// # Errors
    /// An address that cannot be bound, or a certificate that is of no use.
    pub async fn take_over(config: &Config, mut handed: Handed) -> Result<Proxy, StartError> {
        let certificates = Arc::new(Certificates::read(config)?);
        let origins = handed.origins(config);
        // First the admin side: whoever finds the clients' address open finds this one too.
        let address = &config.admin.address;
        let admin = match handed.admin_listener() {
            Some(admin) => admin,
            None => TcpListener::bind((address.host.as_str(), address.port)).await,
        };
        let admin = admin.map_err(|source| StartError::Admin {
            place: address.to_string(),
            source,
        })?;
        let mut listeners = Vec::new();
        for entrance in config.entrances() {
            let listener = match handed.clients_listener(entrance) {
                Some(listener) => listener,
                None => Listener::bind(entrance).await,
            };
            listeners.push(listener.map_err(|source| StartError::Listen {
                place: entrance.place.to_string(),
                source,
            })?);
        }
        let (drain, draining) = watch::channel(false);
        let shared = Arc::new(Shared::new(config, certificates, draining, Clock::at(handed.clock)));
        let workers = Workers::start(&shared, config.listen.workers).map_err(StartError::Workers)?;
        let token = config
            .admin
            .token
            .as_ref()
            .map_or_else(String::new, |token| token.reveal().to_owned());
        let mut hosts = config.admin.hosts.clone();
        hosts.push(address.host.clone());
        Ok(Proxy {
            backend: Arc::new(backend::Admin::new(Arc::clone(&shared))),
            shared,
            listeners,
            workers,
            admin,
            admin_hosts: hosts,
            token,
            origins,
            drain,
            asked: false,
        })
    }

    /// The TCP port for clients, of the main listener; `None` on a unix socket.
    pub fn port(&self) -> Option<u16> {
        self.listeners.first().and_then(Listener::port)
    }

    /// The port for HTTP; `None` only if the system cannot say.
    pub fn admin_port(&self) -> Option<u16> {
        self.admin.local_addr().ok().map(|address| address.port())
    }

    /// Says where the settings are to be read when they are wanted anew, and where the log's level is changed. `config` are
    /// those that are in force.
    pub fn rereads(&self, reread: Box<Reread>, log: LogHandle, config: &Config) {
        // Whoever was first keeps it.
        let _ = self.shared.reloading.set(Reloading::new(reread, log, config.clone()));
    }

    /// What makes it read its settings anew.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.shared))
    }

    /// Says how another process is started that takes this one's place.
    ///
    /// # Errors
    /// What the system says about the listening sockets.
    pub fn upgrades(&self, successor: Box<dyn Successor>) -> io::Result<()> {
        let upgrading = Upgrading::new(successor, self.origins.clone(), &self.listeners, &self.admin)?;
        // Whoever was first keeps it.
        let _ = self.shared.upgrading.set(upgrading);
        Ok(())
    }

    /// What makes another process take this one's place.
    pub fn upgrader(&self) -> Upgrader {
        Upgrader(Arc::clone(&self.shared))
    }

    /// Whether it is ready to take clients, once the server was asked, or why it is not. The process before this one waits
    /// for it, so it is waited for no longer than two seconds, and not once more by [`Proxy::serve`].
    ///
    /// # Errors
    /// A sentence.
    pub async fn readiness(&mut self, config: &Config) -> Result<(), String> {
        let longest = config.upstream.connect_timeout.min(LONGEST_CONTACT);
        let _ = timeout(longest, first_contact(&self.shared)).await;
        self.asked = true;
        self.backend.ready()
    }

    /// Takes the leases over that the process before this one knows.
    pub fn inherits(&self, heir: &Heir) {
        heir.inherit(&self.shared);
    }

    /// What TLS goes by, to be reloaded.
    pub fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.shared.door.certificates)
    }

    /// What the admin side can see and do, for those who serve it otherwise, too.
    pub fn backend(&self) -> Arc<dyn admin::Backend> {
        Arc::clone(&self.backend)
    }

    /// By which to ask whether the worker threads still turn.
    pub fn pulse(&self) -> Pulse {
        self.workers.pulse()
    }

    /// Serves until `stop` comes or another process has taken its place, then drains: no new clients, each one closed at a
    /// command boundary, at most [`DRAIN`].
    pub async fn serve(self, config: &Config, stop: impl Future<Output = ()>) -> Ended {
        let Proxy {
            backend,
            shared,
            listeners,
            workers,
            admin,
            admin_hosts,
            token,
            origins: _,
            drain,
            asked,
        } = self;
        // Scripts and features first: then no client meets a proxy that does not know its server yet.
        if !asked {
            let _ = timeout(config.upstream.connect_timeout, first_contact(&shared)).await;
        }
        let tasks = [
            tokio::spawn(pausing::run(Arc::clone(&shared))),
            tokio::spawn(follow_server(Arc::clone(&shared))),
            tokio::spawn(condition::run(Arc::clone(&shared))),
            tokio::spawn(keeping::run(Arc::clone(&shared))),
            tokio::spawn(telling::run(Arc::clone(&shared))),
        ];
        let (over, ended) = oneshot::channel::<()>();
        let until_ended = async move {
            let _ = ended.await;
        };
        let admin = tokio::spawn(admin::serve(admin, backend, token, admin_hosts, until_ended));
        let clients = tokio::spawn(listener::run(listeners, Arc::clone(&shared), workers));
        let upgraded = ending::stopped_or_upgraded(&shared, stop).await;
        if upgraded {
            // The new process answers at the admin address.
            drop(over);
            ending::bequeath(&shared).await;
            ending::drain_clients(&shared, &drain, clients).await;
        } else {
            ending::drain_clients(&shared, &drain, clients).await;
            // Until the last client is gone: a drain is not the end of life.
            drop(over);
        }
        // Of what was acquired meanwhile; or of all, if it came to serve in the moment in which this one was told to end.
        ending::bequeath(&shared).await;
        let _ = admin.await;
        tasks.iter().for_each(JoinHandle::abort);
        Ended {
            sockets_in_use: shared.upgrading.get().map_or_else(Vec::new, Upgrading::keeps_sockets),
        }
    }
}

/// lockward's own connection to the server at this place, as the user of `upstream.url`.
pub fn own(config: &Config, certificates: Arc<Certificates>, whereabouts: Whereabouts) -> Handle {
    let mut settings = own::Settings::new(&config.records.prefix);
    settings.connect_timeout = config.upstream.connect_timeout;
    settings.certificates = certificates;
    own::spawn(config.upstream.server.clone(), whereabouts, settings)
}

async fn first_contact(shared: &Shared) {
    let mut state = shared.own.state();
    let _ = state.wait_for(|state| state.up || state.error.is_some()).await;
    let features = features(&state.borrow());
    shared.policies.rcu(|old| Arc::new(old.with(features)));
}

/// What the server has and asks for. One that refuses our own login asks clients for theirs.
fn features(state: &own::State) -> Features {
    let refused = |error: &String| ["NOAUTH", "WRONGPASS"].iter().any(|code| error.contains(code));
    Features {
        login: state.features.login || state.error.as_ref().is_some_and(refused),
        ..state.features
    }
}

/// Notes whether the server is there and what it can do, at each connect anew.
async fn follow_server(shared: Arc<Shared>) {
    let mut state = shared.own.state();
    // Said once and not at each try.
    let mut said = String::new();
    let mut was_up = false;
    let mut was_there = false;
    loop {
        let (up, features) = {
            let seen = state.borrow_and_update();
            match (&seen.error, seen.up) {
                (_, true) => {
                    said.clear();
                    tracing::info!(version = %seen.version, "the server is reachable");
                }
                (Some(error), false) if *error != said => {
                    said.clone_from(error);
                    if features(&seen).login {
                        tracing::warn!(%error, "the server refuses lockward's own login: set user and password in upstream.url");
                    } else {
                        tracing::warn!(%error, "the server is not reachable");
                    }
                }
                (_, false) => {}
            }
            (seen.up, features(&seen))
        };
        // Those who lost their connections are about to come back, also after a switch of the master, which takes
        // lockward's own as well. At the start nobody has lost any.
        if up != was_up && was_there {
            shared.pace.trouble(shared.now());
        }
        was_there |= up;
        shared.metrics.upstream_up(up);
        if up && !was_up {
            shared.keeper().reconnected(shared.now());
            shared.chores.notify_one();
        }
        was_up = up;
        if shared.policies.load().whole.features != features {
            shared.policies.rcu(|old| Arc::new(old.with(features)));
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}
