//! The contention shield against what really happened: which requests never reach the server, and whether what they
//! were told can have been known. Once a proxy has seen that a lock was released, nobody there may be refused by the
//! shield unless the lock was taken again since. Knows nothing of what the shield keeps.

use lockward::event::{Event, ReleaseOutcome, What};
use lockward::lock::script::Script;

use crate::request::Meaning;
use crate::resp::{Reply, show_args};
use crate::server::commands::is;
use crate::server::keyspace::Bytes;
use crate::serving::{script_keys, script_of};
use crate::world::World;

/// Longer than any answer is on its way in a run, in microseconds.
const LONGEST_WAY_US: u64 = 3_000_000;

impl World {
    /// Whether the shield may answer this request.
    fn may_be_shielded(&self, number: usize) -> bool {
        let request = &self.requests[number];
        let rule = request.args.get(1).and_then(|key| self.plan.rule_of(key));
        let wanted = rule.is_some_and(|rule| self.plan.rules[rule].contention_shield_ms.is_some());
        (wanted || request.looked) && self.is_plain_acquire(number)
    }

    fn is_plain_acquire(&self, number: usize) -> bool {
        let request = &self.requests[number];
        let spelled = match request.name().as_str() {
            "SETNX" => true,
            "SET" => request.has("NX") && !request.has("GET"),
            _ => false,
        };
        spelled && !request.in_multi && request.meaning == Meaning::Acquire && request.executed == 0
    }

    /// Whether these are the words of a look at the lock that this request asks for.
    pub fn may_be_looked_at(&self, number: usize, args: &[Bytes]) -> bool {
        let words = args.len() == 2 && is(&args[0], "EXISTS");
        words && self.is_plain_acquire(number) && self.requests[number].args.get(1) == args.get(1)
    }

    /// Something arrives from a client's session: what stands before it in the client's requests and is not meant was
    /// answered by the shield.
    pub fn skip_shielded(&mut self, client: usize, args: &[Bytes], raw: &[u8]) {
        let unseen = &self.clients[client].unseen;
        let other = |number: &usize| !self.may_be_shielded(*number) || self.is_acquire_of(*number, args);
        let Some(place) = unseen.iter().position(other) else {
            return;
        };
        // A reconcile belongs to what came before; so does a script that was not known.
        let belongs = matches!(script_of(args), Some(Script::Reconcile)) || self.clients[client].unknown_script;
        let next = unseen[place];
        let is_meant = self.requests[next].raw == raw || self.may_be_looked_at(next, args);
        if place == 0 || belongs || (!is_meant && self.check_passage(next, args, raw).is_err()) {
            return;
        }
        for number in self.clients[client].unseen.drain(..place).collect::<Vec<_>>() {
            self.requests[number].shielded = true;
        }
    }

    /// Whether these are the words of the script that stands in for this acquire: it carries its value.
    fn is_acquire_of(&self, number: usize, args: &[Bytes]) -> bool {
        let [_, key, value, ..] = &self.requests[number].args[..] else {
            return false;
        };
        script_of(args) == Some(Script::Acquire) && script_keys(args).contains(key) && args.contains(value)
    }

    /// A client hears the answer to a request that the server has never seen.
    pub fn is_shielded(&mut self, number: usize) -> bool {
        let request = &self.requests[number];
        if !self.may_be_shielded(number) || request.server_reply.is_some() {
            return false;
        }
        let client = request.client;
        let waits = &mut self.clients[client].unseen;
        if waits.front() == Some(&number) {
            waits.pop_front();
            self.requests[number].shielded = true;
        }
        self.requests[number].shielded
    }

    /// It is a refusal, of the right type.
    pub fn check_shielded(&mut self, number: usize, reply: &Reply, raw: &[u8]) {
        let request = &self.requests[number];
        let mut expected = Vec::new();
        let refusal = if request.name() == "SETNX" {
            Reply::Int(0)
        } else {
            Reply::Null
        };
        refusal.encode(self.clients[request.client].resp, &mut expected);
        if expected != raw {
            let text = format!(
                "#{number} {} was answered with {reply} without the server",
                show_args(&request.args)
            );
            self.violated("3 replies", text);
        }
    }

    /// A proxy has seen the answer to what freed a lock, which goes on to its client at once.
    pub fn sees_release(&mut self, proxy: usize, event: &Event) {
        let What::Release(release) = &event.what else {
            return;
        };
        let freed = match release.outcome {
            ReleaseOutcome::Released
            | ReleaseOutcome::Pooled
            | ReleaseOutcome::Absent
            | ReleaseOutcome::SelfChecked
            | ReleaseOutcome::Disconnect
            | ReleaseOutcome::Forced => true,
            // The last may have been refused.
            ReleaseOutcome::Late | ReleaseOutcome::Foreign | ReleaseOutcome::Unmanaged => false,
        };
        if freed {
            let lock = (proxy, event.database as usize, event.key.to_vec());
            self.truth.releases_seen.insert(lock, self.now);
        }
    }

    /// The shield of a proxy refuses at this moment: was the lock there, and since the last release that this proxy
    /// has seen?
    pub fn check_shield(&mut self, proxy: usize, event: &Event) {
        let (db, key) = (event.database as usize, event.key.to_vec());
        let alive = self.truth.living(db, &key).is_some();
        let there = match self.truth.ended_at.get(&(db, key.clone())) {
            _ if alive => self.now,
            Some(at) => *at,
            None => 0,
        };
        let seen = self.truth.releases_seen.get(&(proxy, db, key.clone())).copied();
        if seen.is_some() {
            self.coverage.shield_after_release();
        }
        if seen.is_some_and(|seen| there < seen) {
            let text = format!(
                "proxy {proxy} refuses {} by itself, which it has seen released",
                key.escape_ascii()
            );
            return self.violated("shield", text);
        }
        let window_us = self.plan.rules[usize::from(event.rule.0)]
            .contention_shield_ms
            .unwrap_or(0)
            * 1000;
        if there + window_us + LONGEST_WAY_US < self.now {
            let text = format!("proxy {proxy} refuses {}, which is long gone", key.escape_ascii());
            self.violated("shield", text);
        }
    }
}
