//! What really happened to the locks, by the server's journal and by what the clients meant: who took each incarnation
//! of a lock key, and whether everything that became of it was allowed. Knows nothing of lockward's records.

pub mod account;
mod changes;
mod cover;
pub mod end;
mod ledger;
pub mod replies;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use lockward::lock::rule::OwnerPart;

use self::ledger::Account;
use crate::coverage::Place;
use crate::request::Meaning;
use crate::resp::Reply;
use crate::server::keyspace::{By, Bytes, Change, Note, PREFIX, Seen, What};
use crate::world::World;

/// So near to a due time, in milliseconds, nobody can say which side of it a command was on.
const VAGUE_MS: i64 = 60;

/// One period in which a lock key existed.
#[derive(Clone)]
pub struct Incarnation {
    pub db: usize,
    pub key: Bytes,
    pub rule: usize,
    /// Somebody acquired it through lockward.
    pub managed: bool,
    pub owner: String,
    pub client: usize,
    pub task: Option<usize>,
    /// As it is on the server, and as lockward was told.
    pub expire: Option<i64>,
    pub due: Option<i64>,
    /// Its task has sent its release, and the server got it.
    pub sent: bool,
    /// Somebody else has taken it over: it is everybody's.
    pub opened: bool,
    /// Somebody has changed it past lockward.
    pub direct: bool,
    /// It was changed at a time when nobody could say what it was to lockward.
    pub vague: bool,
    pub fence: Option<i64>,
    pub alive: bool,
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [
            ("managed", self.managed),
            ("sent", self.sent),
            ("opened", self.opened),
            ("direct", self.direct),
        ];
        let flags: Vec<&str> = flags
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name)
            .collect();
        let (key, owner, client, task) = (self.key.escape_ascii(), &self.owner, self.client as isize, self.task);
        let (expire, due, fence) = (self.expire, self.due, self.fence);
        write!(
            f,
            "{{{key} in {} of {owner}, client {client}, task {task:?}, {flags:?}, ",
            self.db
        )?;
        write!(f, "expire {expire:?}, due {due:?}, fence {fence:?}}}")
    }
}

/// How a lock stands to lockward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Unmanaged,
    Open,
    Current,
    Adrift,
    /// At a point of time where it cannot be told.
    Vague,
}

/// The command under way.
#[derive(Clone, Debug)]
struct Current {
    by: By,
    db: usize,
    args: Vec<Bytes>,
    seen: Vec<Seen>,
    /// The caller's row of the decision table for each, and whether he has a debt of his own.
    places: Vec<(Place, bool)>,
    changes: Vec<Change>,
    record_changes: Vec<Change>,
    /// The fencing tokens that were drawn, in order.
    fences: Vec<i64>,
}

#[derive(Default)]
pub struct Truth {
    pub incarnations: BTreeMap<u64, Incarnation>,
    /// By database, lock and owner.
    pub accounts: BTreeMap<(usize, Bytes, String), Account>,
    /// The last fencing token of each lock.
    fences: BTreeMap<(usize, Bytes), i64>,
    current: Option<Current>,
    /// When a proxy last saw the answer to what freed a lock: by proxy, database and lock.
    pub releases_seen: BTreeMap<(usize, usize, Bytes), u64>,
    /// When each lock last ended, by database and lock.
    pub ended_at: BTreeMap<(usize, Bytes), u64>,
    /// When all data were last flushed.
    pub flushed_at: Option<u64>,
}

impl Truth {
    /// The incarnation that a lock key has now.
    pub fn living(&self, db: usize, key: &[u8]) -> Option<(u64, &Incarnation)> {
        let mut newest = self.incarnations.iter().rev();
        newest
            .find(|(_, inc)| inc.alive && inc.db == db && inc.key == key)
            .map(|(number, inc)| (*number, inc))
    }
}

