//! Who sits at the other end of a downstream connection: its address, or the process behind a unix socket; behind a
//! load balancer, what that says.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use super::socket::Socket;
use super::stream::Stream;
use crate::session::Peer;

/// Reads what the socket tells of the client, unless a load balancer has announced where it comes from: then what is
/// at the other end is the load balancer, also as a process.
pub(super) fn of(stream: &Stream, announced: Option<SocketAddr>) -> Peer {
    if let Some(announced) = announced {
        return Peer {
            address: Some(announced.ip()),
            process: None,
        };
    }
    match stream.socket() {
        Socket::Tcp(_) => Peer {
            address: stream.peer_address().map(|address| address.ip()),
            process: None,
        },
        Socket::Unix(unix) => {
            let pid = unix.peer_cred().ok().and_then(|credentials| credentials.pid());
            Peer {
                address: None,
                process: pid.and_then(process),
            }
        }
    }
}

/// A process for ever: its number alone comes back, so the boot and the moment it started belong to it. `None` if the
/// process cannot be seen from here (another pid namespace), which makes the connection the owner.
fn process(pid: i32) -> Option<Arc<str>> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22, counted behind the program's name, which may hold spaces and brackets (proc_pid_stat(5)).
    let started = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{}/{pid}/{started}", boot.trim().get(..8)?).into())
}
