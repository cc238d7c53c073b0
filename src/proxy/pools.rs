//! The trunks of one worker, by who may use them: found, opened by one client for all, given up when they break. After a
//! failure to connect the next try waits. Nobody's password is kept here: where the server asks for a login, a client
//! gets in only by its own, and the trunk is a connection that one of them has opened.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use uuid::Uuid;

use super::trunk::Trunk;
use crate::session::Pool;

/// So long after the server has let in somebody without a login, others are taken for welcome likewise.
const PROOF: Duration = Duration::from_millis(100);
/// The wait after the first failure, doubled at each further one, and its longest.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// When the server let somebody in, and how often the rights of its users had changed until then as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// When.
    pub at: Instant,
    /// How often.
    pub changes: u64,
}

impl Proof {
    /// Whether it holds still.
    fn holds(self, now: Proof) -> bool {
        self.changes == now.changes && now.at.duration_since(self.at) < PROOF
    }
}

/// What a client that wants a trunk does next.
pub(super) enum Find {
    /// Uses this one.
    Use(Rc<Trunk>),
    /// Waits until another client has opened one, or failed to.
    Wait(Rc<Notify>),
    /// Opens a connection of its own, which may become a trunk.
    Open,
    /// The server could not be reached a moment ago.
    Unreachable(String),
}

#[derive(Default)]
struct State {
    trunks: HashMap<Pool, Rc<Trunk>>,
    opening: HashMap<Pool, Rc<Notify>>,
    failures: u32,
    failed: Option<Instant>,
    not_before: Option<(Instant, String)>,
}

/// The trunks of one worker.
#[derive(Default)]
pub(super) struct Pools(RefCell<State>);

impl Pools {
    /// `proven`: the server has let in this very client, and its connection was not broken since.
    pub(super) fn find(&self, pool: &Pool, proven: bool, now: Proof) -> Find {
        let state = self.0.borrow();
        let stranger = pool.user.is_none();
        if let Some(trunk) = state.trunks.get(pool)
            && !trunk.is_over()
            && (proven || (stranger && trunk.proved.get().is_some_and(|proof| proof.holds(now))))
        {
            return Find::Use(Rc::clone(trunk));
        }
        if let Some(notify) = state.opening.get(pool).filter(|_| stranger) {
            return Find::Wait(Rc::clone(notify));
        }
        self.may_connect().map_or(Find::Open, Find::Unreachable)
    }

    /// What kept the last try from succeeding, while it is too early for another one.
    pub(super) fn may_connect(&self) -> Option<String> {
        let state = self.0.borrow();
        let (until, error) = state.not_before.as_ref()?;
        (Instant::now() < *until).then(|| error.clone())
    }

    /// Says that a client opens a connection, for as long as the value lives.
    pub(super) fn opening(self: &Rc<Self>, pool: &Pool) -> Opening {
        let notify = Rc::new(Notify::new());
        self.0.borrow_mut().opening.insert(pool.clone(), Rc::clone(&notify));
        Opening {
            pools: Rc::clone(self),
            pool: pool.clone(),
            notify,
        }
    }

    /// A connection was made.
    pub(super) fn connected(&self) {
        let mut state = self.0.borrow_mut();
        state.failures = 0;
        state.not_before = None;
    }

    /// No connection was made by a try that began then. The wait is spread, so that workers do not knock in step. Of tries
    /// that hung together and failed together only the first counts: the others began before it was known.
    pub(super) fn failed(&self, begun: Instant, error: &io::Error) {
        let mut state = self.0.borrow_mut();
        if state.failed.is_some_and(|before| begun <= before) {
            return;
        }
        state.failed = Some(Instant::now());
        let wait = FIRST_WAIT.saturating_mul(1 << state.failures.min(16)).min(LONGEST_WAIT);
        let spread = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some((Instant::now() + wait.mul_f64(0.5 + spread / 2.0), error.to_string()));
    }

    /// The trunk of a pool; the one that is there stays.
    pub(super) fn get(&self, pool: &Pool) -> Option<Rc<Trunk>> {
        let state = self.0.borrow();
        state.trunks.get(pool).filter(|trunk| !trunk.is_over()).map(Rc::clone)
    }

    /// Gives up the trunks that nobody has used at so many looks in a row.
    pub(super) fn look(&self, looks: u32) {
        self.0.borrow().trunks.values().for_each(|trunk| trunk.look(looks));
    }

    /// The server is another one: trunks to the one before are given up, and nobody waits for it.
    pub(super) fn change_server(&self, number: u64) {
        self.connected();
        self.0
            .borrow()
            .trunks
            .values()
            .for_each(|trunk| trunk.change_server(number));
    }

    /// Adds a trunk.
    pub(super) fn add(&self, trunk: &Rc<Trunk>) {
        self.0.borrow_mut().trunks.insert(trunk.pool.clone(), Rc::clone(trunk));
    }

    /// Forgets a trunk, unless another one has taken its place.
    pub(super) fn remove(&self, trunk: &Rc<Trunk>) {
        let trunks = &mut self.0.borrow_mut().trunks;
        if trunks.get(&trunk.pool).is_some_and(|other| Rc::ptr_eq(other, trunk)) {
            trunks.remove(&trunk.pool);
        }
    }
}

/// A client is opening a connection.
pub(super) struct Opening {
    pools: Rc<Pools>,
    pool: Pool,
    notify: Rc<Notify>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        let opening = &mut self.pools.0.borrow_mut().opening;
        if opening
            .get(&self.pool)
            .is_some_and(|other| Rc::ptr_eq(other, &self.notify))
        {
            opening.remove(&self.pool);
        }
        self.notify.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pools: &Pools) -> Option<Duration> {
        let state = pools.0.borrow();
        let (until, _) = state.not_before.as_ref()?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    #[test]
    fn tries_that_failed_together_count_once() {
        let (pools, error) = (Pools::default(), io::Error::other("reset"));
        let begun = Instant::now();
        for _ in 0..20 {
            pools.failed(begun, &error);
        }
        assert!(wait(&pools).is_some_and(|wait| wait <= FIRST_WAIT));
        assert_eq!(pools.0.borrow().failures, 1);
    }

    #[test]
    fn each_try_behind_a_failure_waits_longer() {
        let (pools, error) = (Pools::default(), io::Error::other("refused"));
        let behind = |pools: &Pools| {
            let failed = pools.0.borrow().failed;
            failed.map_or_else(Instant::now, |failed| failed + Duration::from_nanos(1))
        };
        for _ in 0..20 {
            pools.failed(behind(&pools), &error);
        }
        // At least half of the longest wait, at most all of it.
        assert!(wait(&pools).is_some_and(|wait| wait > LONGEST_WAIT / 3 && wait <= LONGEST_WAIT));
        pools.connected();
        assert!(pools.may_connect().is_none());
        pools.failed(behind(&pools), &error);
        assert!(wait(&pools).is_some_and(|wait| wait <= FIRST_WAIT));
    }
}
