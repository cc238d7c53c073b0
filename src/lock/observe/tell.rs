//! What the model said, as events. Decides nothing.

use super::follow::Seen;
use crate::event::{Action, DropReason, Event, Grant, Operation, Refusal, RefusalReason, Release, What};
use crate::lock::model::{Model, Outcome, Standing};

impl Seen<'_> {
    /// Says in events what the model says.
    pub(super) fn tell(&self, outcome: &Outcome, model: &Model, sink: &mut Vec<Event>) {
        let without_ttl = model.lock.is_some_and(|lock| lock.expiry.is_none());
        let ttl_ms = model.lock.and_then(|lock| lock.expiry).map(|at| length(at - self.now));
        let refused = |operation: Operation, reason: RefusalReason| {
            What::Refused(Refusal {
                operation,
                reason,
                action: Action::Observed,
                without_ttl,
            })
        };
        let what = match outcome {
            Outcome::Granted(granted) => {
                for (reason, count) in [
                    (DropReason::Window, granted.dropped_by_window),
                    (DropReason::Cap, granted.dropped_by_cap),
                ] {
                    if count > 0 {
                        sink.push(self.event(What::DebtsDropped { reason, count }));
                    }
                }
                What::Granted(Grant {
                    token: self.caller.token,
                    fence: None,
                    ttl_ms,
                    ttl_injected: false,
                    ttl_reduced: false,
                    overlap: granted.overlap,
                })
            }
            Outcome::Contended => What::Contended { shielded: false },
            Outcome::Release {
                outcome,
                held_ms,
                overrun_ms,
                refused: reason,
                ..
            } => {
                let (held_ms, overrun_ms) = (held_ms.map(length), overrun_ms.map(length));
                sink.push(self.event(What::Release(Release {
                    outcome: *outcome,
                    held_ms,
                    overrun_ms,
                })));
                match reason {
                    Some(reason) => refused(Operation::Release, *reason),
                    None => return,
                }
            }
            Outcome::Refused(operation, reason) => refused(*operation, *reason),
            Outcome::Extended(_) => What::Extended { ttl_ms, reduced: false },
            Outcome::Overwritten(_) => What::Overwritten { ttl_ms, reduced: false },
            Outcome::TakenOver => What::TakenOver,
            Outcome::Nothing => return,
        };
        debug_assert!(model.standing() != Standing::Alien);
        sink.push(self.event(what));
    }
}

fn length(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}
