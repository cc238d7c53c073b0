//! The answers due, in order: what was sent and has not been answered yet. Counts what else has to be known of them
//! (does one block, how many are costly), so that nobody walks the queue for it. Reads no answer.

use std::collections::VecDeque;

use super::pending::Pending;
use crate::command::CommandId;
use crate::event::Time;

/// Answers due, above which the client is not read any more.
pub const PENDING_LIMIT: usize = 1 << 20;
/// The same for those that are read specially: each of them keeps some hundred bytes.
pub const SPECIAL_LIMIT: usize = 1 << 17;
/// The same for the bytes that are kept to read them by: a command on thousands of locks keeps some hundred for each.
const WEIGHT_LIMIT: usize = 4 << 20;
/// An empty queue with room for more entries gives its memory back.
const KEPT_ROOM: usize = 256;

/// The answers due, the next one in front.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Pending>,
    /// How many answers are due: an entry may stand for several.
    due: usize,
    blocking: usize,
    specials: usize,
    subscriptions: usize,
    stirring: usize,
    weight: usize,
}

impl Queue {
    pub(super) fn push(&mut self, pending: Pending) {
        self.blocking += usize::from(pending.blocking);
        self.specials += usize::from(pending.special);
        self.subscriptions += usize::from(pending.subscribes);
        self.stirring += usize::from(stirs(&pending));
        self.weight += pending.weight;
        self.due += 1;
        self.entries.push_back(pending);
    }

    pub(super) fn pop(&mut self) -> Option<Pending> {
        if let Some(one) = self.entries.front_mut().and_then(Pending::split_one) {
            self.due -= 1;
            return Some(one);
        }
        let pending = self.entries.pop_front();
        self.gone(pending.as_ref());
        pending
    }

    /// Takes the youngest back: its request will never be complete.
    pub(super) fn pop_youngest(&mut self) -> Option<Pending> {
        if let Some(one) = self.entries.back_mut().and_then(Pending::split_one) {
            self.due -= 1;
            return Some(one);
        }
        let pending = self.entries.pop_back();
        self.gone(pending.as_ref());
        pending
    }

    fn gone(&mut self, pending: Option<&Pending>) {
        let Some(pending) = pending else { return };
        self.due -= 1;
        self.blocking = self.blocking.saturating_sub(usize::from(pending.blocking));
        self.specials = self.specials.saturating_sub(usize::from(pending.special));
        self.subscriptions = self.subscriptions.saturating_sub(usize::from(pending.subscribes));
        self.stirring = self.stirring.saturating_sub(usize::from(stirs(pending)));
        self.weight = self.weight.saturating_sub(pending.weight);
        if self.entries.is_empty() && self.entries.capacity() > KEPT_ROOM {
            self.entries = VecDeque::new();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Queue::default();
    }

    /// Whether one more is welcome.
    pub(super) fn has_room(&self) -> bool {
        self.due < PENDING_LIMIT && self.specials < SPECIAL_LIMIT && self.weight < WEIGHT_LIMIT
    }

    /// About how many bytes are kept to read the answers by.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether an answer is due that is read specially, or none at all.
    pub(super) fn has_specials(&self) -> bool {
        self.specials > 0
    }

    /// Adds so many plain requests of one command: nothing of them has to be counted.
    pub(super) fn push_plain(&mut self, command: CommandId, count: usize, now: Time) {
        // No more than the limit above are ever due.
        let more = count as u32;
        self.due += count;
        match self.entries.back_mut() {
            Some(youngest) if youngest.takes(command, now) => youngest.count += more,
            _ => self.entries.push_back(Pending {
                count: more,
                ..Pending::plain(command, now)
            }),
        }
    }

    /// How many answers to the entry at the front are passed on as they are, one like the other.
    pub(super) fn plain_at_front(&self) -> u32 {
        self.entries.front().map_or(0, |front| front.count)
    }

    /// Takes so many off the entry at the front, at most as many as there are. To be called only while there are no
    /// specials; what the queue keeps for busy times is given back by [`settle`](Self::settle).
    pub(super) fn pop_plain(&mut self, count: u32) -> Option<Pending> {
        let front = self.entries.front_mut()?;
        self.due -= count as usize;
        if count < front.count {
            return Some(front.split(count));
        }
        let pending = self.entries.pop_front()?;
        self.blocking = self.blocking.saturating_sub(usize::from(pending.blocking));
        self.stirring = self.stirring.saturating_sub(usize::from(stirs(&pending)));
        Some(pending)
    }

    /// Gives back memory if nothing is due any more.
    pub(super) fn settle(&mut self) {
        if self.entries.is_empty() && self.entries.capacity() > KEPT_ROOM {
            self.entries = VecDeque::new();
        }
    }

    /// How many answers are due.
    pub(super) fn len(&self) -> usize {
        self.due
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a command is under way whose answer may come only when something else happens.
    pub(super) fn blocks(&self) -> bool {
        self.blocking > 0
    }

    pub(super) fn front(&self) -> Option<&Pending> {
        self.entries.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Pending> {
        self.entries.front_mut()
    }

    pub(super) fn youngest_mut(&mut self) -> Option<&mut Pending> {
        self.entries.back_mut()
    }

    /// Whether an answer is due that may tell of a grant.
    pub(super) fn awaits_grant(&self) -> bool {
        self.entries.iter().any(Pending::may_grant)
    }

    /// Whether a subscription command is under way.
    pub(super) fn subscribes(&self) -> bool {
        self.subscriptions > 0
    }

    /// Whether anything is under way behind which the contention shield has nothing to say.
    pub(super) fn stirs(&self) -> bool {
        self.stirring > 0
    }

    /// The `MULTI` at the front was refused: what stands behind it, up to where the next transaction would begin or
    /// this one end, is done at once and may block after all.
    pub(super) fn unqueue(&mut self) {
        for pending in self.entries.iter_mut().skip(1) {
            if pending.bounds_transaction() {
                return;
            }
            if pending.waits && !pending.blocking {
                pending.blocking = true;
                self.blocking += 1;
            }
        }
    }
}

/// What waits unless a transaction queues it counts from the start: whether it does is only known later.
fn stirs(pending: &Pending) -> bool {
    pending.stirs || pending.blocking || pending.waits
}
