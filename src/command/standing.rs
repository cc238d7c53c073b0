//! Which commands belong on a connection of the client's own, and for how long after them: those that make state there,
//! ask about it, or keep it from being used. All others may go out on a connection that many clients share. Knows no
//! connection.

use super::client::ClientCall;
use super::role::Role;
use super::row::Row;
use super::waiting::may_wait;
use crate::resp::{Args, is_word};

/// How long a client stays on a connection of its own after a command that belongs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stay {
    /// Until its answer has come: what it changes is known, and can be had again (user, database, protocol, name).
    Moment,
    /// Until the client has been quiet for a while: what it makes is over soon, or it asks about the server.
    While,
    /// Until `RESET`: what it makes cannot be seen from outside.
    Always,
    /// As long as the connection: not even `RESET` is known to end it, or it names this very connection.
    BeyondReset,
}

/// How long this request keeps its client on a connection of its own; `None`: it may go out on a shared one.
pub fn stay(row: Option<&Row>, args: Args<'_>) -> Option<Stay> {
    // What the table does not know may make any state.
    let Some(row) = row else { return Some(Stay::BeyondReset) };
    match row.role {
        Role::Forward => forwarded(row.name),
        Role::Lock(_) if row.name == "restore-asking" => Some(Stay::Always),
        Role::Lock(_) | Role::Eval | Role::Keys | Role::Scan | Role::Flush | Role::SwapDb | Role::Lockward => None,
        // Answered without the server.
        Role::Quit => None,
        Role::Auth | Role::Hello | Role::Reset | Role::Select => Some(Stay::Moment),
        Role::Client => Some(client(args)),
        // A script that does not end keeps its connection, so it must be killed through another.
        Role::Script => Some(script(args)),
        Role::Blocking if !may_wait(row, args) => None,
        Role::Blocking
        | Role::Multi
        | Role::Exec
        | Role::Discard
        | Role::Watch
        | Role::Unwatch
        | Role::Subscribe(_)
        | Role::Unsubscribe(_) => Some(Stay::While),
        Role::Monitor | Role::Replication => Some(Stay::Always),
    }
}

/// Whether a command that is merely forwarded, or may be a lock operation, may go out on a shared connection whatever its
/// arguments.
pub fn shareable(row: &Row) -> bool {
    match row.role {
        Role::Forward => forwarded(row.name).is_none(),
        Role::Lock(_) => row.name != "restore-asking",
        _ => false,
    }
}

/// Whether the answer depends on what was written through the same connection before.
pub fn asks_for_own_writes(row: Option<&Row>) -> bool {
    row.is_some_and(|row| matches!(row.name, "wait" | "waitaof"))
}

fn forwarded(name: &str) -> Option<Stay> {
    match name {
        // Fields that are prepared belong to the connection.
        "himport" => Some(Stay::Always),
        "asking" | "readonly" | "readwrite" => Some(Stay::Always),
        "acl" | "backup" | "bgrewriteaof" | "bgsave" | "cluster" | "commandlog" | "config" | "debug" | "failover"
        | "function" | "hotkeys" | "latency" | "module" | "replicaof" | "save" | "shutdown" | "slaveof" | "slowlog"
        | "trimslots" => Some(Stay::While),
        _ => None,
    }
}

/// A script that is debugged answers in words of its own.
fn script(args: Args<'_>) -> Stay {
    match args.get(1) {
        Some(word) if is_word(word, b"debug") => Stay::BeyondReset,
        _ => Stay::While,
    }
}

fn client(args: Args<'_>) -> Stay {
    match ClientCall::read(args) {
        ClientCall::SetName(_) => Stay::Moment,
        ClientCall::ReplyOn | ClientCall::ReplyOff | ClientCall::ReplySkip => Stay::While,
        ClientCall::Tracking => Stay::Always,
        ClientCall::MaintNotifications => Stay::Moment,
        ClientCall::Other => {
            let asks = |names: &[&str]| {
                args.get(1)
                    .is_some_and(|arg| names.iter().any(|name| is_word(arg, name.as_bytes())))
            };
            if asks(&["setinfo"]) {
                // For people who look at the server's list of clients; nothing depends on it.
                Stay::Moment
            } else if asks(&[
                "getname",
                "list",
                "kill",
                "pause",
                "unpause",
                "unblock",
                "help",
                "trackinginfo",
            ]) {
                Stay::While
            } else if asks(&["no-evict", "no-touch", "caching", "getredir"]) {
                Stay::Always
            } else {
                // `ID` and `INFO` name this connection.
                Stay::BeyondReset
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::lookup;
    use crate::resp::args::Span;

    fn of(line: &str) -> Option<Stay> {
        let mut spans = Vec::new();
        let mut at = 0;
        for word in line.split(' ') {
            spans.push(Span {
                start: at,
                end: at + word.len(),
            });
            at += word.len() + 1;
        }
        let args = Args::new(line.as_bytes(), &spans);
        stay(lookup(args.get(0).unwrap()).1, args)
    }

    #[test]
    fn what_makes_no_state_may_share() {
        for line in [
            "GET a",
            "set a 1 NX",
            "DEL a b",
            "EVAL x 0",
            "PING",
            "INFO",
            "KEYS *",
            "PUBLISH a b",
            "XREAD STREAMS a 0",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn what_can_be_had_again_stays_a_moment() {
        for line in [
            "AUTH a",
            "SELECT 1",
            "HELLO 3",
            "RESET",
            "CLIENT SETNAME a",
            "client setinfo LIB-NAME x",
        ] {
            assert_eq!(of(line), Some(Stay::Moment), "{line}");
        }
    }

    #[test]
    fn state_that_ends_stays_a_while() {
        for line in [
            "MULTI",
            "WATCH a",
            "UNWATCH",
            "BLPOP a 0",
            "WAIT 1 0",
            "SUBSCRIBE a",
            "SCRIPT KILL",
            "CONFIG GET a",
            "CLIENT LIST",
        ] {
            assert_eq!(of(line), Some(Stay::While), "{line}");
        }
    }

    #[test]
    fn what_nobody_can_see_stays_for_ever() {
        for line in [
            "READONLY",
            "HIMPORT PREPARE a b",
            "CLIENT TRACKING ON",
            "CLIENT NO-EVICT ON",
            "MONITOR",
            "SYNC",
        ] {
            assert_eq!(of(line), Some(Stay::Always), "{line}");
        }
        for line in ["NOSUCH a", "SCRIPT DEBUG YES", "CLIENT ID", "CLIENT INFO"] {
            assert_eq!(of(line), Some(Stay::BeyondReset), "{line}");
        }
    }
}
