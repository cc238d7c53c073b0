//! What really happened to the locks, by the server's journal and by what the clients meant: who took each incarnation
//! of a lock key, and whether everything that became of it was allowed. Knows nothing of lockward's records.

pub mod account;
pub mod end;
pub mod replies;

use std::collections::BTreeMap;
use std::fmt;

use lockward::lock::rule::{OwnerPart, Unmanaged};

use self::account::Account;
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
    pub created: i64,
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
        let flags = [("managed", self.managed), ("sent", self.sent), ("opened", self.opened), ("direct", self.direct)];
        let flags: Vec<&str> = flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
        let (key, owner, client, task) = (self.key.escape_ascii(), &self.owner, self.client as isize, self.task);
        let (expire, due, fence) = (self.expire, self.due, self.fence);
        write!(f, "{{{key} in {} of {owner}, client {client}, task {task:?}, {flags:?}, ", self.db)?;
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
}

impl Truth {
    /// The incarnation that a lock key has now.
    pub fn living(&self, db: usize, key: &[u8]) -> Option<(u64, &Incarnation)> {
        let mut newest = self.incarnations.iter().rev();
        newest.find(|(_, inc)| inc.alive && inc.db == db && inc.key == key).map(|(number, inc)| (*number, inc))
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
        let notes = self.server.journal();
        for (index, note) in notes.iter().enumerate() {
            if self.violation.is_some() {
                return;
            }
            match note.clone() {
                // Nothing was done.
                Note::Begin { .. } if is_unknown_script(&notes[index..]) => self.truth.current = None,
                Note::Begin { tag, db, args, seen } => self.begins(tag.by, db, args, seen),
                Note::Change(change) => self.changed(change),
                Note::End { reply: None } => self.truth.current = None,
                Note::End { reply: Some(reply) } => self.ends(&reply),
            }
        }
    }

    fn begins(&mut self, by: By, db: usize, args: Vec<Bytes>, seen: Vec<Seen>) {
        let places = match by {
            By::Request(number) => seen.iter().map(|seen| self.place(db, seen, self.requests[number].client)).collect(),
            _ => Vec::new(),
        };
        let (changes, record_changes) = (Vec::new(), Vec::new());
        self.truth.current = Some(Current { by, db, args, seen, places, changes, record_changes, fences: Vec::new() });
        if let By::Request(number) = by {
            self.extend_in_the_past(number);
        }
        if let By::Request(number) = by
            && self.requests[number].meaning == Meaning::Release
        {
            for key in self.requests[number].locks.clone() {
                self.release_received(number, db, &key);
            }
        }
    }

