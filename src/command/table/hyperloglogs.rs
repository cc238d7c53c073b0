//! HyperLogLogs.

use crate::command::role::Idiom;
use crate::command::row::{ALL, NONE, ONE, Row, lock, plain, range};

pub(super) const ROWS: &[Row] = &[
    plain("pfadd", -2, ONE),
    plain("pfcount", -2, ALL),
    plain("pfdebug", 3, range(2, 2, 1)),
    lock("pfmerge", -2, ALL, Idiom::Store),
    plain("pfselftest", 1, NONE),
];
