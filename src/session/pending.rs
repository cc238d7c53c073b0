//! What the session still expects from the server: one entry for each request, in order, and how its answer is to be
//! read. Decided on the way in; nothing is looked up again when the answer comes. Holds no logic.

use std::sync::Arc;

use bytes::Bytes;

use crate::command::{Channels, CommandId};
use crate::event::{Owner, RuleIndex, Time};
use crate::lock::call::Call;
use crate::lock::observe::Observation;
use crate::lock::shield::{Bar, Spelling};
use crate::session::identity::Change;
use crate::session::look::Look;
use crate::session::silence::Switch;

/// One request that was sent, or answered out of turn, and whose answer has not left yet.
pub(super) struct Pending {
    /// Which command, for the metrics.
    pub command: CommandId,
    /// It was a lock operation, for the metrics.
    pub lock: bool,
    /// The answer may be long in coming: if the client leaves, the upstream connection goes at once.
    pub blocking: bool,
    /// The answer may be long in coming unless a transaction queues the command.
    pub waits: bool,
    /// It was sent with an [`Expect::Special`]; `expect` itself changes while its answer is read.
    pub special: bool,
    /// The same, and that was a [`Special::Acknowledge`].
    pub subscribes: bool,
    /// It may free a lock without naming it, or be long in coming: what the shield knows now says nothing of later.
    pub stirs: bool,
    /// About how many bytes are kept to read the answer by.
    pub weight: usize,
    /// So many alike, one behind the other: more than one only of plain requests.
    pub count: u32,
    /// When the request was complete.
    pub received: Time,
    /// When it was sent on.
    pub sent: Time,
    /// How the answer is read.
    pub expect: Expect,
}

impl Pending {
    /// Whether its answer may tell of a grant.
    pub(super) fn may_grant(&self) -> bool {
        match &self.expect {
            Expect::Special(special) => matches!(**special, Special::Script(_) | Special::Exec),
            Expect::Forward => false,
        }
    }

    pub(super) fn new(command: CommandId, expect: Expect, now: Time) -> Self {
        Pending {
            command,
            lock: false,
            blocking: false,
            waits: false,
            special: matches!(expect, Expect::Special(_)),
            subscribes: matches!(&expect, Expect::Special(special) if matches!(**special, Special::Acknowledge(_))),
            stirs: match &expect {
                Expect::Forward => command == CommandId::OTHER,
                Expect::Special(special) => special.stirs(),
            },
            weight: match &expect {
                Expect::Forward => 0,
                Expect::Special(special) => special.weight(),
            },
            count: 1,
            received: now,
            sent: now,
            expect,
        }
    }

    /// A request that is passed on as it is, and so is its answer.
    pub(super) fn plain(command: CommandId, now: Time) -> Self {
        Pending {
            command,
            lock: false,
            blocking: false,
            waits: false,
            special: false,
            subscribes: false,
            stirs: command == CommandId::OTHER,
            weight: 0,
            count: 1,
            received: now,
            sent: now,
            expect: Expect::Forward,
        }
    }

    /// Whether one more plain request like this one needs no entry of its own.
    pub(super) fn takes(&self, command: CommandId, now: Time) -> bool {
        let plain = !(self.special || self.blocking || self.waits || self.stirs || self.lock);
        plain && self.command == command && self.received == now && self.sent == now
    }

    /// Takes so many off this entry, of which more are left.
    pub(super) fn split(&mut self, count: u32) -> Self {
        self.count -= count;
        Pending {
            count,
            received: self.received,
            sent: self.sent,
            ..Pending::plain(self.command, self.sent)
        }
    }

    /// Takes one off an entry that stands for several; `None`: it stands for one.
    pub(super) fn split_one(&mut self) -> Option<Self> {
        (self.count > 1).then(|| self.split(1))
    }

    /// Whether a transaction begins or ends with it.
    pub(super) fn bounds_transaction(&self) -> bool {
        matches!(&self.expect, Expect::Special(special) if !special.can_queue())
    }
}

/// How an answer is read.
pub(super) enum Expect {
    /// One reply, passed on as it is.
    Forward,
    /// Anything else.
    Special(Box<Special>),
}

