//! What the keeper does with leases, step by step on a virtual clock, and a seeded simulation of many clients.

mod bounds;
mod disconnect;
mod expiry;
mod legacy;
mod marks;
mod renewal;
mod rig;
mod simulation;
mod table;
