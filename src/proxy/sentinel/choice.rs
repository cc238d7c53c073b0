//! Which of the masters that the sentinels name is the one: the rules, without asking anybody. Each failover has a number,
//! the configuration epoch, that only grows; a sentinel that was cut off names an older one.

use super::asking::{Role, Said};
use crate::config::HostPort;

/// A master, and how new the word of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Where it is.
    pub master: HostPort,
    /// The number of the failover that made it.
    pub epoch: u64,
}

/// What one of them said, if it is newer than what is known: one sentinel is enough for that.
pub(super) fn newer(known: Option<&Known>, said: &Said) -> Option<Known> {
    let is_news = known.is_none_or(|known| said.epoch > known.epoch);
    is_news.then(|| of(said))
}

/// Another one, by whatever number, that more than half of all sentinels name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// The master that they name.
    pub on: Known,
    /// Its number is lower, and they may not have heard of the failover that made the one that is known: somebody names
    /// that one, or it is known only since a moment ago.
    pub disputed: bool,
}

/// What most of all sentinels agree on, if that is not what is known. `settled`: it is known for so long that all that
/// answer have heard of it.
pub(super) fn agreed(known: Option<&Known>, settled: bool, answers: &[Option<Said>]) -> Option<Agreed> {
    let known = known?;
    let said = || answers.iter().flatten();
    let votes = |master: &HostPort| said().filter(|said| said.master == *master).count();
    let most = said().filter(|said| said.master != known.master && 2 * votes(&said.master) > answers.len());
    let on = of(most.max_by_key(|said| said.epoch)?);
    let disputed = on.epoch < known.epoch && (!settled || votes(&known.master) > 0);
    Some(Agreed { on, disputed })
}

/// Whether a master may be left for one that most name by a lower number, by what it says itself: it is none, or it does
/// not answer. If silence were no reason, one sentinel that keeps naming a dead one would hold everybody there.
pub(super) fn may_be_left(known: &Role) -> bool {
    match known {
        Role::Other(_) | Role::Unreachable(_) => true,
        Role::Master | Role::Untold(_) => false,
    }
}

fn of(said: &Said) -> Known {
    Known {
        master: said.master.clone(),
        epoch: said.epoch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(port: u16) -> HostPort {
        let host = "h".to_owned();
        HostPort { host, port }
    }

    fn said(port: u16, epoch: u64) -> Option<Said> {
        Some(Said {
            master: host(port),
            epoch,
            quorum: 2,
            replicas: 1,
            others: 2,
            flags: "master".to_owned(),
        })
    }

    fn known(port: u16, epoch: u64) -> Known {
        Known {
            master: host(port),
            epoch,
        }
    }

    #[test]
    fn at_first_anybody_is_believed() {
        assert_eq!(newer(None, &said(1, 0).expect("it is said")), Some(known(1, 0)));
        assert_eq!(agreed(None, true, &[said(1, 0)]), None);
    }

    #[test]
    fn one_that_knows_more_is_enough_and_one_that_lies_behind_moves_nobody() {
        let now = known(2, 5);
        let newer = |said: &Option<Said>| newer(Some(&now), said.as_ref().expect("it is said"));
        assert_eq!(newer(&said(3, 6)), Some(known(3, 6)));
        assert_eq!(
            newer(&said(2, 7)),
            Some(known(2, 7)),
            "the same one, by another failover"
        );
        for behind in [said(1, 4), said(1, 5), said(1, 0)] {
            assert_eq!(newer(&behind), None);
            assert_eq!(agreed(Some(&now), true, &[behind.clone(), said(2, 5), None]), None);
            assert_eq!(agreed(Some(&now), true, &[behind, None, None]), None);
        }
    }

    #[test]
    fn most_of_all_are_believed_unless_they_may_not_have_heard_the_news() {
        let now = known(2, 5);
        let agreed = |answers: &[Option<Said>]| agreed(Some(&now), true, answers);
        let on = |port, epoch, disputed| {
            let on = known(port, epoch);
            Some(Agreed { on, disputed })
        };
        assert_eq!(agreed(&[said(3, 0), said(3, 0), None]), on(3, 0, false), "set up anew");
        assert_eq!(agreed(&[said(3, 4), said(3, 4), said(2, 5)]), on(3, 4, true), "behind");
        assert_eq!(agreed(&[said(3, 5), said(3, 5), said(2, 0)]), on(3, 5, false));
        assert_eq!(agreed(&[said(3, 0), said(3, 0), said(9, 99)]), on(3, 0, false));
        assert_eq!(agreed(&[said(3, 0), said(4, 0), None]), None, "no two agree");
        assert_eq!(agreed(&[said(2, 5), said(2, 5), said(3, 4)]), None);
        assert_eq!(agreed(&[None, None, None]), None);
    }

    #[test]
    fn right_after_a_failover_most_of_them_are_late_and_move_nobody_back() {
        let now = known(2, 1);
        let disputed = |settled, answers: &[Option<Said>]| {
            let agreed = agreed(Some(&now), settled, answers).expect("most agree");
            assert_eq!(agreed.on.master, host(1));
            agreed.disputed
        };
        // The one that told of it may be silent by now, or its word not be kept.
        for first in [said(2, 1), None, said(3, 0)] {
            assert!(disputed(false, &[first, said(1, 0), said(1, 0)]));
        }
        assert!(disputed(true, &[said(2, 1), said(1, 0), said(1, 0)]));
        assert!(!disputed(true, &[None, said(1, 0), said(1, 0)]), "set up anew");
        assert!(!disputed(false, &[said(2, 1), said(1, 1), said(1, 1)]), "not older");
    }

    #[test]
    fn nobody_stays_with_a_master_that_is_gone_because_one_names_it() {
        let answers = [said(2, 9), said(2, 9), said(1, u64::MAX)];
        let agreed = agreed(Some(&known(1, u64::MAX)), true, &answers);
        let on = known(2, 9);
        assert_eq!(agreed, Some(Agreed { on, disputed: true }));
        let said_of_itself = |role| may_be_left(&role);
        assert!(said_of_itself(Role::Other("replica".to_owned())));
        assert!(said_of_itself(Role::Unreachable("it is dead".to_owned())));
        assert!(!said_of_itself(Role::Master));
        assert!(!said_of_itself(Role::Untold("NOPERM".to_owned())));
    }
}
