//! What goes wrong of itself: processes die, connections break, memory fills, scripts and data vanish, and somebody works
//! on the locks past lockward.

use crate::client::State;
use crate::plan::Conduct;
use crate::request::Meaning;
use crate::task::words;
use crate::world::{Happening, World};

impl World {
    pub fn chaos(&mut self) {
        if self.winding_down {
            return self.server.core_mut().memory_full = false;
        }
        let chaos = self.plan.chaos;
        self.after(chaos.every_us, Happening::Chaos);
        let mut due = |one_in: u64| one_in > 0 && self.rng.one_in(one_in);
        let kinds = [
            (due(chaos.proxy_restart), World::a_proxy_dies as fn(&mut World)),
            (due(chaos.server_restart), World::the_server_restarts),
            (due(chaos.server_loses_data), World::the_server_loses_data),
            (due(chaos.script_flush), World::scripts_vanish),
            (due(chaos.flush_all), World::data_are_flushed),
            (due(chaos.memory), World::memory_changes),
            (due(chaos.direct), World::somebody_goes_past),
            (due(chaos.team_crash), World::a_team_dies),
            (due(chaos.connection_loss), World::a_connection_ends),
            (due(chaos.rename), World::a_client_is_renamed),
            (due(20), World::a_reader_changes_speed),
        ];
        for (_, happens) in kinds.into_iter().filter(|(due, _)| *due) {
            happens(self);
        }
    }

    fn a_proxy_dies(&mut self) {
        let proxy = self.rng.index(self.proxies.len());
        self.restart_proxy(proxy);
    }

    fn the_server_restarts(&mut self) {
        self.server_dies(true);
    }

    fn the_server_loses_data(&mut self) {
        self.server_dies(false);
        self.truth.accounts.clear();
    }

    fn server_dies(&mut self, keep_data: bool) {
        self.note(|| {
            format!(
                "the server dies, its data {}",
                if keep_data { "stay" } else { "are lost" }
            )
        });
        self.last_trouble = self.now;
        self.server.restart(keep_data);
        let upstreams = std::mem::take(&mut self.upstreams);
        for upstream in upstreams.into_values() {
            let (crate::world::Upstream::Client { pipe, .. } | crate::world::Upstream::Own { pipe, .. }) = upstream;
            self.send_reset(pipe);
        }
        self.server_up = false;
        let pause = self.rng.between(1_000, 500_000);
        self.after(pause, Happening::ServerUp);
        self.read_journal();
    }

    fn scripts_vanish(&mut self) {
        if self.rng.percent(50) {
            self.note(|| "the scripts are gone".to_owned());
            return self.server.flush_scripts();
        }
        self.some_client_says(Meaning::Plain, &[b"SCRIPT", b"FLUSH"]);
    }

    fn data_are_flushed(&mut self) {
        self.some_client_says(Meaning::Flush, &[b"FLUSHALL"]);
    }

    fn some_client_says(&mut self, meaning: Meaning, args: &[&[u8]]) {
        let team = self.rng.index(self.teams.len());
        let client = self.any_connection(team);
        let number = self.prepare(client, None, meaning, words(args));
        self.dispatch(client, &[number]);
    }

    fn memory_changes(&mut self) {
        let full = !self.server.core().memory_full;
        self.note(|| format!("memory is {}", if full { "full" } else { "free" }));
        self.server.core_mut().memory_full = full;
    }

    /// Somebody changes a lock without lockward.
    fn somebody_goes_past(&mut self) {
        let lock = self.rng.pick(&self.plan.locks).clone();
        let key = &lock.key;
        let db = usize::from(self.rng.one_in(6));
        let ms = self.rng.between(20, 800).to_string().into_bytes();
        let args = match self.rng.below(6) {
            0 | 1 => words(&[b"SET", key, b"past", b"PX", &ms]),
            2 | 3 => words(&[b"PEXPIRE", key, &ms]),
            4 => words(&[b"DEL", key]),
            _ => words(&[b"SET", key, b"past", b"NX", b"PX", &ms]),
        };
        if self.server.core().memory_full {
            return;
        }
        self.note(|| format!("past lockward: {}", crate::resp::show_args(&args)));
        self.server.direct(db, &args);
        self.read_journal();
    }

    /// A process dies: its tasks never release, its connections close.
    fn a_team_dies(&mut self) {
        let team = self.rng.index(self.teams.len());
        self.note(|| format!("team {team} dies"));
        let tasks: Vec<usize> = (0..self.tasks.len())
            .filter(|task| self.tasks[*task].team == team)
            .collect();
        for task in tasks {
            self.kill_task(task);
        }
        for client in std::mem::take(&mut self.teams[team].clients) {
            self.hang_up(client);
        }
    }

    /// Most often one that has taken a lock, so that its task works on without it.
    fn a_connection_ends(&mut self) {
        let is_open = |client: &usize| {
            self.clients
                .get(*client)
                .is_some_and(|client| client.state == State::Open)
        };
        let holders = self
            .truth
            .incarnations
            .values()
            .rev()
            .map(|inc| inc.client)
            .filter(is_open);
        let holders: Vec<usize> = holders.take(3).collect();
        let open: Vec<usize> = (0..self.clients.len()).filter(is_open).collect();
        let from = if holders.is_empty() || self.rng.one_in(3) {
            open
        } else {
            holders
        };
        if !from.is_empty() {
            let client = *self.rng.pick(&from);
            self.hang_up(client);
        }
    }

    /// A connection says another name of itself, in the middle of its work.
    fn a_client_is_renamed(&mut self) {
        if self.plan.locks.iter().all(|lock| lock.conduct == Conduct::Clean) {
            return;
        }
        self.some_client_says(Meaning::Plain, &[b"CLIENT", b"SETNAME", b"somebody-else"]);
    }

    fn a_reader_changes_speed(&mut self) {
        if !self.clients.is_empty() {
            let client = self.rng.index(self.clients.len());
            let slow = !self.clients[client].is_slow;
            self.change_speed(client, slow);
        }
    }
}
