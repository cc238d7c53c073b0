//! Transactions.

use crate::command::role::Role;
use crate::command::row::{ALL, NONE, Row, known};

pub(super) const ROWS: &[Row] = &[
    known("discard", 1, NONE, Role::Discard),
    known("exec", 1, NONE, Role::Exec),
    known("multi", 1, NONE, Role::Multi),
    known("unwatch", 1, NONE, Role::Unwatch),
    known("watch", -2, ALL, Role::Watch),
];