    /// An extend to a point in time that has passed on its way is a release.
    fn extend_in_the_past(&mut self, number: usize) {
        let request = &self.requests[number];
        let at = (request.name() == "PEXPIREAT").then(|| String::from_utf8_lossy(&request.args[2]).parse::<i64>().ok());
        if request.meaning == Meaning::Extend && at.flatten().is_some_and(|at| at <= self.server_ms()) {
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

    fn created(&mut self, by: Option<By>, change: &Change) {
        let rule = self.plan.rule_of(&change.key).unwrap_or(0);
        let mut inc = Incarnation {
            db: change.db,
            key: change.key.clone(),
            rule,
            managed: false,
            owner: String::new(),
            client: usize::MAX,
            task: None,
            created: self.server_ms(),
            expire: change.is,
            due: change.is,
            sent: false,
            opened: false,
            direct: true,
            vague: false,
            fence: None,
            alive: true,
        };
        match by {
            Some(By::Request(number)) => {
                let request = &self.requests[number];
                inc.managed = !matches!(request.meaning, Meaning::Plain | Meaning::SelfChecked);
                inc.direct = !inc.managed;
                inc.client = request.client;
                inc.task = request.task;
                inc.owner = self.owner_of(rule, request.client);
            }
            Some(By::Direct) => {}
            other => return self.violated("1 foreign", format!("{other:?} created {}", change.key.escape_ascii())),
        }
        self.truth.incarnations.insert(change.incarnation, inc);
    }

    /// A lock key that exists was changed by a command.
    fn touched(&mut self, by: Option<By>, change: &Change) {
        let Some(inc) = self.truth.incarnations.get(&change.incarnation).cloned() else { return };
        let refused = match by {
            Some(By::Request(number)) => self.refuses(number, &inc, change),
            Some(By::Keeper(proxy)) => self.keeper_may_not(proxy, &inc, change),
            // Without a command only the server's own death takes keys away.
            Some(By::Direct) | None => None,
            _ => Some("lockward changed it by itself"),
        };
        if let Some(why) = refused {
            let (what, key) = (&change.what, change.key.escape_ascii());
            let standing = self.standing(&inc);
            return self.violated("1 foreign", format!("{by:?}: {what:?} of {key}: {why} ({standing:?}, {inc:?})"));
        }
        match change.what {
            What::Removed => self.removed(by, change.incarnation, &inc),
            _ => self.follow(by, change, &inc),
        }
    }

    /// Why this request should not have changed this incarnation.
    fn refuses(&self, number: usize, inc: &Incarnation, change: &Change) -> Option<&'static str> {
        let request = &self.requests[number];
        let refuse_unmanaged = self.plan.rules[inc.rule].unmanaged == Unmanaged::Refuse;
        let owner = self.is_owner(inc, request.client);
        // What is no operation on a lease passes, and scripts are taken at their word.
        if matches!(request.meaning, Meaning::Plain | Meaning::SelfChecked | Meaning::Flush) {
            return None;
        }
        match self.standing(inc) {
            Standing::Open | Standing::Vague => None,
            Standing::Unmanaged if request.meaning == Meaning::Takeover => None,
            Standing::Unmanaged => refuse_unmanaged.then_some("nobody holds it, and the rule refuses that"),
            Standing::Current | Standing::Adrift if owner => None,
            _ if request.meaning == Meaning::Takeover => None,
            Standing::Current if self.is_gift(inc, change) => None,
            _ => Some("it is another's"),
        }
    }

    /// A lease without TTL may get one from anybody, if it leaves the holder time.
    fn is_gift(&self, inc: &Incarnation, change: &Change) -> bool {
        // `max_ttl` may cut it in the same command.
        let current = self.truth.current.iter().flat_map(|current| &current.changes);
        let first = current.into_iter().find(|known| known.key == change.key);
        let had_none = first.map_or(inc.expire, |first| first.was).is_none();
        let max = self.plan.rules[inc.rule].max_ttl_ms.map_or(10_000, |max| max.min(10_000)) as i64;
        let least = self.server_ms() + max;
        change.what == What::ExpirySet && had_none && change.is.is_some_and(|expire| expire >= least)
            || inc.direct
    }

    fn keeper_may_not(&self, proxy: usize, inc: &Incarnation, change: &Change) -> Option<&'static str> {
        let rule = &self.plan.rules[inc.rule];
        let longer = match (change.was, change.is) {
            (Some(was), Some(is)) => is >= was,
            _ => false,
        };
        match change.what {
            What::ExpirySet if !rule.renew => Some("the rule does not renew"),
            What::ExpirySet if !longer => Some("a renewal made it shorter"),
            What::ExpirySet => None,
            What::Removed if self.winding_down && self.now > self.plan.length_us + 60_000_000 => None,
            What::Removed if !rule.release_on_disconnect => Some("the rule does not release on disconnect"),
            What::Removed if self.is_here(proxy, inc) => Some("its owner is still connected"),
            What::Removed => None,
            _ => Some("no chore does this"),
        }
    }

    /// Whether the incarnation's owner has been connected to this proxy for a while.
    fn is_here(&self, proxy: usize, inc: &Incarnation) -> bool {
        let long = |since: u64| self.now.saturating_sub(since) > 3_000_000;
        self.proxies[proxy].lines.values().any(|line| {
            let client = &self.clients[line.client];
            let open = client.state == crate::client::State::Open;
            open && long(line.opened) && long(client.identity_since) && self.is_owner(inc, line.client)
        })
    }

    /// The incarnation lives on, changed.
    fn follow(&mut self, by: Option<By>, change: &Change, was: &Incarnation) {
        let standing = self.standing(was);
        let (mut new, mut tainted) = (was.clone(), false);
        new.expire = change.is;
        match by {
            Some(By::Request(number)) => {
                let (client, task, meaning) =
                    (self.requests[number].client, self.requests[number].task, self.requests[number].meaning);
                let owner = self.is_owner(was, client);
                let led = matches!(standing, Standing::Current | Standing::Open);
                match meaning {
                    Meaning::SelfChecked | Meaning::Plain | Meaning::Flush => tainted = true,
                    // Nobody's, and now his: and the owner's own lease that was changed past lockward begins anew.
                    Meaning::Overwrite if change.what == What::Written && standing != Standing::Current => {
                        new.managed = true;
                        new.opened = false;
                        new.direct = false;
                        new.sent = false;
                        new.owner = self.owner_of(was.rule, client);
                        (new.client, new.task, new.due) = (client, task, change.is);
                        tainted = true;
                    }
                    Meaning::Takeover if !owner && standing != Standing::Unmanaged => {
                        new.opened = true;
                        new.due = change.is;
                    }
                    // Two tasks of one owner now believe that they hold it.
                    _ if change.what == What::Written && task != was.task => {
                        tainted = true;
                        new.due = change.is;
                    }
                    _ if led => new.due = change.is,
                    // An extend of the owner's brings the record in line.
                    Meaning::Extend if standing == Standing::Adrift && owner => new.due = change.is,
                    _ => new.direct = true,
                }
                new.vague |= standing == Standing::Vague;
            }
            Some(By::Direct) => {
                new.direct = true;
                tainted = true;
            }
            _ => new.due = change.is,
        }
        if tainted || standing == Standing::Vague {
            self.taint(was);
            self.taint(&new);
        }
        self.truth.incarnations.insert(change.incarnation, new);
    }

