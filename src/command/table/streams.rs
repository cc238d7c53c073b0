//! Streams.

use crate::command::row::{Keys, ONE, Row, Subcommand, blocking, plain, sub};

const XGROUP: [Subcommand; 5] = [
    sub("create"),
    sub("createconsumer"),
    sub("delconsumer"),
    sub("destroy"),
    sub("setid"),
];
const XINFO: [Subcommand; 3] = [sub("consumers"), sub("groups"), sub("stream")];

pub(super) const ROWS: &[Row] = &[
    plain("xack", -4, ONE),
    plain("xackdel", -6, ONE),
    plain("xadd", -5, ONE),
    plain("xautoclaim", -6, ONE),
    plain("xcfgset", -2, ONE),
    plain("xclaim", -6, ONE),
    plain("xdel", -3, ONE),
    plain("xdelex", -5, ONE),
    plain("xgroup", -2, Keys::Subcommands(&XGROUP)),
    plain("xidmprecord", 5, ONE),
    plain("xinfo", -2, Keys::Subcommands(&XINFO)),
    plain("xlen", 2, ONE),
    plain("xnack", -7, ONE),
    plain("xpending", -3, ONE),
    plain("xrange", -4, ONE),
    blocking("xread", -4, Keys::Streams),
    blocking("xreadgroup", -7, Keys::Streams),
    plain("xrevrange", -4, ONE),
    plain("xsetid", -3, ONE),
    plain("xtrim", -4, ONE),
];
