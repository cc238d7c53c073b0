//! One client, in order: the state machine between the two byte streams of one downstream connection.
//!
//! The driver's contract: after [`Session::receive_downstream`], [`Session::receive_upstream`], one of the `…_ended`
//! calls or [`Session::advance`], hand over `events`, `observed` and then `releasing` *before* any byte goes out: whoever
//! keeps leases hears of a grant before its client can act on it, and of a release before the server can. Drain
//! `sightings`, `settled` and `notices` likewise. Then write out [`Session::to_upstream`] and [`Session::to_downstream`],
//! ask [`Session::next`] what to do, and wait. Dropping any future loses nothing.
//!
//! No IO, no clock, no randomness; nothing here knows what a lease record looks like.

mod acknowledge;
mod answers;
mod ending;
mod filter;
mod holding;
mod identity;
mod locks;
mod look;
mod own_command;
mod pending;
mod policies;
mod policy;
mod queue;
mod requests;
mod runs;
mod scouting;
mod sharing;
mod shield;
mod silence;
mod special;
mod state_commands;
mod transaction;
mod unheard;

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

pub use ending::Next;
pub use identity::Peer;
pub use pending::{Databases, Notice, Protocol};
pub use policies::{Policies, Ruled};
pub use policy::{Observed, Policy, Witnessed};
pub use queue::{PENDING_LIMIT, SPECIAL_LIMIT};
pub use sharing::{Handshake, Line, Pool, SHARED_PENDING_LIMIT};

use crate::command::CommandId;
use crate::event::{ConnectionId, Owner, Time};
use crate::lock::observe::Observation;
use crate::lock::scout::Sightings;
use crate::resp::reply::ReplyScanner;
use crate::resp::request::RequestScanner;
use acknowledge::Subscriptions;
use answers::{Elements, Sink};
use ending::Leaving;
use identity::Identity;
use look::Looks;
use queue::Queue;
use runs::Known;
use sharing::Sharing;
use silence::Silence;
use transaction::Transaction;
use unheard::Unheard;

/// Bytes waiting for one side, above which the other side is not read any more.
pub const BUFFER_LIMIT: usize = 256 * 1024;
/// Bytes of one request that may be held whole, as the server's `client-query-buffer-limit`.
pub const REQUEST_LIMIT: usize = 1 << 30;
/// Bytes of one answer that may be held whole to leave record keys out of it.
pub const HOLD_LIMIT: usize = 512 << 20;
/// Above so many bytes a request is streamed, if its keys are known.
const STREAM_FROM: usize = 64 * 1024;

/// One command whose answer has left, for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// Which command.
    pub command: CommandId,
    /// The answer was an error.
    pub error: bool,
    /// It was a lock operation.
    pub lock: bool,
    /// So many alike, one behind the other.
    pub count: u32,
    /// From the request's last byte to the answer's last byte, in microseconds.
    pub request_us: u32,
    /// From sending it on to the answer's last byte, in microseconds.
    pub upstream_us: u32,
}

impl Settled {
    fn is_like(&self, other: &Settled) -> bool {
        (self.command, self.error, self.lock) == (other.command, other.error, other.lock)
            && (self.request_us, self.upstream_us) == (other.request_us, other.upstream_us)
    }
}

/// How far the client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Requests come.
    Open,
    /// No more requests: the client half-closed, or said QUIT, or broke the protocol. Answers due are still delivered.
    Draining,
    /// Over.
    Ended { abort: bool },
}

/// What the client itself did to end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientEnd {
    /// Nothing yet.
    No,
    /// It said QUIT and may still be heard.
    Said,
    /// It sends no more.
    Silent,
}

