//! Everything that can happen, as the explorer asks for it: which steps there are, and what each leads to. Time is one of
//! those who take steps.

use stateright::{Model, Property};

use crate::bounds::Bounds;
use crate::mutant::Mutant;
use crate::promise::Promise;
use crate::reduce::representative;
use crate::server::Passes;
use crate::state::{CONNECTIONS, Client, Due, Fate, LEASES, LeaseId, LinkId, Lock, Meaning, Standing, State, Task};
use crate::step;

/// The protocol within these bounds, or a mutant of it.
#[derive(Clone, Copy, Debug)]
pub struct World {
    pub bounds: Bounds,
    pub mutant: Option<Mutant>,
    /// The second exception of promise 2 is taken more narrowly than the README has it.
    pub own_only: bool,
    /// States that make no difference are one.
    pub reduced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client sends a request.
    Send(LinkId, Meaning),
    /// A client sends an acquire, and the server executes it.
    Ask(LinkId, Meaning),
    /// The server executes the oldest request of this connection that has arrived.
    Serve(LinkId),
    /// The client reads an answer.
    Hear(LinkId),
    /// A proxy sends a request again whose answer it has.
    Retry(LinkId),
    /// The client closes the connection.
    Close(LinkId),
    /// The connection breaks.
    Cut(LinkId),
    Crash(u8),
    Restart,
    /// The proxy of a connection that its client closed says so to the server.
    Mark(LinkId),
    /// A proxy renews this lease: sent (where that is counted), and executed.
    SendRenew(u8),
    Renew(u8),
    /// This lease has been held for `max_hold`.
    MaxHold(u8),
    /// A mutant's second command, which gives the lock `default_ttl`.
    GiveTtl,
    /// A proxy frees this lease, as its grant could not be written to the client.
    Free(u8),
    /// `EXPIRE` to a later time, `SET` without NX, `GETSET`: sent and executed.
    Extend(LinkId),
    /// `true`: without TTL.
    Overwrite(LinkId, bool),
    Persist(LinkId),
    Takeover(LinkId),
    /// Past the proxy: `SET key value PX`, `DEL key`.
    StrangerSets,
    StrangerDeletes,
    Time(Passes),
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken != 0 {
            return;
        }
        for link in self.bounds.links() {
            self.sends(state, link, actions);
            self.travels(state, link, actions);
        }
        self.faults(state, actions);
        self.chores(state, actions);
        time(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let next = step::take(self, last, action).filter(|next| next != last)?;
        Some(if self.reduced {
            representative(&self.bounds, next)
        } else {
            next
        })
    }

    fn properties(&self) -> Vec<Property<World>> {
        fn always(promise: Promise, condition: fn(&World, &State) -> bool) -> Property<World> {
            Property::always(promise.name(), condition)
        }
        vec![
            always(Promise::EffectByTheOwnerOnly, |world, state| {
                Promise::EffectByTheOwnerOnly.holds(world, state)
            }),
            always(Promise::DebtorChangesNothing, |world, state| {
                Promise::DebtorChangesNothing.holds(world, state)
            }),
            always(Promise::ForeignReleaseRemovesNothing, |world, state| {
                Promise::ForeignReleaseRemovesNothing.holds(world, state)
            }),
            always(Promise::LateReleaseSparesTheSibling, |world, state| {
                Promise::LateReleaseSparesTheSibling.holds(world, state)
            }),
            always(Promise::RefusalChangesNothing, |world, state| {
                Promise::RefusalChangesNothing.holds(world, state)
            }),
            always(Promise::AnswersAreTruthful, |world, state| {
                Promise::AnswersAreTruthful.holds(world, state)
            }),
            always(Promise::RepliesInOrder, |world, state| {
                Promise::RepliesInOrder.holds(world, state)
            }),
            always(Promise::FreeAfterItsTtl, |world, state| {
                Promise::FreeAfterItsTtl.holds(world, state)
            }),
            always(Promise::OneDebtForOneMissingRelease, |world, state| {
                Promise::OneDebtForOneMissingRelease.holds(world, state)
            }),
            always(Promise::NothingIsOwedBeyondTheWindow, |world, state| {
                Promise::NothingIsOwedBeyondTheWindow.holds(world, state)
            }),
            always(Promise::HolderIsNotRefused, |world, state| {
                Promise::HolderIsNotRefused.holds(world, state)
            }),
            always(Promise::OneHolderAtATime, |world, state| {
                Promise::OneHolderAtATime.holds(world, state)
            }),
            always(Promise::FencingTokensGrow, |world, state| {
                Promise::FencingTokensGrow.holds(world, state)
            }),
        ]
    }
}

