//! Scripts and functions: which keys they use is only what the client says.

use crate::command::role::Role;
use crate::command::row::{NONE, Row, known, numkeys, plain};

pub(super) const ROWS: &[Row] = &[
    known("eval", -3, numkeys(2), Role::Eval),
    known("eval_ro", -3, numkeys(2), Role::Eval),
    known("evalsha", -3, numkeys(2), Role::Eval),
    known("evalsha_ro", -3, numkeys(2), Role::Eval),
    known("fcall", -3, numkeys(2), Role::Eval),
    known("fcall_ro", -3, numkeys(2), Role::Eval),
    plain("function", -2, NONE),
    known("script", -2, NONE, Role::Script),
];
