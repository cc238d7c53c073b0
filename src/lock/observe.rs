//! Observe mode: follows the traffic of this proxy on locks under an observe rule and says what would have been
//! refused. Writes nothing to the server and changes no reply; what others do past this proxy it does not see.

mod doubt;
mod follow;
mod robbed;
mod seen;
mod tell;
mod under_way;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::event::{ConnectionId, Event, Owner, RuleIndex, Time, What};
use crate::lock::LONGEST_KEPT_KEY;

use super::call::{Context, Request, Subject};
use super::idiom::{self, Meaning};
use super::model::Model;
use super::rule::Rule;
pub use doubt::Doubt;
use robbed::Robbed;
use seen::{Ask, ask};
pub use seen::{Ttl, written_ttl};
use under_way::UnderWay;

/// So many locks are followed at once; of more, those that are free and owe nothing are forgotten first, then those that
/// nobody has touched for longest.
const MOST_LOCKS: usize = 16_384;
/// When there is no more room, so many places are made at once: a look at all locks for one command in four thousand.
const PLACES: usize = MOST_LOCKS / 4;

/// A command on observed locks that is on its way to the server.
#[derive(Debug)]
pub struct Observation {
    database: u32,
    connection: ConnectionId,
    subjects: Vec<Subject>,
    ask: Ask,
    /// It names no other keys: its answer is about these alone.
    alone: bool,
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
pub fn observe(request: &Request<'_>, subjects: Vec<Subject>, context: &Context<'_>) -> Option<Arc<Observation>> {
    let ask = match idiom::read(request, &subjects, context) {
        Meaning::Other => return None,
        meaning => ask(meaning, request),
    };
    let mut observation = observation(ask, subjects, context)?;
    observation.alone = observation.subjects.len() == request.keys.len();
    Some(Arc::new(observation))
}

/// A script of the client's with the observed lock keys `subjects` among its keys: what it does to them is not known,
/// so nothing is held against their owner afterwards.
pub fn observe_script(subjects: Vec<Subject>, context: &Context<'_>) -> Option<Arc<Observation>> {
    observation(Ask::Unknown, subjects, context).map(Arc::new)
}

fn observation(ask: Ask, mut subjects: Vec<Subject>, context: &Context<'_>) -> Option<Observation> {
    subjects.retain(|subject| subject.key.len() <= LONGEST_KEPT_KEY);
    let mut named = HashSet::new();
    subjects.retain(|subject| named.insert(subject.key.clone()));
    if subjects.is_empty() {
        return None;
    }
    Some(Observation {
        database: context.database,
        connection: context.connection.clone(),
        subjects,
        ask,
        alone: false,
    })
}

impl Observation {
    /// About how many bytes it takes: for those who keep many.
    pub fn weight(&self) -> usize {
        size_of::<Observation>() + self.subjects.iter().map(Subject::weight).sum::<usize>()
    }

    /// It gives locks up: the observatory should hear of it before the server does.
    pub fn gives_up(&self) -> bool {
        matches!(self.ask, Ask::Release { .. })
    }

    fn is_of(&self, owner: &Owner) -> bool {
        self.subjects.iter().any(|subject| subject.owner == *owner)
    }
}

/// One lock that is followed.
#[derive(Debug, Default)]
struct Followed {
    model: Model,
    rule: Option<RuleIndex>,
    under_way: UnderWay,
    robbed: Robbed,
    /// Counts all commands; greater is later.
    touched: u64,
}

/// What one proxy has seen of the observed locks, bounded.
#[derive(Debug, Default)]
pub struct Observatory {
    locks: HashMap<(u32, Bytes), Followed>,
    /// Connections that were granted a lease here: the others leave nothing behind.
    holders: HashSet<ConnectionId>,
    doubts: Vec<Doubt>,
    touches: u64,
    /// The latest moment it heard of.
    now: Time,
}

impl Observatory {
    /// A command that gives locks up is about to be sent. What would have been under way for nothing (its lock is not
    /// known to be held) is not noted.
    pub fn sent(&mut self, observation: &Arc<Observation>) {
        for subject in &observation.subjects {
            let id = (observation.database, subject.key.clone());
            if let Some(followed) = self.locks.get_mut(&id)
                && followed.model.lock.is_some()
            {
                followed.under_way.sent(observation);
            }
        }
    }

