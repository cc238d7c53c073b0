//! A proxy's own connection to the server: loads the scripts, carries chores and answers each with exactly one `done`,
//! also when the connection is lost or no answer comes in time.

use std::collections::VecDeque;

use bytes::BytesMut;

use lockward::event::{Event, Release, ReleaseOutcome, RuleIndex, What};
use lockward::lock::chore::{Chore, Done, Task, encode_chore, parse_chore};
use lockward::lock::keeper::Failed;
use lockward::lock::owner::Bound;
use lockward::lock::script::Script;

use crate::net::{End, Packet};
use crate::resp::{parse_reply, request, take};
use crate::server::keyspace::PREFIX;
use crate::world::{Happening, Upstream, World};

/// How long an answer may take, in microseconds.
const OVERDUE_US: u64 = 2_000_000;

enum Waiting {
    Chore(Chore),
    Nothing,
}

#[derive(Default)]
pub struct Own {
    /// The pipe to the server while connected.
    to_server: Option<usize>,
    /// Counts connections and overdue answers.
    epoch: u64,
    database: u32,
    input: Vec<u8>,
    waiting: VecDeque<(u64, Waiting)>,
}

impl Own {
    /// Not connected, and no older connection is mistaken for it.
    pub fn successor(&self) -> Own {
        Own {
            epoch: self.epoch,
            ..Own::default()
        }
    }

    pub fn pipe(&self) -> Option<usize> {
        self.to_server
    }
}

impl World {
    pub fn own_connect(&mut self, proxy: usize) {
        if self.proxies[proxy].own.to_server.is_some() {
            return;
        }
        if !self.server_up {
            self.after(50_000, Happening::OwnConnect(proxy));
            return;
        }
        let connection = self.server.connect();
        let epoch = self.proxies[proxy].own.epoch + 1;
        let pipe = self.new_pipe(End::Own(proxy, epoch));
        let to_server = self.new_pipe(End::Server(connection));
        self.upstreams.insert(connection, Upstream::Own { proxy, pipe });
        self.proxies[proxy].own = Own {
            to_server: Some(to_server),
            epoch,
            ..Own::default()
        };
        self.own_load_scripts(proxy);
    }

    pub fn own_load_scripts(&mut self, proxy: usize) {
        for script in Script::ALL {
            let bytes = request(&[b"SCRIPT".as_slice(), b"LOAD", script.text().as_bytes()]);
            self.own_send(proxy, &bytes, Waiting::Nothing);
        }
    }

    fn own_send(&mut self, proxy: usize, bytes: &[u8], waiting: Waiting) {
        let Some(pipe) = self.proxies[proxy].own.to_server else {
            return;
        };
        let now = self.now;
        self.proxies[proxy].own.waiting.push_back((now, waiting));
        let epoch = self.proxies[proxy].own.epoch;
        self.send(pipe, bytes);
        self.after(OVERDUE_US, Happening::OwnOverdue(proxy, epoch));
    }

    pub fn own_chore(&mut self, proxy: usize, chore: Chore) {
        self.note(|| format!("keeper {proxy} asks: {:?} on {}", chore.task, chore.key.escape_ascii()));
        if self.proxies[proxy].own.to_server.is_none() {
            return self.chore_done(proxy, &chore, None);
        }
        if self.proxies[proxy].own.database != chore.database {
            self.proxies[proxy].own.database = chore.database;
            let bytes = request(&[b"SELECT".as_slice(), chore.database.to_string().as_bytes()]);
            self.own_send(proxy, &bytes, Waiting::Nothing);
        }
        let mut bytes = BytesMut::new();
        encode_chore(&chore, PREFIX, &mut bytes);
        self.own_send(proxy, &bytes, Waiting::Chore(chore));
    }

    fn chore_done(&mut self, proxy: usize, chore: &Chore, done: Option<Done>) {
        self.note(|| {
            format!(
                "keeper {proxy} hears: {done:?} of {:?} on {}",
                chore.task,
                chore.key.escape_ascii()
            )
        });
        let now = self.time(proxy);
        if let (Task::Free { token: None }, Some(Done::Freed { held_ms })) = (&chore.task, &done) {
            self.forced(proxy, chore, *held_ms);
        }
        if let Some(done) = &done {
            self.coverage.chore(&chore.task, done);
        }
        self.proxies[proxy].keeper.done(now, chore, done.as_ref().ok_or(Failed));
        self.plan_keeper(proxy);
    }

    /// As the admin side tells of a release by force.
    fn forced(&mut self, proxy: usize, chore: &Chore, held_ms: Option<u64>) {
        let rule = self.plan.rule_of(&chore.key).unwrap_or(0);
        let event = Event {
            at: self.time(proxy),
            database: chore.database,
            key: chore.key.clone(),
            rule: RuleIndex(rule as u16),
            owner: "operator".into(),
            connection: lockward::event::ConnectionId {
                instance: "admin".into(),
                number: 0,
            },
            what: What::Release(Release {
                outcome: ReleaseOutcome::Forced,
                held_ms,
                overrun_ms: None,
            }),
        };
        self.coverage.event(&event.what);
        for index in 0..self.proxies.len() {
            self.proxies[index].keeper.event(&event, Bound::Free);
            self.proxies[index].policy.shield.heard(&event);
            self.sees_release(index, &event);
        }
    }

    pub fn own_receives(&mut self, proxy: usize, epoch: u64, packet: Packet) {
        if self.proxies[proxy].own.epoch != epoch || self.proxies[proxy].own.to_server.is_none() {
            return;
        }
        let Packet::Data(bytes) = packet else {
            return self.own_lost(proxy);
        };
        self.proxies[proxy].own.input.extend_from_slice(&bytes);
        loop {
            let own = &mut self.proxies[proxy].own;
            let parsed = parse_reply(&own.input).expect("the server answers replies");
            let Some((_, len)) = parsed else { return };
            let reply: Vec<u8> = take(&mut own.input, len);
            let Some((_, waiting)) = own.waiting.pop_front() else {
                return self.violated("own connection", "an answer to nothing".to_owned());
            };
            if let Waiting::Chore(chore) = waiting {
                let done = parse_chore(&chore.task, &reply);
                if done.is_none() {
                    let text = format!("{:?} was answered with {}", chore.task, reply.escape_ascii());
                    self.violated("own connection", text);
                }
                self.chore_done(proxy, &chore, done);
            }
        }
    }

    pub fn own_overdue(&mut self, proxy: usize, epoch: u64) {
        let own = &self.proxies[proxy].own;
        let late = own
            .waiting
            .front()
            .is_some_and(|(sent, _)| sent + OVERDUE_US <= self.now);
        if own.epoch == epoch && own.to_server.is_some() && late {
            self.own_lost(proxy);
        }
    }

    /// The connection is gone: whatever was asked came to nothing, as far as is known.
    pub fn own_lost(&mut self, proxy: usize) {
        self.note(|| format!("proxy {proxy} loses its own connection"));
        self.last_trouble = self.now;
        if let Some(pipe) = self.proxies[proxy].own.to_server.take() {
            self.send_end(pipe);
        }
        let waiting = std::mem::take(&mut self.proxies[proxy].own.waiting);
        for (_, waiting) in waiting {
            if let Waiting::Chore(chore) = waiting {
                self.chore_done(proxy, &chore, None);
            }
        }
        self.after(50_000, Happening::OwnConnect(proxy));
    }
}
