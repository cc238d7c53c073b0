//! The driver around lockward's core, as the shell drives it, but with pipes for sockets and the virtual clock: sessions
//! and the keeper of each proxy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockward::event::{ConnectionId, Time, Token, What};
use lockward::lock::keeper::{Closing, Keeper, Limits};
use lockward::lock::shield::Shield;
use lockward::session::{Next, Notice, Peer, Policy, Session};

use crate::fault::Fault;
use crate::net::{End, Packet};
use crate::own::Own;
use crate::server::keyspace::PREFIX;
use crate::world::{Happening, Upstream, World};

/// What each owner token of a run begins with, so that one in a client's bytes is seen.
pub const TOKEN_MARK: &str = "70ce70ce-70ce-4";

pub struct Proxy {
    pub instance: Arc<str>,
    pub born: u64,
    pub policy: Arc<Policy>,
    pub keeper: Keeper,
    pub lines: BTreeMap<u64, Line>,
    pub own: Own,
    next: u64,
    /// The earliest tick that is planned.
    tick_at: Option<u64>,
}

/// One session and its four pipes.
pub struct Line {
    pub session: Session,
    pub client: usize,
    pub opened: u64,
    to_client: usize,
    from_client: usize,
    to_server: usize,
    from_server: usize,
    closed_by_client: bool,
}

