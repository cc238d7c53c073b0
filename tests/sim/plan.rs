//! What a seed stands for: the rules, the locks, the teams of clients, the weather and what else goes wrong.

use lockward::lock::rule::{DeniedWrite, OwnerPart, Rule, Unmanaged};

use crate::net::Weather;
use crate::rng::Rng;

/// How the tasks on a lock conduct themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// Each acquire sends at most one release, and nobody else does: all promises hold.
    Clean,
    /// Losers send DEL, EXPIRE and SET, releases come twice, tasks write plain SETs over each other: what is promised
    /// between owners holds all the same.
    Rough,
}

#[derive(Clone, Debug)]
pub struct Lock {
    pub key: Vec<u8>,
    pub rule: usize,
    pub conduct: Conduct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A pool of so many connections; each command takes any.
    Pool(usize),
    /// A connection for each command.
    PerCommand,
    /// All tasks on one connection.
    Multiplexed,
}

/// Clients that belong together: one process, or several on one host.
#[derive(Clone, Debug)]
pub struct TeamPlan {
    pub address: u8,
    /// On a unix socket; then there is no address.
    pub process: bool,
    pub name: Option<String>,
    pub user: Option<String>,
    pub style: Style,
    pub resp: u8,
    pub database: usize,
    /// It never acquires, only disturbs.
    pub stray: bool,
    pub tasks: usize,
}

/// How often what goes wrong goes wrong: one in so many rounds of chaos; 0: never.
#[derive(Clone, Copy, Debug)]
pub struct Chaos {
    pub every_us: u64,
    pub proxy_restart: u64,
    pub server_restart: u64,
    pub server_loses_data: u64,
    pub script_flush: u64,
    pub flush_all: u64,
    pub memory: u64,
    pub direct: u64,
    pub team_crash: u64,
    pub connection_loss: u64,
    pub rename: u64,
}

pub struct Plan {
    pub rules: Vec<Rule>,
    pub locks: Vec<Lock>,
    pub teams: Vec<TeamPlan>,
    pub proxies: usize,
    pub weather: Weather,
    pub chaos: Chaos,
    /// Clients act for so long, in microseconds.
    pub length_us: u64,
    /// One lock is taken and left over and over, to fill its record with debts.
    pub hoard: bool,
}

/// The keys that no rule matches.
pub const PLAIN_KEYS: usize = 6;

impl Plan {
    pub fn new(rng: &mut Rng) -> Plan {
        let count = rng.between(1, 3) as usize;
        let rules: Vec<Rule> = (0..count).map(|index| rule(index, rng)).collect();
        let locks = (0..count)
            .flat_map(|rule| [lock(rule, 0, rng), lock(rule, 1, rng)])
            .collect();
        let proxies = rng.between(1, 3) as usize;
        let teams = (0..rng.between(2, 5)).map(|index| team(index as usize, rng)).collect();
        let weather = Weather {
            delay_us: *rng.pick(&[100, 400, 400, 3_000, 30_000]),
            split_percent: *rng.pick(&[0, 5, 30]),
            stall_one_in: *rng.pick(&[50, 400, 100_000]),
        };
        let length_us = rng.between(4, 9) * 1_000_000;
        Plan {
            rules,
            locks,
            teams,
            proxies,
            weather,
            chaos: chaos(rng),
            length_us,
            hoard: rng.one_in(8),
        }
    }

    /// The rule of a key, by position.
    pub fn rule_of(&self, key: &[u8]) -> Option<usize> {
        let digit = key.strip_prefix(b"lock:")?.first()?;
        let index = usize::from(digit.checked_sub(b'0')?);
        (index < self.rules.len()).then_some(index)
    }

    pub fn conduct_of(&self, key: &[u8]) -> Conduct {
        self.locks
            .iter()
            .find(|lock| lock.key == key)
            .map_or(Conduct::Rough, |lock| lock.conduct)
    }
}

fn rule(index: usize, rng: &mut Rng) -> Rule {
    let owners: [&[OwnerPart]; 8] = [
        &[OwnerPart::Address],
        &[OwnerPart::Address],
        &[OwnerPart::ClientName],
        &[OwnerPart::User],
        &[OwnerPart::Connection],
        &[OwnerPart::Process],
        &[OwnerPart::User, OwnerPart::ClientName],
        &[OwnerPart::Any],
    ];
    let renew = rng.one_in(6);
    let max_ttl_ms = rng.one_in(5).then(|| rng.between(200, 3_000));
    Rule {
        owner: rng.pick(&owners).to_vec(),
        unmanaged: if rng.one_in(3) {
            Unmanaged::Refuse
        } else {
            Unmanaged::Allow
        },
        fencing: rng.one_in(3),
        emulate: rng.one_in(3),
        denied_write: if rng.one_in(3) {
            DeniedWrite::Nil
        } else {
            DeniedWrite::Error
        },
        default_ttl_ms: rng.one_in(3).then(|| rng.between(100, 2_000)),
        max_ttl_ms,
        late_release_window_ms: *rng.pick(&[120_000, 120_000, 30_000, 2_000, 0]),
        renew,
        max_hold_ms: rng.between(1_000, 8_000),
        release_on_disconnect: rng.one_in(6),
        disconnect_grace_ms: rng.between(0, 1_000),
        contention_shield_ms: rng.one_in(2).then(|| *rng.pick(&[1, 5, 100, 1_000])),
        ..Rule::new(&format!("lock:{index}:*"))
    }
}

fn lock(rule: usize, number: usize, rng: &mut Rng) -> Lock {
    let conduct = if rng.percent(60) {
        Conduct::Clean
    } else {
        Conduct::Rough
    };
    // The three forms of record names.
    let form = *rng.pick(&["", "", "{t}", "{", "\u{0}\u{ff}"]);
    Lock {
        key: format!("lock:{rule}:{form}{number}").into_bytes(),
        rule,
        conduct,
    }
}

fn team(index: usize, rng: &mut Rng) -> TeamPlan {
    let style = match rng.below(8) {
        0 => Style::PerCommand,
        1 | 2 => Style::Multiplexed,
        _ => Style::Pool(rng.between(2, 4) as usize),
    };
    TeamPlan {
        // Now and then two teams share a host.
        address: if rng.one_in(4) { 1 } else { index as u8 + 1 },
        process: rng.one_in(4),
        name: rng
            .percent(70)
            .then(|| format!("team {}", if rng.one_in(5) { 0 } else { index })),
        user: rng.percent(50).then(|| format!("user{index}")),
        style,
        resp: if rng.percent(40) { 3 } else { 2 },
        database: if rng.one_in(6) { 1 } else { 0 },
        stray: index > 0 && rng.one_in(4),
        tasks: rng.between(1, 4) as usize,
    }
}

fn chaos(rng: &mut Rng) -> Chaos {
    let mut some = |often: u64| if rng.percent(35) { often } else { 0 };
    Chaos {
        every_us: 250_000,
        proxy_restart: some(30),
        server_restart: some(40),
        server_loses_data: some(80),
        script_flush: some(10),
        flush_all: some(60),
        memory: some(20),
        direct: some(3),
        team_crash: some(20),
        connection_loss: some(3),
        rename: some(10),
    }
}
