//! What a command means to a session and to a lock, as two enums that the table's rows carry. No logic.

/// What the session has to know of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One request, one reply, no state: forwarded.
    Forward,
    /// As `Forward`, but the reply may be long in coming (`BLPOP`, `XREAD BLOCK`, `WAIT` …).
    Blocking,
    /// `MULTI`.
    Multi,
    /// `EXEC`.
    Exec,
    /// `DISCARD`.
    Discard,
    /// `WATCH`.
    Watch,
    /// `UNWATCH`.
    Unwatch,
    /// `SUBSCRIBE`, `PSUBSCRIBE`, `SSUBSCRIBE`: one acknowledgement for each channel, or a single error.
    Subscribe(Channels),
    /// `UNSUBSCRIBE` and its sisters: likewise, and without arguments one for each channel subscribed, at least one.
    Unsubscribe(Channels),
    /// `MONITOR`: `+OK`, then a stream of lines.
    Monitor,
    /// `AUTH`.
    Auth,
    /// `HELLO`.
    Hello,
    /// `RESET`.
    Reset,
    /// `SELECT`.
    Select,
    /// `QUIT`.
    Quit,
    /// `CLIENT …` (SETNAME, REPLY, TRACKING, MAINT_NOTIFICATIONS and the rest).
    Client,
    /// `SCRIPT …` (FLUSH matters).
    Script,
    /// `EVAL`, `EVALSHA`, `FCALL` and their `_RO` forms: self-checked where a lock stands among the keys.
    Eval,
    /// `KEYS`: record keys are left out of the answer.
    Keys,
    /// `SCAN`: likewise.
    Scan,
    /// `FLUSHDB`, `FLUSHALL`.
    Flush,
    /// `SWAPDB`.
    SwapDb,
    /// `SYNC`, `PSYNC`, `REPLCONF` and whatever else leaves the request-reply protocol for good: raw from here on.
    Replication,
    /// Can be a lock operation, if a key matches a rule.
    Lock(Idiom),
    /// `LOCKWARD …`: answered by the proxy.
    Lockward,
}

/// The three families of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// `SUBSCRIBE`.
    Plain,
    /// `PSUBSCRIBE`.
    Pattern,
    /// `SSUBSCRIBE`.
    Shard,
}

/// How a client spells a lock operation. What it means for a lock depends on its arguments too: see the lock module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Idiom {
    /// `SET`, with all its options.
    Set,
    /// `SETNX`.
    SetNx,
    /// `SETEX`, `PSETEX`.
    SetEx,
    /// `GETSET`.
    GetSet,
    /// `MSET`.
    MSet,
    /// `MSETNX`.
    MSetNx,
    /// `MSETEX` (Redis 8.4).
    MSetEx,
    /// `DEL`, `UNLINK`.
    Del,
    /// `GETDEL`.
    GetDel,
    /// `DELEX` (Redis 8.4).
    DelEx,
    /// `DELIFEQ` (Valkey 9).
    DelIfEq,
    /// `EXPIRE`, seconds from now.
    Expire,
    /// `PEXPIRE`, milliseconds from now.
    PExpire,
    /// `EXPIREAT`, a point in seconds.
    ExpireAt,
    /// `PEXPIREAT`, a point in milliseconds.
    PExpireAt,
    /// `PERSIST`.
    Persist,
    /// `GETEX`.
    GetEx,
    /// `RENAME`, `RENAMENX`: releases its source, overwrites (NX: acquires) its target.
    Rename,
    /// `MOVE`.
    Move,
    /// `MIGRATE`.
    Migrate,
    /// `COPY`.
    Copy,
    /// `RESTORE`.
    Restore,
    /// A command that stores its result at one key: the argument's index of the target is in the table row.
    Store,
}
