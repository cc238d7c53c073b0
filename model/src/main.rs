//! Explores the lock protocol of lockward: every order in which clients, proxies, the server, the network and the time can
//! take their steps, within bounds that it prints; and looks whether each mutant of the protocol is caught.
//! `docs/model.md` says what that means and what it does not.

mod bounds;
mod configurations;
mod effect;
mod explore;
mod mutant;
mod ops;
mod promise;
mod reached;
mod reduce;
mod server;
mod show;
mod state;
mod step;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use bounds::Bounds;
use explore::{Found, explore, shortest};
use world::World;

const HELP: &str = "\
Explores the lock protocol of lockward and its mutants; docs/model.md tells more.

  --quick       small bounds only: half a minute
  --show NAME   the shortest counterexample of this mutant, step by step
  --unreduced NAME  the same, with every state told apart
  --own-only    why the second exception of promise 2 speaks of any debt of the owner, not of the task's own
  --only NAME   this configuration only
  --list        the names of configurations and mutants";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => run(configurations::ALL.iter().collect(), true, false),
        ["--quick"] => run(
            configurations::ALL.iter().filter(|bounds| bounds.quick).collect(),
            true,
            false,
        ),
        ["--only" | "--unreduced", name] => match configurations::named(name) {
            Some(bounds) => run(vec![bounds], false, words[0] == "--unreduced"),
            None => wrong(&format!("there is no configuration '{name}'; --list names them")),
        },
        ["--show", name] => match mutant::ALL.iter().find(|row| row.name == name) {
            Some(row) => verdict(usize::from(!caught(row, true)), 1),
            None => wrong(&format!("there is no mutant '{name}'; --list names them")),
        },
        ["--own-only"] => own_only(),
        ["--list"] => {
            configurations::ALL
                .iter()
                .for_each(|each| println!("configuration {:16} {}", each.name, each.about));
            mutant::ALL
                .iter()
                .for_each(|each| println!("mutant {:26} {}", each.name, each.wrong));
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => wrong(&format!("'{}' is not understood\n\n{HELP}", words.join(" "))),
    }
}

/// What would break promise 2 if its second exception spoke only of the late task's own connection.
fn own_only() -> ExitCode {
    let found = configurations::ALL
        .iter()
        .filter(|bounds| bounds.quick)
        .filter_map(|bounds| {
            let world = World {
                bounds: *bounds,
                mutant: None,
                own_only: true,
                reduced: false,
            };
            shortest(world).map(|found| (world, found))
        });
    for (world, found) in found {
        println!(
            "{}: {}\n{}",
            world.bounds.name,
            world.bounds.words(),
            show::trace(world, &found)
        );
    }
    ExitCode::SUCCESS
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("model: {what}");
    ExitCode::from(2)
}

fn verdict(failed: usize, all: usize) -> ExitCode {
    println!("{} passed, {failed} failed", all - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// These configurations, and the mutants: all that is to be reached must have been reached then.
fn run(configurations: Vec<&Bounds>, mutants: bool, unreduced: bool) -> ExitCode {
    let (mut failed, mut all) = (0, 0);
    let (mut states, mut unique) = (0, 0);
    let begun = Instant::now();
    for bounds in configurations {
        println!("{}: {}\n  {}", bounds.name, bounds.about, bounds.words());
        let world = World {
            bounds: *bounds,
            mutant: None,
            own_only: false,
            reduced: !unreduced,
        };
        let seen = explore(world);
        println!(
            "  {} states, {} unique, depth {}, {:.1} s",
            seen.states,
            seen.unique,
            seen.depth,
            seen.took.as_secs_f64()
        );
        states += seen.states;
        unique += seen.unique;
        all += 1;
        if let Some(found) = &seen.found {
            failed += 1;
            println!("  FAILED\n{}", show::trace(world, found));
            let readable = World {
                reduced: false,
                ..world
            };
            if let Some(found) = shortest(readable) {
                println!("  the shortest way:\n{}", show::trace(readable, &found));
            }
        }
    }
    println!(
        "explored: {states} states, {unique} unique, {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let (yes, no) = reached::summary();
    println!("came by: {}", yes.join("; "));
    if mutants {
        all += 1;
        if !no.is_empty() {
            failed += 1;
            println!("FAILED: never came by {}", no.join("; "));
        }
    }
    if mutants {
        println!("mutants:");
        all += mutant::ALL.len();
        failed += mutant::ALL.iter().filter(|row| !caught(row, false)).count();
    }
    verdict(failed, all)
}

/// Whether this mutant breaks the promise that has to catch it.
fn caught(row: &mutant::Row, showing: bool) -> bool {
    let Some(bounds) = configurations::named(row.bounds) else {
        println!("  FAILED {}: there is no configuration '{}'", row.name, row.bounds);
        return false;
    };
    let world = World {
        bounds: *bounds,
        mutant: Some(row.mutant),
        own_only: false,
        reduced: false,
    };
    // What is caught by a panic only is not caught.
    let found = std::panic::catch_unwind(|| shortest(world));
    let Ok(found) = found else {
        println!("  FAILED {}: it panics", row.name);
        return false;
    };
    match found {
        None => println!("  FAILED {}: not caught in '{}' ({})", row.name, row.bounds, row.wrong),
        Some(Found { promise, actions }) => {
            let right = promise == row.caught_by.name();
            let word = if right { "caught" } else { "FAILED, caught by another" };
            println!("  {word} {:26} in {:2} steps by '{promise}'", row.name, actions.len());
            if showing {
                println!("  {}\n{}", row.wrong, show::trace(world, &Found { promise, actions }));
            }
            return right;
        }
    }
    false
}
