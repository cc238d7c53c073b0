//! Passes what happens to locks on to those who keep it and those who watch: the chronicle, the event stream, and whoever
//! waits for a change. The sentences are made by a task of their own, so that a client never waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio::time::sleep;

use super::backend;
use super::shared::Shared;
use crate::admin::api;
use crate::event::{Action, Event, RuleIndex, What};
use crate::lock::LONGEST_KEPT_KEY;
use crate::lock::chronicle::{Chronicle, Entry, Happening, is_refusable};
use crate::lock::keeper::Waited;
use crate::session::Witnessed;

/// Events that a watcher may be behind before it misses some. They stay in memory, with their keys: so keys longer than
/// those of the histories are left out of the stream, and 4,096 of the longest are 64 MiB (with their encoded form).
const EVENTS: usize = 4096;
/// Changes are announced at most so often: that costs more than all the rest of an event.
const ANNOUNCED_EVERY: Duration = Duration::from_millis(20);
/// Events that may wait for their sentences before some are left out of the stream; the gap in the ids shows.
const UNTOLD: usize = 4096;

/// What is known of an event besides itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aside {
    /// From the first refused try to this grant, in milliseconds.
    pub waited_ms: Option<u64>,
    /// Of a release: what was done about it, as its refusal says.
    pub action: Option<Action>,
}

impl Aside {
    /// What the rest of its batch and the keeper say of the event at `index`.
    pub(super) fn of(events: &[Witnessed], index: usize, waits: &[(usize, Waited)]) -> Aside {
        let waited = waits.iter().find(|(place, _)| *place == index);
        Aside {
            waited_ms: waited.map(|(_, waited)| waited.micros / 1000),
            action: events.get(index..).and_then(action),
        }
    }
}

/// A release and its refusal come one right behind the other.
fn action(events: &[Witnessed]) -> Option<Action> {
    let [release, refusal, ..] = events else { return None };
    match (&release.event.what, &refusal.event.what) {
        (What::Release(release_of), What::Refused(refused))
            if is_refusable(release_of.outcome) && release.event.key == refusal.event.key =>
        {
            Some(refused.action)
        }
        _ => None,
    }
}

/// An event on its way to the stream.
#[derive(Debug)]
pub(super) struct Untold {
    /// Its database.
    pub database: u32,
    /// The lock key.
    pub key: Bytes,
    /// The rule, by its place.
    pub rule: RuleIndex,
    /// The rest.
    pub entry: Entry,
}

/// The ways out.
pub(super) struct Telling {
    /// What happens to locks, for those who watch.
    events: broadcast::Sender<Arc<api::Event>>,
    /// Whether somebody may listen to them: asking the channel takes its lock.
    listened: AtomicBool,
    /// Changes soon after the table or the rules' figures may have.
    pub changes: watch::Sender<()>,
    /// Something has changed that is not announced yet.
    changed: AtomicBool,
    change: Notify,
    chronicle: Mutex<Chronicle>,
    untold: mpsc::Sender<Untold>,
    /// Until the task takes it.
    to_tell: Mutex<Option<mpsc::Receiver<Untold>>>,
}

impl Telling {
    pub(super) fn new(chronicle: Chronicle) -> Telling {
        let (untold, to_tell) = mpsc::channel(UNTOLD);
        Telling {
            events: broadcast::Sender::new(EVENTS),
            listened: AtomicBool::new(false),
            changes: watch::Sender::new(()),
            changed: AtomicBool::new(false),
            change: Notify::new(),
            chronicle: Mutex::new(chronicle),
            untold,
            to_tell: Mutex::new(Some(to_tell)),
        }
    }

    /// The chronicle. Held for a moment, never across an await. A panic elsewhere leaves it usable: it proves nothing.
    pub(super) fn chronicle(&self) -> MutexGuard<'_, Chronicle> {
        self.chronicle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to locks from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Arc<api::Event>> {
        let receiver = self.events.subscribe();
        self.listened.store(true, Ordering::SeqCst);
        receiver
    }

    /// Nobody listened to the last event.
    fn unheard(&self) {
        self.listened.store(false, Ordering::SeqCst);
        // Somebody may have come in between: in this order one of the two sees the other.
        if self.events.receiver_count() > 0 {
            self.listened.store(true, Ordering::SeqCst);
        }
    }

    /// Takes note of what happened at once, and passes it on if somebody listens.
    pub(super) fn tell<'e>(&self, events: impl IntoIterator<Item = (&'e Event, Aside)>) {
        let listened = self.listened.load(Ordering::Relaxed);
        {
            let mut chronicle = self.chronicle();
            for (event, aside) in events {
                let number = chronicle.event(event, aside.waited_ms);
                // Under the lock, so that the stream has the order of the numbers.
                if let Some(number) = number.filter(|_| listened) {
                    self.pass_on(number, event, aside);
                }
            }
        }
        self.changed();
    }

    /// The table or the rules' figures may have changed: announced soon.
    pub(super) fn changed(&self) {
        // Whoever comes later looks for himself.
        if self.changes.receiver_count() > 0 && !self.changed.swap(true, Ordering::AcqRel) {
            self.change.notify_one();
        }
    }

    async fn announce(&self) {
        loop {
            self.change.notified().await;
            sleep(ANNOUNCED_EVERY).await;
            // First: what comes from here on is announced anew.
            self.changed.store(false, Ordering::Release);
            self.changes.send_replace(());
        }
    }

    fn pass_on(&self, number: u64, event: &Event, aside: Aside) {
        if event.key.len() > LONGEST_KEPT_KEY {
            return;
        }
        let mut entry = Entry::new(number, event, aside.waited_ms);
        if let Happening::Release(_, action) = &mut entry.what {
            *action = aside.action;
        }
        // If it is full, the event is left out.
        let _ = self.untold.try_send(Untold {
            database: event.database,
            key: event.key.clone(),
            rule: event.rule,
            entry,
        });
    }
}

