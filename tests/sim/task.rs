//! Tasks: each takes a lock by some idiom, works, often for longer than its TTL, and gives the lock up at most once, or
//! dies. They know what they have sent and heard, and nothing else.

use crate::idioms::{Spelled, meaning_of};
use crate::plan::{Conduct, Style, TeamPlan};
use crate::request::Meaning;
use crate::resp::Reply;
use crate::server::keyspace::Bytes;
use crate::world::{Happening, World};

/// Deletes a lock if it holds this value, as most lock libraries do.
pub const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const COMPARE_AND_EXPIRE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Acquiring,
    Holding,
    Releasing,
    Over,
}

pub struct Team {
    pub clients: Vec<usize>,
    pub running: usize,
}

impl Team {
    pub fn new(_plan: &TeamPlan) -> Team {
        Team {
            clients: Vec::new(),
            running: 0,
        }
    }
}

pub struct Task {
    pub team: usize,
    lock: usize,
    /// A second lock, taken together with the first.
    second: Option<usize>,
    value: Bytes,
    ttl_ms: u64,
    work_us: u64,
    extends: u64,
    tries: u64,
    /// It dies at work.
    dies: bool,
    state: State,
    client: Option<usize>,
    /// The request whose answer it waits for.
    waits_for: Option<usize>,
    /// The acquire has no TTL yet.
    bare: bool,
}

/// Words of a command.
pub fn words(words: &[&[u8]]) -> Vec<Bytes> {
    words.iter().map(|word| word.to_vec()).collect()
}

impl World {
    pub fn start_team(&mut self, team: usize) {
        let delay = self.rng.below(200_000);
        self.after(delay, Happening::Team(team));
    }

    pub fn team_acts(&mut self, team: usize) {
        if self.winding_down {
            return;
        }
        let pause = self.rng.between(5_000, 150_000);
        self.after(pause, Happening::Team(team));
        let plan = self.plan.teams[team].clone();
        if plan.stray {
            let client = self.any_connection(team);
            self.stray(client);
        } else if self.teams[team].running < plan.tasks {
            self.start_task(team);
        }
        if self.rng.percent(60) {
            let client = self.any_connection(team);
            self.plain_traffic(client);
        }
    }

    fn start_task(&mut self, team: usize) {
        let hoards = self.plan.hoard && team == 0;
        let lock = if hoards {
            0
        } else {
            self.rng.index(self.plan.locks.len())
        };
        let ttl_ms = if hoards {
            6
        } else {
            *self.rng.pick(&[20, 60, 150, 400, 1_500])
        };
        let number = self.tasks.len();
        let second = self.rng.one_in(12).then_some(lock ^ 1);
        let longest = if self.rng.percent(60) { 900 } else { 3_000 };
        let work_us = ttl_ms * self.rng.between(100, longest);
        self.tasks.push(Task {
            team,
            lock,
            second,
            value: format!("task-{number}").into_bytes(),
            ttl_ms,
            work_us,
            extends: if self.rng.one_in(3) { self.rng.between(1, 3) } else { 0 },
            tries: self.rng.between(0, 5),
            dies: hoards || self.rng.percent(6),
            state: State::Starting,
            client: None,
            waits_for: None,
            bare: false,
        });
        self.teams[team].running += 1;
        self.after(0, Happening::Task(number));
    }

    /// It gives nothing up, and often its connection ends with it.
    fn dies(&mut self, task: usize) {
        self.over(task);
        if let Some(client) = self.tasks[task].client.filter(|_| self.rng.percent(60)) {
            self.hang_up(client);
        }
    }

    /// A task that dies gives nothing up.
    pub fn kill_task(&mut self, task: usize) {
        self.tasks[task].waits_for = None;
        self.over(task);
    }

    fn over(&mut self, task: usize) {
        if self.tasks[task].state != State::Over {
            self.tasks[task].state = State::Over;
            self.teams[self.tasks[task].team].running -= 1;
        }
    }

    pub fn task_goes_on(&mut self, task: usize) {
        match self.tasks[task].state {
            State::Starting => self.acquire(task),
            State::Holding if self.tasks[task].extends > 0 => {
                self.tasks[task].extends -= 1;
                self.extend(task);
                let pause = self.tasks[task].work_us / 2 + 1;
                self.after(pause, Happening::Task(task));
            }
            State::Holding if self.tasks[task].dies => self.dies(task),
            State::Holding => self.release(task),
            State::Acquiring | State::Releasing | State::Over => {}
        }
    }

