//! A client's connection: what was sent and is not answered yet, who it is to the server, and how it comes and goes.

use std::collections::{BTreeMap, VecDeque};

use crate::net::End;
use crate::plan::Style;
use crate::request::{Meaning, Request};
use crate::resp::{request, show_args};
use crate::rng::Rng;
use crate::server::keyspace::Bytes;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    /// It has said all that it had to say, and listens on.
    HalfClosed,
    Closed,
}

pub struct Client {
    pub team: usize,
    pub state: State,
    /// It does not read for now.
    pub is_slow: bool,
    pub to_proxy: usize,
    from_proxy: usize,
    pub input: Bytes,
    /// Sent and not answered.
    pub awaiting: VecDeque<usize>,
    /// Sent and not seen by the server.
    pub unseen: VecDeque<usize>,
    /// Queued by the server, as far as the client knows.
    pub queued: Vec<usize>,
    pub in_multi: bool,
    /// What the server saw last.
    pub last_seen: Option<usize>,
    /// The server did not know the script of the request that it saw last.
    pub unknown_script: bool,
    // Who it is, as the server has confirmed.
    pub name: String,
    pub user: String,
    pub resp: u8,
    /// Since when, and whether it was another before.
    pub identity_since: u64,
    pub renamed: bool,
    pub opened: u64,
    /// Its session has ended because the client closed it.
    pub gone_since: Option<u64>,
    /// How many leases lockward has seen it acquire, by lock.
    pub grants_seen: BTreeMap<Bytes, usize>,
}

impl World {
    /// Opens a connection to one of the proxies and says who is there.
    pub fn connect(&mut self, team: usize) -> usize {
        let proxy = self.rng.index(self.proxies.len());
        let client = self.clients.len();
        let from_proxy = self.new_pipe(End::Client(client));
        self.clients.push(Client {
            team,
            state: State::Open,
            is_slow: false,
            to_proxy: 0,
            from_proxy,
            input: Vec::new(),
            awaiting: VecDeque::new(),
            unseen: VecDeque::new(),
            queued: Vec::new(),
            in_multi: false,
            last_seen: None,
            unknown_script: false,
            name: String::new(),
            user: "default".to_owned(),
            resp: 2,
            identity_since: self.now,
            renamed: false,
            opened: self.now,
            gone_since: None,
            grants_seen: BTreeMap::new(),
        });
        match self.accept(proxy, client, from_proxy) {
            Some((session, pipe)) => {
                self.clients[client].to_proxy = pipe;
                self.note(|| format!("client {client} of team {team} connects to proxy {proxy} as session {session}"));
                self.introduce(client);
            }
            None => {
                // The server is away: lockward says so and closes.
                self.clients[client].to_proxy = self.new_pipe(End::Server(0));
                self.send(from_proxy, b"-UPSTREAM the server is not reachable\r\n");
                self.send_end(from_proxy);
            }
        }
        client
    }

    fn introduce(&mut self, client: usize) {
        let team = self.plan.teams[self.clients[client].team].clone();
        let mut all: Vec<Vec<String>> = Vec::new();
        let words = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let name = team.name.map(|name| name.replace(' ', "-"));
        match (&team.user, &name) {
            (Some(user), Some(name)) if team.resp == 3 && self.rng.percent(50) => {
                all.push(words(&format!("HELLO|3|AUTH|{user}|right|SETNAME|{name}")));
            }
            (user, name) => {
                all.extend((team.resp == 3).then(|| words("HELLO|3")));
                all.extend(user.iter().map(|user| words(&format!("AUTH|{user}|right"))));
                all.extend(name.iter().map(|name| words(&format!("CLIENT|SETNAME|{name}"))));
            }
        }
        if team.database != 0 {
            all.push(words(&format!("SELECT|{}", team.database)));
        }
        if all.is_empty() {
            return;
        }
        let requests = all.iter().map(|line| {
            let args: Vec<Bytes> = line.iter().map(|word| word.clone().into_bytes()).collect();
            self.prepare(client, None, Meaning::Plain, args)
        });
        let requests: Vec<usize> = requests.collect();
        self.transmit(client, &requests);
    }

