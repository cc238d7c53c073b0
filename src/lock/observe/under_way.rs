//! Releases on their way to the server. The answers of different clients do not come in the order in which the server
//! gave them: if it says that a lock was free which was held a moment ago, one of these has been carried out, and its own
//! answer is still to come. Sends nothing and decides nothing.

use std::sync::Arc;

use super::Observation;
use crate::lock::model::Lease;

/// So many for each lock; of more, those sent last are only heard of by their answers.
const MOST: usize = 16;

/// The releases of one lock that are under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    sent: Vec<Sent>,
}

#[derive(Debug)]
struct Sent {
    observation: Arc<Observation>,
    carried_out: bool,
}

impl Sent {
    /// Nobody else knows of it any more: its client is gone, and no answer will come.
    fn is_lost(&self) -> bool {
        Arc::strong_count(&self.observation) < 2
    }
}

impl UnderWay {
    /// One more.
    pub(super) fn sent(&mut self, observation: &Arc<Observation>) {
        self.sent.retain(|sent| !sent.is_lost());
        if self.sent.len() < MOST {
            self.sent.push(Sent {
                observation: Arc::clone(observation),
                carried_out: false,
            });
        }
    }

    /// Its answer has come. Whether all was said before.
    pub(super) fn answered(&mut self, observation: &Arc<Observation>) -> bool {
        let place = self
            .sent
            .iter()
            .position(|sent| Arc::ptr_eq(&sent.observation, observation));
        place.is_some_and(|place| self.sent.remove(place).carried_out)
    }

    /// The one that has ended this lease, most likely: the holder's own, else its owner's, else the one sent first.
    pub(super) fn carried_out(&mut self, lease: Option<&Lease>) -> Option<Arc<Observation>> {
        let holder = lease.and_then(|lease| lease.holder.as_ref());
        let rank = |sent: &&mut Sent| {
            let own = holder.is_some_and(|holder| holder.connection == sent.observation.connection);
            let pooled = holder.is_some_and(|holder| sent.observation.is_of(&holder.owner));
            (!own, !pooled)
        };
        let waiting = self.sent.iter_mut().filter(|sent| !sent.carried_out && !sent.is_lost());
        let likely = waiting.min_by_key(rank)?;
        likely.carried_out = true;
        Some(Arc::clone(&likely.observation))
    }
}
