//! The command table, one file for each family, sorted by name within. Adding a command is one row.
//!
//! The facts are those of `COMMAND` and `COMMAND GETKEYS` of Redis 7.0.15, Redis 8.2.3 and Valkey 9.1, which
//! `tests/command_table.rs` compares row by row; for what came later, to Redis 8.12, those of the documentation at
//! redis.io and of the npm package `@ioredis/commands` 2.4, which is made from a server's `COMMAND`. Where versions
//! differ a row is as wide as the widest. The table says nothing of options, flags or access rights.

mod arrays;
mod bitmaps;
mod connection;
mod generic;
mod geo;
mod hashes;
mod hyperloglogs;
mod lists;
mod modules;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;
mod vectors;

use super::row::Row;

/// All families. The order decides nothing but the numbers of the commands.
pub(super) static FAMILIES: [&[Row]; 18] = [
    arrays::ROWS,
    bitmaps::ROWS,
    connection::ROWS,
    generic::ROWS,
    geo::ROWS,
    hashes::ROWS,
    hyperloglogs::ROWS,
    lists::ROWS,
    modules::ROWS,
    pubsub::ROWS,
    scripting::ROWS,
    server::ROWS,
    sets::ROWS,
    sorted_sets::ROWS,
    streams::ROWS,
    strings::ROWS,
    transactions::ROWS,
    vectors::ROWS,
];
