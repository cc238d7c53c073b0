//! What all connections of one process share: the policy, the keeper, the metrics, the way upstream. Hands events to
//! those who show and keep them; decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::clients::Clients;
use super::clock::Clock;
use super::condition::Condition;
use super::door::Door;
use super::held::Held;
use super::listener::Limits as Accepting;
use super::own::Handle;
use super::pace::Pace;
use super::pausing::Pausing;
use super::reload::{Reloading, ruled};
use super::scouting::Scouting;
use super::sentinel;
use super::telling::{Aside, Telling};
use super::tls::Certificates;
use super::upgrade::Upgrading;
use super::whereabouts::Whereabouts;
use crate::command;
use crate::config::{Config, UpstreamMode};
use crate::event::{ConnectionId, Event, Owner, Release, ReleaseOutcome, Time, Token, What};
use crate::lock::chore::{Chore, Done, Task};
use crate::lock::chronicle::{self, Chronicle};
use crate::lock::keeper::{Closing, Keeper, Limits, Waited};
use crate::lock::observe::{Doubt, Observation, Observatory};
use crate::lock::owner::Bound;
use crate::lock::rule::Mode;
use crate::metrics::LockLog;
use crate::metrics::{Direction, Metrics, Side};
use crate::session::{Observed, Policies, Policy, Session, Settled, Witnessed};

/// What all connections share.
pub(super) struct Shared {
    /// What sessions go by, listener by listener.
    pub policies: Arc<ArcSwap<Policies>>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The log of what happens to locks.
    pub log: LockLog,
    /// How clients get in, and what TLS goes by.
    pub door: Door,
    /// lockward's own connection.
    pub own: Handle,
    /// Where work goes on that no client waits for; not a worker's, which ends with its clients.
    pub runtime: tokio::runtime::Handle,
    /// Where the server is.
    pub whereabouts: Whereabouts,
    /// Whether clients share connections to it where they can.
    pub shares: bool,
    /// How the server was when it was last asked.
    pub condition: ArcSwap<Condition>,
    /// How fast connections to the server are opened.
    pub pace: Pace,
    /// Limits of the accepting side.
    pub limits: ArcSwap<Accepting>,
    /// How much all clients have lying here.
    pub held: Held,
    /// Changes when other settings have come into force.
    pub reloads: watch::Sender<()>,
    /// Where other settings come from, if there can be any.
    pub reloading: OnceLock<Reloading>,
    /// How another process takes this one's place, if one can.
    pub upgrading: OnceLock<Upgrading>,
    /// How long a connect may take.
    pub connect_timeout: Duration,
    /// Whether clients are held back.
    pub pausing: Pausing,
    /// Becomes true when no new work is taken.
    pub draining: watch::Receiver<bool>,
    /// Wakes the task that does the keeper's chores.
    pub chores: Notify,
    /// Until when the task that does the chores sleeps, in microseconds since the process began.
    chores_at: AtomicU64,
    /// How often a client may have changed who may do what on the server.
    pub rights: AtomicU64,
    /// The chronicle, and the ways to those who watch.
    pub telling: Telling,
    /// The clients that are connected.
    pub clients: Clients,
    /// What looks like a lock and has no rule.
    pub scouting: Scouting,
    keeper: Mutex<Keeper>,
    observatory: Mutex<Observatory>,
    /// What time it is.
    pub clock: Clock,
    instance: Arc<str>,
    next: AtomicU64,
}