    /// The answer to one of a task's requests, or that none will come.
    pub fn task_hears(&mut self, number: usize, reply: Option<&Reply>) {
        let Some(task) = self.requests[number].task else { return };
        if self.tasks[task].waits_for != Some(number) {
            return;
        }
        self.tasks[task].waits_for = None;
        match (self.tasks[task].state, reply) {
            (State::Acquiring, Some(reply)) => {
                let granted = self.is_grant(number, reply);
                self.note(|| {
                    format!(
                        "task {task} {}",
                        if granted {
                            "holds its lock"
                        } else {
                            "does not get its lock"
                        }
                    )
                });
                if granted {
                    self.begins_work(task)
                } else {
                    self.loses(task)
                }
            }
            (State::Acquiring | State::Releasing, _) => self.over(task),
            _ => {}
        }
    }

    fn is_grant(&self, number: usize, reply: &Reply) -> bool {
        let request = &self.requests[number];
        match request.name().as_str() {
            "SET" if request.has("GET") => reply.is_nil(),
            "GETSET" => reply.is_nil(),
            "SETNX" | "MSETNX" | "RENAMENX" | "COPY" => *reply == Reply::Int(1),
            _ => reply.is_ok(),
        }
    }

    fn begins_work(&mut self, task: usize) {
        self.tasks[task].state = State::Holding;
        if self.tasks[task].bare && !self.rng.one_in(12) {
            let ttl = self.tasks[task].ttl_ms.to_string();
            let locks: Vec<usize> = std::iter::once(self.tasks[task].lock)
                .chain(self.tasks[task].second)
                .collect();
            for lock in locks {
                let key = self.plan.locks[lock].key.clone();
                self.ask(task, Meaning::Extend, words(&[b"PEXPIRE", &key, ttl.as_bytes()]));
            }
        }
        let pause = self.tasks[task].work_us;
        self.after(pause, Happening::Task(task));
    }

    fn loses(&mut self, task: usize) {
        let lock = self.plan.locks[self.tasks[task].lock].clone();
        if lock.conduct == Conduct::Rough && self.rng.one_in(3) {
            let key = &lock.key;
            let (meaning, args) = match self.rng.below(5) {
                0 => (Meaning::Release, words(&[b"DEL", key])),
                1 => (Meaning::Extend, words(&[b"EXPIRE", key, b"30"])),
                2 => (Meaning::Overwrite, words(&[b"SET", key, b"loser", b"XX"])),
                3 => (Meaning::Extend, words(&[b"PEXPIRE", key, b"1"])),
                _ => (Meaning::Extend, words(&[b"PERSIST", key])),
            };
            self.ask(task, meaning, args);
        }
        if self.tasks[task].tries == 0 || self.winding_down {
            return self.over(task);
        }
        self.tasks[task].tries -= 1;
        self.tasks[task].state = State::Starting;
        let pause = self.rng.between(2_000, 80_000);
        self.after(pause, Happening::Task(task));
    }

    /// Sends one request of a task through the connection that its team gives it. Nobody waits for the answer.
    pub fn ask(&mut self, task: usize, meaning: Meaning, args: Vec<Bytes>) -> usize {
        let client = self.connection_for(task);
        let number = self.prepare(client, Some(task), meaning, args);
        self.dispatch(client, &[number]);
        number
    }

    /// Often the connection that acquired, else any of the pool.
    fn connection_for(&mut self, task: usize) -> usize {
        let team = self.tasks[task].team;
        let open = |client: &usize| self.clients[*client].state == crate::client::State::Open;
        let own = self.tasks[task].client.filter(open);
        match own {
            Some(client) if self.plan.teams[team].style != Style::PerCommand && self.rng.percent(50) => client,
            _ => self.any_connection(team),
        }
    }

    /// Sends requests in one packet; a connection for each command ends with it.
    pub fn dispatch(&mut self, client: usize, requests: &[usize]) {
        let team = self.clients[client].team;
        if self.plan.teams[team].style == Style::PerCommand
            && let Some(last) = requests.last()
        {
            self.requests[*last].last = true;
        }
        self.transmit(client, requests);
    }

