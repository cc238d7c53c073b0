//! The same bytes to a server directly, and to a second one through lockward: what is executed, what is answered and
//! whether the connection is open afterwards must agree. Cases are made from every command, right and wrong, and from
//! every fault of framing (`cases`, `faults`), with keys that no rule matches. Says nothing of locks.
//!
//! ```text
//! differential --proxy PATH --server PATH [--server PATH] [--cases N] [--seed N] [--jobs N] [--only TEXT]
//! ```
//!
//! Each server is tried in both modes of upstream connections, with a rule that matches nothing, without any rule, and
//! with a password. The last line is `N passed, N failed`.

mod cases;
mod commands;
mod compare;
mod faults;
#[path = "../../tests/scanner_server/cases.rs"]
#[allow(dead_code)]
mod framing;
mod left_out;
#[path = "../oracles/naive_request.rs"]
mod naive_request;
mod options;
#[path = "../../tests/real_server/mod.rs"]
mod real_server;
mod run;
mod samples;
mod sequences;
mod side;
mod talk;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use options::{Options, Setting};
use run::Tally;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("differential: {text}\n0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
    };
    let begun = Instant::now();
    println!("seed {}", options.seed);
    let (left, tallies) = (Mutex::new(options.settings()), Mutex::new(Vec::new()));
    let each = options.cases.div_ceil(options.settings().len().max(1) as u64);
    let next = || left.lock().expect("no panic").pop();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(setting) = next() {
                    let tally = run::run(&options, &setting, each);
                    say(&setting, &tally);
                    tallies.lock().expect("no panic").push(tally);
                }
            });
        }
    });
    let tallies = tallies.into_inner().expect("no panic");
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let kinds = summed(tallies.iter().flat_map(|tally| &tally.kinds));
    let looks = summed(tallies.iter().flat_map(|tally| &tally.looks));
    println!(
        "{} cases {kinds:?} in {} batches, answers compared {looks:?}, {} batches set aside, {} differ as written down, \
         {:.0} s",
        sum(|tally| tally.cases),
        sum(|tally| tally.batches),
        sum(|tally| tally.aside.values().sum()),
        sum(|tally| tally.known.values().sum()),
        begun.elapsed().as_secs_f64()
    );
    let failed = tallies
        .iter()
        .filter(|tally| !tally.faults.is_empty() || tally.cases == 0)
        .count();
    println!("{} passed, {failed} failed", tallies.len() - failed);
    if failed == 0 && !tallies.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// How many there are of each, by what they are called.
fn summed<'a, T: std::fmt::Debug + 'a>(counts: impl Iterator<Item = (&'a T, &'a u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    counts.for_each(|(of, count)| *sums.entry(format!("{of:?}").to_lowercase()).or_default() += count);
    sums
}

fn say(setting: &Setting, tally: &Tally) {
    let word = if tally.faults.is_empty() { "ok   " } else { "FAIL " };
    println!(
        "{word} {}: {} cases of {} commands, {} connections ended, aside {:?}, known {:?}",
        setting.name, tally.cases, tally.commands, tally.ended, tally.aside, tally.known
    );
    tally.faults.iter().for_each(|fault| println!("{fault}"));
}
