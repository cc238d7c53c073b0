//! Keys of any type: deleting, renaming, expiring, moving, listing. `WAIT` too.

use crate::command::role::{Idiom, Role};
use crate::command::row::{ALL, Keys, NONE, ONE, Row, Subcommand, TWO, blocking, known, lock, plain, sub};

/// `BLESS` (Redis 8.12).
const BLESS: [Subcommand; 3] = [sub("clear"), sub("get"), sub("set")];
const OBJECT: [Subcommand; 4] = [sub("encoding"), sub("freq"), sub("idletime"), sub("refcount")];

pub(super) const ROWS: &[Row] = &[
    plain("bless", -2, Keys::Subcommands(&BLESS)),
    known("clusterscan", -2, NONE, Role::Scan),
    lock("copy", -3, TWO, Idiom::Copy),
    lock("del", -2, ALL, Idiom::Del),
    plain("dump", 2, ONE),
    plain("exists", -2, ALL),
    lock("expire", -3, ONE, Idiom::Expire),
    lock("expireat", -3, ONE, Idiom::ExpireAt),
    plain("expiretime", 2, ONE),
    known("keys", 2, NONE, Role::Keys),
    lock("migrate", -6, Keys::Migrate, Idiom::Migrate),
    lock("move", 3, ONE, Idiom::Move),
    plain("object", -2, Keys::Subcommands(&OBJECT)),
    lock("persist", 2, ONE, Idiom::Persist),
    lock("pexpire", -3, ONE, Idiom::PExpire),
    lock("pexpireat", -3, ONE, Idiom::PExpireAt),
    plain("pexpiretime", 2, ONE),
    plain("pttl", 2, ONE),
    plain("randomkey", 1, NONE),
    lock("rename", 3, TWO, Idiom::Rename),
    lock("renamenx", 3, TWO, Idiom::Rename),
    lock("restore", -4, ONE, Idiom::Restore),
    lock("restore-asking", -4, ONE, Idiom::Restore),
    known("scan", -2, NONE, Role::Scan),
    lock("sort", -2, Keys::Sort, Idiom::Store),
    plain("sort_ro", -2, ONE),
    plain("touch", -2, ALL),
    plain("ttl", 2, ONE),
    plain("type", 2, ONE),
    lock("unlink", -2, ALL, Idiom::Del),
    blocking("wait", 3, NONE),
    blocking("waitaof", 4, NONE),
];
