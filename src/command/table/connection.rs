//! The connection itself, and `LOCKWARD`, which the proxy answers.

use crate::command::role::Role;
use crate::command::row::{NONE, Row, known, plain};

pub(super) const ROWS: &[Row] = &[
    plain("asking", 1, NONE),
    known("auth", -2, NONE, Role::Auth),
    known("client", -2, NONE, Role::Client),
    plain("echo", 2, NONE),
    known("hello", -1, NONE, Role::Hello),
    known("lockward", -1, NONE, Role::Lockward),
    plain("ping", -1, NONE),
    known("quit", -1, NONE, Role::Quit),
    plain("readonly", 1, NONE),
    plain("readwrite", 1, NONE),
    known("reset", 1, NONE, Role::Reset),
    known("select", 2, NONE, Role::Select),
];
