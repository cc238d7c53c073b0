//! Lock rules: which keys are locks and how they are treated. Built by the configuration; knows no TOML.

use std::sync::Arc;

/// How a rule's locks are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Operations are checked and refused.
    Enforce,
    /// Nothing is changed on the wire; what would be refused is counted.
    Observe,
    /// The keys are no locks.
    Off,
}

/// One part of an owner's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// The downstream connection.
    Connection,
    /// The process at the other end of a unix socket; over TCP the connection.
    Process,
    /// The client's IP address.
    Address,
    /// `CLIENT SETNAME`; without a name the connection.
    ClientName,
    /// The ACL user.
    User,
    /// Everybody is one owner.
    Any,
}

/// What happens to locks without a live record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmanaged {
    /// As Redis does it.
    Allow,
    /// Refused.
    Refuse,
}

/// How a refused overwrite is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedWrite {
    /// With `-LOCKHELD`.
    Error,
    /// With nil, where the command can answer nil.
    Nil,
}

/// One rule. Times in milliseconds.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The metric label.
    pub name: Arc<str>,
    /// Glob patterns as in `SCAN MATCH`; one must match.
    pub patterns: Vec<Box<[u8]>>,
    /// Enforce, observe or off.
    pub mode: Mode,
    /// All parts must agree. Never empty.
    pub owner: Vec<OwnerPart>,
    /// Locks without a live record.
    pub unmanaged: Unmanaged,
    /// A fencing token with each lease.
    pub fencing: bool,
    /// Answer DELEX, DELIFEQ and SET IFEQ on servers that lack them.
    pub emulate: bool,
    /// The answer to a refused overwrite.
    pub denied_write: DeniedWrite,
    /// TTL for acquires that have none.
    pub default_ttl_ms: Option<u64>,
    /// The longest TTL.
    pub max_ttl_ms: Option<u64>,
    /// How long an owed release is expected; 0 switches debts off.
    pub late_release_window_ms: u64,
    /// Extend leases while their owner is connected.
    pub renew: bool,
    /// Where renewal ends.
    pub max_hold_ms: u64,
    /// Release leases whose owner's last connection closed.
    pub release_on_disconnect: bool,
    /// How long after that.
    pub disconnect_grace_ms: u64,
}
