//! Makes a unix socket for clients to connect to, with the rights that the configuration gives it. Removes none.
//!
//! Nobody can connect before the rights are as they should be: until `listen` is called, the system refuses every
//! connection to the socket, whoever asks.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use socket2::{Domain, SockAddr, Type};
use tokio::net::UnixListener;

use crate::config::{Group, SocketRights};

/// Where the system's groups stand. Those of a directory service do not; their numbers can be given.
const GROUPS: &str = "/etc/group";
/// Connections that may wait to be taken, as tokio has it.
const BACKLOG: i32 = 1024;

/// Binds, gives the rights, and then listens.
///
/// # Errors
/// What the system says, or that there is no such group. What was bound is then removed.
pub(super) fn listen(path: &Path, rights: &SocketRights) -> io::Result<UnixListener> {
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Err(error) = give(path, rights).and_then(|()| socket.listen(BACKLOG)) {
        // Left behind it would only look like somebody who listens.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    UnixListener::from_std(socket.into())
}

/// Gives a socket that is bound these rights; where none are named it keeps those that it has.
///
/// # Errors
/// What the system says, or that there is no such group.
pub(super) fn give(path: &Path, rights: &SocketRights) -> io::Result<()> {
    let group = rights.group.as_ref().map(number).transpose()?;
    if let Some(group) = group {
        chown(path, None, Some(group)).map_err(|error| told("unix_group", error))?;
    }
    // Last: a change of the group may take bits away.
    if let Some(mode) = rights.mode {
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| told("unix_mode", error))?;
    }
    Ok(())
}

fn told(key: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{key}: {error}"))
}

fn number(group: &Group) -> io::Result<u32> {
    match group {
        Group::Number(number) => Ok(*number),
        Group::Name(name) => {
            let text = fs::read(GROUPS).map_err(|error| told(GROUPS, error))?;
            find(&String::from_utf8_lossy(&text), name).ok_or_else(|| {
                let text = format!(
                    "unix_group: no group \"{}\" in {GROUPS}; its number will do",
                    name.escape_debug()
                );
                io::Error::new(io::ErrorKind::NotFound, text)
            })
        }
    }
}

/// The number of a group, by the lines of group(5): name, password, number, members.
fn find(text: &str, name: &str) -> Option<u32> {
    let mut lines = text.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let found = fields.next() == Some(name);
        let number = fields.nth(1)?;
        if found { number.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_number_behind_its_name() {
        let text = "root:x:0:\n# a remark\nbroken\nredis:x:112:www-data,app\nredis:x:113:\n+:::\nodd:x:many:\n";
        for (name, number) in [
            ("root", Some(0)),
            ("redis", Some(112)),
            ("red", None),
            ("odd", None),
            ("", None),
        ] {
            assert_eq!(find(text, name), number, "{name}");
        }
    }
}