    /// Takes in one answered command. The answers of one client come in order; those of several almost do.
    pub fn answered(&mut self, seen: &Arc<Observation>, reply: Reply, rules: &[Rule], at: Time, sink: &mut Vec<Event>) {
        self.now = self.now.max(at);
        follow::answered(self, seen, reply, rules, at, sink);
    }

    /// What became of a lease whose TTL has run out by `event.at`, as the keeper says. It cannot know whether the lease was
    /// given up before in a way that owes nothing.
    pub fn ran_out(&mut self, event: Event) -> Event {
        self.now = self.now.max(event.at);
        let followed = self.locks.get_mut(&(event.database, event.key.clone()));
        let held = followed.map(|followed| &mut followed.model).filter(|model| {
            let holder = model.holder();
            holder.is_some_and(|holder| holder.connection == event.connection)
        });
        // Where the model has let go of it, it has told the keeper so itself.
        match held.and_then(|model| follow::ripen(model, milliseconds(event.at))) {
            Some((_, _, What::Ended)) => Event {
                what: What::Ended,
                ..event
            },
            _ => event,
        }
    }

    /// A client closed its connection; these owners ended with it.
    pub fn gone(&mut self, connection: &ConnectionId, owners_ended: &[Owner]) {
        if !self.holders.remove(connection) && owners_ended.is_empty() {
            return;
        }
        let now = milliseconds(self.now);
        for followed in self.locks.values_mut() {
            followed.model.gone(connection, now);
            for owner in owners_ended {
                followed.model.drop_debts(owner, now);
            }
        }
    }

    /// How many locks are followed.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// The lock's model, new if it is not known.
    fn lock(&mut self, database: u32, subject: &Subject) -> &mut Followed {
        let id = (database, subject.key.clone());
        if self.locks.len() >= MOST_LOCKS && !self.locks.contains_key(&id) {
            self.forget();
        }
        self.touches += 1;
        let followed = self.locks.entry(id).or_default();
        followed.touched = self.touches;
        if followed.rule != Some(subject.rule) {
            *followed = Followed {
                rule: Some(subject.rule),
                touched: self.touches,
                ..Followed::default()
            };
        }
        followed
    }

    /// Locks that are free and owe nothing go; if that is not enough, those that were touched longest ago.
    fn forget(&mut self) {
        let now = milliseconds(self.now);
        self.locks.retain(|_, followed| {
            followed.model.ripen(now);
            followed.model.lock.is_some() || !followed.model.debts.is_empty()
        });
        if self.locks.len() > MOST_LOCKS - PLACES {
            let mut touched: Vec<u64> = self.locks.values().map(|followed| followed.touched).collect();
            let surplus = self.locks.len() - (MOST_LOCKS - PLACES);
            let (_, &mut stays, _) = touched.select_nth_unstable(surplus);
            self.locks.retain(|_, followed| followed.touched >= stays);
        }
        if self.holders.len() > MOST_LOCKS {
            self.forget_holders();
        }
    }

    /// A connection was granted a lease. Of one that ended, but was not closed by its client, nobody tells: those who
    /// hold nothing any more are forgotten now and then.
    fn note_holder(&mut self, connection: &ConnectionId) {
        self.holders.insert(connection.clone());
        if self.holders.len() > 2 * MOST_LOCKS {
            self.forget_holders();
        }
    }

    fn forget_holders(&mut self) {
        let locks = self.locks.values();
        self.holders = locks
            .filter_map(|followed| followed.model.holder())
            .map(|holder| holder.connection.clone())
            .collect();
    }
}

/// The proxy's clock in the model's unit.
fn milliseconds(at: Time) -> i64 {
    i64::try_from(at.0 / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
