//! What happens between connect and 'up': AUTH, SELECT, the server's version, the probes for newer commands, the
//! scripts. The probes write nothing, whatever the server: measured on Redis 7.0.15 and Valkey 9.1.2.

use bytes::{Bytes, BytesMut};

use super::facts::Facts;
use super::wire::{Fault, Link, error_text};
use super::{Settings, State};
use crate::config::{Secret, Server};
use crate::lock::features::Features;
use crate::lock::script::Script;
use crate::resp::encode;

/// Makes a fresh connection ready. Returns what is known of the server then.
pub(super) async fn prepare(link: &mut Link, server: &Server, settings: &Settings) -> Result<State, Fault> {
    let refusal = error_text(&link.ask_one(&["PING"]).await?).unwrap_or_default();
    // A server that loads answers slowly, and some of what follows as if all were well.
    not_loading("PING", &refusal)?;
    let login = refusal.starts_with("NOAUTH");
    if let Some(password) = server.password.as_ref().map(Secret::reveal) {
        let reply = match &server.user {
            Some(user) => link.ask_one(&["AUTH", user, password]).await?,
            None => link.ask_one(&["AUTH", password]).await?,
        };
        accepted("AUTH", &reply)?;
    }
    let reply = link.ask_one(&["SELECT", &server.database.to_string()]).await?;
    accepted("SELECT", &reply)?;
    // For whoever reads CLIENT LIST; a server that refuses it is no worse for that.
    link.ask_one(&["CLIENT", "SETNAME", "lockward"]).await?;
    let version = version(&link.ask_one(&["INFO", "server"]).await?);
    let features = Features {
        login,
        ..features(link, &settings.prefix).await?
    };
    let error = load_scripts(link).await?;
    Ok(State {
        up: true,
        features,
        version,
        error,
    })
}

/// SCRIPT LOAD for each script, one behind the other.
pub(super) fn script_loads() -> Bytes {
    let mut requests = BytesMut::new();
    for script in Script::ALL {
        encode::command(&mut requests, [&b"SCRIPT"[..], b"LOAD", script.text().as_bytes()]);
    }
    requests.freeze()
}

/// Loads the scripts. A user who may not is told, but the connection serves: EVAL may still be allowed.
async fn load_scripts(link: &mut Link) -> Result<Option<String>, Fault> {
    let replies = link.ask(&script_loads(), Script::ALL.len()).await?;
    let Some(text) = replies.iter().find_map(|reply| error_text(reply)) else {
        return Ok(None);
    };
    not_loading("SCRIPT LOAD", &text)?;
    Ok(Some(format!("SCRIPT LOAD: {text}")))
}

async fn features(link: &mut Link, prefix: &str) -> Result<Features, Fault> {
    let mut features = Features {
        delex: has_command(link, "DELEX").await?,
        delifeq: has_command(link, "DELIFEQ").await?,
        msetex: has_command(link, "MSETEX").await?,
        ..Features::default()
    };
    features.set_ifeq = has_set_option(link, prefix, "IFEQ").await?;
    features.set_ifne = has_set_option(link, prefix, "IFNE").await?;
    Ok(features)
}

/// `COMMAND INFO name` answers an array of one element: nil if the server lacks the command.
async fn has_command(link: &mut Link, name: &str) -> Result<bool, Fault> {
    let reply = link.ask_one(&["COMMAND", "INFO", name]).await?;
    if let Some(text) = error_text(&reply) {
        not_loading("COMMAND INFO", &text)?;
    }
    let nil = reply.starts_with(b"*1\r\n*-1") || reply.starts_with(b"*1\r\n$-1");
    Ok(reply.starts_with(b"*1\r\n") && !nil)
}

/// A SET with an expiry of 0 is refused before it looks at any key; but its options are read before that. So a server
/// that has the option finds fault with the expiry, and one that lacks it with the syntax. (Without this trick IFNE
/// would create the key.) When memory is full, or on a replica, neither is said: then the server's documentation tells.
async fn has_set_option(link: &mut Link, prefix: &str, option: &str) -> Result<bool, Fault> {
    let key = format!("{prefix}:probe");
    let reply = link.ask_one(&["SET", &key, "x", option, "y", "PX", "0"]).await?;
    let text = error_text(&reply).unwrap_or_default();
    not_loading("SET", &text)?;
    if text.contains("invalid expire") {
        return Ok(true);
    }
    if text.contains("syntax error") {
        return Ok(false);
    }
    let documentation = link.ask_one(&["COMMAND", "DOCS", "SET"]).await?;
    let word = format!("\r\n{option}\r\n");
    Ok(documentation.windows(word.len()).any(|bytes| bytes == word.as_bytes()))
}

/// The server's own name for itself: `valkey 9.1.2`, `redis 7.0.15`; empty if INFO is refused.
fn version(info: &[u8]) -> String {
    let info = Facts::from_info(info);
    match (info.text("valkey_version"), info.text("redis_version")) {
        (Some(version), _) => format!("valkey {version}"),
        (None, Some(version)) => format!("redis {version}"),
        (None, None) => String::new(),
    }
}

fn accepted(command: &'static str, reply: &[u8]) -> Result<(), Fault> {
    match error_text(reply) {
        Some(text) => Err(Fault::Refused { command, text }),
        None => Ok(()),
    }
}

/// A server that is still loading its data answers no probe: the connect is tried again later.
fn not_loading(command: &'static str, text: &str) -> Result<(), Fault> {
    let waits = ["LOADING", "BUSY", "MASTERDOWN"]
        .iter()
        .any(|code| text.starts_with(code));
    if waits {
        Err(Fault::Refused {
            command,
            text: text.to_owned(),
        })
    } else {
        Ok(())
    }
}