impl World {
    /// Starts a proxy's process, for the first time or again.
    pub fn start_proxy(&mut self, index: usize) {
        let salt = self.rng.next();
        let instance: Arc<str> = format!("{salt:016x}").into();
        let count = AtomicU64::new(salt & 0xffff_ffff_0000);
        let mint = move || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            Token(
                format!("{TOKEN_MARK}000-8000-{:012x}", number & 0xffff_ffff_ffff)
                    .parse()
                    .expect("a uuid"),
            )
        };
        let rules = self.plan.rules.clone();
        let policy = Policy::new(rules.clone(), PREFIX, mint);
        let proxy = Proxy {
            instance,
            born: self.now,
            policy: Arc::new(policy),
            keeper: Keeper::new(&rules, Limits::default()),
            lines: BTreeMap::new(),
            own: Own::default(),
            next: 0,
            tick_at: None,
        };
        if index < self.proxies.len() {
            // What is still under way to the old process must not reach the new one.
            let (next, own) = (self.proxies[index].next, self.proxies[index].own.successor());
            self.proxies[index] = Proxy { next, own, ..proxy };
        } else {
            self.proxies.push(proxy);
        }
        self.after(1_000, Happening::OwnConnect(index));
    }

    /// The process dies: every connection is reset, nobody says farewell, and it comes back with nothing in mind.
    pub fn restart_proxy(&mut self, index: usize) {
        self.note(|| format!("proxy {index} is killed and comes back"));
        self.last_trouble = self.now;
        let lines = std::mem::take(&mut self.proxies[index].lines);
        for line in lines.into_values() {
            self.send_reset(line.to_client);
            self.cut(line.to_server);
        }
        if let Some(pipe) = self.proxies[index].own.pipe() {
            self.cut(pipe);
        }
        self.start_proxy(index);
    }

    /// A dying process' socket ends one way or the other.
    fn cut(&mut self, pipe: usize) {
        if self.rng.percent(50) {
            self.send_end(pipe);
        } else {
            self.send_reset(pipe);
        }
    }

    pub fn time(&self, proxy: usize) -> Time {
        Time(self.now - self.proxies[proxy].born)
    }

    /// Accepts a client. Returns its session's number and the pipe to it; `from` is the pipe from the session.
    pub fn accept(&mut self, proxy: usize, client: usize, to_client: usize) -> Option<(u64, usize)> {
        if !self.server_up {
            return None;
        }
        let number = self.proxies[proxy].next + 1;
        self.proxies[proxy].next = number;
        let team = &self.plan.teams[self.clients[client].team];
        let peer = if team.process {
            Peer {
                address: None,
                process: Some(format!("{}", self.clients[client].team).into()),
            }
        } else {
            Peer {
                address: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, team.address))),
                process: None,
            }
        };
        let id = ConnectionId {
            instance: Arc::clone(&self.proxies[proxy].instance),
            number,
        };
        let session = Session::new(self.policy_of_session(proxy), id, peer);
        let upstream = self.server.connect();
        let from_client = self.new_pipe(End::Downstream(proxy, number));
        let to_server = self.new_pipe(End::Server(upstream));
        let from_server = self.new_pipe(End::Upstream(proxy, number));
        let whose = Upstream::Client {
            client,
            pipe: from_server,
        };
        self.upstreams.insert(upstream, whose);
        let opened = self.now;
        let line = Line {
            session,
            client,
            opened,
            to_client,
            from_client,
            to_server,
            from_server,
            closed_by_client: false,
        };
        self.proxies[proxy].lines.insert(number, line);
        self.pump(proxy, number);
        Some((number, from_client))
    }

    fn policy_of_session(&self, proxy: usize) -> Arc<Policy> {
        let policy = &self.proxies[proxy].policy;
        if self.fault != Some(Fault::ShieldsApart) {
            return Arc::clone(policy);
        }
        let mut own = policy.with(policy.features);
        own.shield = Arc::new(Shield::new(&self.plan.rules));
        Arc::new(own)
    }

    /// Whether this end takes bytes for now.
    pub fn reads(&self, end: End) -> bool {
        let (proxy, number, down) = match end {
            End::Downstream(proxy, number) => (proxy, number, true),
            End::Upstream(proxy, number) => (proxy, number, false),
            End::Client(client) => return !self.clients[client].is_slow,
            End::Own(..) | End::Server(_) => return true,
        };
        let Some(line) = self.proxies[proxy].lines.get(&number) else {
            return true;
        };
        match line.session.next() {
            Next::Wait {
                read_downstream,
                read_upstream,
            } => {
                if down {
                    read_downstream
                } else {
                    read_upstream
                }
            }
            Next::Close | Next::Abort => false,
        }
    }

    pub fn client_sent(&mut self, proxy: usize, number: u64, packet: Packet) {
        let now = self.time(proxy);
        let Some(line) = self.proxies[proxy].lines.get_mut(&number) else {
            return;
        };
        match packet {
            Packet::Data(bytes) => line.session.receive_downstream(&bytes, now),
            Packet::Fin => {
                line.closed_by_client = true;
                line.session.downstream_ended(now);
            }
            Packet::Reset => {
                line.closed_by_client = true;
                line.session.downstream_lost();
            }
        }
        self.pump(proxy, number);
    }

    pub fn server_sent(&mut self, proxy: usize, number: u64, packet: Packet) {
        let now = self.time(proxy);
        let Some(line) = self.proxies[proxy].lines.get_mut(&number) else {
            return;
        };
        match packet {
            Packet::Data(bytes) => line.session.receive_upstream(&bytes, now),
            Packet::Fin | Packet::Reset => line.session.upstream_ended(),
        }
        self.pump(proxy, number);
    }

    /// Does what the session's driver does after each call into it.
    pub fn pump(&mut self, proxy: usize, number: u64) {
        let now = self.time(proxy);
        if let Some(line) = self.proxies[proxy].lines.get_mut(&number)
            && line.session.waits()
        {
            line.session.advance(now);
        }
        loop {
            self.hand_over(proxy, number);
            let Some(line) = self.proxies[proxy].lines.get_mut(&number) else {
                return;
            };
            if line.session.to_upstream.is_empty() && line.session.to_downstream.is_empty() {
                break;
            }
            let (up, down) = (line.to_server, line.to_client);
            // Now and then a socket takes only a part.
            let full = self.rng.one_in(24);
            let upstream = take(&mut line.session.to_upstream, full);
            let mut downstream = take(&mut line.session.to_downstream, full);
            if self.fault == Some(Fault::ReplyDoubled) && downstream == b"+OK\r\n" {
                downstream.extend_from_slice(b"+OK\r\n");
            }
            self.send(up, &upstream);
            self.send(down, &downstream);
            if full {
                self.after(150, Happening::Pump(proxy, number));
                break;
            }
            let now = self.time(proxy);
            if let Some(line) = self.proxies[proxy].lines.get_mut(&number) {
                line.session.advance(now);
            }
        }
        let Some(line) = self.proxies[proxy].lines.get(&number) else {
            return;
        };
        let (from_client, from_server) = (line.from_client, line.from_server);
        let (next, waits) = (line.session.next(), line.session.waits());
        if waits {
            self.after(1_000, Happening::Pump(proxy, number));
        }
        match next {
            Next::Wait { .. } => {
                self.unhold(from_client);
                self.unhold(from_server);
            }
            Next::Close => self.close(proxy, number, false),
            Next::Abort => self.close(proxy, number, true),
        }
    }

    fn close(&mut self, proxy: usize, number: u64, abort: bool) {
        self.hand_over(proxy, number);
        let Some(mut line) = self.proxies[proxy].lines.remove(&number) else {
            return;
        };
        let rest = std::mem::take(&mut line.session.to_downstream);
        self.cut(line.to_server);
        if !abort {
            self.send(line.to_client, &rest);
        }
        self.send_end(line.to_client);
        let closing = if line.closed_by_client {
            Closing::ByClient
        } else {
            Closing::ByProxyOrServer
        };
        self.note(|| {
            format!(
                "proxy {proxy} session {number} of client {} ends: {closing:?}",
                line.client
            )
        });
        let now = self.time(proxy);
        self.proxies[proxy]
            .keeper
            .closed(now, line.session.connection(), closing);
        self.client_line_ended(line.client, line.closed_by_client);
        self.plan_keeper(proxy);
    }

    /// Events and notices, before the bytes that they belong to go out.
    fn hand_over(&mut self, proxy: usize, number: u64) {
        let now = self.time(proxy);
        let Some(line) = self.proxies[proxy].lines.get_mut(&number) else {
            return;
        };
        let events = std::mem::take(&mut line.session.events);
        let notices = std::mem::take(&mut line.session.notices);
        line.session.settled.clear();
        if events.is_empty() && notices.is_empty() {
            return;
        }
        let client = line.client;
        for mut witnessed in events {
            self.proxies[proxy].keeper.complete(&mut witnessed.event);
            if let What::Granted(_) = witnessed.event.what {
                let key = witnessed.event.key.to_vec();
                *self.clients[client].grants_seen.entry(key).or_default() += 1;
            }
            self.proxies[proxy].keeper.event(&witnessed.event, witnessed.bound);
            self.coverage.event(&witnessed.event.what);
            self.note(|| format!("proxy {proxy} session {number}: {:?}", witnessed.event.what));
            self.sees_release(proxy, &witnessed.event);
            if let What::Contended { shielded: true } = witnessed.event.what {
                self.check_shield(proxy, &witnessed.event);
            }
        }
        for notice in notices {
            let keeper = &mut self.proxies[proxy].keeper;
            match notice {
                Notice::Owner { rule, owner } => keeper.bound(number, rule, &owner),
                Notice::DataFlushed { databases, .. } => {
                    databases.each().for_each(|database| keeper.look_again(now, database));
                }
                Notice::Name(_) | Notice::RightsChanged | Notice::Foreign(_) => {}
                Notice::Watching { database, key, on } => keeper.watching(number, database, &key, on),
                Notice::ScriptsFlushed => self.own_load_scripts(proxy),
            }
        }
        self.plan_keeper(proxy);
    }

    pub fn plan_keeper(&mut self, proxy: usize) {
        let born = self.proxies[proxy].born;
        let Some(deadline) = self.proxies[proxy].keeper.deadline() else {
            return;
        };
        let at = (born + deadline.0).max(self.now);
        if self.proxies[proxy].tick_at.is_none_or(|known| at < known) {
            self.proxies[proxy].tick_at = Some(at);
            self.at(at, Happening::Keeper(proxy));
        }
    }

    pub fn keeper_tick(&mut self, proxy: usize) {
        self.proxies[proxy].tick_at = None;
        let now = self.time(proxy);
        let due = self.proxies[proxy]
            .keeper
            .deadline()
            .is_some_and(|deadline| deadline <= now);
        if due {
            let (mut chores, mut events) = (Vec::new(), Vec::new());
            self.proxies[proxy].keeper.tick(now, &mut chores, &mut events);
            for event in &events {
                self.coverage.event(&event.what);
                self.note(|| format!("keeper {proxy}: {:?}", event.what));
                self.proxies[proxy].policy.shield.heard(event);
                self.sees_release(proxy, event);
            }
            for chore in chores {
                self.own_chore(proxy, chore);
            }
        }
        self.plan_keeper(proxy);
    }
}

/// Takes all of a buffer, or half of it.
fn take(buffer: &mut bytes::BytesMut, half: bool) -> Vec<u8> {
    let len = if half { buffer.len() / 2 } else { buffer.len() };
    buffer.split_to(len).to_vec()
}
