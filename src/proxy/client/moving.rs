//! How a client comes by another connection to the server: a trunk, or one of its own. Nothing of the client is under way
//! meanwhile. Every failure is told to the client; what was not sent is never taken for sent.

use std::mem;
use std::rc::Rc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::{Client, ClientCell, Upstream};
use crate::event::Time;
use crate::proxy::pools::{Find, Pools};
use crate::proxy::trunk::Trunk;
use crate::proxy::upstream::{Entered, Own, Refused, enter};
use crate::resp::{encode, texts};
use crate::session::{Handshake, Line, Next, Pool};

/// Gets the client the connection that it needs, or tells it why there is none.
pub(super) async fn get(client: &Rc<ClientCell>, line: Line) {
    if line == Line::Own {
        return own(client).await;
    }
    if client.borrow_mut().give_up_own() {
        return;
    }
    loop {
        let (pools, pool, found) = client.borrow().look_for_trunk();
        match found {
            Find::Use(trunk) => return client.borrow_mut().join(&trunk),
            Find::Wait(notify) => notify.notified().await,
            Find::Unreachable(error) => return client.borrow_mut().unreachable(&error),
            Find::Open => return open(client, &pools, pool).await,
        }
    }
}

/// Opens a connection and makes a trunk of it, unless another client was quicker, or the server wants to know first who
/// this is.
async fn open(client: &Rc<ClientCell>, pools: &Rc<Pools>, pool: Pool) {
    let opening = pools.opening(&pool);
    let entered = introduce(client).await;
    let mut client = client.borrow_mut();
    match entered {
        Ok(Entered { own, asks_login: true }) => {
            client.session.must_log_in();
            client.take_own(own);
        }
        Ok(Entered { own, .. }) => {
            client.proven = true;
            client.settle(pools, pool, own, true);
        }
        Err(refused) => client.refused(refused),
    }
    drop(opening);
}

async fn own(client: &Rc<ClientCell>) {
    // Who was held back does not hear of others' failures.
    let unreachable = client.borrow().worker.pools.may_connect();
    let was_held = client.borrow().was_held;
    if let Some(error) = unreachable.filter(|_| !was_held) {
        return client.borrow_mut().unreachable(&error);
    }
    let entered = introduce(client).await;
    let mut client = client.borrow_mut();
    match entered {
        Ok(Entered { own, asks_login }) => {
            client.proven = !asks_login;
            client.take_own(own);
        }
        Err(refused) => client.refused(refused),
    }
}

async fn introduce(client: &Rc<ClientCell>) -> Result<Entered, Refused> {
    let (worker, handshake, was_held): (_, Handshake, _) = {
        let client = client.borrow();
        (Rc::clone(&client.worker), client.session.handshake(), client.was_held)
    };
    let begun = Instant::now();
    let entered = enter(&worker.shared, handshake, was_held).await;
    match &entered {
        Err(Refused::Unreachable(error)) => worker.pools.failed(begun, error),
        // That says nothing of the server.
        Err(Refused::Crowded | Refused::Switched) => {}
        Ok(_) | Err(Refused::ByServer(_)) => worker.pools.connected(),
    }
    entered
}

impl Client {
    fn look_for_trunk(&self) -> (Rc<Pools>, Pool, Find) {
        let pool = self.session.pool();
        let found = self.worker.pools.find(&pool, self.proven, self.worker.proof());
        (Rc::clone(&self.worker.pools), pool, found)
    }

    /// A client that can do without its own connection joins a trunk, or makes one of it. Whether that was so.
    fn give_up_own(&mut self) -> bool {
        let Upstream::Own(own) = mem::replace(&mut self.upstream, Upstream::None) else {
            return false;
        };
        self.session.moved(Line::None);
        let pool = self.session.pool();
        self.proven = pool.user.is_some();
        if !self.proven {
            // Whether the server lets in somebody without a login is another question since a `RESET`, and is asked when
            // the client wants something again.
            return true;
        }
        let pools = Rc::clone(&self.worker.pools);
        self.settle(&pools, pool, own, false);
        true
    }

    /// `proof`: the server has let the client in just now.
    fn settle(&mut self, pools: &Rc<Pools>, pool: Pool, own: Own, proof: bool) {
        let trunk = pools.get(&pool).unwrap_or_else(|| {
            let named = !self.session.client_name().is_empty();
            let trunk = Trunk::start(&self.worker, pool, own, named);
            pools.add(&trunk);
            trunk
        });
        if proof {
            trunk.proved.set(Some(self.worker.proof()));
        }
        self.join(&trunk);
    }