/// One client: everything between its socket and the server's.
pub struct Session {
    /// Bytes for the server, in order.
    pub to_upstream: BytesMut,
    /// Bytes for the client, in order.
    pub to_downstream: BytesMut,
    /// What happened to locks since the last drain.
    pub events: Vec<Witnessed>,
    /// Commands under observe rules that give locks up, since the last drain: to be told before they are written out.
    pub releasing: Vec<Arc<Observation>>,
    /// Answers to commands under observe rules since the last drain.
    pub observed: Vec<Observed>,
    /// Lock-shaped commands on keys that no rule matches since the last drain.
    pub sightings: Sightings,
    /// Commands settled since the last drain.
    pub settled: Vec<Settled>,
    /// What else the shell must hear of.
    pub notices: Vec<Notice>,
    policy: Arc<Policy>,
    identity: Identity,
    stage: Stage,
    // From the client.
    scanner: RequestScanner,
    /// The command that came last: most come again.
    last: Known,
    requests: BytesMut,
    streaming: bool,
    /// Nothing is sent on until every answer due has come.
    gated: bool,
    /// No request is taken any more: QUIT was said, or the protocol broken.
    deaf: bool,
    /// The client said QUIT, or sends no more.
    client_ended: ClientEnd,
    /// A drain was asked for.
    leaving: Leaving,
    /// Nothing new is sent to the server for now.
    held: bool,
    // To the client.
    replies: ReplyScanner,
    answers: BytesMut,
    sink: Sink,
    kept: BytesMut,
    pending: Queue,
    silence: Silence,
    unheard: Unheard,
    looks: Looks,
    /// Which connection to the server it has.
    sharing: Sharing,
    /// The client cannot be written to any more; answers are still read, for what they tell of locks.
    lost: bool,
    /// When bytes of the server came last.
    heard: Time,
    /// The answer under way is an error.
    error: bool,
    // Modes.
    /// The server lets nobody in without a login, as far as is known.
    asks_login: bool,
    logged_in: bool,
    raw: bool,
    /// The same because nothing was enforced when it switched its answers off.
    blind: bool,
    monitoring: bool,
    /// What is sent from here on will be queued, unless the server refused MULTI.
    in_transaction: bool,
    /// Who the client is will change when EXEC comes.
    identity_queued: bool,
    /// The transaction as the server has confirmed it so far.
    transaction: Transaction,
    /// The EXEC array under way.
    elements: Option<Elements>,
    /// The lock keys that the client watches, and in which database.
    watches: BTreeSet<(u32, Bytes)>,
    subscriptions: Subscriptions,
    /// The server has answered an acquire of this user on this connection.
    admitted: bool,
    /// Since when the next request waits for what another session is told about its lock.
    waits_since: Option<Time>,
}

impl Session {
    /// A session for a new downstream connection.
    pub fn new(policy: Arc<Policy>, connection: ConnectionId, peer: Peer) -> Self {
        let mut session = Session {
            to_upstream: BytesMut::new(),
            to_downstream: BytesMut::new(),
            events: Vec::new(),
            releasing: Vec::new(),
            observed: Vec::new(),
            sightings: Sightings::default(),
            settled: Vec::new(),
            notices: Vec::new(),
            policy,
            identity: Identity::new(connection, peer),
            stage: Stage::Open,
            scanner: RequestScanner::default(),
            last: Known::default(),
            requests: BytesMut::new(),
            streaming: false,
            gated: false,
            deaf: false,
            client_ended: ClientEnd::No,
            leaving: Leaving::No,
            held: false,
            replies: ReplyScanner::default(),
            answers: BytesMut::new(),
            sink: Sink::Idle,
            kept: BytesMut::new(),
            pending: Queue::default(),
            silence: Silence::default(),
            unheard: Unheard::default(),
            looks: Looks::default(),
            sharing: Sharing::default(),
            lost: false,
            heard: Time::default(),
            error: false,
            asks_login: false,
            logged_in: false,
            raw: false,
            blind: false,
            monitoring: false,
            in_transaction: false,
            identity_queued: false,
            transaction: Transaction::default(),
            elements: None,
            watches: BTreeSet::new(),
            subscriptions: Subscriptions::default(),
            admitted: false,
            waits_since: None,
        };
        session.limits();
        session.tell_owners();
        session
    }

