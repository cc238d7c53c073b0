//! One question to one sentinel, and one to the server that it names. Everything that is answered comes from outside: it
//! has a bound and a time limit, and of an address only host and port are used. Judges nothing.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::Way;
use crate::config::{HostPort, Place, Secret, Server};
use crate::proxy::own::facts::Facts;
use crate::proxy::own::wire::{Fault, Link, error_text};
use crate::proxy::tls::Certificates;
use crate::resp::frame;

/// The longest answer that is read, in bytes; those of sentinels have some 1,000.
const LONGEST: usize = 64 * 1024;
/// Characters kept of what somebody says.
const LONGEST_TEXT: usize = 200;

/// What a sentinel knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The master.
    Master(Said),
    /// It watches none of this name.
    Unknown,
}

/// What a sentinel says of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Where it is; a name where the sentinel gives names (`announce-hostnames`).
    pub master: HostPort,
    /// The number of the failover that made it the master: what has a lower one is older.
    pub epoch: u64,
    /// How many sentinels have to find a master dead before it is replaced.
    pub quorum: u64,
    /// Its replicas.
    pub replicas: u64,
    /// Sentinels besides this one.
    pub others: u64,
    /// `master`, and what it finds wrong: `s_down`, `o_down`, `failover_in_progress`.
    pub flags: String,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is a master.
    Master,
    /// It is something else: what.
    Other(String),
    /// It does not tell who asks: its words.
    Untold(String),
    /// There is no answer.
    Unreachable(String),
}

/// Asks one sentinel for the master of this name.
///
/// # Errors
/// What became of it, in words.
pub(crate) async fn ask(way: &Way, sentinel: &HostPort, name: &str) -> Result<Answer, String> {
    let asked = timeout(way.limit, question(way, sentinel, name)).await;
    asked.unwrap_or_else(|_| Err(format!("no answer within {:?}", way.limit)))
}

/// A connection to a sentinel, logged in.
pub(super) async fn enter(way: &Way, sentinel: &HostPort) -> Result<Link, String> {
    let place = Place::Tcp(sentinel.clone());
    let link = Link::connect(&place, way.tls, &way.certificates, way.limit).await;
    let mut link = link.map_err(short)?.taking_at_most(LONGEST);
    let login = login(&mut link, way.user.as_deref(), way.password.as_ref()).await;
    let refused = login
        .map_err(short)?
        .filter(|text| !text.contains("without any password configured"));
    refused.map_or(Ok(link), |text| Err(explained("AUTH", &text)))
}

async fn question(way: &Way, sentinel: &HostPort, name: &str) -> Result<Answer, String> {
    let mut link = enter(way, sentinel).await?;
    // First the epoch: if a switch comes between the two, the new address goes with the old number, and is asked for again.
    // The old address with the new number would be taken for the newest there is.
    let more = link.ask_one(&["SENTINEL", "MASTER", name]).await.map_err(short)?;
    match error_text(&more) {
        Some(text) if text.contains("No such master") => return Ok(Answer::Unknown),
        Some(text) => return Err(explained("SENTINEL MASTER", &text)),
        None => {}
    }
    let address = link.ask_one(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]).await;
    let address = address.map_err(short)?;
    if let Some(text) = error_text(&address) {
        return Err(explained("SENTINEL GET-MASTER-ADDR-BY-NAME", &text));
    }
    if address.starts_with(b"*-1") || address.starts_with(b"$-1") || address.starts_with(b"_") {
        return Ok(Answer::Unknown);
    }
    read(&address, &more).map(Answer::Master)
}

/// Reads both answers.
fn read(address: &[u8], more: &[u8]) -> Result<Said, String> {
    let unreadable = || "its answer is none that a sentinel gives".to_owned();
    let mut parts = frame::elements(address).ok_or_else(unreadable)?.map(frame::bulk);
    let (Some(Some(host)), Some(Some(port)), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unreadable());
    };
    let master = HostPort::told(host, port).ok_or("the address that it names is none")?;
    let mut facts = Facts::default();
    facts.add_config(more).ok_or_else(unreadable)?;
    let number = |name: &str| facts.number(name).ok_or_else(unreadable);
    Ok(Said {
        master,
        epoch: number("config-epoch")?,
        quorum: number("quorum")?,
        replicas: number("num-slaves")?,
        others: number("num-other-sentinels")?,
        flags: cut(facts.text("flags").unwrap_or_default()),
    })
}

/// Asks a server whether it is a master, as the user of lockward's own connection.
pub(crate) async fn role(server: &Server, place: &Place, certificates: &Certificates, limit: Duration) -> Role {
    let asking = async {
        let link = Link::connect(place, server.tls, certificates, limit).await?;
        let mut link = link.taking_at_most(LONGEST);
        if let Some(text) = login(&mut link, server.user.as_deref(), server.password.as_ref()).await? {
            return Ok(Role::Untold(cut(&text)));
        }
        link.ask_one(&["ROLE"]).await.map(|answer| read_role(&answer))
    };
    match timeout(limit, asking).await {
        Ok(Ok(role)) => role,
        Ok(Err(fault)) => Role::Unreachable(short::<Fault>(fault)),
        Err(_) => Role::Unreachable(format!("no answer within {limit:?}")),
    }
}

