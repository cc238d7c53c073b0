//! Hashes, with the expiry of their fields.

use crate::command::row::{Keys, ONE, Row, Subcommand, plain, sub};

/// `HIMPORT` (Redis 8.10).
const HIMPORT: [Subcommand; 1] = [sub("set")];

pub(super) const ROWS: &[Row] = &[
    plain("hdel", -3, ONE),
    plain("hexists", 3, ONE),
    plain("hexpire", -6, ONE),
    plain("hexpireat", -6, ONE),
    plain("hexpiretime", -5, ONE),
    plain("hget", 3, ONE),
    plain("hgetall", 2, ONE),
    plain("hgetdel", -5, ONE),
    plain("hgetex", -5, ONE),
    plain("himport", -2, Keys::Subcommands(&HIMPORT)),
    plain("hincrby", 4, ONE),
    plain("hincrbyfloat", 4, ONE),
    plain("hkeys", 2, ONE),
    plain("hlen", 2, ONE),
    plain("hmget", -3, ONE),
    plain("hmset", -4, ONE),
    plain("hpersist", -5, ONE),
    plain("hpexpire", -6, ONE),
    plain("hpexpireat", -6, ONE),
    plain("hpexpiretime", -5, ONE),
    plain("hpttl", -5, ONE),
    plain("hrandfield", -2, ONE),
    plain("hscan", -3, ONE),
    plain("hset", -4, ONE),
    plain("hsetex", -6, ONE),
    plain("hsetnx", 4, ONE),
    plain("hstrlen", 3, ONE),
    plain("httl", -5, ONE),
    plain("hvals", 2, ONE),
];
