//! Lets the model follow what the server did. The server has done as it was told; the model says what enforce mode would
//! have done, and is then brought in line with the facts.

use std::sync::Arc;

use crate::event::{ConnectionId, Event, Owner, Time, Token, What};
use crate::lock::call::Subject;
use crate::lock::idiom::{Kind, Many};
use crate::lock::model::{Caller, Holder, Lock, Model, NewExpiry, Outcome, Standing};
use crate::lock::rule::{Rule, Unmanaged};

use super::doubt::Doubt;
use super::seen::{Ask, Told, Ttl};
use super::{Followed, Observation, Observatory, Reply, milliseconds};

/// The answer comes later than the server did it: so much earlier than seems right a lease may have expired.
const LATENESS_MS: i64 = 250;

/// One subject of an answered command.
pub(super) struct Seen<'a> {
    observation: &'a Observation,
    subject: &'a Subject,
    at: Time,
    pub(super) now: i64,
    pub(super) caller: Caller,
}

pub(super) fn answered(
    observatory: &mut Observatory,
    observation: &Arc<Observation>,
    reply: Reply,
    rules: &[Rule],
    at: Time,
    sink: &mut Vec<Event>,
) {
    let (mut source, mut doubt) = (None, None);
    for subject in &observation.subjects {
        let Some(rule) = rules.get(usize::from(subject.rule.0)) else {
            continue;
        };
        let caller = caller(observation, subject, rule);
        let now = milliseconds(at);
        let seen = Seen {
            observation,
            subject,
            at,
            now,
            caller,
        };
        let followed = observatory.lock(observation.database, subject);
        seen.ripen(&mut followed.model, sink);
        match observation.ask {
            Ask::Write { kind, told, ttl } => seen.written(followed, kind, told, ttl, reply, sink),
            Ask::WriteMany { kind } => seen.many_written(followed, kind, reply, sink),
            Ask::Release { .. } if followed.under_way.answered(observation) => {}
            Ask::Release { certain, conditional } => seen.released(followed, certain, conditional, reply, sink),
            Ask::Extend {
                ttl,
                conditional,
                repairs,
            } => seen.extended(followed, ttl, conditional, repairs, reply, sink),
            Ask::Rename => seen.renamed(followed, &mut source, reply, sink),
            Ask::Unknown => doubt = seen.unknown(followed, reply).or(doubt),
        }
        if followed
            .model
            .holder()
            .is_some_and(|holder| holder.connection == observation.connection)
        {
            observatory.note_holder(&observation.connection);
        }
        observatory.doubts.extend(doubt.take());
    }
}

fn caller(observation: &Observation, subject: &Subject, rule: &Rule) -> Caller {
    Caller {
        owner: subject.owner.clone(),
        connection: observation.connection.clone(),
        token: Token(uuid::Uuid::nil()),
        allow: rule.unmanaged == Unmanaged::Allow,
        window_ms: i64::try_from(rule.late_release_window_ms).unwrap_or(i64::MAX / 4),
        default_ms: None,
        max_ms: None,
    }
}

/// Lets the time come. Whose lease ended with it, and how: nobody need owe its release, for a script may have given it up.
pub(super) fn ripen(model: &mut Model, now: i64) -> Option<(Owner, ConnectionId, What)> {
    let not_owing = model.holder().filter(|holder| !holder.owing);
    let not_owing = not_owing.map(|holder| (holder.owner.clone(), holder.connection.clone()));
    model.ripen(now);
    if let Some(expired) = model.expired.as_mut().filter(|expired| !expired.told) {
        expired.told = true;
        let held_ms = u64::try_from(expired.held_ms).ok();
        let holder = &expired.holder;
        return Some((
            holder.owner.clone(),
            holder.connection.clone(),
            What::Expired { held_ms },
        ));
    }
    let (owner, connection) = not_owing.filter(|_| model.lease.is_none())?;
    Some((owner, connection, What::Ended))
}

