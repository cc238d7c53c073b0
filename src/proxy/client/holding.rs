//! A client that is held back while the server is restarted or switched. If its own connection to the server breaks
//! meanwhile and nothing of it depends on that one, it gets another when it goes on, and does not notice.

use std::future::Future;

use tokio::time::sleep;

use super::{Client, LOOK_AGAIN, Upstream};
use crate::event::Time;
use crate::proxy::pausing::Census;
use crate::proxy::stream::Stream;
use crate::session::Line;

/// Whether a client that has just come, and from whom nobody reads yet, hangs up before it is let in.
pub(super) async fn hangs_up_before(downstream: &Stream, let_in: impl Future<Output = ()>) -> bool {
    let gone = async {
        while !downstream.is_hung_up() {
            sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        biased;
        () = let_in => false,
        () = gone => true,
    }
}

impl Client {
    /// Sends nothing new to the server, or goes on.
    pub(in crate::proxy) fn hold(&mut self, held: bool, now: Time) {
        self.session.hold(held);
        if !held {
            // The time did not run against it.
            self.active = now;
            self.was_held = matches!(self.upstream, Upstream::None);
            self.session.advance(now);
        }
        self.wake();
    }

    /// Notices whether the client has hung up meanwhile. What it has sent before is kept: it may only have said that it
    /// sends no more, and wait for the answers.
    pub(in crate::proxy) fn look_after(&mut self) {
        let gone = || self.downstream.as_ref().is_some_and(Stream::is_hung_up);
        if self.session.waits_empty_handed() && gone() {
            // The task reads what is there: either that or the end.
            self.reading = true;
            self.wake();
        }
    }

    /// Adds itself to those who are under way, if it is.
    pub(in crate::proxy) fn count(&self, census: &mut Census) {
        if self.session.is_under_way() || self.moving {
            census.under_way += 1;
        } else if self.session.is_blocked() {
            census.blocked += 1;
        }
    }

    /// The connection of its own has broken: whether it can do without until it goes on.
    pub(super) fn outlives_own(&mut self) -> bool {
        let can = !self.leaving && self.session.may_lose_line();
        if can {
            self.upstream = Upstream::None;
            if self.worker.shares() {
                // What it needs next it has to say anew.
                self.proven = false;
                self.session.moved(Line::None);
            }
        }
        can
    }

    /// Whether it has something to send and lost the connection for it.
    pub(super) fn lacks_own(&self) -> bool {
        matches!(self.upstream, Upstream::None) && !self.session.to_upstream.is_empty()
    }
}
