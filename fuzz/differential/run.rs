//! One setting: two servers, a lockward, and batches until there are enough cases. Counts, and writes down what differs
//! with all that is needed to repeat it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::cases::{Batch, Kind};
use crate::commands::Commands;
use crate::compare::{self, Verdict};
use crate::framing::Dice;
use crate::options::{Options, Setting};
use crate::real_server::RealServer;
use crate::samples::Look;
use crate::side::{Control, Counts, LIMIT, Proxy};
use crate::talk::{self, Pair, Said};

/// More faults are not written down: they are mostly one.
const FAULTS_MAX: usize = 5;
/// So many bytes of a batch are shown.
const SHOWN_MAX: usize = 1500;
/// What lockward asks a server for itself, what it answers itself, and what we ask: their counts say nothing.
const OWN_CALLS: &[&str] = &[
    "auth", "client", "command", "config", "debug", "echo", "eval", "evalsha", "function", "hello", "info", "ping",
    "quit", "reset", "role", "script", "select",
];

#[derive(Default)]
pub struct Tally {
    pub cases: u64,
    pub batches: u64,
    pub commands: usize,
    /// Connections that did not outlive their batch.
    pub ended: u64,
    /// Batches that differ as it is written down, by the reason.
    pub known: BTreeMap<&'static str, u64>,
    pub kinds: BTreeMap<Kind, u64>,
    /// How closely answers were compared.
    pub looks: BTreeMap<Look, u64>,
    pub aside: BTreeMap<&'static str, u64>,
    pub faults: Vec<String>,
}

pub fn run(options: &Options, setting: &Setting, cases: u64) -> Tally {
    // What was slow is the machine's business.
    let mut more = vec!["--enable-debug-command", "yes", "--slowlog-log-slower-than", "-1"];
    if setting.password {
        more.extend(["--requirepass", crate::cases::PASSWORD]);
    }
    let servers = [(); 2].map(|()| RealServer::start_with(&setting.server.program, &more));
    let mut proxy = Proxy::start(
        &options.proxy,
        &servers[1],
        setting.mode,
        setting.rules,
        setting.password,
    );
    let mut controls = [0, 1].map(|at| Control::connect(servers[at].port(), setting.password));
    prepared(&mut controls[1]);
    let commands = Commands::ask(&mut controls[0]);
    // For the counts to agree: the other server is asked as well.
    Commands::ask(&mut controls[1]);
    let ports = [servers[0].port(), proxy.port];
    let mut pair = Pair::new(ports, setting.password);
    let mut tally = Tally {
        commands: commands.count(),
        ..Tally::default()
    };
    let mut before = [0, 1].map(|at| controls[at].counts());
    let mut number = options.seed;
    while tally.cases < cases && tally.faults.len() < FAULTS_MAX {
        let batch = Batch::new(number, &commands, setting.password);
        number += 1;
        if let Some(why) = compare::set_aside(&batch, setting.server.valkey, setting.mode == "shared") {
            *tally.aside.entry(why).or_default() += 1;
            continue;
        }
        let uncounted = compare::begins_as_tls(&batch);
        if uncounted {
            tally.faults.extend(counted(&mut controls, &before));
        }
        let said = pair.say(&batch, &mut Dice::new(number));
        tally.add(&batch, &said);
        let again = format!("--seed {} --cases 1 --only {:?}", number - 1, setting.name);
        match compare::judge(&batch, &said, setting.server.valkey) {
            Verdict::Same => {}
            Verdict::Known(why) => *tally.known.entry(why).or_default() += 1,
            Verdict::Differs => {
                tally.faults.push(differs(&batch, &said, &again));
                pair = Pair::new(ports, setting.password);
            }
        }
        if uncounted {
            before = [0, 1].map(|at| controls[at].counts());
        }
        let after = found_after(&mut controls, &mut proxy);
        tally
            .faults
            .extend(after.map(|found| format!("  {again}: {found}\n    said {}", shown(&batch))));
        if !proxy.is_running() {
            return tally;
        }
    }
    if tally.faults.is_empty() {
        tally.faults.extend(counted(&mut controls, &before));
    }
    tally
}

impl Tally {
    fn add(&mut self, batch: &Batch, said: &[Said; 2]) {
        self.batches += 1;
        self.cases += batch.cases.len() as u64;
        self.ended += u64::from(said[0].left != talk::Left::Open);
        batch
            .cases
            .iter()
            .for_each(|case| *self.kinds.entry(case.kind).or_default() += 1);
        compare::looks(batch, said).for_each(|look| *self.looks.entry(look).or_default() += 1);
    }
}

fn differs(batch: &Batch, [direct, proxied]: &[Said; 2], again: &str) -> String {
    let excerpt = compare::excerpt(batch, direct, proxied);
    format!(
        "  {again}: directly {:?}, through lockward {:?}, {excerpt}\n    said {}",
        direct.left,
        proxied.left,
        shown(batch)
    )
}

/// What is wrong beside the answers: other data, a panic, or no lockward.
fn found_after(controls: &mut [Control; 2], proxy: &mut Proxy) -> Option<String> {
    let [one, other] = talk::digests(controls);
    if let Some(words) = proxy.panic() {
        return Some(words);
    }
    if !proxy.is_running() {
        return Some("lockward has ended".to_owned());
    }
    let (one, other) = (one.escape_ascii().to_string(), other.escape_ascii().to_string());
    (one != other).then(|| format!("the servers hold different things: {one} {other}"))
}

/// Waits until lockward has made its own connection ready: the SETs that fail on purpose come before the scripts.
fn prepared(control: &mut Control) {
    let begun = Instant::now();
    while !control.counts().contains_key("script|load") {
        assert!(begun.elapsed() < LIMIT, "lockward does not load its scripts");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every command was executed, refused and had failed as often on both servers since `before`.
fn counted(controls: &mut [Control; 2], before: &[Counts; 2]) -> Option<String> {
    let mut since = [0, 1].map(|at| controls[at].counts());
    for (counts, before) in since.iter_mut().zip(before) {
        counts.retain(|name, _| !OWN_CALLS.contains(&name.split('|').next().unwrap_or_default()));
        for (name, figures) in counts.iter_mut() {
            let old = before.get(name).copied().unwrap_or_default();
            figures.iter_mut().zip(old).for_each(|(figure, old)| *figure -= old);
        }
        counts.retain(|_, figures| *figures != [0; 3]);
    }
    let [one, other] = &since;
    let only = |these: &Counts, those: &Counts| -> Vec<String> {
        let differing = these.iter().filter(|(name, figures)| those.get(*name) != Some(figures));
        differing.map(|(name, figures)| format!("{name} {figures:?}")).collect()
    };
    let (one, other) = (only(one, other), only(other, one));
    let all = one.is_empty() && other.is_empty();
    (!all).then(|| format!("  calls, refused, failed: directly {one:?}, through lockward {other:?}"))
}

/// The cases, not what every batch begins with; a long one is cut, since its seed says it all.
fn shown(batch: &Batch) -> String {
    let bytes = &batch.bytes[batch.begin..];
    let most = bytes.len().min(SHOWN_MAX);
    bytes[..most].escape_ascii().to_string()
}
