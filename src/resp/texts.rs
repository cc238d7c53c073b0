//! Every text that a client can get from lockward itself and not from the server, in one place. An error begins with
//! a stable code: `LOCKHELD`, `LOCKWARD`, `UPSTREAM`, `NOPERM`.

/// A client named a lease record as a key.
pub const RECORD_KEY: &str =
    "LOCKWARD this key belongs to lockward: lease records are neither read nor written by clients";
/// A command's name with a NUL byte: the server may or may not read it up to there.
pub const NAME_WITH_NUL: &str = "ERR unknown command: its name holds a NUL byte";
/// `LOCKWARD` with unknown or missing words.
pub const OWN_USAGE: &str = "LOCKWARD unknown subcommand or wrong number of arguments. Try LOCKWARD HELP.";
/// `LOCKWARD FENCE` for a key that is no lock.
pub const FENCE_NO_RULE: &str = "LOCKWARD no rule in enforce mode matches this key";
/// The answer to `KEYS` is too long to be held.
pub const LISTING_TOO_LONG: &str =
    "LOCKWARD the list of keys is too long to be filtered; use SCAN with a smaller COUNT";
/// What the server itself says to `CLIENT MAINT_NOTIFICATIONS` where it does not know it: clients then go on without.
pub const MAINT_NOTIFICATIONS: &str = "ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.";
/// A command that names a lock among thousands of keys, and that no script can do in pieces.
pub const TOO_MANY_ARGUMENTS: &str = "LOCKWARD too many arguments for a command that writes or removes a lock";
/// As the server says it to a client that has not logged in.
pub const NOAUTH: &str = "NOAUTH Authentication required.";
/// As Redis says it when its own limit is reached.
pub const TOO_MANY_CLIENTS: &str = "ERR max number of clients reached";
/// A refused overwrite; `%s` is the lock key, escaped. The lock scripts fill it in on the server.
pub const LOCK_HELD: &str = "LOCKHELD lock '%s' is held by another client";
/// What `LOCKWARD HELP` answers.
pub const OWN_HELP: [&str; 7] = [
    "LOCKWARD <subcommand> [<arg>]. Subcommands are:",
    "FENCE <key>",
    "    The fencing token of the lock, if the caller (or its owner, owing nothing on it) holds it; else nil.",
    "WHOAMI",
    "    The connection, and the owner that the caller is under each lock rule.",
    "HELP",
    "    Print this help.",
];

/// The server cannot be reached: where, and what the system says.
pub fn upstream_unreachable(place: &str, why: &str) -> String {
    format!("UPSTREAM cannot reach the server at {place}: {why}")
}

/// A connection that several clients share broke before this answer came.
pub const UPSTREAM_BROKE: &str =
    "UPSTREAM the connection to the server broke before it answered; the command may have been carried out";

/// The client's ACL user may not run the lock scripts. `said` is the server's own error line, `prefix` what the names of
/// lease records begin with.
pub fn noperm(said: &[u8], prefix: &str) -> String {
    let said = String::from_utf8_lossy(said.strip_prefix(b"NOPERM ").unwrap_or(said));
    format!(
        "NOPERM lockward runs lock commands as scripts under the client's own user; besides its commands grant it \
         +eval +evalsha +del +exists +hdel +hget +hgetall +hset +persist +pexpire +pexpireat +pexpiretime +pttl +time \
         (with fencing also +get +set) and the records among its keys (%RW~{prefix}*). The server said: {said}"
    )
}
