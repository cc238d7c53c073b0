//! States that differ only in what can make no difference any more are made one, so that more can be explored: leases that
//! are settled, and connections that are alike. Not used where a counterexample is to be read, as it renames things.

use crate::bounds::Bounds;
use crate::state::{CONNECTIONS, Client, Fate, Holder, LEASES, LINKS, State, Task};

/// A lease that has ended, whose release was executed, and that the record does not mention.
const SETTLED: Task = Task {
    link: 0,
    client: Client::Released,
    fate: Fate::Removed,
};

/// All orders of three.
const ORDERS: [[usize; CONNECTIONS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// The one that stands for all that are like this.
pub fn representative(bounds: &Bounds, state: State) -> State {
    let mut state = state;
    for lease in 0..LEASES {
        let task = &mut state.tasks[lease];
        let held = state.record.holder == Holder::Lease(lease as u8);
        let mentioned = held || state.record.debts[lease] > 0 || state.record.doubts[lease] > 0;
        let ended = !matches!(task.fate, Fate::None | Fate::Held);
        if ended && task.client == Client::Released && !mentioned {
            *task = SETTLED;
        }
    }
    let allowed = ORDERS.iter().skip(1).filter(|order| keeps(bounds, order));
    allowed.map(|order| reordered(&state, order)).fold(state, Ord::min)
}

/// Whether each connection takes the place of one like it.
fn keeps(bounds: &Bounds, order: &[usize; CONNECTIONS]) -> bool {
    let count = usize::from(bounds.connections);
    order.iter().enumerate().all(|(to, &from)| {
        let same = bounds.owners[to] == bounds.owners[from];
        // Without crashes nothing that a proxy does depends on who else uses it.
        let alike = bounds.proxies[to] == bounds.proxies[from] || !bounds.crashes;
        to == from || (to < count && from < count && same && alike)
    })
}

fn reordered(state: &State, order: &[usize; CONNECTIONS]) -> State {
    let mut next = *state;
    let mut place = [0; LINKS];
    for (to, &from) in order.iter().enumerate() {
        for anew in [0, CONNECTIONS] {
            next.links[to + anew] = state.links[from + anew];
            place[from + anew] = (to + anew) as u8;
        }
    }
    for task in next
        .tasks
        .iter_mut()
        .filter(|task| task.fate != Fate::None && **task != SETTLED)
    {
        task.link = place[usize::from(task.link)];
    }
    next
}