    fn join(&mut self, trunk: &Rc<Trunk>) {
        self.upstream = Upstream::Shared(Rc::clone(trunk));
        self.go_on(Line::Shared);
    }

    fn take_own(&mut self, own: Own) {
        self.upstream = Upstream::Own(own);
        self.go_on(Line::Own);
    }

    fn go_on(&mut self, line: Line) {
        self.was_held = false;
        self.session.moved(line);
        self.session.advance(self.worker.shared.now());
    }

    /// The server does not know the client any more, or is not there.
    fn refused(&mut self, refused: Refused) {
        match refused {
            Refused::ByServer(line) => self.say_and_end(&line),
            Refused::Unreachable(_) | Refused::Crowded | Refused::Switched => self.unreachable(&refused.to_string()),
        }
    }

    /// The server is not there: the client is told so in answer to what it asked, and may ask again.
    fn unreachable(&mut self, error: &str) {
        let text = texts::upstream_unreachable(&self.worker.shared.whereabouts.to_string(), error);
        let mut line = BytesMut::new();
        encode::error(&mut line, text.as_bytes());
        if self.session.wants() != Some(Line::Shared) {
            // It wanted to begin something that takes a connection of its own.
            return self.say_and_end(&line);
        }
        self.session.moved(Line::Shared);
        let now = self.worker.shared.now();
        self.session.advance(now);
        self.answer_all(&line.freeze(), now);
        self.session.moved(Line::None);
    }

    /// Answers everything that waits to be sent, and is not sent.
    fn answer_all(&mut self, line: &Bytes, now: Time) {
        loop {
            self.session.to_upstream.clear();
            let asked = self.session.take_asked();
            if asked == 0 {
                return;
            }
            for _ in 0..asked {
                self.session.receive_upstream(line, now);
            }
        }
    }

    fn say_and_end(&mut self, line: &[u8]) {
        self.session.to_downstream.extend_from_slice(line);
        self.session.upstream_ended();
    }

    /// Takes bytes of answers that came on the shared connection. Whether the client is to be written to anew.
    pub(in crate::proxy) fn take_answers(&mut self, bytes: &[u8], now: Time) -> bool {
        if self.downstream.is_none() {
            return false;
        }
        self.session.receive_upstream(bytes, now);
        !mem::replace(&mut self.answered, true)
    }

    /// Writes the answers that came, and wakes the client's task where that is not all.
    pub(in crate::proxy) fn write_answers(&mut self) {
        self.answered = false;
        if self.downstream.is_none() {
            return;
        }
        if self.leaving {
            // They may be its last.
            return self.wake();
        }
        self.write();
        self.mind_held();
        let Next::Wait { read_downstream, .. } = self.session.next() else {
            return self.wake();
        };
        let waits = !self.session.to_downstream.is_empty() || (read_downstream && !self.reading);
        if waits || self.session.wants().is_some() {
            self.wake();
        }
    }

    /// The shared connection broke before so many answers had come. `cut_off`: the first of them had begun.
    pub(in crate::proxy) fn lose_answers(&mut self, answers: u32, cut_off: bool) {
        self.lose_trunk();
        if cut_off {
            self.session.upstream_ended();
        } else {
            let mut line = BytesMut::new();
            encode::error(&mut line, texts::UPSTREAM_BROKE.as_bytes());
            let now = self.worker.shared.now();
            let line = line.freeze();
            for _ in 0..answers {
                self.session.receive_upstream(&line, now);
            }
        }
        self.wake();
    }

    /// The shared connection is no more.
    pub(in crate::proxy) fn lose_trunk(&mut self) {
        if let Upstream::Shared(_) = self.upstream {
            self.upstream = Upstream::None;
            self.proven = false;
            self.session.moved(Line::None);
            // What it needs next it has to say anew.
            self.session.advance(self.worker.shared.now());
            self.wake();
        }
    }

    /// Whether it shares this connection.
    pub(in crate::proxy) fn is_on(&self, trunk: &Rc<Trunk>) -> bool {
        matches!(&self.upstream, Upstream::Shared(other) if Rc::ptr_eq(other, trunk))
    }
}
