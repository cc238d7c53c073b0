//! What a session would send to the server for a command, as the session itself says it: one is made for a client that
//! nobody has seen, gets the command, and what it then wants written is taken apart again. Owner tokens are replaced
//! by `<token>` before anything is shown, and what is the client's own by `<connection>` and `<owner>`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use crate::event::{ConnectionId, Time, Token};
use crate::lock::features::Features;
use crate::lock::rule::Rules;
use crate::lock::script::Script;
use crate::metrics::printable;
use crate::resp::Args;
use crate::resp::request::{RequestScanner, Scanned};
use crate::session::{Peer, Policy, Session};

/// The client that nobody has seen.
const INSTANCE: &str = "0000000000000000";
const CONNECTION: &str = "0000000000000000-1";
const OWNER: &str = "address=192.0.2.1";

/// So many arguments of one request are shown.
const MOST_SHOWN: usize = 64;

/// One request to the server.
#[derive(Debug, Serialize)]
pub(super) struct Sent {
    /// The script that it calls, if it is one of lockward's.
    pub script: Option<String>,
    /// Of a script: its keys.
    pub keys: Vec<String>,
    /// Of a script: its arguments; else the command's.
    pub arguments: Vec<String>,
    /// The whole request, escaped. Its lengths are those of an example.
    pub bytes: String,
    /// The text of the script, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lua: Option<&'static str>,
}

impl Sent {
    /// Adds the text of the script.
    pub(super) fn add_text(&mut self) {
        let script = Script::ALL
            .into_iter()
            .find(|script| self.script == Some(name(*script)));
        self.lua = script.map(Script::text);
    }
}

/// What goes to the server for one command, and what the client hears from lockward itself.
#[derive(Debug)]
pub(super) struct Upstream {
    /// The first request is what the client sent, byte for byte.
    pub untouched: bool,
    /// In order.
    pub requests: Vec<Sent>,
    /// The proxy's own answer, where it does not come from the server.
    pub own_answer: Option<String>,
}

/// Asks a session. `queued`: inside MULTI.
pub(super) fn ask(raw: &[u8], rules: &Rules, prefix: &str, features: Features, queued: bool) -> Upstream {
    let token = Uuid::new_v4();
    let policy = Policy::new(rules.list().to_vec(), prefix, move || Token(token)).with(features);
    let connection = ConnectionId {
        instance: INSTANCE.into(),
        number: 1,
    };
    // An address of the documentation (RFC 5737): nobody's.
    let peer = Peer {
        address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
        process: None,
    };
    let mut session = Session::new(Arc::new(policy), connection, peer);
    if queued {
        session.receive_downstream(b"MULTI\r\n", Time(1));
        session.receive_upstream(b"+OK\r\n", Time(2));
        session.to_upstream.clear();
        session.to_downstream.clear();
    }
    session.receive_downstream(raw, Time(3));
    let bytes = session.to_upstream.split();
    let untouched = bytes.starts_with(raw);
    let mut requests = requests(&bytes, &token.to_string());
    let rides = !untouched && requests.first().is_some_and(|first| first.bytes == PING);
    let own_answer = rides.then(|| {
        session.receive_upstream(b"+PONG\r\n", Time(4));
        printable(&session.to_downstream)
    });
    if let Some(first) = requests.first_mut().filter(|_| untouched) {
        // Written on one line it is not sent as an array; and quotes are read more easily as they are.
        first.bytes = printable(raw).replace("\\\"", "\"");
    }
    Upstream {
        untouched,
        requests,
        own_answer,
    }
}

/// What a session asks the server where the answer will be its own.
const PING: &str = "*1\\r\\n$4\\r\\nPING\\r\\n";

fn requests(mut bytes: &[u8], token: &str) -> Vec<Sent> {
    let mut requests = Vec::new();
    while !bytes.is_empty() {
        let mut scanner = RequestScanner::new();
        let Ok(Scanned::Request { len }) = scanner.scan(bytes) else {
            break;
        };
        requests.push(sent(scanner.args(bytes), token));
        bytes = bytes.get(len..).unwrap_or_default();
    }
    requests
}

fn sent(args: Args<'_>, token: &str) -> Sent {
    let named = args.get(1).and_then(script).filter(|_| args.len() >= 3);
    let count = args
        .get(2)
        .and_then(|count| std::str::from_utf8(count).ok()?.parse::<usize>().ok())
        .unwrap_or(0);
    let show = |range: std::ops::Range<usize>| {
        let all = args.len();
        let end = range.end.min(all);
        let start = range.start.min(end);
        let mut shown: Vec<String> = args
            .iter()
            .take(end)
            .skip(start)
            .take(MOST_SHOWN)
            .map(|arg| masked(arg, token))
            .collect();
        if end - start > MOST_SHOWN {
            shown.push(format!("… and {} more", end - start - MOST_SHOWN));
        }
        shown
    };
    let (keys, arguments) = match named {
        Some(_) => (show(3..3 + count), show(3 + count..args.len())),
        None => (Vec::new(), show(0..args.len())),
    };
    Sent {
        script: named.map(name),
        keys,
        arguments,
        bytes: whole(args, token, named),
        lua: None,
    }
}

/// The script that is called by this text or hash.
fn script(text: &[u8]) -> Option<Script> {
    Script::ALL
        .into_iter()
        .find(|script| script.sha1().as_bytes() == text || script.text().as_bytes() == text)
}

/// `MultiWrite` is `multi_write`.
fn name(script: Script) -> String {
    let mut name = String::new();
    for letter in format!("{script:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Who asks is one argument of a script: what the rule says, token, connection and owner.
fn masked(arg: &[u8], token: &str) -> String {
    let text = printable(arg)
        .replace(CONNECTION, "<connection>")
        .replace(OWNER, "<owner>");
    match text.split_once(token) {
        None => text,
        // The makings of a record.
        Some(("", behind)) => format!("<token>{behind}"),
        Some((before, _)) => format!("{before}<token> <connection> <owner>"),
    }
}

fn whole(args: Args<'_>, token: &str, script: Option<Script>) -> String {
    let mut text = format!("*{}\\r\\n", args.len());
    for (index, arg) in args.iter().enumerate().take(MOST_SHOWN) {
        let by_text = script.filter(|script| index == 1 && script.text().as_bytes() == arg);
        let shown = by_text.map_or_else(|| masked(arg, token), |script| format!("<text of {}>", name(script)));
        text.push_str(&format!("${}\\r\\n{shown}\\r\\n", arg.len()));
    }
    if args.len() > MOST_SHOWN {
        text.push('…');
    }
    text
}