impl Shared {
    /// What the configuration says, and this process' own name. Begins to connect to the server.
    pub(super) fn new(
        config: &Config,
        certificates: Arc<Certificates>,
        draining: watch::Receiver<bool>,
        clock: Clock,
    ) -> Self {
        let rules: Vec<Arc<str>> = config.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let metrics = Arc::new(Metrics::new(&rules, &command::names()));
        // 16 hex digits: enough that no two proxies of one server share a name.
        let instance: String = Uuid::new_v4().simple().to_string().chars().take(16).collect();
        let whereabouts = sentinel::whereabouts(config, &certificates, &metrics);
        let policies = Policies::new(ruled(config), &config.records.prefix, || Token(Uuid::new_v4()));
        Shared {
            policies: Arc::new(ArcSwap::from_pointee(policies)),
            log: LockLog::new(&rules, Arc::clone(&metrics)),
            own: super::own(config, Arc::clone(&certificates), whereabouts.clone()),
            door: Door::new(config, certificates, Arc::clone(&metrics)),
            metrics,
            runtime: tokio::runtime::Handle::current(),
            whereabouts,
            shares: config.upstream.mode == UpstreamMode::Shared,
            condition: ArcSwap::default(),
            pace: Pace::new(config.upstream.reconnect_rate),
            limits: ArcSwap::from_pointee(Accepting::from(&config.listen)),
            held: Held::default(),
            reloads: watch::Sender::default(),
            reloading: OnceLock::new(),
            upgrading: OnceLock::new(),
            connect_timeout: config.upstream.connect_timeout,
            pausing: Pausing::new(),
            draining,
            chores: Notify::new(),
            chores_at: AtomicU64::new(0),
            rights: AtomicU64::new(0),
            telling: Telling::new(Chronicle::new(&config.rules, chronicle::Limits::default())),
            scouting: Scouting::default(),
            keeper: Mutex::new(Keeper::new(&config.rules, Limits::default())),
            observatory: Mutex::new(Observatory::default()),
            clients: Clients::default(),
            clock,
            instance: instance.into(),
            next: AtomicU64::new(1),
        }
    }

