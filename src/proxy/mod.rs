//! The sockets: listener, one task for each downstream connection, lockward's own upstream connection. Decides nothing.

pub mod own;