    /// Writes a request down, without sending it yet.
    pub fn prepare(&mut self, client: usize, task: Option<usize>, meaning: Meaning, args: Vec<Bytes>) -> usize {
        let mut args = args;
        if self.rng.percent(30) {
            args[0].make_ascii_lowercase();
        }
        let inline = meaning == Meaning::Plain
            && self.rng.percent(20)
            && args.iter().all(|arg| {
                !arg.is_empty()
                    && arg.len() < 100
                    && arg.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b':')
            });
        let raw = if inline {
            [args.join(&b' '), b"\r\n".to_vec()].concat()
        } else {
            request(&args)
        };
        let mut locks: Vec<Bytes> = Vec::new();
        let takes_keys = !matches!(args[0].to_ascii_uppercase().as_slice(), b"LOCKWARD" | b"KEYS" | b"SCAN");
        if takes_keys && meaning != Meaning::Flush {
            let found = args[1..].iter().filter(|arg| self.plan.rule_of(arg).is_some());
            for key in found {
                if !locks.contains(key) {
                    locks.push(key.clone());
                }
            }
        } else if meaning == Meaning::Own {
            locks.extend(args.get(2).cloned());
        }
        self.requests.push(Request {
            client,
            task,
            args,
            raw,
            meaning,
            locks,
            in_multi: false,
            local: false,
            silent: false,
            last: false,
            server_reply: None,
            shielded: false,
            looked: false,
            executed: 0,
            seen: Vec::new(),
            changes: Vec::new(),
            record_changes: 0,
        });
        self.requests.len() - 1
    }

    /// Sends requests in one write.
    pub fn transmit(&mut self, client: usize, requests: &[usize]) {
        if self.clients[client].state != State::Open {
            for &number in requests {
                self.lost(number);
            }
            return;
        }
        let mut bytes = Vec::new();
        for &number in requests {
            let name = self.requests[number].name();
            let in_multi = self.clients[client].in_multi;
            match name.as_str() {
                "MULTI" => self.clients[client].in_multi = true,
                "EXEC" | "DISCARD" => self.clients[client].in_multi = false,
                _ => self.requests[number].in_multi = in_multi,
            }
            bytes.extend_from_slice(&self.requests[number].raw);
            if !self.requests[number].silent {
                self.clients[client].awaiting.push_back(number);
            }
            self.clients[client].unseen.push_back(number);
            self.note(|| format!("client {client} sends #{number}"));
            let text = self.trace_request(number);
            self.note(|| text);
        }
        let pipe = self.clients[client].to_proxy;
        self.send(pipe, &bytes);
    }

    fn trace_request(&self, number: usize) -> String {
        let request = &self.requests[number];
        format!(
            "  #{number} {:?} for task {:?}: {}",
            request.meaning,
            request.task,
            show_args(&request.args)
        )
    }

    pub fn forget_unanswered(&mut self, client: usize) {
        let lost = std::mem::take(&mut self.clients[client].awaiting);
        let queued = std::mem::take(&mut self.clients[client].queued);
        for number in queued.into_iter().chain(lost) {
            self.lost(number);
        }
    }

    pub fn lost(&mut self, number: usize) {
        self.task_hears(number, None);
    }

    /// The client closes, and does not care for answers any more.
    pub fn hang_up(&mut self, client: usize) {
        if self.clients[client].state != State::Open {
            return;
        }
        let pipe = self.clients[client].to_proxy;
        let reset = self.rng.percent(30);
        self.note(|| format!("client {client} closes{}", if reset { " with a reset" } else { "" }));
        self.clients[client].state = State::Closed;
        if reset {
            self.send_reset(pipe);
        } else {
            self.send_end(pipe);
        }
        self.forget_unanswered(client);
    }

    /// The client sends no more, and waits for what is due.
    pub fn half_close(&mut self, client: usize) {
        if self.clients[client].state == State::Open {
            self.note(|| format!("client {client} half-closes"));
            self.clients[client].state = State::HalfClosed;
            let pipe = self.clients[client].to_proxy;
            self.send_end(pipe);
        }
    }

    /// A session of this client has ended.
    pub fn client_line_ended(&mut self, client: usize, by_client: bool) {
        if by_client {
            self.clients[client].gone_since = Some(self.now);
            self.truth_hears_of_end(client);
        }
    }

    /// The connection that a team's next command goes through.
    pub fn any_connection(&mut self, team: usize) -> usize {
        let style = self.plan.teams[team].style;
        let open: Vec<usize> = self.teams[team]
            .clients
            .iter()
            .copied()
            .filter(|client| self.clients[*client].state == State::Open)
            .collect();
        self.teams[team].clients.clone_from(&open);
        let most = match style {
            Style::Pool(most) => most,
            Style::PerCommand => 0,
            Style::Multiplexed => 1,
        };
        if open.len() >= most.max(1) || (!open.is_empty() && most > 0 && self.rng.percent(50)) {
            return *self.rng.pick(&open);
        }
        let client = self.connect(team);
        if most > 0 {
            self.teams[team].clients.push(client);
        }
        client
    }

    /// A reader becomes slow, or quick again.
    pub fn change_speed(&mut self, client: usize, slow: bool) {
        self.clients[client].is_slow = slow;
        if !slow {
            let pipe = self.clients[client].from_proxy;
            self.unhold(pipe);
        }
    }
}

/// A text of random letters.
pub fn letters(rng: &mut Rng, count: u64) -> Bytes {
    let few: Bytes = (0..rng.between(1, count.min(9)))
        .map(|_| b'a' + rng.below(26) as u8)
        .collect();
    if count > 9 {
        few.repeat(rng.between(1, count / 9) as usize)
    } else {
        few
    }
}
