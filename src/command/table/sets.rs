//! Sets, with the expiry of their members (Redis 8.12).

use crate::command::role::Idiom;
use crate::command::row::{ALL, ONE, Row, TWO, lock, numkeys, plain};

pub(super) const ROWS: &[Row] = &[
    plain("sadd", -3, ONE),
    plain("saddex", -5, ONE),
    plain("scard", 2, ONE),
    plain("sdiff", -2, ALL),
    plain("sdiffcard", -3, numkeys(1)),
    lock("sdiffstore", -3, ALL, Idiom::Store),
    plain("sexpire", -6, ONE),
    plain("sexpireat", -6, ONE),
    plain("sexpiretime", -5, ONE),
    plain("sinter", -2, ALL),
    plain("sintercard", -3, numkeys(1)),
    lock("sinterstore", -3, ALL, Idiom::Store),
    plain("sismember", 3, ONE),
    plain("smembers", 2, ONE),
    plain("smismember", -3, ONE),
    plain("smove", 4, TWO),
    plain("spersist", -5, ONE),
    plain("spexpire", -6, ONE),
    plain("spexpireat", -6, ONE),
    plain("spexpiretime", -5, ONE),
    plain("spop", -2, ONE),
    plain("spttl", -5, ONE),
    plain("srandmember", -2, ONE),
    plain("srem", -3, ONE),
    plain("sscan", -3, ONE),
    plain("sttl", -5, ONE),
    plain("sunion", -2, ALL),
    plain("sunioncard", -3, numkeys(1)),
    lock("sunionstore", -3, ALL, Idiom::Store),
];
