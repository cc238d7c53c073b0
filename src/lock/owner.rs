//! Who somebody is to a rule: the text by which an owner is known in lease records, logs and metrics of every proxy.
//!
//! The text is printable ASCII without spaces, `;` and `=` other than its own, and injective: for one rule, two
//! identities that differ in what the rule looks at never get the same text, whatever bytes a client puts into its
//! name. This does not decide when an owner ends; it says what its end depends on.

use core::net::IpAddr;
use std::fmt::Write as _;

use sha1::{Digest, Sha1};

use crate::event::{ConnectionId, Owner};
use crate::lock::rule::OwnerPart;

/// Values up to this many characters stand in full; of longer ones the beginning and a SHA-1. A client may give
/// itself a name of 512 MB, and the owner is stored with every lease.
const LONGEST_VALUE: usize = 128;
/// How much of a longer value is kept for the reader.
const KEPT: usize = 32;

/// What the proxy knows of a client.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Its connection.
    pub connection: &'a ConnectionId,
    /// Its IP address; `None` on a unix socket.
    pub address: Option<IpAddr>,
    /// Its process, as a text unique on this host; `None` over TCP and where the system does not tell.
    pub process: Option<&'a str>,
    /// The name it gave itself by `CLIENT SETNAME` or `HELLO`; empty without one.
    pub client_name: &'a [u8],
    /// Its ACL user.
    pub user: &'a [u8],
}

/// What an owner's existence is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing that the proxy sees ending: debts stay for their window.
    Free,
    /// The owner is or contains the connection: with it, the owner ends and its debts are dropped.
    Connection,
    /// The owner is or contains the process: it ends with the process' last connection.
    Process,
}

/// An owner and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// For example `address=10.0.0.7`, `user=app,client-name=w%201`, `connection=5f0c…-7`, `any`.
    pub owner: Owner,
    /// What its existence depends on.
    pub bound: Bound,
}

/// Says who somebody is to a rule with these parts, in the rule's order. A client without a name, and a process over
/// TCP, count as the connection; all clients of a unix socket have the address `local`; an IPv4 address mapped into
/// IPv6 is the IPv4 address. No part at all reads as `any`.
pub fn derive(parts: &[OwnerPart], who: &Identity<'_>) -> Derived {
    let mut text = String::new();
    let mut bound = Bound::Free;
    let mut connection_named = false;
    for part in parts {
        match effective(*part, who) {
            // Named once even if two parts fall back on it.
            OwnerPart::Connection if connection_named => {}
            OwnerPart::Connection => {
                connection_named = true;
                bound = Bound::Connection;
                push(&mut text, "connection", who.connection.to_string().as_bytes());
            }
            OwnerPart::Process => {
                if bound == Bound::Free {
                    bound = Bound::Process;
                }
                push(&mut text, "process", who.process.unwrap_or_default().as_bytes());
            }
            OwnerPart::Address => push(&mut text, "address", address(who.address).as_bytes()),
            OwnerPart::ClientName => push(&mut text, "client-name", who.client_name),
            OwnerPart::User => push(&mut text, "user", who.user),
            OwnerPart::Any => {}
        }
    }
    if text.is_empty() {
        text.push_str("any");
    }
    Derived {
        owner: text.into(),
        bound,
    }
}

/// The part that is really looked at.
fn effective(part: OwnerPart, who: &Identity<'_>) -> OwnerPart {
    match part {
        OwnerPart::ClientName if who.client_name.is_empty() => OwnerPart::Connection,
        OwnerPart::Process if who.process.is_none() => OwnerPart::Connection,
        part => part,
    }
}

fn address(address: Option<IpAddr>) -> String {
    match address {
        Some(address) => address.to_canonical().to_string(),
        None => "local".to_owned(),
    }
}

fn push(text: &mut String, name: &str, value: &[u8]) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(name);
    text.push('=');
    // Escaping never shortens, so more bytes than this need not be escaped to know that they are too many.
    let shown = value.get(..LONGEST_VALUE + 1).unwrap_or(value);
    let escaped = escape(shown);
    if escaped.len() <= LONGEST_VALUE {
        text.push_str(&escaped);
        return;
    }
    // `~` is escaped in values, so a shortened one is never mistaken for one in full.
    text.push_str(&escape(value.get(..KEPT).unwrap_or(value)));
    text.push('~');
    for byte in Sha1::digest(value) {
        let _ = write!(text, "{byte:02x}");
    }
}

fn escape(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for &byte in value {
        if byte.is_ascii_graphic() && !b"%;=,~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