impl Seen<'_> {
    pub(super) fn event(&self, what: What) -> Event {
        Event {
            at: self.at,
            database: self.observation.database,
            key: self.subject.key.clone(),
            rule: self.subject.rule,
            owner: self.subject.owner.clone(),
            connection: self.observation.connection.clone(),
            what,
        }
    }

    /// Lets the time come, and tells of a lease that ended with it.
    fn ripen(&self, model: &mut Model, sink: &mut Vec<Event>) {
        if let Some((owner, connection, what)) = ripen(model, self.now) {
            sink.push(Event {
                owner,
                connection,
                ..self.event(what)
            });
        }
    }

    /// The server says that the lock was free. If the model held it, it was given up by a release whose answer is still
    /// to come, it has just expired, or somebody gave it up unseen.
    fn was_free(&self, followed: &mut Followed, sink: &mut Vec<Event>) {
        let model = &mut followed.model;
        if model.lock.is_none() {
            return model.settle_early();
        }
        if let Some(earlier) = followed.under_way.carried_out(model.lease.as_ref()) {
            return self.overtook(&earlier, followed, sink);
        }
        let due = model.lease.as_ref().and_then(|lease| lease.due);
        match due {
            Some(due) if due - self.now <= LATENESS_MS => {
                let late = Seen {
                    now: due + 3,
                    caller: self.caller.clone(),
                    ..*self
                };
                late.ripen(model, sink);
            }
            _ => {
                if let Some(holder) = model.holder() {
                    let (owner, connection) = (holder.owner.clone(), holder.connection.clone());
                    sink.push(Event {
                        owner,
                        connection,
                        ..self.event(What::Ended)
                    });
                }
            }
        }
        model.lock = None;
        model.settle_early();
    }

    /// The answer to another client's release comes later than this one, though the server carried it out before.
    fn overtook(&self, earlier: &Observation, followed: &mut Followed, sink: &mut Vec<Event>) {
        let mut subjects = earlier.subjects.iter();
        if let Some(subject) = subjects.find(|subject| subject.key == self.subject.key) {
            let caller = Caller {
                owner: subject.owner.clone(),
                connection: earlier.connection.clone(),
                ..self.caller.clone()
            };
            let seen = Seen {
                observation: earlier,
                subject,
                caller,
                ..*self
            };
            seen.gone(followed, sink);
        }
    }

    /// The server says that the lock was there.
    fn was_there(&self, model: &mut Model) {
        if model.lock.is_none() {
            model.settle_early();
            model.lock = Some(Lock { expiry: None });
        }
    }

    fn expiry(&self, ttl: Ttl) -> NewExpiry {
        match ttl {
            Ttl::Keep => NewExpiry::Keep,
            Ttl::Never => NewExpiry::Never,
            Ttl::In(ms) => NewExpiry::At(self.now.saturating_add(ms)),
        }
    }

    fn written(&self, followed: &mut Followed, kind: Kind, told: Told, ttl: Ttl, reply: Reply, sink: &mut Vec<Event>) {
        let done = match (told, reply) {
            (_, Reply::Error) => {
                if kind == Kind::Acquire {
                    sink.push(self.event(What::AcquireFailed));
                }
                return;
            }
            (Told::Done, Reply::Status | Reply::Integer(1)) | (Told::NilIsDone, Reply::Nil) => true,
            (Told::Done | Told::NilIsDone | Told::Never, _) => false,
            (Told::Always, _) => true,
        };
        match (kind, done) {
            (Kind::Acquire, true) => self.was_free(followed, sink),
            (Kind::Acquire, false) => {
                self.was_there(&mut followed.model);
                return sink.push(self.event(What::Contended { shielded: false }));
            }
            (_, false) => return,
            // The old value came back: it was there.
            (Kind::Takeover, true) if reply == Reply::Other => self.was_there(&mut followed.model),
            (Kind::Takeover, true) => self.was_free(followed, sink),
            (Kind::Overwrite, true) => {}
        }
        self.write(followed, kind, self.expiry(ttl), sink);
    }

    /// The value was written, whatever enforce mode had said.
    fn write(&self, followed: &mut Followed, kind: Kind, expiry: NewExpiry, sink: &mut Vec<Event>) {
        let model = &mut followed.model;
        let holder = model.holder().cloned();
        let mut outcome = model.write(kind, &self.caller, expiry, self.now);
        if let Outcome::Refused(..) = outcome {
            self.tell(&outcome, model, sink);
            // It is the writer's from now on, and the holder before him is still at work.
            if let Some(holder) = holder {
                followed.robbed.rob(holder, self.now);
            }
            model.lock = None;
            model.settle_early();
            outcome = model.write(kind, &self.caller, expiry, self.now);
        }
        if let Outcome::Granted(granted) = &mut outcome {
            granted.overlap |= followed.robbed.still_at_work(&self.caller, self.now);
        }
        self.tell(&outcome, model, sink);
    }

    fn many_written(&self, followed: &mut Followed, kind: Many, reply: Reply, sink: &mut Vec<Event>) {
        match (kind, reply) {
            (_, Reply::Error) => {}
            (Many::Acquire, Reply::Integer(0)) => {
                if followed.model.lock.is_some() {
                    sink.push(self.event(What::Contended { shielded: false }));
                }
            }
            (Many::Present, Reply::Integer(0)) => {}
            (Many::Acquire, _) => {
                self.was_free(followed, sink);
                self.write(followed, Kind::Acquire, NewExpiry::Never, sink);
            }
            (Many::Overwrite | Many::Present, _) => {
                self.write(followed, Kind::Overwrite, NewExpiry::Never, sink);
            }
        }
    }

    fn released(&self, followed: &mut Followed, certain: bool, conditional: bool, reply: Reply, sink: &mut Vec<Event>) {
        let keys = i64::try_from(self.observation.subjects.len()).unwrap_or(i64::MAX);
        match reply {
            Reply::Error => return,
            Reply::Integer(0) | Reply::Nil if conditional => return,
            Reply::Integer(0) | Reply::Nil if certain => self.was_free(followed, sink),
            Reply::Integer(count) if certain && self.observation.alone && count >= keys => {
                self.was_there(&mut followed.model);
            }
            Reply::Other if certain => self.was_there(&mut followed.model),
            _ => {}
        }
        self.gone(followed, sink);
    }

    /// The lock was given up.
    fn gone(&self, followed: &mut Followed, sink: &mut Vec<Event>) {
        let model = &mut followed.model;
        let holder = model
            .holder()
            .filter(|_| model.standing() == Standing::Current)
            .cloned();
        let outcome = model.release(&self.caller, self.now);
        followed.robbed.release(&self.caller);
        if let (Outcome::Release { refused: Some(_), .. }, Some(holder)) = (&outcome, holder) {
            followed.robbed.rob(holder, self.now);
        }
        self.tell(&outcome, model, sink);
        model.lock = None;
        model.settle_early();
    }

    fn extended(
        &self,
        followed: &mut Followed,
        ttl: Ttl,
        conditional: bool,
        repairs: bool,
        reply: Reply,
        sink: &mut Vec<Event>,
    ) {
        match reply {
            Reply::Integer(1) | Reply::Other => self.was_there(&mut followed.model),
            Reply::Integer(0) if !conditional && ttl != Ttl::Never => return self.was_free(followed, sink),
            Reply::Nil => return self.was_free(followed, sink),
            _ => return,
        }
        let model = &mut followed.model;
        let expiry = self.expiry(ttl);
        let outcome = model.extend(&self.caller, expiry, repairs, self.now);
        self.tell(&outcome, model, sink);
        if let Outcome::Refused(..) = outcome {
            let expiry = if let NewExpiry::At(at) = expiry { Some(at) } else { None };
            model.lock = Some(Lock { expiry });
            if let Some(lease) = model.lease.as_mut() {
                lease.due = expiry;
            }
            // The server has done it all the same.
            self.tell(&Outcome::Extended(false), model, sink);
        }
    }

    /// The first subject is the source, whose expiry goes along to the second, if the target is a lock too.
    fn renamed(&self, followed: &mut Followed, source: &mut Option<NewExpiry>, reply: Reply, sink: &mut Vec<Event>) {
        let done = matches!(reply, Reply::Status | Reply::Integer(1));
        match source {
            None => {
                *source = Some(
                    followed
                        .model
                        .lock
                        .and_then(|lock| lock.expiry)
                        .map_or(NewExpiry::Never, NewExpiry::At),
                );
                match (done, reply) {
                    (true, _) => self.released(followed, true, false, Reply::Other, sink),
                    (false, Reply::Error) => self.released(followed, true, false, Reply::Integer(0), sink),
                    (false, _) => {}
                }
            }
            Some(expiry) if done => self.write(followed, Kind::Overwrite, *expiry, sink),
            Some(_) => {}
        }
    }

    /// A script or a compare command, which is taken at its word: what is its owner's may have been given up by it.
    fn unknown(&self, followed: &mut Followed, reply: Reply) -> Option<Doubt> {
        if reply != Reply::Error {
            followed.robbed.release(&self.caller);
        }
        let model = &mut followed.model;
        let own = |holder: &&Holder| holder.owner == self.caller.owner || holder.connection == self.caller.connection;
        let holder = model.holder().filter(own).filter(|_| reply != Reply::Error)?;
        let doubt = Doubt {
            database: self.observation.database,
            key: self.subject.key.clone(),
            rule: self.subject.rule,
            owner: holder.owner.clone(),
            connection: holder.connection.clone(),
            acquired_at: holder.acquired_at,
        };
        model.owe_nothing();
        Some(doubt)
    }
}
