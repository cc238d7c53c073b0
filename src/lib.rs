//! lockward: a RESP proxy for Redis and Valkey that knows whose lock it is.
//!
//! A pure core and thin tokio shells around it. Imports go one way only, left to right:
//!
//! ```text
//! resp ── command ── event ──── lock ───── session │ proxy · metrics · admin · config · server · cli
//! wire    commands   what can   rules,     one     │ sockets, clock, HTTP, files,
//! bytes   and keys   happen,    leases,    client, │ processes, entropy live only here
//!                    and why    scripts    in order│
//! ```
//!
//! The driver's contract: hand the bytes of both sockets and the time to [`session::Session`], then after each call
//! write out both buffers, drain what it tells, ask [`session::Session::next`] what to wait for, and wait. Dropping any
//! future loses nothing.
//!
//! What this crate does not do: it parses no configuration in the core, and nothing left of the line above knows a
//! socket, a clock, a random number or a global.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod admin;
pub mod cli;
pub mod command;
pub mod config;
pub mod event;
pub mod lock;
pub mod metrics;
pub mod proxy;
pub mod resp;
pub mod server;
pub mod session;