impl World {
    /// Whether less is kept of what is on its way. An acquire on its way is nobody's yet, so it may as well be sent when it
    /// arrives; and an answer that tells of no lease changes nothing for its client, so it may as well be read at once.
    pub fn at_once(&self) -> bool {
        self.reduced && self.bounds.pipeline == 1
    }

    /// What the client of this connection can send.
    fn sends(&self, state: &State, link: LinkId, actions: &mut Vec<Action>) {
        let bounds = &self.bounds;
        let it = &state.links[usize::from(link)];
        let before = usize::from(link).checked_sub(CONNECTIONS);
        if before.is_some_and(|before| state.links[before].is_usable()) {
            return;
        }
        if it.is_usable() && it.waiting() < usize::from(bounds.pipeline) {
            if !self.at_once() && state.granted + asking(state) < bounds.leases {
                actions.push(Action::Send(link, Meaning::Acquire));
                if bounds.endless {
                    actions.push(Action::Send(link, Meaning::AcquireEndless));
                }
            }
            for lease in (0..LEASES).filter(|lease| self.releases(&state.tasks[*lease], link)) {
                actions.push(Action::Send(link, Meaning::Release(lease as u8)));
            }
            if bounds.strays && state.spent[3] == 0 && !strays(state) {
                actions.push(Action::Send(link, Meaning::Stray));
            }
        }
        // Whose connection is closed by now may have sent these before.
        if self.at_once() && it.waiting() == 0 && state.granted < bounds.leases {
            actions.push(Action::Ask(link, Meaning::Acquire));
            if bounds.endless {
                actions.push(Action::Ask(link, Meaning::AcquireEndless));
            }
        }
        if bounds.meddling {
            actions.extend([Action::Extend(link), Action::Overwrite(link, false)]);
            // Only in a mutant is there a lock without TTL now, and nothing of these would be seen.
            let timed = state.record.lock != Lock::Endless;
            if timed && bounds.endless && bounds.default_ttl {
                actions.push(Action::Overwrite(link, true));
            }
            if timed && bounds.max_ttl {
                actions.push(Action::Persist(link));
            }
        }
        if state.spent[2] < bounds.takeovers {
            actions.push(Action::Takeover(link));
        }
    }

    /// Whether this task may send its release through this connection.
    fn releases(&self, task: &Task, link: LinkId) -> bool {
        let has_it = match task.client {
            Client::Working => true,
            Client::Deaf => self.bounds.in_doubt,
            Client::Unheard | Client::Releasing | Client::Released | Client::Missed => false,
        };
        task.fate != Fate::None && has_it && self.bounds.owner(task.link) == self.bounds.owner(link)
    }

    /// What is on its way arrives, or never does.
    fn travels(&self, state: &State, link: LinkId, actions: &mut Vec<Action>) {
        let it = &state.links[usize::from(link)];
        let mut requests = it.queue.iter().flatten();
        if requests.clone().any(|request| !request.served) {
            actions.push(Action::Serve(link));
        }
        if requests.next().is_some_and(|request| request.served) {
            actions.push(Action::Hear(link));
            if matches!(self.mutant, Some(Mutant::AcquireIsRetried | Mutant::ReleaseIsRetried)) {
                actions.push(Action::Retry(link));
            }
        }
        if it.standing == Standing::Open {
            if self.bounds.closes {
                actions.push(Action::Close(link));
            }
            if self.bounds.cuts {
                actions.push(Action::Cut(link));
            }
        }
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        if self.bounds.crashes {
            let alive = (0..self.bounds.proxy_count()).filter(|proxy| state.crashed & (1 << proxy) == 0);
            actions.extend(alive.map(Action::Crash));
        }
        if state.spent[0] < self.bounds.restarts {
            actions.push(Action::Restart);
        }
        if state.spent[1] < self.bounds.strangers {
            actions.extend([Action::StrangerSets, Action::StrangerDeletes]);
        }
    }

