//! Where clients come in: `[listen]`, and each entry of `[[listeners]]`, with what differs between them. What holds
//! for all of them together, such as limits, is the section's; whether it all fits together is looked at elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use super::address::{HostPort, Place};
use super::reader::{Empty, Reader};
use super::tls::{self, ListenTls};
use super::trusted::Trusted;

/// The name of the entrance that `[listen]` is.
pub(super) const MAIN: &str = "listen";
/// The longest name of a listener, in bytes.
const LONGEST_NAME: usize = 64;
/// Names that mean something else where sockets are handed over.
const TAKEN_NAMES: [&str; 2] = [MAIN, "admin"];

/// One place where clients come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrance {
    /// `listen`, or the name of a further listener.
    pub name: Arc<str>,
    /// TCP address or unix socket.
    pub place: Place,
    /// Who may connect to a unix socket.
    pub rights: SocketRights,
    /// TLS for clients; `None`: they speak plain RESP.
    pub tls: Option<ListenTls>,
    /// Whoever connects sends a PROXY header first, and these are believed; `None`: nobody sends one.
    pub trusted: Option<Trusted>,
    /// Which of the configuration's rules hold here, in their order: positions in
    /// [`Config::rules`](super::Config::rules).
    pub rules: Vec<usize>,
}

impl Entrance {
    /// What its settings stand under: `listen`, `listeners.NAME`.
    pub fn section(&self) -> String {
        match &*self.name {
            MAIN => MAIN.to_owned(),
            name => format!("listeners.{name}"),
        }
    }
}

/// Who may connect to a unix socket, besides what the directory says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketRights {
    /// The bits of `chmod`; `None`: what the process' umask leaves.
    pub mode: Option<u32>,
    /// Whose it is besides the user's; `None`: the process' group.
    pub group: Option<Group>,
}

/// A group of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// By its name in `/etc/group`.
    Name(String),
    /// By its number.
    Number(u32),
}

/// Reads what `[listen]` and `[[listeners]]` have in common. Where no place is given, it is `default`; without one, the
/// fault is told.
pub(super) fn read(reader: &mut Reader<'_>, name: &str, default: Option<HostPort>) -> Entrance {
    let given = reader.has("address") || reader.has("unix");
    let slip = reader.has_slip_of("address") || reader.has_slip_of("unix");
    if !given && !slip && default.is_none() {
        reader.whole_fault(
            "address",
            "missing; say where it listens: address = \"host:port\", or unix = \"path\"",
        );
    }
    let (address, unix) = (reader.address("address"), reader.socket_path("unix"));
    Entrance {
        name: name.into(),
        place: match unix {
            Some(path) => Place::Unix(path),
            // Without either there is a fault, and nobody looks any more.
            None => address
                .or(default)
                .map_or_else(|| Place::Unix(PathBuf::new()), Place::Tcp),
        },
        rights: SocketRights {
            mode: mode(reader),
            group: group(reader),
        },
        tls: tls::listen(reader),
        trusted: trusted(reader),
        rules: Vec::new(),
    }
}

/// The name of a further listener.
pub(super) fn name(reader: &mut Reader<'_>) -> String {
    if !reader.has("name") {
        if !reader.has_slip_of("name") {
            let text = "missing; logs, `lockward check` and socket units (FileDescriptorName=) call it so";
            reader.whole_fault("name", text);
        }
        return String::new();
    }
    let name = reader.parsed("name", "a text in quotes", |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        match text {
            "" => Err("must not be empty".to_owned()),
            text if text.len() > LONGEST_NAME || !text.bytes().all(letter) => {
                Err(format!("must be at most {LONGEST_NAME} letters, digits and -._"))
            }
            text if TAKEN_NAMES.contains(&text) => Err(format!("\"{text}\" is the name of a section; choose another")),
            text => Ok(text.to_owned()),
        }
    });
    name.unwrap_or_default()
}

fn mode(reader: &mut Reader<'_>) -> Option<u32> {
    let octal = "an octal number in quotes, like \"0770\"";
    reader.parsed("unix_mode", octal, |text| {
        let digits = matches!(text.len(), 3 | 4) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let mode = u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| digits && *mode <= 0o777);
        match mode {
            None => Err(format!("must be {octal}, up to \"0777\"")),
            Some(mode) if mode & 0o222 == 0 => {
                Err("lets nobody connect: that is the right to write (2), as in \"0660\"".to_owned())
            }
            Some(mode) => Ok(mode),
        }
    })
}

fn group(reader: &mut Reader<'_>) -> Option<Group> {
    reader.parsed("unix_group", "the name or the number of a group in quotes", |text| {
        let bad = |byte: u8| byte.is_ascii_control() || b": ,".contains(&byte);
        match text.parse() {
            // All ones stands for "as it is" with the system.
            Ok(u32::MAX) => Err("no group has this number".to_owned()),
            Ok(number) => Ok(Group::Number(number)),
            Err(_) if text.is_empty() || text.bytes().any(bad) => {
                Err("must be the name or the number of a group".to_owned())
            }
            Err(_) => Ok(Group::Name(text.to_owned())),
        }
    })
}

/// `proxy_protocol` and whom it believes. That the two fit together is looked at elsewhere.
fn trusted(reader: &mut Reader<'_>) -> Option<Trusted> {
    let mut trusted = Trusted::default();
    for (text, origin) in reader.texts("trusted_proxies", Empty::Fine).unwrap_or_default() {
        if let Err(fault) = trusted.add(&text) {
            reader.fault(origin, "trusted_proxies", fault);
        }
    }
    match reader.bool("proxy_protocol") {
        Some(true) => Some(trusted),
        _ if trusted.is_empty() => None,
        _ => {
            let text = "is of use only with proxy_protocol = true: without it no header is believed from anybody";
            reader.taken_fault("trusted_proxies", text);
            None
        }
    }
}
