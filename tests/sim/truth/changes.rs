//! What each change of a lock key means for the incarnation that it concerns, and who may make it.

use lockward::lock::rule::Unmanaged;

use super::{Incarnation, Standing, VAGUE_MS};
use crate::client::State;
use crate::request::Meaning;
use crate::server::keyspace::{By, Change, What};
use crate::world::World;

impl World {
    pub(super) fn created(&mut self, by: Option<By>, change: &Change) {
        let rule = self.plan.rule_of(&change.key).unwrap_or(0);
        let mut inc = Incarnation {
            db: change.db,
            key: change.key.clone(),
            rule,
            managed: false,
            owner: String::new(),
            client: usize::MAX,
            task: None,
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
            // To lockward it may be a lease that has been changed.
            Some(By::Direct) => inc.vague = self.left_a_record(change),
            other => return self.violated("1 foreign", format!("{other:?} created {}", change.key.escape_ascii())),
        }
        self.truth.incarnations.insert(change.incarnation, inc);
    }

    /// Whether the key's last lease ended past lockward, before it was due.
    fn left_a_record(&self, change: &Change) -> bool {
        let on_lock = |inc: &&Incarnation| inc.db == change.db && inc.key == change.key;
        let last = self.truth.incarnations.values().rev().find(on_lock);
        let now = self.server_ms();
        last.is_some_and(|inc| inc.managed && inc.direct && inc.due.is_none_or(|due| due + VAGUE_MS > now) || inc.vague)
    }

    /// A lock key that exists was changed by a command.
    pub(super) fn touched(&mut self, by: Option<By>, change: &Change) {
        let Some(inc) = self.truth.incarnations.get(&change.incarnation).cloned() else {
            return;
        };
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
            return self.violated(
                "1 foreign",
                format!("{by:?}: {what:?} of {key}: {why} ({standing:?}, {inc:?})"),
            );
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
        let max = self.plan.rules[inc.rule]
            .max_ttl_ms
            .map_or(10_000, |max| max.min(10_000)) as i64;
        let least = self.server_ms() + max;
        change.what == What::ExpirySet && had_none && change.is.is_some_and(|expire| expire >= least) || inc.direct
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
            let open = client.state == State::Open;
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
                let (client, task, meaning) = (
                    self.requests[number].client,
                    self.requests[number].task,
                    self.requests[number].meaning,
                );
                let owner = self.is_owner(was, client);
                let led = matches!(standing, Standing::Current | Standing::Open);
                match meaning {
                    Meaning::SelfChecked | Meaning::Plain | Meaning::Flush => tainted = true,
                    // Nobody's, and now his: and the owner's own lease that was changed past lockward begins anew.
                    Meaning::Overwrite | Meaning::Release
                        if change.what == What::Written && standing != Standing::Current =>
                    {
                        new.managed = true;
                        new.opened = false;
                        new.direct = false;
                        new.sent = false;
                        new.owner = self.owner_of(was.rule, client);
                        (new.client, new.task, new.due) = (client, task, change.is);
                        tainted = true;
                    }
                    Meaning::Takeover if !owner && !matches!(standing, Standing::Unmanaged | Standing::Vague) => {
                        new.opened = true;
                        new.due = change.is;
                    }
                    // Two tasks of one owner now believe that they hold it.
                    _ if led && change.what == What::Written && task != was.task => {
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
}
