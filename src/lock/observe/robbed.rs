//! Whose lock was removed by somebody else's release, as the server does it without enforcement: they are still at work
//! until their own release comes. Remembers; the model knows nothing of it, for in enforce mode it cannot happen.

use crate::lock::model::{Caller, Holder};

/// More at once are not remembered for one lock.
const MOST: usize = 8;

/// Those who were robbed of one lock, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Robbed(Vec<Victim>);

#[derive(Debug)]
struct Victim {
    holder: Holder,
    /// When it happened.
    at: i64,
    /// Somebody else has taken the lock since, and that was told.
    told: bool,
}

impl Robbed {
    /// The holder's lock was removed.
    pub(super) fn rob(&mut self, holder: Holder, at: i64) {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(Victim {
            holder,
            at,
            told: false,
        });
    }

    /// A release came: if it is that of a victim, he is done. His own connection's first, else his owner's.
    pub(super) fn release(&mut self, caller: &Caller) {
        let victims = self.0.iter();
        let own = victims
            .clone()
            .position(|victim| victim.holder.connection == caller.connection);
        let place = own.or_else(|| victims.clone().position(|victim| victim.holder.owner == caller.owner));
        if let Some(place) = place {
            self.0.remove(place);
        }
    }

    /// The caller was granted the lock: is somebody else still at work who was robbed of it? Said once for each.
    pub(super) fn still_at_work(&mut self, caller: &Caller, now: i64) -> bool {
        self.0.retain(|victim| now - victim.at < caller.window_ms);
        let mut untold = false;
        for victim in &mut self.0 {
            if victim.holder.owner != caller.owner && !victim.told {
                victim.told = true;
                untold = true;
            }
        }
        untold
    }
}
