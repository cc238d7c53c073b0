//! Geographical positions.

use crate::command::role::Idiom;
use crate::command::row::{Keys, ONE, Row, TWO, lock, plain};

pub(super) const ROWS: &[Row] = &[
    plain("geoadd", -5, ONE),
    plain("geodist", -4, ONE),
    plain("geohash", -2, ONE),
    plain("geopos", -2, ONE),
    lock("georadius", -6, Keys::GeoRadius { options: 6 }, Idiom::Store),
    plain("georadius_ro", -6, ONE),
    lock("georadiusbymember", -5, Keys::GeoRadius { options: 5 }, Idiom::Store),
    plain("georadiusbymember_ro", -5, ONE),
    plain("geosearch", -7, ONE),
    lock("geosearchstore", -8, TWO, Idiom::Store),
];