/// Every other way to read an answer.
pub(super) enum Special {
    /// A lock script: the report is taken off, the rest is the client's.
    Script(Script),
    /// A reconcile: the report is taken off, the rest is swallowed.
    Reconcile(Box<Call>),
    /// Passed on; the observatory hears of it.
    Observed(Arc<Observation>),
    /// Our last words to a client that broke the protocol wait for their turn; the server was not asked.
    LastWords(Bytes),
    /// The contention shield's refusal waits for its turn; the server was not asked.
    Shielded(Spelling),
    /// An empty line, which answers nothing but counts as the command that `CLIENT REPLY SKIP` speaks of.
    Blank,
    /// Our own look at a lock, in place of an acquire.
    Look(Look),
    /// A question of ours; nobody sees the answer.
    Ours,
    /// The server's OK is to a question of ours: it would have said nothing to the client's own.
    Mute,
    /// The server's answer is replaced by ours, an error only if `errors_too`, and never that the client has to log in.
    Replace {
        /// Our answer.
        bytes: Bytes,
        /// The server was made to fail on purpose.
        errors_too: bool,
    },
    /// Passed on; if it is no error, the session's identity changes.
    Identity(Change),
    /// `MULTI`.
    Multi,
    /// `EXEC`: each element is read as its command asked.
    Exec,
    /// `DISCARD`.
    Discard,
    /// Acknowledgements of a subscription command, or a single error.
    Acknowledge(Acknowledge),
    /// `SYNC`, `PSYNC`: unless refused, what follows is a stream of raw bytes in both directions.
    Replication,
    /// `MONITOR`: after `+OK` a stream of lines.
    Monitor,
    /// Record keys are left out of the answer.
    Filter(Listing),
    /// Our own PING, sent ahead to learn whether the server lets the client in: its refusal is the client's answer,
    /// and after its PONG the request is taken up again.
    LoginProbe(Bytes),
    /// `CLIENT REPLY`: `ON` as it came, or our own `ON` in place of `OFF` and `SKIP`.
    Switch(Switch),
    /// Passed on; the shell is told if it is no error.
    Notice(Notice),
    /// `FLUSHDB`, `FLUSHALL`, `SWAPDB`: passed on; the shell is told if it is no error.
    Flush {
        /// Which command.
        command: &'static str,
        /// Where; `None`: in the client's own database when its turn comes.
        databases: Option<Databases>,
        /// Until this is dropped, the contention shield knows of no lock.
        _bar: Bar,
    },
    /// `WATCH`: passed on; the keeper is told of these lock keys.
    Watch(Vec<Bytes>),
    /// `UNWATCH`: likewise.
    Unwatch,
}

impl Special {
    /// About how many bytes it keeps.
    pub(super) fn weight(&self) -> usize {
        match self {
            Special::Script(script) => script.call.weight() + script.sent_as_sha.as_ref().map_or(0, Bytes::len),
            Special::Reconcile(call) => call.weight(),
            Special::Observed(observation) => observation.weight(),
            Special::Look(look) => look.weight(),
            Special::LoginProbe(bytes) => bytes.len(),
            Special::Watch(keys) => keys.iter().map(|key| size_of::<Bytes>() + key.len()).sum(),
            // Their number is bounded, and that is enough.
            _ => 0,
        }
    }
}

/// A lock script under way.
pub(super) struct Script {
    /// What it means.
    pub call: Box<Call>,
    /// It went as EVALSHA: the bytes that were sent, should the server not know the script.
    pub sent_as_sha: Option<Bytes>,
}

/// Acknowledgements still to come.
pub(super) struct Acknowledge {
    /// Which family of subscriptions.
    pub channels: Channels,
    /// How many; `None`: as many as are subscribed when its turn comes, at least one.
    pub left: Option<u64>,
}

/// The answers that list keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// An array of keys.
    Keys,
    /// A cursor and an array of keys.
    Scan,
}

/// Which databases a command emptied or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Databases {
    /// This one.
    One(u32),
    /// These two, for each other.
    Two(u32, u32),
    /// Every one.
    All,
}

impl Databases {
    /// Each of them; `None` stands for all.
    pub fn each(self) -> impl Iterator<Item = Option<u32>> {
        let (first, second) = match self {
            Databases::One(database) => (Some(database), None),
            Databases::Two(one, other) => (Some(one), Some(other).filter(|other| *other != one)),
            Databases::All => (None, None),
        };
        std::iter::once(first).chain(second.map(Some))
    }
}

/// What is spoken at the wrong port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TLS.
    Tls,
    /// HTTP: closed as the server does it.
    Http,
    /// The header of a load balancer (PROXY protocol), from where none is expected.
    ProxyHeader,
}

/// What the shell has to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The server's script cache was emptied: load ours again.
    ScriptsFlushed,
    /// The client is, from here on, this owner under this rule. Told only where a rule asks who is connected.
    Owner {
        /// The rule.
        rule: RuleIndex,
        /// The owner.
        owner: Owner,
    },
    /// Who may do what on the server, or who may come in without a login, may have changed.
    RightsChanged,
    /// `FLUSHDB`, `FLUSHALL` or `SWAPDB` went through: leases may be gone or in another database.
    DataFlushed {
        /// Which command.
        command: &'static str,
        /// Where.
        databases: Databases,
    },
    /// The client has another name, as the server confirmed it, cut at 256 bytes; empty: none any more.
    Name(Bytes),
    /// The client speaks another protocol: nothing of it was taken, and no more is.
    Foreign(Protocol),
    /// The client watches, or no longer watches, a lock key.
    Watching {
        /// The database.
        database: u32,
        /// The lock key.
        key: Bytes,
        /// Begins or ends.
        on: bool,
    },
}
