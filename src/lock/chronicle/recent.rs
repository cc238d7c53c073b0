//! Counts of the last ten minutes in steps of ten seconds. What comes late is counted in its own step, or not at all.

use crate::event::{Action, Event, Time, What};

/// The length of a step in milliseconds.
pub const STEP_MS: u64 = 10_000;
/// So many steps are kept, the one under way included.
pub const STEPS: usize = 60;

/// The counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Acquires granted.
    pub granted: u32,
    /// Acquires refused.
    pub contended: u32,
    /// Refusals.
    pub refused: u32,
    /// What would have been refused.
    pub would_refuse: u32,
    /// Leases that ended by their TTL with their release owed.
    pub expired: u32,
    /// Acquires by somebody else while a release was owed.
    pub overlaps: u32,
}

/// The last steps.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    steps: Box<[Step; STEPS]>,
    /// The number of the latest step, from the start of the process.
    latest: u64,
}

impl Default for Recent {
    fn default() -> Self {
        Recent {
            steps: Box::new([Step::default(); STEPS]),
            latest: 0,
        }
    }
}

impl Recent {
    pub(super) fn event(&mut self, event: &Event) {
        let Some(step) = self.step(number(event.at)) else {
            return;
        };
        let count = match &event.what {
            What::Granted(grant) => {
                step.overlaps = step.overlaps.saturating_add(grant.overlap.into());
                &mut step.granted
            }
            What::Contended { .. } => &mut step.contended,
            What::Refused(refusal) => match refusal.action {
                Action::Refused => &mut step.refused,
                Action::Observed => &mut step.would_refuse,
            },
            What::Expired { .. } => &mut step.expired,
            What::AcquireFailed
            | What::Release(_)
            | What::Extended { .. }
            | What::Overwritten { .. }
            | What::TakenOver
            | What::Ended
            | What::Renewal(_)
            | What::DebtsDropped { .. } => return,
        };
        *count = count.saturating_add(1);
    }

    /// All steps as of `now`, the oldest first, and when the last one began, which is under way.
    pub(super) fn steps(&self, now: Time) -> (Vec<Step>, Time) {
        let last = number(now).max(self.latest);
        let steps = (0..STEPS as u64).rev().map(|ago| {
            let known = last.checked_sub(ago).filter(|number| self.holds(*number));
            known
                .and_then(|number| self.steps.get(place(number)).copied())
                .unwrap_or_default()
        });
        (steps.collect(), Time(last * STEP_MS * 1000))
    }

    /// Bytes in use besides itself.
    pub(super) fn bytes(&self) -> usize {
        size_of::<[Step; STEPS]>()
    }

    fn holds(&self, number: u64) -> bool {
        number <= self.latest && self.latest - number < STEPS as u64
    }

    /// The step with this number, new if it is the next one; `None` if it is over for long.
    fn step(&mut self, number: u64) -> Option<&mut Step> {
        if number > self.latest {
            // Those between had nothing to count.
            let first = (self.latest + 1).max(number.saturating_sub(STEPS as u64 - 1));
            for empty in first..=number {
                if let Some(step) = self.steps.get_mut(place(empty)) {
                    *step = Step::default();
                }
            }
            self.latest = number;
        }
        let held = self.holds(number);
        self.steps.get_mut(place(number)).filter(|_| held)
    }
}

fn number(at: Time) -> u64 {
    at.0 / (STEP_MS * 1000)
}

fn place(number: u64) -> usize {
    (number % STEPS as u64) as usize
}