    /// What the proxies do on their own account, at any time from then on: chores can be late like anything.
    fn chores(&self, state: &State, actions: &mut Vec<Action>) {
        let lives = |link: LinkId| state.crashed & (1 << self.bounds.proxy(link)) == 0;
        for link in self.bounds.links() {
            if state.links[usize::from(link)].standing == Standing::Closed && lives(link) {
                actions.push(Action::Mark(link));
            }
        }
        for lease in 0..state.granted {
            let task = &state.tasks[usize::from(lease)];
            if task.fate == Fate::None {
                continue;
            }
            self.renewals(state, lease, actions);
            if task.client == Client::Deaf && lives(task.link) {
                actions.push(Action::Free(lease));
            }
        }
        if self.gives_ttl(state) {
            actions.push(Action::GiveTtl);
        }
    }

    fn renewals(&self, state: &State, lease: LeaseId, actions: &mut Vec<Action>) {
        let bit = 1 << lease;
        if !self.bounds.max_hold || state.renewals & bit != 0 {
            actions.push(Action::Renew(lease));
        } else if state.tasks[usize::from(lease)].fate == Fate::Held && self.does_renew(state, lease) {
            actions.push(Action::SendRenew(lease));
        }
        if self.bounds.max_hold && state.tasks[usize::from(lease)].fate == Fate::Held && state.held_long & bit == 0 {
            actions.push(Action::MaxHold(lease));
        }
    }

    fn does_renew(&self, state: &State, lease: LeaseId) -> bool {
        let (lives, here, in_time) = self.reasons_to_renew(state, lease);
        lives
            && (here || self.mutant == Some(Mutant::RenewalOutlivesTheOwner))
            && (in_time || self.mutant == Some(Mutant::RenewalWithoutEnd))
    }

    /// Whether anybody has reason to renew this lease.
    pub fn may_renew(&self, state: &State, lease: LeaseId) -> bool {
        self.reasons_to_renew(state, lease) == (true, true, true)
    }

    /// Its proxy has not crashed, the owner has a connection open there, and `max_hold` is not over.
    fn reasons_to_renew(&self, state: &State, lease: LeaseId) -> (bool, bool, bool) {
        let link = state.tasks[usize::from(lease)].link;
        let (owner, proxy) = (self.bounds.owner(link), self.bounds.proxy(link));
        let mut his = self
            .bounds
            .links()
            .filter(|other| self.bounds.owner(*other) == owner && self.bounds.proxy(*other) == proxy);
        let here = his.any(|other| state.links[usize::from(other)].standing == Standing::Open);
        (
            state.crashed & (1 << proxy) == 0,
            here,
            state.held_long & (1 << lease) == 0,
        )
    }

    /// Whether a proxy that lives is still to send the second command of a mutant.
    pub fn gives_ttl(&self, state: &State) -> bool {
        let mutant = self.mutant == Some(Mutant::DefaultTtlBySecondCommand) && state.record.lock == Lock::Endless;
        mutant
            && state.victim().is_some_and(|lease| {
                let proxy = self.bounds.proxy(state.tasks[usize::from(lease)].link);
                state.crashed & (1 << proxy) == 0
            })
    }
}

fn time(state: &State, actions: &mut Vec<Action>) {
    let record = &state.record;
    if record.lock == Lock::Timed {
        actions.push(Action::Time(Passes::Expiry));
    }
    if record.due == Due::Elsewhere {
        actions.push(Action::Time(Passes::Due));
    }
    let oldest = (0..LEASES)
        .find(|lease| record.debts[*lease] > 0 || record.doubts[*lease] > 0 && record.aged & (1 << lease) == 0);
    if let Some(lease) = oldest {
        actions.push(Action::Time(Passes::Window(lease as u8)));
    }
}

/// Acquires on their way: each may become a lease.
pub fn asking(state: &State) -> u8 {
    let requests = state.links.iter().flat_map(|link| link.queue.iter().flatten());
    let acquires = requests
        .filter(|request| !request.served && matches!(request.meaning, Meaning::Acquire | Meaning::AcquireEndless));
    acquires.count() as u8
}

fn strays(state: &State) -> bool {
    let mut requests = state.links.iter().flat_map(|link| link.queue.iter().flatten());
    requests.any(|request| request.meaning == Meaning::Stray)
}
