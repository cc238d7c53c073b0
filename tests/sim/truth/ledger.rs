//! One owner's account on one lock: what is owed, and since when. Numbers only; who may do what is decided beside it.

/// An acquire that ended without its release.
#[derive(Clone, Debug)]
pub struct Owing {
    /// 0: nobody will release it, lockward only cannot know.
    pub incarnation: u64,
    pub client: usize,
    pub since: i64,
    /// Another task's release has paid it under this lease, which is still there: it is not forgotten before that lease
    /// has ended, since then a debt comes back, be it this or the lease's own.
    pub paid_under: Option<u64>,
}

/// One owner's account on one lock.
#[derive(Clone, Debug, Default)]
pub struct Account {
    pub owing: Vec<Owing>,
    /// When the oldest debt began that can still be on lockward's books.
    pub busy_since: Option<i64>,
    /// The connections of the leases that have expired since.
    pub expired_of: Vec<usize>,
    /// Something happened that no accounting can follow: only what holds between owners is checked.
    pub tainted: bool,
}

impl Account {
    /// A lease is over: what was paid under it is owed again.
    pub fn owed_again(&mut self, incarnation: u64, since: i64) {
        for owing in &mut self.owing {
            if owing.paid_under == Some(incarnation) {
                (owing.paid_under, owing.since) = (None, since);
            }
        }
    }

    /// One owes no more. What remains on lockward's books are the younger debts, whoever has paid: the oldest goes first.
    pub fn pay(&mut self, incarnation: u64) {
        let before = self.owing.len();
        let mut times: Vec<i64> = self.owing.iter().map(|owing| owing.since).collect();
        times.sort_unstable();
        self.owing.retain(|owing| owing.incarnation != incarnation);
        self.owing.sort_by_key(|owing| owing.since);
        let paid = before - self.owing.len();
        for (owing, since) in self.owing.iter_mut().zip(times.into_iter().skip(paid)) {
            owing.since = since;
        }
    }
}
