//! Whether the worker threads still turn: each answers a question as soon as it comes to it. Costs nothing while nobody
//! asks.

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// An answer that is waited for.
type Question = oneshot::Sender<()>;

/// The side that asks: one entry for each thread.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    threads: Vec<UnboundedSender<Question>>,
}

/// The side of one thread.
pub(super) struct Beat(UnboundedReceiver<Question>);

impl Pulse {
    /// A thread more; what it must run is [`Beat::answer`].
    pub(super) fn thread(&mut self) -> Beat {
        let (ask, asked) = mpsc::unbounded_channel();
        self.threads.push(ask);
        Beat(asked)
    }

    /// Waits until every thread has answered: for ever where one hangs, so that at most one question is under way for
    /// each who asks. False if one has ended.
    pub async fn all_turn(&self) -> bool {
        let mut answers = Vec::new();
        for thread in &self.threads {
            let (question, answer) = oneshot::channel();
            if thread.send(question).is_err() {
                return false;
            }
            answers.push(answer);
        }
        for answer in answers {
            if answer.await.is_err() {
                return false;
            }
        }
        true
    }
}

impl Beat {
    /// Answers until nobody can ask any more, then waits for ever.
    pub(super) async fn answer(mut self) {
        while let Some(question) = self.0.recv().await {
            // Whoever asked may have gone.
            let _ = question.send(());
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_hangs_or_has_ended_is_noticed() {
        let mut pulse = Pulse::default();
        let (first, second) = (pulse.thread(), pulse.thread());
        let first = tokio::spawn(first.answer());
        let mut asking = Box::pin(pulse.all_turn());
        let soon = std::time::Duration::from_millis(20);
        assert!(
            tokio::time::timeout(soon, &mut asking).await.is_err(),
            "the second does not turn yet"
        );
        let second = tokio::spawn(second.answer());
        assert!(asking.await);
        assert!(pulse.all_turn().await);
        second.abort();
        assert!(!second.await.is_ok_and(|()| true));
        assert!(!pulse.all_turn().await);
        first.abort();
    }
}