    /// What the rules of all listeners come to: for who looks at locks, and not at a client.
    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policies.load().whole)
    }

    /// What time it is.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The name of a new connection.
    pub(super) fn connection(&self) -> ConnectionId {
        ConnectionId {
            instance: Arc::clone(&self.instance),
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The keeper. Held for a moment, never across an await. A panic elsewhere leaves it usable: it proves nothing.
    pub(super) fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observatory(&self) -> MutexGuard<'_, Observatory> {
        self.observatory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn opened(&self, session: &Session, from: &str) {
        tracing::debug!(connection = %session.connection(), from, "a client connected");
        self.clients.opened(session.connection(), from);
        self.metrics.opened(Side::Downstream);
    }

    pub(super) fn closed(&self, connection: &ConnectionId, closing: Closing, ended: &[Owner]) {
        self.clients.closed(connection);
        self.metrics.closed(Side::Downstream);
        self.keeper().closed(self.now(), connection, closing);
        if closing == Closing::ByClient {
            self.observatory().gone(connection, ended);
        }
        // The table says which holders are connected.
        self.telling.changed();
        self.chores.notify_one();
    }

    /// Leases that nobody knows of, since their grants could not be written to the client: released at once.
    pub(super) fn unheard(self: &Arc<Self>, grants: Vec<Event>) {
        for event in grants {
            let What::Granted(grant) = &event.what else { continue };
            let task = Task::Free {
                token: Some(grant.token),
            };
            let chore = Chore {
                database: event.database,
                key: event.key.clone(),
                task,
            };
            let shared = Arc::clone(self);
            self.runtime.spawn(async move {
                // If it cannot be done the lease ends by its TTL.
                if let Ok(Done::Freed { held_ms }) = shared.own.chore(chore).await {
                    let release = Release {
                        outcome: ReleaseOutcome::Disconnect,
                        held_ms,
                        overrun_ms: None,
                    };
                    let event = Event {
                        at: shared.now(),
                        what: What::Release(release),
                        ..event
                    };
                    shared.witnessed(&mut vec![Witnessed {
                        event,
                        bound: Bound::Free,
                    }]);
                }
            });
        }
    }

    pub(super) fn moved(&self, side: Side, direction: Direction, bytes: usize) {
        self.metrics.moved(side, direction, bytes as u64);
    }

    pub(super) fn settled(&self, settled: &Settled) {
        self.metrics.commands(&crate::metrics::Settled {
            command: usize::from(settled.command.0),
            error: settled.error,
            lock: settled.lock,
            count: settled.count,
            request_us: settled.request_us,
            upstream_us: settled.upstream_us,
        });
    }

    /// Events of a session, before the answers that they belong to go out.
    pub(super) fn witnessed(&self, events: &mut Vec<Witnessed>) {
        let waits = self.keep(events);
        let numbered = events
            .iter()
            .enumerate()
            .map(|(index, witnessed)| (index, &witnessed.event));
        // A script or the observe model says that it found a lease expired; the keeper says so once, and is heard.
        let shown = numbered.filter(|(_, event)| !matches!(event.what, What::Expired { .. }));
        self.show(shown.map(|(index, event)| (event, Aside::of(events, index, &waits))));
        events.clear();
    }

    /// Releases under observe rules that are about to be sent.
    pub(super) fn releasing(&self, sent: &mut Vec<Arc<Observation>>) {
        let mut observatory = self.observatory();
        sent.drain(..).for_each(|observation| observatory.sent(&observation));
    }

    /// Answers under observe rules: what would have been refused?
    pub(super) fn observed(self: &Arc<Self>, seen: &mut Vec<Observed>) {
        let policies = self.policies.load();
        let mut events = Vec::new();
        let doubts = {
            let mut observatory = self.observatory();
            for Observed { observation, reply } in seen.drain(..) {
                observatory.answered(
                    &observation,
                    reply,
                    policies.whole.rules.list(),
                    self.now(),
                    &mut events,
                );
            }
            observatory.take_doubts()
        };
        doubts.into_iter().for_each(|doubt| self.look(doubt));
        let mut events: Vec<_> = events
            .into_iter()
            .map(|event| Witnessed {
                event,
                bound: Bound::Free,
            })
            .collect();
        self.witnessed(&mut events);
    }

    /// Looks whether a lock is still there that its owner's script may have given up. If nobody can look, its lease ends
    /// in the table by its TTL or at the next grant.
    fn look(self: &Arc<Self>, doubt: Doubt) {
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let question = vec![Bytes::from_static(b"EXISTS"), doubt.key.clone()];
            let answer = shared.own.command(Some(doubt.database), question).await;
            if answer.is_ok_and(|answer| answer.as_ref() == b":0\r\n") {
                let event = shared.observatory().gone_since(doubt, shared.now());
                let bound = Bound::Free;
                shared.witnessed(&mut event.map(|event| Witnessed { event, bound }).into_iter().collect());
            }
        });
    }

    /// An event of the keeper's own. That an observed lease ran out it only reads off the clock: the observatory knows
    /// whether its release is owed.
    pub(super) fn heard(&self, event: Event) {
        let observed = || self.policies.load().whole.rules.rule(event.rule).mode == Mode::Observe;
        let event = match event.what {
            What::Expired { .. } if observed() => self.observatory().ran_out(event),
            _ => event,
        };
        self.show(std::iter::once((&event, Aside::default())));
    }

    /// The waits that ended with a grant, each with the place of that grant.
    fn keep(&self, events: &mut [Witnessed]) -> Vec<(usize, Waited)> {
        let mut waits = Vec::new();
        let mut keeper = self.keeper();
        for (index, Witnessed { event, bound }) in events.iter_mut().enumerate() {
            keeper.complete(event);
            if let Some(waited) = keeper.event(event, *bound) {
                self.metrics.waited(waited.rule, waited.micros);
                waits.push((index, waited));
            }
        }
        // Waking another thread costs more than all the rest of an event, and most change nothing about when the keeper
        // wants something next.
        let sooner = keeper
            .deadline()
            .is_some_and(|at| at.0 < self.chores_at.load(Ordering::Relaxed));
        drop(keeper);
        if sooner {
            self.chores.notify_one();
        }
        waits
    }

    /// When the keeper wants something next, but at most `longest` from now: the one who asks sleeps until then, and is
    /// woken if that changes.
    pub(super) fn rest(&self, longest: Duration) -> Duration {
        let keeper = self.keeper();
        let now = self.now();
        let rest = keeper
            .deadline()
            .map_or(longest, |at| Duration::from_micros(at.since(now)))
            .min(longest);
        // Under the lock: whoever changes the deadline from here on sees it.
        let until = now.0.saturating_add(rest.as_micros() as u64);
        self.chores_at.store(until, Ordering::Relaxed);
        rest
    }

    /// Shows what happened at once to metrics, log and chronicle, and to those who watch. Not to be called while the
    /// keeper is locked.
    fn show<'e>(&self, events: impl Iterator<Item = (&'e Event, Aside)> + Clone) {
        let policies = self.policies.load();
        for (event, _) in events.clone() {
            policies.whole.shield.heard(event);
            self.metrics.event(event);
            self.log
                .event_held_by(event, &|| self.keeper().holder(event.database, &event.key));
        }
        self.telling.tell(events);
    }
}