    fn acquire(&mut self, task: usize) {
        if self.winding_down {
            return self.over(task);
        }
        let client = self.connection_for(task);
        let lock = self.plan.locks[self.tasks[task].lock].clone();
        let second = self.tasks[task]
            .second
            .map(|second| self.plan.locks[second].key.clone());
        let (value, ttl) = (
            self.tasks[task].value.clone(),
            self.tasks[task].ttl_ms.to_string().into_bytes(),
        );
        let spelled = match second {
            Some(second) => {
                let msetnx = words(&[b"MSETNX", &lock.key, &value, &second, &value]);
                Spelled {
                    bare: true,
                    ..Spelled::told_by(0, vec![msetnx])
                }
            }
            None => self.spelled(&lock.key, lock.conduct, &value, &ttl),
        };
        let mut requests = Vec::new();
        for args in spelled.commands {
            let meaning = meaning_of(&args);
            let for_task = (meaning != Meaning::Plain).then_some(task);
            requests.push(self.prepare(client, for_task, meaning, args));
        }
        let waits_for = requests[spelled.told_by];
        let task = &mut self.tasks[task];
        (task.state, task.client, task.waits_for, task.bare) =
            (State::Acquiring, Some(client), Some(waits_for), spelled.bare);
        self.dispatch(client, &requests);
    }

    fn extend(&mut self, task: usize) {
        let lock = self.plan.locks[self.tasks[task].lock].clone();
        let (key, value) = (lock.key, self.tasks[task].value.clone());
        let ms = self.tasks[task].ttl_ms;
        let ttl = ms.to_string().into_bytes();
        let at = (self.server_ms() + ms as i64).to_string().into_bytes();
        let seconds = (ms / 1_000 + 1).to_string().into_bytes();
        let (meaning, args) = match self.rng.below(10) {
            0..=2 => (Meaning::Extend, words(&[b"PEXPIRE", &key, &ttl])),
            3 => (Meaning::Extend, words(&[b"EXPIRE", &key, &seconds, b"GT"])),
            4 => (Meaning::Extend, words(&[b"PEXPIREAT", &key, &at, b"XX"])),
            5 => (Meaning::Extend, words(&[b"GETEX", &key, b"PX", &ttl])),
            6 => (
                Meaning::SelfChecked,
                words(&[b"EVAL", COMPARE_AND_EXPIRE.as_bytes(), b"1", &key, &value, &ttl]),
            ),
            7 => (Meaning::Overwrite, words(&[b"SET", &key, &value, b"XX", b"PX", &ttl])),
            8 if lock.conduct == Conduct::Rough => (Meaning::Overwrite, words(&[b"SETEX", &key, &seconds, &value])),
            8 => (Meaning::Extend, words(&[b"PEXPIRE", &key, &ttl, b"LT"])),
            _ if lock.conduct == Conduct::Rough => (Meaning::Extend, words(&[b"PERSIST", &key])),
            _ => (Meaning::Extend, words(&[b"EXPIRE", &key, &seconds])),
        };
        self.ask(task, meaning, args);
    }

    fn release(&mut self, task: usize) {
        self.tasks[task].state = State::Releasing;
        let lock = self.plan.locks[self.tasks[task].lock].clone();
        let client = self.connection_for(task);
        let second = self.tasks[task]
            .second
            .map(|second| self.plan.locks[second].key.clone());
        let value = self.tasks[task].value.clone();
        let commands = match second {
            Some(second) => vec![words(&[b"DEL", &second, b"plain:0", &lock.key])],
            None => self.given_up(&lock, &value),
        };
        let silent = commands[0].len() == 3 && commands[0][2] == b"SKIP";
        let mut requests = Vec::new();
        for args in commands {
            let meaning = meaning_of(&args);
            let for_task = (meaning != Meaning::Plain).then_some(task);
            let number = self.prepare(client, for_task, meaning, args);
            self.requests[number].silent = silent;
            requests.push(number);
        }
        let waits_for = requests
            .iter()
            .copied()
            .find(|number| self.requests[*number].task.is_some());
        self.tasks[task].waits_for = waits_for;
        if silent {
            self.over(task);
        }
        self.dispatch(client, &requests);
        if lock.conduct == Conduct::Rough && self.rng.one_in(10) {
            self.ask(task, Meaning::Release, words(&[b"DEL", &lock.key]));
        }
    }
}
