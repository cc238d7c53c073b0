//! Where the server is at the moment: at the place that the configuration names, or where the sentinels found the master
//! last. Everybody who connects asks here, and hears here when the server is another one. Asks no sentinel itself.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::config::{Place, Target};

/// What is known.
#[derive(Clone, Debug)]
struct Sight {
    /// `None`: nobody knows the master yet.
    place: Option<Arc<Place>>,
    /// Another one for each other server.
    number: u64,
    /// Why nobody knows it.
    trouble: Option<Arc<str>>,
}

/// Where the server is, as those see it who connect to it.
#[derive(Clone)]
pub struct Whereabouts {
    target: Arc<Target>,
    sight: watch::Receiver<Sight>,
    /// Makes the sentinels be asked at once; `None`: there are none.
    doubt: Option<Arc<Notify>>,
}

/// The other side: whoever asks the sentinels says here what he found.
pub(super) struct Finder {
    sight: watch::Sender<Sight>,
    doubt: Arc<Notify>,
}

impl From<Place> for Whereabouts {
    /// A server that stays where it is.
    fn from(place: Place) -> Whereabouts {
        let (_, sight) = watch::channel(Sight {
            place: Some(Arc::new(place.clone())),
            number: 1,
            trouble: None,
        });
        Whereabouts {
            target: Arc::new(place.into()),
            sight,
            doubt: None,
        }
    }
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sight.borrow().place {
            Some(place) => place.fmt(f),
            None => self.target.fmt(f),
        }
    }
}

impl Whereabouts {
    /// A master that somebody looks for.
    pub(super) fn sought(target: &Target) -> (Finder, Whereabouts) {
        let (publish, sight) = watch::channel(Sight {
            place: None,
            number: 0,
            trouble: None,
        });
        let doubt = Arc::new(Notify::new());
        let finder = Finder {
            sight: publish,
            doubt: Arc::clone(&doubt),
        };
        let whereabouts = Whereabouts {
            target: Arc::new(target.clone()),
            sight,
            doubt: Some(doubt),
        };
        (finder, whereabouts)
    }

    /// Whether it can change.
    pub(super) fn is_fixed(&self) -> bool {
        self.doubt.is_none()
    }

    /// The number of the server that is the right one now. It differs from that of every other one.
    pub(super) fn number(&self) -> u64 {
        self.sight.borrow().number
    }

    /// Where to connect to now, and that server's number.
    ///
    /// # Errors
    /// Why nobody knows.
    pub(super) fn now(&self) -> Result<(Arc<Place>, u64), String> {
        let sight = self.sight.borrow();
        match (&sight.place, &sight.trouble) {
            (Some(place), _) => Ok((Arc::clone(place), sight.number)),
            (None, Some(trouble)) => Err(trouble.to_string()),
            (None, None) => Err("the sentinels have not answered yet".to_owned()),
        }
    }

    /// The same, where the first answer of the sentinels is waited for.
    ///
    /// # Errors
    /// Why nobody knows.
    pub(super) async fn known(&self, limit: Duration) -> Result<(Arc<Place>, u64), String> {
        let mut sight = self.sight.clone();
        let told = sight.wait_for(|sight| sight.place.is_some() || sight.trouble.is_some());
        // If nothing was told in time, that is what is said.
        let _ = timeout(limit, told).await;
        self.now()
    }

    /// Waits until the server of this number is not the right one any more.
    pub(super) async fn moved_from(&self, number: u64) {
        if !self.is_fixed() {
            let mut sight = self.sight.clone();
            // Nobody seeks any more only at the end.
            if sight.wait_for(|sight| sight.number != number).await.is_ok() {
                return;
            }
        }
        pending().await
    }

    /// The server did not answer, or is no master: the sentinels may know of another one.
    pub(super) fn doubt(&self) {
        if let Some(doubt) = &self.doubt {
            doubt.notify_one();
        }
    }
}

impl Finder {
    /// What wakes whoever asks the sentinels.
    pub(super) fn doubts(&self) -> Arc<Notify> {
        Arc::clone(&self.doubt)
    }

    /// Whether anybody wants to know.
    pub(super) fn is_heard(&self) -> bool {
        !self.sight.is_closed()
    }

    /// The master is here from now on.
    pub(super) fn found(&self, place: Place) {
        self.sight.send_modify(|sight| {
            sight.place = Some(Arc::new(place));
            sight.number += 1;
            sight.trouble = None;
        });
    }

    /// Nobody has found a master yet, and this is why.
    pub(super) fn not_found(&self, why: &str) {
        self.sight.send_if_modified(|sight| {
            let news = sight.place.is_none() && sight.trouble.as_deref() != Some(why);
            if news {
                sight.trouble = Some(why.into());
            }
            news
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostPort;

    fn place(port: u16) -> Place {
        let host = "h".to_owned();
        Place::Tcp(HostPort { host, port })
    }

    fn sought() -> (Finder, Whereabouts) {
        Whereabouts::sought(&place(26379).into())
    }

    #[tokio::test]
    async fn a_master_is_waited_for_and_its_successor_heard_of() {
        let (finder, whereabouts) = sought();
        assert!(whereabouts.now().is_err());
        finder.not_found("nobody knows");
        assert_eq!(
            whereabouts.known(Duration::from_secs(9)).await,
            Err("nobody knows".to_owned())
        );
        finder.found(place(1));
        let (first, number) = whereabouts.now().expect("a master");
        assert_eq!((*first).clone(), place(1));
        let next = tokio::spawn({
            let whereabouts = whereabouts.clone();
            async move { whereabouts.moved_from(number).await }
        });
        finder.not_found("they are all away");
        assert_eq!(whereabouts.to_string(), "h:1", "the one that is known stays");
        finder.found(place(2));
        next.await.expect("it ends");
        assert_ne!(whereabouts.number(), number);
    }

    #[tokio::test]
    async fn a_server_that_stays_where_it_is_never_moves() {
        let whereabouts = Whereabouts::from(place(1));
        whereabouts.doubt();
        let moved = whereabouts.moved_from(whereabouts.number() + 1);
        assert!(timeout(Duration::from_millis(20), moved).await.is_err());
    }
}
