//! One run: the clock, the queue of what is to come, and everybody who takes part. Decides the order of things and
//! nothing else; what each of them does stands in its own file.

use std::collections::BTreeMap;

use crate::client::Client;
use crate::coverage::Coverage;
use crate::fault::Fault;
use crate::net::{End, Packet, Pipe};
use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::request::Request;
use crate::rng::Rng;
use crate::server::Server;
use crate::task::{Task, Team};
use crate::trace::Trace;
use crate::truth::Truth;

/// When the server's clock stood at the beginning, in microseconds since 1970.
pub const EPOCH_US: u64 = 1_700_000_000_000_000;

/// What is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A packet arrives.
    Packet(usize),
    /// A session's buffers can be written out further.
    Pump(usize, u64),
    /// A keeper's deadline.
    Keeper(usize),
    /// A proxy connects to the server again.
    OwnConnect(usize),
    /// The answer to a chore is overdue.
    OwnOverdue(usize, u64),
    /// The server comes back.
    ServerUp,
    /// Something expires, or somebody has been blocked long enough.
    Server,
    /// A task goes on.
    Task(usize),
    /// A team does something beside its tasks.
    Team(usize),
    Chaos,
}

/// Whose a connection of the server is.
#[derive(Clone, Copy, Debug)]
pub enum Upstream {
    Client { client: usize, pipe: usize },
    Own { proxy: usize, pipe: usize },
}

pub struct World {
    pub rng: Rng,
    pub now: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    pub plan: Plan,
    pub server: Server,
    pub server_up: bool,
    pub upstreams: BTreeMap<u64, Upstream>,
    pub pipes: Vec<Pipe>,
    pub proxies: Vec<Proxy>,
    pub clients: Vec<Client>,
    pub requests: Vec<Request>,
    pub teams: Vec<Team>,
    pub tasks: Vec<Task>,
    pub truth: Truth,
    pub coverage: Coverage,
    pub trace: Trace,
    pub fault: Option<Fault>,
    pub violation: Option<String>,
    /// No new work begins.
    pub winding_down: bool,
    /// When a proxy, the server or an own connection last failed.
    pub last_trouble: u64,
}

/// How a run ended.
pub struct Outcome {
    pub violation: Option<String>,
    pub coverage: Coverage,
    pub trace: Trace,
    pub patched: usize,
    pub requests: usize,
}

impl World {
    pub fn new(seed: u64, fault: Option<Fault>, trace: Trace) -> World {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(&mut rng);
        let mut world = World {
            rng,
            now: 0,
            queue: BTreeMap::new(),
            queued: 0,
            server: Server::new(fault.and_then(Fault::patch)),
            server_up: true,
            upstreams: BTreeMap::new(),
            pipes: Vec::new(),
            proxies: Vec::new(),
            clients: Vec::new(),
            requests: Vec::new(),
            teams: plan.teams.iter().map(Team::new).collect(),
            tasks: Vec::new(),
            truth: Truth::default(),
            coverage: Coverage::default(),
            trace,
            fault,
            violation: None,
            winding_down: false,
            last_trouble: 0,
            plan,
        };
        world.server.advance(EPOCH_US);
        for index in 0..world.plan.proxies {
            world.start_proxy(index);
        }
        for team in 0..world.teams.len() {
            world.start_team(team);
        }
        world.at(world.plan.chaos.every_us, Happening::Chaos);
        world
    }

    pub fn at(&mut self, time: u64, what: Happening) {
        self.queued += 1;
        self.queue.insert((time.max(self.now), self.queued), what);
    }

    pub fn after(&mut self, delay: u64, what: Happening) {
        self.at(self.now + delay, what);
    }

    /// Milliseconds on the server's clock.
    pub fn server_ms(&self) -> i64 {
        ((EPOCH_US + self.now) / 1000) as i64
    }

    pub fn violated(&mut self, which: &str, text: String) {
        self.note(|| format!("VIOLATION {which}: {text}"));
        if self.violation.is_none() {
            self.violation = Some(format!("{which}: {text}"));
        }
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        let now = self.now;
        self.trace.line(now, text);
    }

