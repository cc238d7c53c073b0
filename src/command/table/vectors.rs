//! Vector sets (Redis 8). Before 8.4 `COMMAND` gives all of them the arity -1.

use crate::command::row::{ONE, Row, plain};

pub(super) const ROWS: &[Row] = &[
    plain("vadd", -5, ONE),
    plain("vcard", 2, ONE),
    plain("vdim", 2, ONE),
    plain("vemb", -3, ONE),
    plain("vgetattr", 3, ONE),
    plain("vinfo", 2, ONE),
    plain("vismember", 3, ONE),
    plain("vlinks", -3, ONE),
    plain("vrandmember", -2, ONE),
    plain("vrange", -4, ONE),
    plain("vrem", 3, ONE),
    plain("vsetattr", 4, ONE),
    plain("vsim", -4, ONE),
];
