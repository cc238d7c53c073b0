//! The Lua scripts that make each decision atomic on the server: their texts, put together once from small parts, and
//! their SHA1 names.

/// Every script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    /// `SET … NX` without GET, `SETNX`.
    Acquire,
    /// One key written by a command that can take, refresh, overwrite or take over a lock.
    Write,
    /// `MSET`, `MSETNX`, `MSETEX`.
    MultiWrite,
    /// `DEL`, `UNLINK`.
    Release,
    /// One key given up by another command (`GETDEL`, `EXPIRE k 0`, `MOVE` …).
    Remove,
    /// The expiry of one key changed; a point in the past is a release.
    Extend,
    /// `RENAME`, `RENAMENX` of a lock.
    Rename,
    /// Brings records in line behind a self-checked command.
    Reconcile,
    /// Reads the fencing token.
    Fence,
    /// `DELEX … IFEQ`, `DELIFEQ`, `SET … IFEQ` on servers that lack them.
    Emulate,
}

impl Script {
    /// Every script, for `SCRIPT LOAD`.
    pub const ALL: [Script; 10] = [
        Script::Acquire,
        Script::Write,
        Script::MultiWrite,
        Script::Release,
        Script::Remove,
        Script::Extend,
        Script::Rename,
        Script::Reconcile,
        Script::Fence,
        Script::Emulate,
    ];

    /// The text that is sent to the server.
    pub fn text(self) -> &'static str {
        ""
    }

    /// The SHA1 of the text, 40 lower-case hex digits.
    pub fn sha1(self) -> &'static str {
        ""
    }
}
