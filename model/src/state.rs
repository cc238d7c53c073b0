//! What is remembered between two steps: the server's lock and record with the times taken out, the connections with what
//! is on its way, and what is true of each lease, which no part of the protocol can see. Small and without pointers, as
//! many millions of these are kept. Decides nothing.

/// At most so many connections, leases and proxies.
pub const CONNECTIONS: usize = 3;
/// Each may be opened anew once, and is another one then: it has the place so many further on.
pub const LINKS: usize = 2 * CONNECTIONS;
pub const LEASES: usize = 4;
pub const PROXIES: usize = 2;
/// Requests of one connection that are not answered yet, at most.
pub const PIPELINE: usize = 2;

/// An owner, a connection, a lease, a proxy: each by its place.
pub type OwnerId = u8;
pub type LinkId = u8;
pub type LeaseId = u8;

/// Everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub record: Record,
    pub links: [Link; LINKS],
    pub tasks: [Task; LEASES],
    /// Leases granted so far.
    pub granted: u8,
    /// The fencing token of the last grant.
    pub fence: u8,
    /// By bits: the proxies that crashed.
    pub crashed: u8,
    /// What may happen only so often: a restart of the server, strangers that write past the proxy, takeovers;
    /// and by bits, whose stray DEL was executed.
    pub spent: [u8; 4],
    /// By bits: owners for whom one of the exceptions holds until nothing of theirs is outstanding.
    pub excused: u8,
    /// By bits, where renewals are counted: leases with a renewal on its way; held for longer than `max_hold`; renewed once
    /// since nobody has reason to renew them any more.
    pub renewals: u8,
    pub held_long: u8,
    pub renewed_late: u8,
    /// The promise that was broken by the step that led here: its number and one.
    pub broken: u8,
}

/// The lock key and its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    pub lock: Lock,
    /// Whose the lease is.
    pub holder: Holder,
    /// When the lease is due, compared with the lock.
    pub due: Due,
    pub holder_open: bool,
    pub owing: bool,
    /// For each lease how many debts and doubtful payments of it there are; more than one only in a mutant.
    pub debts: [u8; LEASES],
    pub doubts: [u8; LEASES],
    /// By bits: debts and doubts whose connection counts as open; doubts that are out of the window.
    pub open: u8,
    pub aged: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    Absent,
    /// It has no TTL.
    Endless,
    Timed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// There is no lease.
    None,
    /// Marked open by a takeover.
    Open,
    Lease(LeaseId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    /// With the lock (or there is no lease).
    InLine,
    Never,
    /// Ahead, and not when the lock expires.
    Elsewhere,
}

/// A connection of a client through a proxy, and what is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    pub standing: Standing,
    /// The oldest first; the server has served a beginning of them.
    pub queue: [Option<Request>; PIPELINE],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Nothing was ever sent.
    Fresh,
    Open,
    /// Closed by its client. What was sent may still arrive.
    Closed,
    /// Broken otherwise: by a crash of its proxy, a restart of the server, the network.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub meaning: Meaning,
    /// For a grant: which lease it was; `LEASES` else.
    pub lease: u8,
    pub served: bool,
    /// What the answer says: done or not done.
    pub says: bool,
    /// Whether it had an effect.
    pub effect: bool,
    /// How many of this connection's requests are to be answered before it.
    pub place: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meaning {
    Acquire,
    /// An acquire that asks for no TTL.
    AcquireEndless,
    /// The release that this lease's task sends.
    Release(LeaseId),
    /// A DEL by somebody who holds nothing.
    Stray,
}

/// What is true of a lease and of the task that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Through which connection it was acquired.
    pub link: LinkId,
    pub client: Client,
    pub fate: Fate,
}

/// What the task knows and has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// The answer to its acquire has not arrived.
    Unheard,
    /// It never will. Nobody is at work.
    Deaf,
    /// It is at work.
    Working,
    /// Its one release is on its way.
    Releasing,
    /// Its release was executed.
    Released,
    /// Its release will never be executed.
    Missed,
}

/// How the lease stands with the server, whatever the record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// There is no such lease yet.
    None,
    /// Its TTL has not passed, and nobody has taken it away.
    Held,
    /// Its TTL has passed.
    Expired,
    /// Given up by a release.
    Removed,
    /// Its lock was removed by a sibling's release, by an exception of promise 2, while its task was at work.
    Robbed,
    /// Freed by lockward, since its grant could not be written.
    Freed,
    /// Opened by a takeover.
    Opened,
    /// Somebody wrote past the proxy.
    Disturbed,
}

impl Default for Record {
    fn default() -> Record {
        Record {
            lock: Lock::Absent,
            holder: Holder::None,
            due: Due::InLine,
            holder_open: false,
            owing: false,
            debts: [0; LEASES],
            doubts: [0; LEASES],
            open: 0,
            aged: 0,
        }
    }
}

impl Link {
    pub const FRESH: Link = Link {
        standing: Standing::Fresh,
        queue: [None; PIPELINE],
    };

    /// Whether the client can send.
    pub fn is_usable(&self) -> bool {
        matches!(self.standing, Standing::Fresh | Standing::Open)
    }

    pub fn waiting(&self) -> usize {
        self.queue.iter().flatten().count()
    }
}

impl Task {
    pub const NONE: Task = Task {
        link: 0,
        client: Client::Unheard,
        fate: Fate::None,
    };

    /// It may still be at work on the lock, and the lock is still its.
    pub fn is_live(&self) -> bool {
        self.fate == Fate::Held && matches!(self.client, Client::Unheard | Client::Working)
    }
}

impl State {
    pub fn new() -> State {
        State {
            record: Record::default(),
            links: [Link::FRESH; LINKS],
            tasks: [Task::NONE; LEASES],
            granted: 0,
            fence: 0,
            crashed: 0,
            spent: [0; 4],
            excused: 0,
            renewals: 0,
            held_long: 0,
            renewed_late: 0,
            broken: 0,
        }
    }

    /// The lease that the record names, if it is one that nobody has taken away.
    pub fn victim(&self) -> Option<LeaseId> {
        match self.record.holder {
            Holder::Lease(lease) if self.record.lock != Lock::Absent => Some(lease),
            _ => None,
        }
    }
}
