//! The command line as a program: against a real lockward with a real Redis behind it, and against others that answer
//! strangely. `LOCKWARD_TEST_REDIS` names the Redis.

#[path = "../real_server/mod.rs"]
mod real_server;

mod check;
mod explain;
mod faults;
mod rig;
mod shows;
mod tap;