impl World {
    /// Who a client is under a rule, by what the server has confirmed.
    pub fn owner_of(&self, rule: usize, client: usize) -> String {
        let connection = &self.clients[client];
        let team = &self.plan.teams[connection.team];
        let parts = self.plan.rules[rule].owner.iter().map(|part| match part {
            OwnerPart::ClientName if !connection.name.is_empty() => format!("name {}", connection.name),
            OwnerPart::Process if team.process => format!("process {}", connection.team),
            OwnerPart::Connection | OwnerPart::ClientName | OwnerPart::Process => format!("connection {client}"),
            OwnerPart::Address if team.process => "local".to_owned(),
            OwnerPart::Address => format!("address {}", team.address),
            OwnerPart::User => format!("user {}", connection.user),
            OwnerPart::Any => "any".to_owned(),
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    pub fn is_owner(&self, inc: &Incarnation, client: usize) -> bool {
        inc.client == client || self.owner_of(inc.rule, client) == inc.owner
    }

    pub fn standing(&self, inc: &Incarnation) -> Standing {
        let now = self.server_ms();
        let agrees = match (inc.expire, inc.due) {
            (None, None) => true,
            (Some(expire), Some(due)) => (expire - due).abs() <= 2,
            _ => false,
        };
        match inc.due {
            _ if inc.vague => Standing::Vague,
            _ if !inc.managed => Standing::Unmanaged,
            Some(due) if !agrees && (due - now).abs() <= VAGUE_MS => Standing::Vague,
            Some(due) if !agrees && due < now => Standing::Unmanaged,
            _ if inc.opened => Standing::Open,
            _ if agrees => Standing::Current,
            _ => Standing::Adrift,
        }
    }

    /// Reads what the server has noted since the last time.
    pub fn read_journal(&mut self) {
        let mut notes = VecDeque::from(self.server.journal());
        while let Some(note) = notes.pop_front() {
            if self.violation.is_some() {
                return;
            }
            match note {
                // Nothing was done.
                Note::Begin { .. } if is_unknown_script(&notes) => self.truth.current = None,
                Note::Begin { tag, db, args, seen } => self.begins(tag.by, db, args, seen),
                Note::Change(change) => self.changed(change),
                Note::End { reply: None } => self.truth.current = None,
                Note::End { reply: Some(reply) } => self.ends(&reply),
            }
        }
    }

    fn begins(&mut self, by: By, db: usize, args: Vec<Bytes>, seen: Vec<Seen>) {
        if let By::Request(number) = by {
            self.extend_in_the_past(number, &seen);
        }
        let places = match by {
            By::Request(number) => seen
                .iter()
                .map(|seen| self.place(db, seen, self.requests[number].client))
                .collect(),
            _ => Vec::new(),
        };
        let (changes, record_changes) = (Vec::new(), Vec::new());
        self.truth.current = Some(Current {
            by,
            db,
            args,
            seen,
            places,
            changes,
            record_changes,
            fences: Vec::new(),
        });
        if let By::Request(number) = by
            && self.requests[number].meaning == Meaning::Release
        {
            for key in self.requests[number].released() {
                self.release_received(number, db, &key);
            }
        }
    }

    /// An extend to a point in time that has passed on its way is a release, if its condition (XX) holds.
    fn extend_in_the_past(&mut self, number: usize, seen: &[Seen]) {
        let request = &self.requests[number];
        let at = (request.name() == "PEXPIREAT").then(|| String::from_utf8_lossy(&request.args[2]).parse::<i64>().ok());
        let holds = seen
            .iter()
            .any(|seen| seen.entry.as_ref().is_some_and(|entry| entry.expire.is_some()));
        if request.meaning == Meaning::Extend && holds && at.flatten().is_some_and(|at| at <= self.server_ms()) {
            self.requests[number].meaning = Meaning::Release;
        }
    }

    fn changed(&mut self, change: Change) {
        let is_record = change.key.starts_with(PREFIX.as_bytes());
        if is_record {
            return self.record_changed(change);
        }
        if let Some(current) = &mut self.truth.current {
            current.changes.push(change.clone());
        }
        if self.plan.rule_of(&change.key).is_none() {
            return;
        }
        let by = self.truth.current.as_ref().map(|current| current.by);
        match change.what {
            What::Created => self.created(by, &change),
            What::Expired => self.expired(&change),
            _ => self.touched(by, &change),
        }
    }

    fn record_changed(&mut self, change: Change) {
        let Some(current) = &mut self.truth.current else { return };
        if change.key.ends_with(b"}=") {
            current.fences.extend(change.number);
        }
        current.record_changes.push(change);
    }

    fn ends(&mut self, reply: &Reply) {
        let Some(current) = self.truth.current.take() else {
            return;
        };
        match current.by {
            By::Request(number) => self.request_ends(number, current, reply),
            By::Reconcile(number) => self.reconcile_ends(number, &current),
            By::Keeper(_) if !current.record_changes.is_empty() => self.coverage.marked(&current.args),
            By::Extra | By::Look(_) | By::Keeper(_) | By::Direct => {}
        }
    }

    fn request_ends(&mut self, number: usize, current: Current, reply: &Reply) {
        self.fences_drawn(&current);
        self.cover(number, &current, reply);
        let request = &mut self.requests[number];
        request.executed += 1;
        if request.executed > 1 {
            return self.violated("5 once", format!("#{number} was executed twice"));
        }
        request.seen = current.seen;
        request.changes = current.changes;
        request.record_changes = current.record_changes.len();
        self.check_fence(number, current.db, reply);
        if self.requests[number].meaning == Meaning::Flush {
            // The records are gone too.
            self.truth.flushed_at = Some(self.now);
            self.truth.accounts.clear();
        }
        if self.requests[number].meaning == Meaning::Release {
            for key in self.requests[number].released() {
                self.release_done(number, current.db, &key, reply);
            }
        }
        self.check_ttl(number, current.db);
    }

    /// `LOCKWARD FENCE` answers with the token of the caller's own lease, or of his owner's.
    fn check_fence(&mut self, number: usize, db: usize, reply: &Reply) {
        let request = &self.requests[number];
        let Reply::Int(fence) = reply else { return };
        if request.meaning != Meaning::Own {
            return;
        }
        let living = self.truth.living(db, &request.args[2]).map(|(_, inc)| inc.clone());
        let fits = |inc: &Incarnation| inc.fence == Some(*fence) && self.is_owner(inc, request.client);
        if !living.as_ref().is_some_and(fits) {
            let text = format!("#{number} was told {fence}, which is not the token of its lease: {living:?}");
            self.violated("6 fencing", text);
        }
    }

    /// Each new lease under a rule with fencing has a token of its own, larger than the lock's last.
    fn fences_drawn(&mut self, current: &Current) {
        let fenced = |key: &[u8]| self.plan.rule_of(key).is_some_and(|rule| self.plan.rules[rule].fencing);
        let written = current
            .changes
            .iter()
            .filter(|change| matches!(change.what, What::Created | What::Written));
        let written: Vec<&Change> = written.filter(|change| fenced(&change.key)).collect();
        for (change, fence) in written.into_iter().zip(&current.fences) {
            let last = self.truth.fences.insert((change.db, change.key.clone()), *fence);
            // Only a flush takes the last token away, and then the clock alone decides.
            let flushed_now = self.truth.flushed_at == Some(self.now);
            if last.is_some_and(|last| last > *fence || last == *fence && !flushed_now) {
                let text = format!("{} got {fence} after {last:?}", change.key.escape_ascii());
                return self.violated("6 fencing", text);
            }
            if let Some(inc) = self.truth.incarnations.get_mut(&change.incarnation) {
                inc.fence = Some(*fence);
            }
        }
    }

    fn reconcile_ends(&mut self, number: usize, current: &Current) {
        let (client, locks) = (self.requests[number].client, self.requests[number].locks.clone());
        self.coverage.reconciles += 1;
        for key in locks {
            self.reconciled(current.db, &key);
            let Some((incarnation, inc)) = self.truth.living(current.db, &key) else {
                continue;
            };
            let (inc, standing) = (inc.clone(), self.standing(inc));
            let owner = self.is_owner(&inc, client);
            let clear = matches!(standing, Standing::Current | Standing::Adrift) && !inc.direct;
            let name = lockward::lock::record::record_name(PREFIX, &key);
            let touched = current.record_changes.iter().any(|change| change.key == name);
            if touched && !owner && (clear || standing == Standing::Adrift) {
                let text = format!("the record of {} followed a stranger's #{number}", key.escape_ascii());
                return self.violated("1 foreign", text);
            }
            if let Some(inc) = self.truth.incarnations.get_mut(&incarnation)
                && touched
            {
                inc.due = inc.expire;
            }
        }
    }

    /// `default_ttl` and `max_ttl`.
    fn check_ttl(&mut self, number: usize, db: usize) {
        for key in self.requests[number].locks.clone() {
            let Some((_, inc)) = self.truth.living(db, &key) else {
                continue;
            };
            let rule = &self.plan.rules[inc.rule];
            let plain = matches!(
                self.requests[number].meaning,
                Meaning::Plain | Meaning::SelfChecked | Meaning::Own
            );
            let touched = self.requests[number].changes.iter().any(|change| change.key == key);
            if inc.direct || plain || !touched || self.standing(inc) != Standing::Current {
                continue;
            }
            let now = self.server_ms();
            let too_long = rule
                .max_ttl_ms
                .is_some_and(|max| inc.expire.is_some_and(|at| at > now + max as i64 + 2));
            let changes = &self.requests[number].changes;
            let fresh = changes
                .iter()
                .any(|change| change.key == key && change.what == What::Created);
            let endless = fresh && rule.default_ttl_ms.is_some() && inc.expire.is_none();
            if too_long || endless {
                let text = format!(
                    "#{number} left {} with expiry {:?} at {now}",
                    key.escape_ascii(),
                    inc.expire
                );
                return self.violated("ttl policy", text);
            }
        }
    }
}

/// Whether these notes, which follow a command's first, say that its script was not known.
fn is_unknown_script(notes: &VecDeque<Note>) -> bool {
    let end = notes.iter().find_map(|note| match note {
        Note::End { reply } => Some(reply),
        _ => None,
    });
    matches!(end, Some(Some(Reply::Error(text))) if text.starts_with(b"NOSCRIPT"))
}
