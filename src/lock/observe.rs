//! Observe mode: follows the traffic of this proxy on locks under an observe rule and says what would have been
//! refused. Writes nothing and changes no reply.

use bytes::Bytes;

use crate::event::{ConnectionId, Event, Owner, RuleIndex, Time};

use super::call::{Context, Request, Subject};
use super::rule::Rule;

/// A command on observed locks that is on its way to the server.
#[derive(Debug)]
pub struct Observation {
    database: u32,
    connection: ConnectionId,
    subjects: Vec<(Bytes, RuleIndex, Owner)>,
}

/// What the server answered to an observed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A simple string.
    Status,
    /// An error.
    Error,
    /// Nil, in either protocol.
    Nil,
    /// An integer.
    Integer(i64),
    /// Anything else (bulk string, array …).
    Other,
}

/// Reads a command on the observed lock keys `subjects`; `None` if it is no operation on a lease. Used inside MULTI
/// too: the reply is then the element of the EXEC array.
pub fn observe(request: &Request<'_>, subjects: Vec<Subject>, context: &Context<'_>) -> Option<Box<Observation>> {
    let _ = (request, subjects, context);
    None
}

/// What one proxy has seen of the observed locks, bounded.
#[derive(Debug, Default)]
pub struct Observatory {}

impl Observatory {
    /// Takes in one answered command, in reply order.
    pub fn answered(&mut self, seen: &Observation, reply: Reply, rules: &[Rule], at: Time, sink: &mut Vec<Event>) {
        let _ = (&seen.database, &seen.connection, &seen.subjects, reply, rules, at, sink);
    }

    /// A client closed its connection.
    pub fn gone(&mut self, connection: &ConnectionId, owners_ended: &[Owner]) {
        let _ = (connection, owners_ended);
    }
}
