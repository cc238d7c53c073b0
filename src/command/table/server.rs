//! The server: its configuration, state, data on disk and replicas.

use crate::command::role::Role;
use crate::command::row::{Keys, NONE, Row, Subcommand, known, plain, sub};

/// `COMMAND GETKEYS` knows none of these; `DEBUG HELP` of both servers does.
const DEBUG: [Subcommand; 6] = [
    Subcommand {
        name: "digest-value",
        first: 2,
        last: -1,
    },
    sub("htstats-key"),
    sub("listpack"),
    sub("object"),
    sub("quicklist"),
    sub("sdslen"),
];
const MEMORY: [Subcommand; 1] = [sub("usage")];

pub(super) const ROWS: &[Row] = &[
    plain("acl", -2, NONE),
    plain("backup", 2, NONE),
    plain("bgrewriteaof", 1, NONE),
    plain("bgsave", -1, NONE),
    plain("cluster", -2, NONE),
    plain("command", -1, NONE),
    plain("commandlog", -2, NONE),
    plain("config", -2, NONE),
    plain("dbsize", 1, NONE),
    plain("debug", -2, Keys::Subcommands(&DEBUG)),
    plain("failover", -1, NONE),
    known("flushall", -1, NONE, Role::Flush),
    known("flushdb", -1, NONE, Role::Flush),
    plain("hotkeys", -2, NONE),
    plain("info", -1, NONE),
    plain("lastsave", 1, NONE),
    plain("latency", -2, NONE),
    plain("lolwut", -1, NONE),
    plain("memory", -2, Keys::Subcommands(&MEMORY)),
    plain("module", -2, NONE),
    known("monitor", 1, NONE, Role::Monitor),
    known("psync", -3, NONE, Role::Replication),
    known("replconf", -1, NONE, Role::Replication),
    plain("replicaof", 3, NONE),
    plain("role", 1, NONE),
    plain("save", 1, NONE),
    plain("shutdown", -1, NONE),
    plain("slaveof", 3, NONE),
    plain("slowlog", -2, NONE),
    known("swapdb", 3, NONE, Role::SwapDb),
    known("sync", 1, NONE, Role::Replication),
    plain("time", 1, NONE),
    plain("trimslots", -5, NONE),
];
