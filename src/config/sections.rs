//! The sections with one table each, key by key, with their defaults. What this version cannot do yet is refused here,
//! never passed over. Whether the settings fit together is looked at elsewhere.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use super::address::{HostPort, LONGEST_HOST, Place, Server};
use super::conflicts::{Settings, SitedRule};
use super::duration;
use super::entrance;
use super::fault::{Fault, Origin};
use super::keys;
use super::listeners;
use super::reader::{Empty, Origins, Reader};
use super::rules;
use super::sentinel;
use super::tls;
use super::tree::{Node, Table, Value};
use super::{Admin, Config, Format, Level, Listen, Log, Records, Secret, Upstream, UpstreamMode};

/// The longest record prefix, in bytes: it is stored with every lock.
const LONGEST_PREFIX: usize = 64;
const MOST_CONNECTIONS: u32 = 1_000_000;
const MOST_WORKERS: u32 = 256;
/// Enough that a few clients with full buffers are none too many.
const LEAST_BUFFERED: u64 = 16 << 20;

/// Reads the whole tree.
pub(super) fn read(tree: Table, faults: &mut Vec<Fault>) -> Settings {
    let mut top = Reader::new(String::new(), Origin::File, keys::TOP, tree, faults);
    let (mut listen, listen_origins) = section(&mut top, "listen", keys::LISTEN, listen);
    let (upstream, upstream_origins) = section(&mut top, "upstream", keys::UPSTREAM, upstream);
    let (admin, admin_origins) = section(&mut top, "admin", keys::ADMIN, admin);
    let (log, _) = section(&mut top, "log", keys::LOG, log);
    let (records, _) = section(&mut top, "records", keys::RECORDS, records);
    let mut sited: Vec<SitedRule> = rules::read(&mut top);
    let general: Vec<usize> = (0..sited.len()).collect();
    let mut listeners = Vec::new();
    let mut entrances = vec![listen_origins];
    for (mut listener, own, origins) in listeners::read(&mut top) {
        listener.rules = match own {
            Some(own) => {
                let first = sited.len();
                sited.extend(own);
                (first..sited.len()).collect()
            }
            None => general.clone(),
        };
        listeners.push(listener);
        entrances.push(origins);
    }
    listen.entrance.rules = general;
    top.finish();
    let rules = sited.iter().map(|sited| sited.rule.clone()).collect();
    Settings {
        config: Config {
            listen,
            listeners,
            upstream,
            admin,
            log,
            records,
            rules,
        },
        entrances,
        upstream: upstream_origins,
        admin: admin_origins,
        rules: sited,
    }
}

fn section<T>(
    top: &mut Reader<'_>,
    name: &'static str,
    known: &'static [&'static str],
    read: fn(&mut Reader<'_>) -> T,
) -> (T, Origins) {
    let (origin, table) = match top.take(name) {
        Some(Node {
            origin,
            value: Value::Table(table),
        }) => (origin, table),
        Some(Node { origin, .. }) => {
            top.fault(origin.clone(), name, format!("must be one table, written as [{name}]"));
            (origin, Table::default())
        }
        None => (Origin::File, Table::default()),
    };
    let mut reader = Reader::new(name.to_owned(), origin, known, table, top.faults);
    let value = read(&mut reader);
    (value, reader.finish())
}

