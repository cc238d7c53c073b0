//! The two ways to explore: all there is, depth first, as that keeps least in memory; and breadth first up to the first
//! broken promise, as that finds the shortest way to it.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::state::State;
use crate::world::{Action, World};

const THREADS: usize = 2;

/// What an exploration came to.
pub struct Seen {
    pub states: usize,
    pub unique: usize,
    pub depth: usize,
    pub took: Duration,
    pub found: Option<Found>,
}

/// A way to a broken promise.
pub struct Found {
    pub promise: &'static str,
    pub actions: Vec<Action>,
}

/// Everything within the bounds, or until a promise is broken.
pub fn explore(world: World) -> Seen {
    let begun = Instant::now();
    let checker = world
        .checker()
        .threads(THREADS)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_dfs()
        .join();
    let found = first(checker.discoveries());
    Seen {
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: begun.elapsed(),
        found,
    }
}

/// The shortest way to a broken promise.
pub fn shortest(world: World) -> Option<Found> {
    let mut best: Option<Found> = None;
    loop {
        // The explorer keeps the last of those it finds in one block, so it is asked again for a shorter one.
        let mut builder = world.checker().finish_when(HasDiscoveries::AnyFailures);
        if let Some(found) = &best {
            builder = builder.target_max_depth(found.actions.len() + 1);
        }
        let checker = builder.spawn_bfs().join();
        match first(checker.discoveries()) {
            Some(found) => best = Some(found),
            None => return best,
        }
    }
}

fn first(found: std::collections::HashMap<&'static str, Path<State, Action>>) -> Option<Found> {
    let each = found.into_iter().map(|(promise, path)| Found {
        promise,
        actions: path.into_actions(),
    });
    each.min_by_key(|found| (found.actions.len(), found.promise))
}