/// Tells those who watch until the process ends.
pub(super) async fn run(shared: Arc<Shared>) {
    tokio::join!(sentences(&shared), shared.telling.announce());
}

async fn sentences(shared: &Shared) {
    let to_tell = shared
        .telling
        .to_tell
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(mut to_tell) = to_tell else { return };
    while let Some(untold) = to_tell.recv().await {
        let event = Arc::new(backend::event(shared, &untold));
        if shared.telling.events.send(event).is_err() {
            shared.telling.unheard();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ConnectionId, Operation, Refusal, RefusalReason, Release, ReleaseOutcome, Time};
    use crate::lock::chronicle::Limits;
    use crate::lock::owner::Bound;

    fn witnessed(what: What) -> Witnessed {
        let connection = ConnectionId {
            instance: "a".into(),
            number: 1,
        };
        let event = Event {
            at: Time(1_000_000),
            database: 0,
            key: Bytes::from_static(b"lock:a"),
            rule: RuleIndex(0),
            owner: "any".into(),
            connection,
            what,
        };
        Witnessed {
            event,
            bound: Bound::Free,
        }
    }

    fn late_release() -> [Witnessed; 2] {
        let release = Release {
            outcome: ReleaseOutcome::Late,
            held_ms: None,
            overrun_ms: Some(70),
        };
        let refusal = Refusal {
            operation: Operation::Release,
            reason: RefusalReason::Late,
            action: Action::Refused,
            without_ttl: false,
        };
        [What::Release(release), What::Refused(refusal)].map(witnessed)
    }

    #[test]
    fn a_release_carries_the_action_of_its_refusal() {
        let events = late_release();
        assert_eq!(Aside::of(&events, 0, &[]).action, Some(Action::Refused));
        assert_eq!(Aside::of(&events, 1, &[]).action, None);
        assert_eq!(Aside::of(&events[..1], 0, &[]).action, None);
    }

    #[test]
    fn a_wait_belongs_to_its_grant() {
        let events = [
            witnessed(What::Contended { shielded: false }),
            witnessed(What::Contended { shielded: false }),
        ];
        let waited = Waited {
            rule: RuleIndex(0),
            micros: 1_234_567,
        };
        assert_eq!(Aside::of(&events, 1, &[(1, waited)]).waited_ms, Some(1234));
        assert_eq!(Aside::of(&events, 0, &[(1, waited)]).waited_ms, None);
    }

    #[test]
    fn nothing_is_passed_on_unless_somebody_listens() {
        let telling = Telling::new(Chronicle::new(&[], Limits::default()));
        let event = witnessed(What::Contended { shielded: false }).event;
        telling.tell([(&event, Aside::default())]);
        let listener = telling.listen();
        telling.tell([(&event, Aside::default())]);
        let mut to_tell = telling.to_tell.lock().unwrap().take().unwrap();
        assert_eq!(to_tell.try_recv().unwrap().entry.id, 2);
        assert!(to_tell.try_recv().is_err());
        telling.unheard();
        telling.tell([(&event, Aside::default())]);
        assert_eq!(to_tell.try_recv().unwrap().entry.id, 3, "somebody listens still");
        drop(listener);
        telling.unheard();
        telling.tell([(&event, Aside::default())]);
        assert!(to_tell.try_recv().is_err());
    }

    #[test]
    fn a_batch_is_told_in_its_order() {
        let telling = Telling::new(Chronicle::new(&[], Limits::default()));
        let _listener = telling.listen();
        let events = late_release();
        let batch = events.iter().enumerate();
        telling.tell(batch.map(|(index, witnessed)| (&witnessed.event, Aside::of(&events, index, &[]))));
        let mut to_tell = telling.to_tell.lock().unwrap().take().unwrap();
        let told = to_tell.try_recv().unwrap().entry;
        assert!(matches!(told.what, Happening::Release(_, Some(Action::Refused))));
        assert!(to_tell.try_recv().is_err(), "the refusal belongs to the release");
    }

    #[tokio::test]
    async fn changes_are_announced_soon_and_not_each() {
        let telling = Telling::new(Chronicle::new(&[], Limits::default()));
        let event = witnessed(What::Contended { shielded: false }).event;
        let mut changes = telling.changes.subscribe();
        let watched = async {
            for _ in 0..3 {
                (0..100).for_each(|_| telling.tell([(&event, Aside::default())]));
                changes.changed().await.unwrap();
                // The hundred were one change, and what comes from here on is another.
                assert!(!changes.has_changed().unwrap());
                assert!(!telling.changed.load(Ordering::Acquire));
            }
        };
        tokio::select! {
            () = telling.announce() => {}
            () = watched => {}
        }
    }

    #[test]
    fn keys_of_any_length_do_not_wait_in_the_stream() {
        let telling = Telling::new(Chronicle::new(&[], Limits::default()));
        let _listener = telling.listen();
        for length in [LONGEST_KEPT_KEY, LONGEST_KEPT_KEY + 1] {
            let event = Event {
                key: vec![b'k'; length].into(),
                ..witnessed(What::Contended { shielded: false }).event
            };
            telling.tell([(&event, Aside::default())]);
        }
        let mut to_tell = telling.to_tell.lock().unwrap().take().unwrap();
        assert_eq!(to_tell.try_recv().unwrap().key.len(), LONGEST_KEPT_KEY);
        assert!(to_tell.try_recv().is_err());
    }
}