    /// The server's small limits hold until it has let the client in.
    fn limits(&mut self) {
        self.asks_login |= self.policy.features.login;
        self.scanner.set_authenticated(!self.asks_login || self.logged_in);
    }

    /// Tells the shell who the client is, under the rules that ask for it.
    fn tell_owners(&mut self) {
        let policy = Arc::clone(&self.policy);
        for rule in policy.attentive_rules() {
            let owner = self.identity.owner(&policy.rules, rule).owner;
            self.notices.push(Notice::Owner { rule, owner });
        }
    }

    /// Which connection this is.
    pub fn connection(&self) -> &ConnectionId {
        &self.identity.connection
    }

    /// The owners that end with this connection.
    pub fn bound_owners(&self) -> Vec<Owner> {
        self.identity.bound_owners()
    }

    /// The client's name, as the server confirmed it.
    pub fn client_name(&self) -> &[u8] {
        &self.identity.name
    }

    /// Takes another policy in force from the next request on.
    pub fn adopt(&mut self, policy: &Arc<Policy>) {
        if !Arc::ptr_eq(&self.policy, policy) {
            self.policy = Arc::clone(policy);
            if self.blind && self.policy.rules.any_enforce() {
                // Its commands went past the rules while these only observed.
                return self.end(true);
            }
            self.limits();
            // Owners are known by the place of their rule, and the rules may have moved.
            self.identity.forget_owners();
            self.tell_owners();
        }
    }

    /// Takes bytes from the client. `now` is when they were read.
    pub fn receive_downstream(&mut self, bytes: &[u8], now: Time) {
        if self.stage != Stage::Open || self.deaf {
            return;
        }
        if self.requests.is_empty() {
            let used = self.take_requests(bytes, now);
            self.requests.extend_from_slice(bytes.get(used..).unwrap_or_default());
        } else {
            self.requests.extend_from_slice(bytes);
            self.advance_requests(now);
        }
        if self.requests.len() > REQUEST_LIMIT {
            self.end(true);
        }
    }

    /// Takes bytes from the server. `now` is when they were read.
    pub fn receive_upstream(&mut self, bytes: &[u8], now: Time) {
        self.heard = now;
        let due = self.pending.len();
        if self.answers.is_empty() {
            let used = self.take_answers(bytes, BUFFER_LIMIT, now);
            self.answers.extend_from_slice(bytes.get(used..).unwrap_or_default());
        } else {
            self.answers.extend_from_slice(bytes);
            self.advance_answers(BUFFER_LIMIT, now);
        }
        if self.line() == Line::Shared {
            self.measure(bytes.len(), due.saturating_sub(self.pending.len()));
        }
        self.forget_if_lost();
        self.advance_requests(now);
    }

    /// Goes on with what was held back, for example after a buffer was written out.
    pub fn advance(&mut self, now: Time) {
        self.advance_answers(BUFFER_LIMIT, now);
        self.forget_if_lost();
        self.advance_requests(now);
    }

    fn advance_requests(&mut self, now: Time) {
        if self.requests.is_empty() || matches!(self.stage, Stage::Ended { .. }) {
            return;
        }
        let mut held = mem::take(&mut self.requests);
        let used = self.take_requests(&held, now);
        held.advance(used);
        // An empty buffer is given back: an idle client costs nothing.
        self.requests = if held.is_empty() { BytesMut::new() } else { held };
    }

    fn advance_answers(&mut self, limit: usize, now: Time) {
        if self.answers.is_empty() {
            return;
        }
        let mut held = mem::take(&mut self.answers);
        let used = self.take_answers(&held, limit, now);
        held.advance(used);
        self.answers = if held.is_empty() { BytesMut::new() } else { held };
    }
}
