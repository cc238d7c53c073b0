//! What a client has lying in lockward, told to who counts it for all, and the end of a client that has too much. How much
//! is too much for all together, and whose turn it is, is decided in `proxy/held.rs`.

use std::mem;

use super::Client;
use crate::proxy::held::Held;
use crate::session::HOLD_LIMIT;

impl Client {
    /// Tells how much it has lying here, and closes it if that has become too much.
    pub(super) fn mind_held(&mut self) {
        let held = Held::counted(self.session.held());
        let before = mem::replace(&mut self.held, held);
        if held == before {
            return;
        }
        let shared = &self.worker.shared;
        let all = shared.held.change(before, held);
        // On a shared connection the answers of others stand behind its own.
        let holds_up = !self.has_own() && self.session.held_for_client() > HOLD_LIMIT;
        if held > before && (holds_up || all > shared.limits.load().buffered) {
            match holds_up || shared.held.is_large(held) {
                true => self.held_too_much(),
                false => shared.held.is_crowded(),
            }
        }
    }

    fn held_too_much(&mut self) {
        let shared = &self.worker.shared;
        shared.door.held_too_much(shared, self.session.connection(), self.held);
        self.session.downstream_lost();
        self.wake();
    }

    /// How much it has lying here, as far as that counts.
    pub(in crate::proxy) fn held(&self) -> usize {
        self.held
    }

    /// All clients together have too much lying here, and this one has most: it goes.
    pub(in crate::proxy) fn make_room(&mut self) {
        let shared = &self.worker.shared;
        if shared.held.bytes() > shared.limits.load().buffered && shared.held.is_large(self.held) {
            self.held_too_much();
        }
    }
}
