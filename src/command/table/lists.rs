//! Lists.

use crate::command::row::{ALL_BUT_LAST, ONE, Row, TWO, blocking, numkeys, plain};

pub(super) const ROWS: &[Row] = &[
    blocking("blmove", 6, TWO),
    blocking("blmovem", -6, TWO),
    blocking("blmpop", -5, numkeys(2)),
    blocking("blpop", -3, ALL_BUT_LAST),
    blocking("brpop", -3, ALL_BUT_LAST),
    blocking("brpoplpush", 4, TWO),
    plain("lindex", 3, ONE),
    plain("linsert", 5, ONE),
    plain("llen", 2, ONE),
    plain("lmove", 5, TWO),
    plain("lmovem", -5, TWO),
    plain("lmpop", -4, numkeys(1)),
    plain("lpop", -2, ONE),
    plain("lpos", -3, ONE),
    plain("lpush", -3, ONE),
    plain("lpushx", -3, ONE),
    plain("lrange", 4, ONE),
    plain("lrem", 4, ONE),
    plain("lset", 4, ONE),
    plain("ltrim", 4, ONE),
    plain("rpop", -2, ONE),
    plain("rpoplpush", 3, TWO),
    plain("rpush", -3, ONE),
    plain("rpushx", -3, ONE),
];
