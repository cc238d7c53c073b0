//! The contention shield under many threads at once, with a lock that is one word of memory: whoever is refused by it once
//! a release is over can only have been because the lock was taken again. Knows nothing of sessions and servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockward::event::Time;
use lockward::lock::rule::Rule;
use lockward::lock::shield::{Asker, Held, Shield, Spelling, Verdict};

const THREADS: usize = 8;
/// It is over after so many grants, or tries of each thread.
const GRANTS: u64 = 2_000;
const TRIES: u64 = 50_000;
/// In microseconds; the clock is the number of tries, so this is long.
const WINDOW: u64 = 1_000_000;
const KEY: &[u8] = b"lock:a";

struct World {
    shield: Arc<Shield>,
    /// The lock: odd while it is held, and one more with each grant and each release.
    lock: AtomicU64,
    /// What it was when the last release was over.
    freed: AtomicU64,
    clock: AtomicU64,
    refused: AtomicU64,
}

fn asker() -> Asker<'static> {
    Asker {
        database: 0,
        key: KEY,
        user: b"default",
        spelling: Spelling::Set,
    }
}

impl World {
    fn now(&self) -> Time {
        Time(self.clock.fetch_add(1, Ordering::SeqCst))
    }

    fn grants(&self) -> u64 {
        self.lock.load(Ordering::SeqCst) / 2
    }

    fn try_it(&self) {
        let freed = self.freed.load(Ordering::SeqCst);
        let now = self.now();
        match self.shield.judge(&asker(), WINDOW, now, now) {
            Verdict::Refuse => {
                let lock = self.lock.load(Ordering::SeqCst);
                assert!(lock > freed, "refused, and nobody has taken it since the release");
                self.refused.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
            }
            Verdict::Wait => std::thread::yield_now(),
            Verdict::Ask => self.ask(),
        }
    }

    fn ask(&self) {
        let asked = self.shield.asks(&asker(), self.now());
        let free = self.lock.load(Ordering::SeqCst);
        let taken = free.is_multiple_of(2)
            && self
                .lock
                .compare_exchange(free, free + 1, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok();
        if !taken {
            // It is held, or another one was quicker. The answer is on its way for a while.
            std::thread::yield_now();
            return self.shield.answered(&asker(), asked, Held::Contended, self.now());
        }
        self.shield.answered(&asker(), asked, Held::Granted(None), self.now());
        std::thread::yield_now();
        let bar = self.shield.bars(std::iter::once(KEY));
        std::thread::yield_now();
        self.lock.fetch_add(1, Ordering::SeqCst);
        drop(bar);
        self.freed.fetch_max(free + 2, Ordering::SeqCst);
    }
}

#[test]
fn behind_a_release_nobody_is_refused_for_what_was_before_it() {
    let rule = Rule {
        contention_shield_ms: Some(1_000),
        ..Rule::new("lock:*")
    };
    let world = World {
        shield: Arc::new(Shield::new(&[rule])),
        lock: AtomicU64::new(0),
        freed: AtomicU64::new(0),
        clock: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut tries = 0..TRIES;
                while world.grants() < GRANTS && tries.next().is_some() {
                    world.try_it();
                }
            });
        }
    });
    let (grants, refused) = (world.grants(), world.refused.into_inner());
    println!("{grants} grants, {refused} refused");
    assert!(grants > 10 && refused > 10, "{grants} grants, {refused} refused");
}
