//! One client, in order: drives a session with bytes in any splitting, the test playing both the client and the server.

mod ending;
mod filters;
mod holding;
mod identity;
mod limits;
mod locks;
mod monitor;
mod observe;
mod own_command;
mod plain;
mod replication;
mod rig;
mod runs;
mod scouting;
mod sharing;
mod shield;
mod silence;
mod streaming;
mod subscriptions;
mod transactions;
mod unheard;
