//! Arrays (Redis 8.8). By the documentation: neither of the servers that the tests start has them.

use crate::command::row::{ONE, Row, plain};

pub(super) const ROWS: &[Row] = &[
    plain("arcount", 2, ONE),
    plain("ardel", -3, ONE),
    plain("ardelrange", -4, ONE),
    plain("arget", 3, ONE),
    plain("argetrange", 4, ONE),
    plain("argrep", -6, ONE),
    plain("arinfo", -2, ONE),
    plain("arinsert", -3, ONE),
    plain("arlastitems", -3, ONE),
    plain("arlen", 2, ONE),
    plain("armget", -3, ONE),
    plain("armset", -4, ONE),
    plain("arnext", 2, ONE),
    plain("arop", -5, ONE),
    plain("arring", -4, ONE),
    plain("arscan", -4, ONE),
    plain("arseek", 3, ONE),
    plain("arset", -4, ONE),
];