    /// Runs to the end, or to the first broken promise.
    pub fn run(mut self) -> Outcome {
        self.run_until(self.plan.length_us);
        self.winding_down = true;
        for client in 0..self.clients.len() {
            self.change_speed(client, false);
        }
        // Whatever was begun ends: the longest work, then everybody leaves.
        self.run_until(self.plan.length_us + 30_000_000);
        if self.violation.is_none() {
            self.everybody_leaves();
        }
        self.run_until(self.now + 60_000_000);
        self.free_what_is_stuck();
        self.run_until(self.now + 400_000_000);
        self.check_the_end();
        Outcome {
            violation: self.violation,
            coverage: self.coverage,
            trace: self.trace,
            patched: self.server.patched(),
            requests: self.requests.len(),
        }
    }

    fn run_until(&mut self, end: u64) {
        while self.violation.is_none()
            && let Some(entry) = self.queue.first_entry()
        {
            let time = entry.key().0;
            if time > end {
                break;
            }
            let what = entry.remove();
            self.now = time;
            self.happen(what);
        }
        if self.violation.is_none() {
            self.now = self.now.max(end);
            self.server.advance(EPOCH_US + self.now);
            self.read_journal();
        }
    }

    fn happen(&mut self, what: Happening) {
        self.server.advance(EPOCH_US + self.now);
        self.read_journal();
        match what {
            Happening::Packet(pipe) => self.deliver(pipe),
            Happening::Pump(proxy, session) => self.pump(proxy, session),
            Happening::Keeper(proxy) => self.keeper_tick(proxy),
            Happening::OwnConnect(proxy) => self.own_connect(proxy),
            Happening::OwnOverdue(proxy, epoch) => self.own_overdue(proxy, epoch),
            Happening::ServerUp => self.server_up = true,
            Happening::Server => self.unblock(),
            Happening::Task(task) => self.task_goes_on(task),
            Happening::Team(team) => self.team_acts(team),
            Happening::Chaos => self.chaos(),
        }
    }

    pub fn new_pipe(&mut self, to: End) -> usize {
        self.pipes.push(Pipe::new(to));
        self.pipes.len() - 1
    }

    pub fn send(&mut self, pipe: usize, bytes: &[u8]) {
        let times = self.pipes[pipe].send(bytes, self.now, &self.plan.weather, &mut self.rng);
        for time in times {
            self.at(time, Happening::Packet(pipe));
        }
    }

    pub fn send_end(&mut self, pipe: usize) {
        if let Some(time) = self.pipes[pipe].finish(self.now, &self.plan.weather, &mut self.rng) {
            self.at(time, Happening::Packet(pipe));
        }
    }

    pub fn send_reset(&mut self, pipe: usize) {
        if let Some(time) = self.pipes[pipe].reset(self.now, &self.plan.weather, &mut self.rng) {
            self.at(time, Happening::Packet(pipe));
        }
    }

    fn deliver(&mut self, pipe: usize) {
        let to = self.pipes[pipe].to;
        if !self.reads(to) {
            self.pipes[pipe].held = true;
            return;
        }
        let Some(packet) = self.pipes[pipe].receive(self.now) else {
            return;
        };
        if let Packet::Fin | Packet::Reset = packet {
            self.note(|| format!("{to:?} gets {packet:?}"));
        }
        match to {
            End::Client(client) => self.client_receives(client, packet),
            End::Downstream(proxy, session) => self.client_sent(proxy, session, packet),
            End::Upstream(proxy, session) => self.server_sent(proxy, session, packet),
            End::Own(proxy, epoch) => self.own_receives(proxy, epoch, packet),
            End::Server(connection) => self.server_receives(connection, packet),
        }
    }

    /// What was held at a pipe's end may come in again.
    pub fn unhold(&mut self, pipe: usize) {
        if std::mem::take(&mut self.pipes[pipe].held) {
            for time in self.pipes[pipe].times() {
                self.at(time, Happening::Packet(pipe));
            }
        }
    }

    /// Something at the server comes of itself.
    pub fn plan_server(&mut self) {
        if let Some(time) = self.server.next_timeout() {
            self.at(time.saturating_sub(EPOCH_US), Happening::Server);
        }
    }
}
