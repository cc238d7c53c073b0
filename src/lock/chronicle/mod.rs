//! What happened to the locks lately, as histories and timelines, and the figures of their rules: counts, how long locks
//! are held and waited for, the last ten minutes, and what all this advises. Events and time go in, views come out.
//!
//! Hand in every event once, in the order in which it is shown to metrics and log. Events of one connection keep their
//! order; those of two may have changed places, and nothing here minds.
//!
//! Memory is bounded, whoever sends what:
//!
//! - Histories: at most 4,096 locks and 32 MiB (`Limits`), keys and owners included; the lock touched longest ago goes
//!   first and is counted. One lock has at most 64 entries of 136 bytes and 32 spans of 128 bytes, and the owners' texts:
//!   some 15 KiB with all of it in use, so that 2,200 such locks fit. Keys longer than 4,096 bytes have no history.
//! - Figures: 22 KiB for each of hold, wait and TTL of a rule once there is one to record, and 2 KiB of counts: at most
//!   67 KiB for each rule, of which the configuration allows 1,000.
//!
//! One more refused acquire on a contended lock, by far the commonest event, allocates nothing and takes some 180 ns; a
//! lease granted and released 1.3 us (`benches/chronicle.rs`, on a machine busy with other things).
//!
//! It decides nothing about locks, and proves nothing: what other proxies do it does not see, and an owner's debts are the
//! server's business.

pub mod advice;
mod entry;
mod figures;
mod recent;
mod shelf;
mod span;
mod spans;
mod spread;
#[cfg(test)]
mod tests;
pub mod words;

use std::sync::Arc;

pub use entry::{Entry, Granted, Happening, is_refusable};
pub use figures::{Figures, Totals};
pub use recent::{STEP_MS, STEPS, Step};
pub use span::{Ending, Span};
pub use spread::Spread;

use self::shelf::Shelf;
use super::LONGEST_KEPT_KEY;
use super::rule::Rule;
use crate::event::{Event, Operation, RuleIndex, Time, What};

/// A refusal follows its release at once; other sessions' events may come between.
const LOOKED_BACK: usize = 4;
/// Fewer holds than this say nothing about the usual.
const ENOUGH_HOLDS: u64 = 20;

/// The bounds of a chronicle.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Locks with a history.
    pub locks: usize,
    /// Bytes of all histories.
    pub bytes: usize,
    /// Entries of one history.
    pub entries: usize,
    /// Spans of one history.
    pub spans: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            locks: 4096,
            bytes: 32 * 1024 * 1024,
            entries: 64,
            spans: 32,
        }
    }
}

/// One rule, and what is known of it.
#[derive(Clone, Debug)]
struct Ruled {
    name: Arc<str>,
    window_ms: u64,
    figures: Figures,
}

/// What is known of one lock.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    history: &'a shelf::History,
}

impl<'a> View<'a> {
    /// What happened to it, the oldest first.
    pub fn entries(self) -> impl Iterator<Item = &'a Entry> {
        self.history.entries.iter()
    }

    /// Older entries that made room.
    pub fn dropped(self) -> u64 {
        self.history.dropped
    }

    /// Its leases, the oldest first.
    pub fn spans(self) -> impl Iterator<Item = &'a Span> {
        self.history.spans.iter()
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Chronicle {
    rules: Vec<Ruled>,
    shelf: Shelf,
    limits: Limits,
    events: u64,
}

impl Chronicle {
    /// A chronicle that knows nothing yet. [`RuleIndex`] is the position in `rules`.
    pub fn new(rules: &[Rule], limits: Limits) -> Chronicle {
        let rules = rules.iter().map(|rule| Ruled {
            name: Arc::clone(&rule.name),
            window_ms: rule.late_release_window_ms,
            figures: Figures::default(),
        });
        Chronicle {
            rules: rules.collect(),
            shelf: Shelf::new(limits.locks, limits.bytes),
            limits,
            events: 0,
        }
    }

