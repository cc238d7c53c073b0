//! Which of the masters that the sentinels name is the one: the rules, without asking anybody. Each failover has a number,
//! the configuration epoch, that only grows; a sentinel that was cut off names an older one.

use super::asking::Said;
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

/// Another one that is not newer by its number, where more than half of all sentinels name it and nobody the one that is
/// known: then they have lost their memory, or were set up anew.
pub(super) fn agreed(known: Option<&Known>, answers: &[Option<Said>]) -> Option<Known> {
    let known = known?;
    let said = || answers.iter().flatten();
    if said().any(|said| said.master == known.master) {
        return None;
    }
    let newest = said().max_by_key(|said| said.epoch)?;
    let votes = said().filter(|said| said.master == newest.master).count();
    (2 * votes > answers.len()).then(|| of(newest))
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
        assert_eq!(agreed(None, &[said(1, 0)]), None);
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
            assert_eq!(agreed(Some(&now), &[behind.clone(), said(2, 5), None]), None);
            assert_eq!(agreed(Some(&now), &[behind, None, None]), None);
        }
    }

    #[test]
    fn sentinels_that_were_set_up_anew_are_believed_when_most_of_all_agree() {
        let now = known(2, 5);
        assert_eq!(agreed(Some(&now), &[said(3, 0), said(3, 0), None]), Some(known(3, 0)));
        assert_eq!(
            agreed(Some(&now), &[said(3, 1), said(3, 1), said(2, 5)]),
            None,
            "one still names it"
        );
        assert_eq!(
            agreed(Some(&now), &[said(3, 0), said(4, 0), None]),
            None,
            "no two agree"
        );
        assert_eq!(agreed(Some(&now), &[None, None, None]), None);
    }
}
