//! A counterexample in words, with what the server holds after each step. Reads states, changes nothing.

use std::fmt::Write as _;

use stateright::Model;

use crate::explore::Found;
use crate::server::Passes;
use crate::state::{CONNECTIONS, Due, Fate, Holder, LEASES, Lock, Meaning, State};
use crate::world::{Action, World};

const NAMES: [&str; 4] = ["K", "L", "M", "N"];

pub fn trace(world: World, found: &Found) -> String {
    let mut text = String::new();
    let mut states = world.init_states();
    let Some(mut state) = states.pop() else { return text };
    for (number, action) in found.actions.iter().enumerate() {
        let Some(next) = world.next_state(&state, *action) else {
            break;
        };
        let _ = writeln!(
            text,
            "    {:2}  {:62} {}",
            number + 1,
            words(&world, &state, &next, *action),
            server(&next)
        );
        state = next;
    }
    let _ = write!(text, "        broken: {}", found.promise);
    text
}

/// Owner, connection and proxy: `A1@P`; opened anew: `A1'@P`.
fn who(world: &World, link: u8) -> String {
    let owner = ["A", "B"][usize::from(world.bounds.owner(link))];
    let proxy = ["P", "Q"][usize::from(world.bounds.proxy(link))];
    let (place, anew) = (usize::from(link) % CONNECTIONS, usize::from(link) / CONNECTIONS);
    format!("{owner}{}{}@{proxy}", place + 1, ["", "'"][anew])
}

fn words(world: &World, before: &State, after: &State, action: Action) -> String {
    let who = |link: u8| who(world, link);
    match action {
        Action::Send(link, meaning) => format!("{} sends {}", who(link), request(meaning)),
        Action::Ask(link, meaning) => format!("the server executes {}'s {}", who(link), request(meaning)),
        Action::Serve(link) | Action::Retry(link) => {
            let queue = |state: &State| state.links[usize::from(link)].queue;
            let asked = queue(before).into_iter().flatten().find(|request| !request.served);
            let again = if matches!(action, Action::Retry(_)) {
                "again "
            } else {
                ""
            };
            let asked = asked
                .or(queue(before)[0])
                .map(|asked| request(asked.meaning))
                .unwrap_or_default();
            let answer = queue(after).into_iter().flatten().rfind(|request| request.served);
            let answer = answer.map_or(
                "nobody hears the answer",
                |answer| if answer.says { "done" } else { "not done" },
            );
            format!("the server executes {again}{}'s {asked}: {answer}", who(link))
        }
        Action::Hear(link) => format!("{} reads its answer", who(link)),
        Action::Close(link) => format!("{} is closed by its client", who(link)),
        Action::Cut(link) => format!("{} breaks", who(link)),
        Action::Crash(proxy) => format!("proxy {} crashes", ["P", "Q"][usize::from(proxy)]),
        Action::Restart => "the server restarts".to_owned(),
        Action::Mark(link) => format!("{} is marked gone", who(link)),
        Action::SendRenew(lease) => format!("a renewal of {} is sent", NAMES[usize::from(lease)]),
        Action::MaxHold(lease) => format!("max_hold of {} is over", NAMES[usize::from(lease)]),
        Action::GiveTtl => "a second command gives default_ttl".to_owned(),
        Action::Renew(lease) => format!("a renewal of {} arrives", NAMES[usize::from(lease)]),
        Action::Free(lease) => format!("{} is freed, its grant was not heard", NAMES[usize::from(lease)]),
        Action::Extend(link) => format!("{} extends", who(link)),
        Action::Persist(link) => format!("{} sends PERSIST", who(link)),
        Action::Overwrite(link, _) if after.granted > before.granted => {
            format!("{} acquires by a plain SET", who(link))
        }
        Action::Overwrite(link, false) => format!("{} overwrites", who(link)),
        Action::Overwrite(link, true) => format!("{} overwrites without TTL", who(link)),
        Action::Takeover(link) => format!("{} takes over by GETSET", who(link)),
        Action::StrangerSets => "a stranger writes the lock".to_owned(),
        Action::StrangerDeletes => "a stranger deletes the lock".to_owned(),
        Action::Time(Passes::Expiry) => "the TTL passes".to_owned(),
        Action::Time(Passes::Due) => "the due time passes".to_owned(),
        Action::Time(Passes::Window(lease)) => format!("the window of {} ends", NAMES[usize::from(lease)]),
    }
}

fn request(meaning: Meaning) -> String {
    match meaning {
        Meaning::Acquire => "acquire".to_owned(),
        Meaning::AcquireEndless => "acquire without TTL".to_owned(),
        Meaning::Release(lease) => format!("release of {}", NAMES[usize::from(lease)]),
        Meaning::Stray => "DEL of a loser".to_owned(),
    }
}

/// The lock, its lease, debts and doubts.
fn server(state: &State) -> String {
    let record = &state.record;
    let mut text = match (record.lock, record.holder) {
        (Lock::Absent, Holder::None) => "free".to_owned(),
        (Lock::Absent, _) => "gone".to_owned(),
        (_, Holder::None) => "unmanaged".to_owned(),
        (_, Holder::Open) => "open".to_owned(),
        (_, Holder::Lease(lease)) => {
            let drifted = if record.due == Due::InLine { "held" } else { "adrift" };
            format!("{drifted} {}", NAMES[usize::from(lease)])
        }
    };
    for (word, counts) in [("debts", record.debts), ("doubts", record.doubts)] {
        let each = (0..LEASES).flat_map(|lease| (0..counts[lease]).map(move |_| NAMES[lease]));
        let each: Vec<&str> = each.collect();
        if !each.is_empty() {
            let _ = write!(text, ", {word} {}", each.join(" "));
        }
    }
    let overrun = (0..LEASES).filter(|lease| {
        let task = &state.tasks[*lease];
        task.fate == Fate::Expired && task.client == crate::state::Client::Working
    });
    for lease in overrun {
        let _ = write!(text, ", {} overruns", NAMES[lease]);
    }
    text
}
