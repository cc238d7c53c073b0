//! What a server has and asks for: newer lock commands, a login. Plain values: lockward's own connection asks the
//! server, by name and by probe, never by version (Valkey 9 says `redis_version:7.2.4`). Decides nothing.

/// The newer commands that clients use for locks, as one server has them. `false` also means 'could not be found out'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `DELEX` (Redis 8.4).
    pub delex: bool,
    /// `DELIFEQ` (Valkey 9).
    pub delifeq: bool,
    /// `MSETEX` (Redis 8.4, Valkey 9.1).
    pub msetex: bool,
    /// `SET … IFEQ` (Redis 8.4, Valkey 8.1).
    pub set_ifeq: bool,
    /// `SET … IFNE` (Redis 8.4).
    pub set_ifne: bool,
    /// A connection may do little before it has logged in, and gets the server's small limits until then.
    pub login: bool,
}
