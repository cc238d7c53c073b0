//! One step: what becomes of the connections and of what is on its way. What it does to the lock is in `effect`.

use lockward::lock::model::{Kind, NewExpiry};

use crate::effect;
use crate::mutant::Mutant;
use crate::promise::{Promise, breaks, is_clean};
use crate::reached::{Reached, reached};
use crate::server::{LONGER, NOW};
use crate::state::{CONNECTIONS, Client, Fate, LEASES, LinkId, Lock, Meaning, Request, Standing, State};
use crate::world::{Action, World};

/// What an extend asks for, and a write.
const LATER: NewExpiry = NewExpiry::At(NOW + LONGER);

/// Where this step leads; `None`: it is not possible.
pub fn take(world: &World, last: &State, action: Action) -> Option<State> {
    let mut next = *last;
    match action {
        Action::Send(link, meaning) => send(&mut next, link, meaning),
        Action::Ask(link, meaning) => {
            let standing = next.links[usize::from(link)].standing;
            send(&mut next, link, meaning);
            if matches!(standing, Standing::Closed | Standing::Lost) {
                next.links[usize::from(link)].standing = standing;
            }
            serve(world, &mut next, link);
        }
        Action::Serve(link) => serve(world, &mut next, link),
        Action::Hear(link) => hear(world, &mut next, link),
        Action::Retry(link) => retry(world, &mut next, link)?,
        Action::Close(link) => part(&mut next, link, Standing::Closed),
        Action::Cut(link) => part(&mut next, link, Standing::Lost),
        Action::Crash(proxy) => crash(world, &mut next, proxy),
        Action::Restart => restart(world, &mut next),
        Action::Mark(link) => effect::mark(world, &mut next, link),
        Action::SendRenew(lease) => next.renewals |= 1 << lease,
        Action::Renew(lease) => effect::renew(world, &mut next, lease),
        Action::MaxHold(lease) => {
            reached(Reached::HeldLong);
            next.held_long |= 1 << lease;
        }
        Action::GiveTtl => next.record.lock = Lock::Timed,
        Action::Free(lease) => effect::free(world, &mut next, lease),
        Action::Extend(link) => effect::meddle(world, &mut next, link, None, LATER)?,
        Action::Persist(link) => effect::meddle(world, &mut next, link, None, NewExpiry::Never)?,
        Action::Overwrite(link, endless) => {
            let ttl = if endless { NewExpiry::Never } else { LATER };
            effect::meddle(world, &mut next, link, Some(Kind::Overwrite), ttl)?;
        }
        Action::Takeover(link) => {
            next.spent[2] += 1;
            // GETSET has no TTL to give. Without `default_ttl` it is `SET … PX … GET` here.
            let ttl = if world.bounds.default_ttl {
                NewExpiry::Never
            } else {
                LATER
            };
            effect::meddle(world, &mut next, link, Some(Kind::Takeover), ttl)?;
        }
        Action::StrangerSets => effect::stranger(world, &mut next, true)?,
        Action::StrangerDeletes => effect::stranger(world, &mut next, false)?,
        Action::Time(passes) => effect::time(world, &mut next, passes),
    }
    for owner in 0..2 {
        if next.excused & (1 << owner) != 0 && is_clean(world, &next, owner) {
            next.excused &= !(1 << owner);
        }
    }
    for lease in 0..next.granted {
        if next.tasks[usize::from(lease)].fate != Fate::Held {
            next.held_long &= !(1 << lease);
            next.renewed_late &= !(1 << lease);
        } else if world.may_renew(&next, lease) {
            next.renewed_late &= !(1 << lease);
        }
    }
    Some(next)
}

fn send(state: &mut State, link: LinkId, meaning: Meaning) {
    if let Meaning::Release(lease) = meaning {
        state.tasks[usize::from(lease)].client = Client::Releasing;
    }
    let it = &mut state.links[usize::from(link)];
    if it.standing == Standing::Fresh && usize::from(link) >= CONNECTIONS {
        reached(Reached::OpenedAnew);
    }
    it.standing = Standing::Open;
    let place = it.waiting();
    it.queue[place] = Some(Request {
        meaning,
        lease: LEASES as u8,
        served: false,
        says: false,
        effect: false,
        place: place as u8,
    });
}