fn loopback(port: u16) -> HostPort {
    HostPort {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

fn listen(reader: &mut Reader<'_>) -> Listen {
    let entrance = entrance::read(reader, entrance::MAIN, Some(loopback(6380)));
    let handshake_timeout = reader.milliseconds("handshake_timeout", 1).unwrap_or(10_000);
    let keepalive = keepalive(reader).unwrap_or(60_000);
    let max_connections = reader.integer("max_connections", 1, MOST_CONNECTIONS).unwrap_or(10_000);
    let per_address = reader.integer("max_connections_per_address", 0, MOST_CONNECTIONS);
    let idle_timeout = reader.milliseconds("idle_timeout", 0).unwrap_or(0);
    let max_buffered = reader.bytes("max_buffered", LEAST_BUFFERED).unwrap_or(1 << 30);
    Listen {
        entrance,
        handshake_timeout: Duration::from_millis(handshake_timeout),
        tcp_keepalive: (keepalive > 0).then(|| Duration::from_millis(keepalive)),
        max_connections: max_connections.try_into().unwrap_or(usize::MAX),
        max_connections_per_address: per_address
            .filter(|most| *most > 0)
            .map(|most| most.try_into().unwrap_or(usize::MAX)),
        idle_timeout: (idle_timeout > 0).then(|| Duration::from_millis(idle_timeout)),
        max_buffered: max_buffered.try_into().unwrap_or(usize::MAX),
        workers: workers(reader),
    }
}

/// 0 in the file: one for each core.
fn workers(reader: &mut Reader<'_>) -> usize {
    match reader.integer("workers", 0, MOST_WORKERS).unwrap_or(0) {
        0 => available_parallelism().map_or(1, NonZero::get),
        number => number.try_into().unwrap_or(1),
    }
}

/// Milliseconds; the system counts whole seconds.
fn keepalive(reader: &mut Reader<'_>) -> Option<u64> {
    let time = "a time in quotes with its unit, like \"30s\"";
    reader.parsed("tcp_keepalive", time, |text| match duration::parse(text)? {
        time if time % 1000 == 0 => Ok(time),
        _ => Err("must be whole seconds, or \"0s\" for never".to_owned()),
    })
}

fn upstream(reader: &mut Reader<'_>) -> Upstream {
    let server = reader.server("url").unwrap_or_else(|| Server {
        target: Place::Tcp(loopback(6379)).into(),
        tls: false,
        user: None,
        password: None,
        database: 0,
    });
    let sentinel = sentinel::access(reader);
    let tls = tls::upstream(reader);
    let modes = [UpstreamMode::Dedicated, UpstreamMode::Shared];
    let mode = reader.choice("mode", &modes.map(|mode| (mode.word(), mode)));
    let timeout = reader.milliseconds("connect_timeout", 1).unwrap_or(2_000);
    Upstream {
        server,
        sentinel,
        tls,
        mode: mode.unwrap_or(UpstreamMode::Dedicated),
        connect_timeout: Duration::from_millis(timeout),
        reconnect_rate: reader.integer("reconnect_rate", 0, MOST_CONNECTIONS).unwrap_or(1_000),
    }
}

fn admin(reader: &mut Reader<'_>) -> Admin {
    let address = reader.address("address").unwrap_or_else(|| loopback(9180));
    let token = reader.parsed("token", "a text in quotes", |text| {
        match text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(text.to_owned()),
            false => Err("must be printable ASCII without spaces, since it travels in an HTTP header".to_owned()),
        }
    });
    Admin {
        address,
        hosts: hosts(reader),
        token: token.filter(|token| !token.is_empty()).map(Secret::new),
    }
}

/// Names as they stand in a Host header.
fn hosts(reader: &mut Reader<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for (host, origin) in reader.texts("hosts", Empty::Fine).unwrap_or_default() {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() {
            // As an empty token is none.
            continue;
        }
        if host.len() > LONGEST_HOST || !host.bytes().all(letter) {
            let text = "must be a host name as it stands in a browser's address line, without scheme, port and path";
            reader.fault(origin, "hosts", text);
        } else {
            hosts.push(host);
        }
    }
    hosts
}

fn log(reader: &mut Reader<'_>) -> Log {
    let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];
    let level = reader.choice("level", &levels.map(|level| (level.word(), level)));
    let format = reader.choice("format", &[("text", Format::Text), ("json", Format::Json)]);
    Log {
        level: level.unwrap_or(Level::Info),
        format: format.unwrap_or(Format::Text),
    }
}

fn records(reader: &mut Reader<'_>) -> Records {
    let prefix = reader.parsed("prefix", "a text in quotes", |text| {
        if text.is_empty() || text.len() > LONGEST_PREFIX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "must be 1 to {LONGEST_PREFIX} printable ASCII characters without spaces"
            ));
        }
        if text.contains(['{', '}']) {
            return Err("must not contain a brace: it would decide the cluster slot of every record".to_owned());
        }
        Ok(text.to_owned())
    });
    Records {
        prefix: prefix.unwrap_or_else(|| "lockward:".to_owned()),
    }
}
