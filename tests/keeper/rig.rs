//! The rig of the keeper's tests: a virtual clock, events in a few words, and a closure that plays the server.

use bytes::Bytes;
use lockward::event::{ConnectionId, Event, Grant, Release, ReleaseOutcome, RuleIndex, Time, Token, What};
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::keeper::{Closing, Failed, Keeper, Limits, Waited};
use lockward::lock::owner::Bound;
use lockward::lock::rule::Rule;
use uuid::Uuid;

pub const R: RuleIndex = RuleIndex(0);

pub fn rule() -> Rule {
    Rule {
        name: "locks".into(),
        ..Rule::new("lock:*")
    }
}

pub fn renewing() -> Rule {
    Rule { renew: true, ..rule() }
}

pub fn leaving() -> Rule {
    Rule {
        release_on_disconnect: true,
        ..rule()
    }
}

pub fn connection(number: u64) -> ConnectionId {
    ConnectionId {
        instance: "0123456789abcdef".into(),
        number,
    }
}

/// A keeper, its clock, and everything it has handed out, each line as `milliseconds what`.
pub struct Rig {
    pub keeper: Keeper,
    pub now_ms: u64,
    tokens: u128,
    lines: Vec<String>,
}

/// The answer of a server that does everything, and where every lease lives as long as it is told.
pub fn obliging(chore: &Chore) -> Result<Done, Failed> {
    Ok(match &chore.task {
        Task::Renew { ttl_ms, .. } => Done::Renewed { ttl_ms: *ttl_ms },
        Task::Free { .. } => Done::Freed { held_ms: None },
        Task::Gone { .. } | Task::DropDebts { .. } => Done::Marked,
        Task::Check { .. } => Done::Expired,
        Task::Inspect => Done::Absent,
    })
}

pub fn word(chore: &Chore) -> String {
    let key = String::from_utf8_lossy(&chore.key);
    match &chore.task {
        Task::Renew { ttl_ms, .. } => format!("renew {key} {ttl_ms}"),
        Task::Free { .. } => format!("free {key}"),
        Task::Gone { connection } => format!("gone {key} {}", connection.number),
        Task::DropDebts { owner } => format!("drop {key} {owner}"),
        Task::Check { .. } => format!("check {key}"),
        Task::Inspect => format!("inspect {key}"),
    }
}

pub fn what_word(event: &Event) -> String {
    let key = String::from_utf8_lossy(&event.key);
    match &event.what {
        What::Renewal(renewal) => format!("{} {key}", renewal.word()),
        What::Expired { held_ms } => format!("expired {key} {}", held_ms.unwrap_or(0)),
        What::Ended => format!("ended {key}"),
        What::Release(release) => format!("{} {key} {}", release.outcome.word(), release.held_ms.unwrap_or(0)),
        other => format!("{other:?} {key}"),
    }
}

impl Rig {
    pub fn new(rules: &[Rule]) -> Self {
        Rig {
            keeper: Keeper::new(rules, Limits::default()),
            now_ms: 0,
            tokens: 0,
            lines: Vec::new(),
        }
    }

    pub fn now(&self) -> Time {
        Time(self.now_ms * 1000)
    }

    /// An event of this moment.
    pub fn told(&self, key: &str, owner: &str, number: u64, what: What) -> Event {
        Event {
            at: self.now(),
            database: 0,
            key: Bytes::copy_from_slice(key.as_bytes()),
            rule: R,
            owner: owner.into(),
            connection: connection(number),
            what,
        }
    }

    pub fn event(&mut self, key: &str, owner: &str, number: u64, bound: Bound, what: What) -> Option<Waited> {
        let mut event = self.told(key, owner, number, what);
        self.keeper.complete(&mut event);
        self.keeper.event(&event, bound)
    }

    pub fn next_token(&mut self) -> Token {
        self.tokens += 1;
        Token(Uuid::from_u128(self.tokens))
    }

    pub fn grant_as(&mut self, key: &str, owner: &str, number: u64, ttl_ms: impl Into<Option<u64>>, bound: Bound) {
        let token = self.next_token();
        self.grant_token(key, owner, number, ttl_ms.into(), bound, token);
    }

    pub fn grant_token(&mut self, key: &str, owner: &str, n: u64, ttl_ms: Option<u64>, bound: Bound, token: Token) {
        let grant = Grant {
            token,
            fence: None,
            ttl_ms,
            ttl_injected: false,
            ttl_reduced: false,
            overlap: false,
        };
        self.event(key, owner, n, bound, What::Granted(grant));
    }

    pub fn grant(&mut self, key: &str, owner: &str, number: u64, ttl_ms: impl Into<Option<u64>>) {
        self.grant_as(key, owner, number, ttl_ms, Bound::Free);
    }

    pub fn release(&mut self, key: &str, owner: &str, number: u64, outcome: ReleaseOutcome) {
        let release = Release {
            outcome,
            held_ms: None,
            overrun_ms: None,
        };
        self.event(key, owner, number, Bound::Free, What::Release(release));
    }

    pub fn extend(&mut self, key: &str, owner: &str, number: u64, ttl_ms: impl Into<Option<u64>>) {
        let what = What::Extended {
            ttl_ms: ttl_ms.into(),
            reduced: false,
        };
        self.event(key, owner, number, Bound::Free, what);
    }

    pub fn close(&mut self, number: u64, how: Closing) {
        self.keeper.closed(self.now(), &connection(number), how);
    }

    pub fn tick(&mut self) -> Vec<Chore> {
        let (mut chores, mut events) = (Vec::new(), Vec::new());
        self.keeper.tick(self.now(), &mut chores, &mut events);
        if let Some(deadline) = self.keeper.deadline() {
            assert!(deadline > self.now(), "the deadline lies in the past after a tick");
        }
        self.lines
            .extend(chores.iter().map(|chore| format!("{} {}", self.now_ms, word(chore))));
        self.lines.extend(
            events
                .iter()
                .map(|event| format!("{} {}", self.now_ms, what_word(event))),
        );
        chores
    }

    /// Lets time go by, and answers each chore at once.
    pub fn run_with(&mut self, for_ms: u64, answer: impl Fn(&Chore) -> Result<Done, Failed>) {
        let end = self.now_ms + for_ms;
        loop {
            let chores = self.tick();
            for chore in &chores {
                let result = answer(chore);
                self.keeper
                    .done(self.now(), chore, result.as_ref().map_err(|failed| *failed));
            }
            let Some(deadline) = self.keeper.deadline() else { break };
            let deadline_ms = deadline.0.div_ceil(1000).max(self.now_ms);
            if deadline_ms > end {
                break;
            }
            self.now_ms = deadline_ms;
        }
        self.now_ms = end;
    }

    pub fn run(&mut self, for_ms: u64) {
        self.run_with(for_ms, obliging);
    }

    /// Everything handed out since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    pub fn count(&mut self, word: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(word)).count()
    }
}