/// The client reads the first answer, or, where replies are swapped, the last.
fn hear(world: &World, state: &mut State, link: LinkId) {
    let queue = state.links[usize::from(link)].queue;
    let swapped = world.mutant == Some(Mutant::RepliesSwapped);
    let place = if swapped && queue[1].is_some_and(|second| second.served) {
        1
    } else {
        0
    };
    let Some(request) = queue[place] else { return };
    remove(state, link, place);
    if request.place != 0 {
        breaks(state, Promise::RepliesInOrder);
    }
    if request.says != request.effect {
        breaks(state, Promise::AnswersAreTruthful);
    }
    if let Some(task) = state.tasks.get_mut(usize::from(request.lease))
        && task.client == Client::Unheard
        && request.says
    {
        task.client = Client::Working;
    }
}

fn remove(state: &mut State, link: LinkId, place: usize) {
    let queue = &mut state.links[usize::from(link)].queue;
    queue[place..].rotate_left(1);
    queue[queue.len() - 1] = None;
    for request in queue.iter_mut().flatten() {
        request.place = request.place.saturating_sub(1);
    }
}

/// The connection ends. Answers on their way are lost, requests on their way are not.
fn part(state: &mut State, link: LinkId, standing: Standing) {
    state.links[usize::from(link)].standing = standing;
    while let Some(request) = state.links[usize::from(link)].queue[0].filter(|request| request.served) {
        deafen(state, &request);
        remove(state, link, 0);
    }
}

fn deafen(state: &mut State, request: &Request) {
    if let Some(task) = state.tasks.get_mut(usize::from(request.lease))
        && task.client == Client::Unheard
    {
        task.client = Client::Deaf;
    }
}

fn crash(world: &World, state: &mut State, proxy: u8) {
    state.crashed |= 1 << proxy;
    for link in world.bounds.links().filter(|link| world.bounds.proxy(*link) == proxy) {
        if state.links[usize::from(link)].standing == Standing::Open {
            part(state, link, Standing::Lost);
        }
    }
}

/// All connections to the server end, and what was on its way with them.
fn restart(world: &World, state: &mut State) {
    state.spent[0] += 1;
    for link in world.bounds.links() {
        if state.links[usize::from(link)].standing == Standing::Open {
            part(state, link, Standing::Lost);
        }
        let queue = std::mem::take(&mut state.links[usize::from(link)].queue);
        for request in queue.into_iter().flatten() {
            if let Meaning::Release(lease) = request.meaning {
                // Who opens a connection anew sends again what was lost: as if it had not been sent yet.
                let again = world.bounds.reconnects;
                state.tasks[usize::from(lease)].client = if again { Client::Working } else { Client::Missed };
            }
        }
    }
}

fn serve(world: &World, state: &mut State, link: LinkId) {
    let at = usize::from(link);
    let first = state.links[at]
        .queue
        .iter()
        .position(|each| each.is_some_and(|request| !request.served));
    let Some((place, request)) = first.and_then(|place| Some((place, state.links[at].queue[place]?))) else {
        return;
    };
    let answered = effect::execute(world, state, link, request);
    state.links[at].queue[place] = Some(answered);
    if !state.links[at].is_usable() {
        reached(Reached::LateArrival);
        deafen(state, &answered);
        remove(state, link, place);
    } else if world.at_once() && usize::from(answered.lease) >= LEASES {
        hear(world, state, link);
    }
}

/// A request whose answer the proxy has goes out again, and the new answer takes the place of the first.
fn retry(world: &World, state: &mut State, link: LinkId) -> Option<()> {
    let at = usize::from(link);
    let request = state.links[at].queue[0]?;
    let retried = match request.meaning {
        Meaning::Acquire | Meaning::AcquireEndless => world.mutant == Some(Mutant::AcquireIsRetried),
        Meaning::Release(_) | Meaning::Stray => world.mutant == Some(Mutant::ReleaseIsRetried),
    };
    if !retried || state.granted >= world.bounds.leases {
        return None;
    }
    state.links[at].queue[0] = Some(effect::execute(world, state, link, request));
    Some(())
}
