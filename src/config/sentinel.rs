//! `redis-sentinel://` URLs: which sentinels are asked, for which master, and how lockward comes to them. Asks nobody.

use std::fmt;

use super::Secret;
use super::address::{HostPort, to_connect_to, unescape};
use super::reader::Reader;

const DEFAULT_PORT: u16 = 26379;
/// So many may stand in the URL; three or five are usual.
const MOST: usize = 16;
/// The longest name of a master, in bytes.
const LONGEST_NAME: usize = 128;

/// The sentinels and the master that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinels {
    /// Where they are; at least one, in the order of the URL.
    pub hosts: Vec<HostPort>,
    /// What they call the master.
    pub name: String,
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(HostPort::to_string).collect();
        write!(f, "master {} of the sentinels {}", self.name, hosts.join(","))
    }
}

/// How lockward comes to the sentinels: `upstream.sentinel_…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelAccess {
    /// Their ACL user; `None`: the default user.
    pub user: Option<String>,
    /// That user's password; `None`: they ask for none.
    pub password: Option<Secret>,
    /// Whether they too speak TLS where the master does.
    pub tls: bool,
}

/// Reads what stands behind the credentials of the URL: `host[:port],…` and `/name`.
///
/// # Errors
///
/// What is wrong with the text, without repeating it.
pub(super) fn sentinels(hosts: &str, path: &str) -> Result<Sentinels, String> {
    let hosts: Vec<HostPort> = hosts
        .split(',')
        .map(|host| to_connect_to(host, DEFAULT_PORT))
        .collect::<Result<_, _>>()?;
    if hosts.len() > MOST {
        return Err(format!("names {} sentinels, at most {MOST} can be", hosts.len()));
    }
    let twice = |(index, host): (usize, &HostPort)| hosts.iter().take(index).any(|other| other == host);
    if hosts.iter().enumerate().any(twice) {
        return Err("names a sentinel twice, which would be counted as two".to_owned());
    }
    let name = unescape(path.trim_start_matches('/'))?;
    if name.is_empty() {
        return Err(
            "names no master: behind the sentinels write /name, as in their line \"sentinel monitor name …\""
                .to_owned(),
        );
    }
    // As sentinels take it.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if name.len() > LONGEST_NAME || !name.bytes().all(letter) {
        return Err(
            "the master's name may have letters, digits, dots, dashes and underscores, and nothing stands behind it"
                .to_owned(),
        );
    }
    Ok(Sentinels { hosts, name })
}

/// Reads `upstream.sentinel_…`.
pub(super) fn access(reader: &mut Reader<'_>) -> SentinelAccess {
    let mut text = |key| {
        let read = |text: &str| Ok(text.to_owned());
        reader
            .parsed(key, "a text in quotes", read)
            .filter(|text| !text.is_empty())
    };
    SentinelAccess {
        user: text("sentinel_user"),
        password: text("sentinel_password").map(Secret::new),
        tls: reader.bool("sentinel_tls").unwrap_or(true),
    }
}