fn read_role(answer: &Bytes) -> Role {
    if let Some(text) = error_text(answer) {
        return Role::Untold(cut(&text));
    }
    let role = frame::elements(answer).and_then(|mut elements| frame::bulk(elements.next()?));
    match role {
        Some(b"master") => Role::Master,
        Some(b"slave") => Role::Other("replica".to_owned()),
        Some(other) => Role::Other(cut(&String::from_utf8_lossy(other))),
        None => Role::Untold("an answer that is none to ROLE".to_owned()),
    }
}

/// Logs in, if there is a password. `Some`: the refusal.
async fn login(link: &mut Link, user: Option<&str>, password: Option<&Secret>) -> Result<Option<String>, Fault> {
    let reply = match (password.map(Secret::reveal), user) {
        (None, _) => return Ok(None),
        (Some(password), Some(user)) => link.ask_one(&["AUTH", user, password]).await?,
        (Some(password), None) => link.ask_one(&["AUTH", password]).await?,
    };
    Ok(error_text(&reply))
}

/// What a sentinel refused, and what to do.
fn explained(command: &str, text: &str) -> String {
    let hint = if text.starts_with("NOAUTH") {
        "; it asks for a password: set upstream.sentinel_password"
    } else if text.starts_with("WRONGPASS") {
        "; upstream.sentinel_user or sentinel_password is wrong"
    } else if text.starts_with("NOPERM") {
        "; its user needs +sentinel|get-master-addr-by-name +sentinel|master +subscribe +ping &*"
    } else if text.starts_with("DENIED") {
        "; it is in protected mode and takes nobody from another machine: give it bind addresses and a password, or \
         \"protected-mode no\""
    } else if text.contains("unknown command") {
        "; this is no sentinel: is the port right?"
    } else {
        ""
    };
    format!("{command}: {}{hint}", cut(text))
}

fn short<Error: fmt::Display>(error: Error) -> String {
    cut(&error.to_string())
}

/// Only so much of what comes from outside, on one line.
fn cut(text: &str) -> String {
    let line = text.chars().take(LONGEST_TEXT);
    line.map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(words: &[&str]) -> Vec<u8> {
        let mut out = format!("*{}\r\n", words.len());
        words
            .iter()
            .for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        out.into_bytes()
    }

    const MORE: [&str; 12] = [
        "flags",
        "master",
        "config-epoch",
        "7",
        "num-slaves",
        "2",
        "num-other-sentinels",
        "2",
        "quorum",
        "2",
        "name",
        "m",
    ];

    #[test]
    fn what_a_sentinel_says_is_read() {
        for (host, port) in [("10.0.0.5", "6379"), ("redis-0.svc.local", "1"), ("::1", "65535")] {
            let said = read(&answer(&[host, port]), &answer(&MORE)).expect("it is a good answer");
            assert_eq!(
                (said.master.host.as_str(), said.master.port.to_string().as_str()),
                (host, port)
            );
            assert_eq!((said.epoch, said.quorum, said.replicas, said.others), (7, 2, 2, 2));
        }
    }

    #[test]
    fn of_an_address_only_host_and_port_are_taken() {
        for strange in [
            &["", "1"][..],
            &["h", "0"],
            &["h", "65536"],
            &["h", "+1"],
            &["h", "x"],
            &["u@h", "1"],
            &["h/x", "1"],
            &["h\r\n", "1"],
            &["a:b", "1"],
            &["h"],
            &["h", "1", "2"],
            &[],
        ] {
            assert!(read(&answer(strange), &answer(&MORE)).is_err(), "{strange:?}");
        }
        assert!(read(&answer(&[&"h".repeat(254), "1"]), &answer(&MORE)).is_err());
        assert!(
            read(&answer(&["h", "1"]), &answer(&MORE[..2])).is_err(),
            "without an epoch"
        );
        assert!(read(b"+OK\r\n", &answer(&MORE)).is_err());
    }

    #[test]
    fn a_role_is_read() {
        let role = |words: &[&str]| read_role(&Bytes::from(answer(words)));
        assert_eq!(role(&["master", "0"]), Role::Master);
        assert_eq!(role(&["slave", "h"]), Role::Other("replica".to_owned()));
        assert_eq!(role(&["sentinel"]), Role::Other("sentinel".to_owned()));
        assert!(matches!(role(&[]), Role::Untold(_)));
        assert_eq!(
            read_role(&Bytes::from_static(b"-NOPERM no\r\n")),
            Role::Untold("NOPERM no".to_owned())
        );
    }

    proptest! {
        #[test]
        fn no_answer_is_too_much(one in prop::collection::vec(any::<u8>(), 0..200), two in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read(&one, &two), read_role(&Bytes::from(one.clone())));
        }
    }
}