    fn ends(&mut self, reply: &Reply) {
        let Some(current) = self.truth.current.take() else { return };
        match current.by {
            By::Request(number) => self.request_ends(number, current, reply),
            By::Reconcile(number) => self.reconcile_ends(number, &current),
            By::Keeper(_) if !current.record_changes.is_empty() => self.coverage.marked(&current.args),
            By::Extra | By::Keeper(_) | By::Direct => {}
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
        if self.requests[number].meaning == Meaning::Release {
            for key in self.requests[number].locks.clone() {
                self.release_done(number, current.db, &key, reply);
            }
        }
        self.check_ttl(number, current.db);
    }

    /// Each new lease under a rule with fencing has a token of its own, larger than the lock's last.
    fn fences_drawn(&mut self, current: &Current) {
        let fenced = |key: &[u8]| self.plan.rule_of(key).is_some_and(|rule| self.plan.rules[rule].fencing);
        let written = current.changes.iter().filter(|change| matches!(change.what, What::Created | What::Written));
        let written: Vec<&Change> = written.filter(|change| fenced(&change.key)).collect();
        for (change, fence) in written.into_iter().zip(&current.fences) {
            let last = self.truth.fences.insert((change.db, change.key.clone()), *fence);
            if last.is_some_and(|last| last >= *fence) {
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
            let Some((incarnation, inc)) = self.truth.living(current.db, &key) else { continue };
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
            let Some((_, inc)) = self.truth.living(db, &key) else { continue };
            let rule = &self.plan.rules[inc.rule];
            let plain = matches!(self.requests[number].meaning, Meaning::Plain | Meaning::SelfChecked | Meaning::Own);
            let touched = self.requests[number].changes.iter().any(|change| change.key == key);
            if inc.direct || plain || !touched || self.standing(inc) != Standing::Current {
                continue;
            }
            let now = self.server_ms();
            let too_long = rule.max_ttl_ms.is_some_and(|max| inc.expire.is_some_and(|at| at > now + max as i64 + 2));
            let fresh = self.requests[number].changes.iter().any(|change| change.what == What::Created);
            let endless = fresh && rule.default_ttl_ms.is_some() && inc.expire.is_none();
            if too_long || endless {
                let text = format!("#{number} left {} with expiry {:?} at {now}", key.escape_ascii(), inc.expire);
                return self.violated("ttl policy", text);
            }
        }
    }

    fn cover(&mut self, number: usize, current: &Current, reply: &Reply) {
        let meaning = self.requests[number].meaning;
        let report = report(reply);
        self.coverage.report(&report);
        if Meaning::TABLE.contains(&meaning) && !is_forwarded(&current.args) {
            for (place, _) in &current.places {
                self.coverage.table(meaning, *place);
            }
        }
        if meaning == Meaning::Release {
            for ((seen, (place, own_debt)), part) in current.seen.iter().zip(&current.places).zip(report.split(';')) {
                self.coverage.release(*place, *own_debt, part, has_doubt(seen));
            }
        }
        for seen in current.seen.iter().filter(|seen| seen.entry.is_none() && has_doubt(seen)) {
            self.coverage.doubt_returns(seen, self.server_ms());
        }
    }
}

/// Whether these notes, which begin with a command's first, say that its script was not known.
fn is_unknown_script(notes: &[Note]) -> bool {
    let end = notes.iter().find_map(|note| match note {
        Note::End { reply } => Some(reply),
        _ => None,
    });
    matches!(end, Some(Some(Reply::Error(text))) if text.starts_with(b"NOSCRIPT"))
}

/// What one of lockward's scripts reports beside the reply.
fn report(reply: &Reply) -> String {
    match reply {
        Reply::Array(elements) => match elements.as_slice() {
            [Reply::Bulk(report), _] => String::from_utf8_lossy(report).into_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn is_forwarded(args: &[Bytes]) -> bool {
    crate::serving::script_of(args).is_none()
}

/// Whether a payment under the lease in this record is doubtful.
fn has_doubt(seen: &Seen) -> bool {
    let names: Vec<&[u8]> = seen.record.iter().map(|(name, _)| name.as_slice()).collect();
    let unpaid = |number: &[u8]| names.iter().any(|name| name.strip_prefix(b"unpaid:") == Some(number));
    let token = names.contains(&b"token".as_slice());
    token && names.iter().filter_map(|name| name.strip_prefix(b"debt:")).any(|number| !unpaid(number))
}
