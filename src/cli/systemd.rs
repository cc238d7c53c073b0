//! What a service manager is told (systemd's notify protocol): that we serve, that we live, that we end. Without one, or
//! with one that does not ask, nothing happens. Sockets that it hands over are `proxy::activation`'s business.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinHandle;

use crate::proxy::pulse::Pulse;

/// Whom to tell.
pub(super) struct Manager {
    at: Option<(UnixDatagram, SocketAddr)>,
    /// It takes us for dead when it hears nothing for so long.
    patience: Option<Duration>,
}

impl Manager {
    /// As the environment names it.
    pub(super) fn find() -> Manager {
        let read = |name: &str| std::env::var(name).ok();
        let path = read("NOTIFY_SOCKET");
        let ours = read("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let patience = read("WATCHDOG_USEC").and_then(|text| text.parse().ok());
        Manager {
            at: path.and_then(|path| socket(&path)),
            patience: patience
                .filter(|patience| ours && *patience > 0)
                .map(Duration::from_micros),
        }
    }

    /// We serve.
    pub(super) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// We read our settings anew; [`Manager::ready`] ends that. (systemd 253 and newer wait for it with Type=notify-reload;
    /// older ones show the state.)
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Another process is the one to look after: it must be told so by the one that was until now. That one is alive, and
    /// has its time from here on to say so by itself.
    pub(super) fn is_main(&self, pid: u32) {
        self.tell(&format!("WATCHDOG=1\nMAINPID={pid}\nSTATUS=upgraded"));
    }

    /// We end.
    pub(super) fn stopping(&self, status: &str) {
        self.tell(&format!("STOPPING=1\nSTATUS={status}"));
    }

    /// Tells it that we live, twice as often as it wants to hear it, as long as this thread and all workers turn. Ends
    /// with what is returned.
    pub(super) fn keep_alive(&self, pulse: Pulse) -> Option<Feeding> {
        let every = self.patience? / 2;
        let (socket, address) = self.at.as_ref()?;
        let manager = Manager {
            at: Some((socket.try_clone().ok()?, address.clone())),
            patience: None,
        };
        Some(Feeding(tokio::spawn(async move {
            loop {
                if pulse.all_turn().await {
                    manager.tell("WATCHDOG=1");
                }
                tokio::time::sleep(every).await;
            }
        })))
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.at
            && let Err(error) = socket.send_to_addr(text.as_bytes(), address)
        {
            tracing::debug!(%error, "the service manager cannot be told");
        }
    }
}

/// The watchdog is fed as long as this is kept.
pub(super) struct Feeding(JoinHandle<()>);

impl Drop for Feeding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A socket to tell it by, and its address: a path, or with @ a name in the abstract namespace.
fn socket(path: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    };
    let socket = UnixDatagram::unbound().ok()?;
    // What it does not take at once is lost: it must not hold us up.
    socket.set_nonblocking(true).ok()?;
    Some((socket, address.ok()?))
}