    /// Takes a new configuration. Rules keep their figures by name; those of a rule that is gone are forgotten.
    pub fn reload(&mut self, rules: &[Rule]) {
        let mut old = std::mem::take(&mut self.rules);
        let new = rules.iter().map(|rule| {
            let known = old.iter_mut().find(|ruled| ruled.name == rule.name);
            Ruled {
                name: Arc::clone(&rule.name),
                window_ms: rule.late_release_window_ms,
                figures: known
                    .map(|ruled| std::mem::take(&mut ruled.figures))
                    .unwrap_or_default(),
            }
        });
        self.rules = new.collect();
    }

    /// Takes note of an event; `waited_ms` is what the keeper says of a grant. Its number, counted from 1, if it is one of
    /// its own: the refusal of a release belongs to that release, and an end that is known is none.
    pub fn event(&mut self, event: &Event, waited_ms: Option<u64>) -> Option<u64> {
        let window_ms = self
            .rules
            .get(usize::from(event.rule.0))
            .map_or(0, |rule| rule.window_ms);
        let number = self.events + 1;
        let (mut is_new, mut learned) = (!is_refused_release(event), None);
        if event.key.len() <= LONGEST_KEPT_KEY {
            let place = self.shelf.touch(event.database, &event.key);
            if let Some(history) = self.shelf.at(place) {
                let is_no_news = event.what == What::Ended && history.spans.knows_the_end(event);
                let noted = match is_no_news {
                    true => Noted::Known,
                    false => note(history, number, event, waited_ms, self.limits.entries),
                };
                learned = history.spans.event(event, window_ms, self.limits.spans);
                is_new = noted != Noted::Known;
                if noted == Noted::Grown {
                    self.shelf.grown(place);
                }
            }
        }
        if let Some(rule) = self.rules.get_mut(usize::from(event.rule.0)) {
            rule.figures.event(event, waited_ms, learned);
        }
        self.events += u64::from(is_new);
        is_new.then_some(number)
    }

    /// What is known of a lock.
    pub fn lock(&self, database: u32, key: &[u8]) -> Option<View<'_>> {
        self.shelf.history(database, key).map(|history| View { history })
    }

    /// The figures of a rule.
    pub fn figures(&self, rule: RuleIndex) -> Option<&Figures> {
        self.rules.get(usize::from(rule.0)).map(|rule| &rule.figures)
    }

    /// The last ten minutes of a rule in steps, the oldest first, and when the last step began, which is under way.
    pub fn recent(&self, rule: RuleIndex, now: Time) -> Option<(Vec<Step>, Time)> {
        self.figures(rule).map(|figures| figures.recent.steps(now))
    }

    /// 99 of 100 leases of the rule were held at most so long, in milliseconds; `None` with fewer than 20.
    pub fn usual_hold_ms(&self, rule: RuleIndex) -> Option<u64> {
        let hold = &self.figures(rule)?.hold;
        (hold.count() >= ENOUGH_HOLDS).then(|| hold.quantile_ms(0.99))
    }

    /// How many locks have a history.
    pub fn locks(&self) -> usize {
        self.shelf.len()
    }

    /// Locks whose history was forgotten to make room for others, since the start.
    pub fn histories_dropped(&self) -> u64 {
        self.shelf.dropped()
    }

    /// Bytes in use, near enough. An owner's text counts once for each entry that names it, though they may share it.
    pub fn bytes(&self) -> usize {
        let rules = self.rules.iter();
        let rules: usize = rules.map(|rule| size_of::<Ruled>() + rule.figures.bytes()).sum();
        self.shelf.bytes() + rules
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// As one more of the same.
    Counted,
    /// In the entry of the release that it belongs to, or not at all.
    Known,
    /// As an entry of its own.
    Grown,
}

fn note(history: &mut shelf::History, number: u64, event: &Event, waited_ms: Option<u64>, most: usize) -> Noted {
    let entries = &mut history.entries;
    if entries.back_mut().is_some_and(|last| last.takes(number, event)) {
        return Noted::Counted;
    }
    if let What::Refused(refusal) = &event.what {
        let mut latest = entries.iter_mut().rev().take(LOOKED_BACK);
        if latest.any(|entry| entry.refused(event, refusal)) {
            return Noted::Known;
        }
    }
    history.push(Entry::new(number, event, waited_ms), most);
    Noted::Grown
}

fn is_refused_release(event: &Event) -> bool {
    matches!(&event.what, What::Refused(refusal) if refusal.operation == Operation::Release)
}
