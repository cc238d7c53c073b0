//! Bitmaps.

use crate::command::role::Idiom;
use crate::command::row::{ONE, Row, lock, plain, range};

pub(super) const ROWS: &[Row] = &[
    plain("bitcount", -2, ONE),
    plain("bitfield", -2, ONE),
    plain("bitfield_ro", -2, ONE),
    lock("bitop", -4, range(2, -1, 1), Idiom::Store),
    plain("bitpos", -3, ONE),
    plain("bitrangeintarray", -4, ONE),
    plain("getbit", 3, ONE),
    plain("setbit", 4, ONE),
];
