//! Strings.

use crate::command::role::Idiom;
use crate::command::row::{ALL, Keys, ONE, PAIRS, Row, TWO, lock, plain};

pub(super) const ROWS: &[Row] = &[
    plain("append", 3, ONE),
    plain("decr", 2, ONE),
    plain("decrby", 3, ONE),
    lock("delex", -2, ONE, Idiom::DelEx),
    lock("delifeq", 3, ONE, Idiom::DelIfEq),
    plain("digest", 2, ONE),
    plain("get", 2, ONE),
    lock("getdel", 2, ONE, Idiom::GetDel),
    lock("getex", -2, ONE, Idiom::GetEx),
    plain("getrange", 4, ONE),
    lock("getset", 3, ONE, Idiom::GetSet),
    plain("incr", 2, ONE),
    plain("incrby", 3, ONE),
    plain("incrbyfloat", 3, ONE),
    plain("increx", -2, ONE),
    plain("lcs", -3, TWO),
    plain("mget", -2, ALL),
    lock("mset", -3, PAIRS, Idiom::MSet),
    lock("msetex", -4, Keys::NumKeys { at: 1, step: 2 }, Idiom::MSetEx),
    lock("msetnx", -3, PAIRS, Idiom::MSetNx),
    lock("psetex", 4, ONE, Idiom::SetEx),
    lock("set", -3, ONE, Idiom::Set),
    lock("setex", 4, ONE, Idiom::SetEx),
    lock("setnx", 3, ONE, Idiom::SetNx),
    plain("setrange", 4, ONE),
    plain("strlen", 2, ONE),
    plain("substr", 4, ONE),
];
