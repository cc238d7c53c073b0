//! `CLIENT REPLY OFF` and `SKIP`: which answers the client gets to hear. The server is never told to be silent, since a
//! refusal (of `CLIENT REPLY` itself, of `AUTH`, of `MULTI`) could not be told from success then, and nobody could say
//! any more which answer belongs to which request. So every command is answered, and this decides, where an answer
//! begins, whether it is passed on. It follows the server's own flags (`CLIENT_REPLY_OFF`, `_SKIP`, `_SKIP_NEXT`), as
//! measured on Redis 7.0.15 and Valkey 9.1.2. Acknowledgements of subscriptions and messages are heard even then.

use super::Session;
use super::pending::{Expect, Special};
use super::requests::{Request, Taken};
use crate::resp::encode;

/// What `CLIENT REPLY` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    /// Answers to everything.
    On,
    /// No answers from here on.
    Off,
    /// No answer to this, and none to the next command.
    Skip,
}

/// Which answers are not passed on.
#[derive(Debug, Default)]
pub(super) struct Silence {
    off: bool,
    /// The command whose answer is under way, or comes next.
    this: bool,
    /// The command behind that one.
    next: bool,
}

impl Silence {
    /// Whether the answer under way is not passed on.
    pub(super) fn hush(&self) -> bool {
        self.off || self.this
    }

    /// Whether every answer is passed on, and no switch is under way.
    pub(super) fn is_off(&self) -> bool {
        !(self.off || self.this || self.next)
    }

    /// The server did as it was asked to.
    pub(super) fn switch(&mut self, switch: Switch) {
        match switch {
            Switch::On => {
                self.off = false;
                self.this = false;
            }
            Switch::Off => self.off = true,
            Switch::Skip => self.next |= !self.off,
        }
    }

    /// A command of the client is over, with or without an answer.
    pub(super) fn command_over(&mut self) {
        self.this = std::mem::take(&mut self.next);
    }

    /// `RESET` was done. If the command before was `CLIENT REPLY SKIP`, its answer is left out all the same.
    pub(super) fn reset(&mut self) {
        self.off = false;
        self.next = false;
    }
}

impl Session {
    /// Sends `CLIENT REPLY ON`, whichever was asked for: it needs the same permission, changes nothing on the server,
    /// and is answered.
    pub(super) fn switch_replies(&mut self, switch: Switch, request: &Request<'_>) -> Taken {
        if switch != Switch::On && !self.policy.rules.any_enforce() {
            return self.relay_blindly(request);
        }
        match switch {
            Switch::On => self.to_upstream.extend_from_slice(request.raw),
            Switch::Off | Switch::Skip => {
                encode::command(&mut self.to_upstream, [b"CLIENT".as_slice(), b"REPLY", b"ON"]);
            }
        }
        self.expect(
            request,
            Expect::Special(Box::new(Special::Switch(switch))),
            false,
            false,
        );
        Taken::Yes
    }
}

impl Session {
    /// Where nothing is enforced, no byte may differ from a direct connection's, and answers that do not come cannot be
    /// paired: from here on the bytes of this client are only carried. What it does with locks is not observed any more.
    fn relay_blindly(&mut self, request: &Request<'_>) -> Taken {
        if !self.pending.is_empty() {
            return Taken::NotYet;
        }
        self.to_upstream.extend_from_slice(request.raw);
        self.raw = true;
        self.blind = true;
        Taken::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_means_the_next_command_and_no_other() {
        let mut silence = Silence::default();
        silence.switch(Switch::Skip);
        silence.command_over();
        assert!(silence.hush());
        silence.command_over();
        assert!(!silence.hush());
    }

    #[test]
    fn skip_means_nothing_while_answers_are_off() {
        let mut silence = Silence::default();
        silence.switch(Switch::Off);
        silence.command_over();
        silence.switch(Switch::Skip);
        silence.command_over();
        silence.switch(Switch::On);
        assert!(!silence.hush());
        silence.command_over();
        assert!(!silence.hush());
    }

    #[test]
    fn reset_is_heard_after_off_and_not_after_skip() {
        let (mut off, mut skip) = (Silence::default(), Silence::default());
        off.switch(Switch::Off);
        skip.switch(Switch::Skip);
        for silence in [&mut off, &mut skip] {
            silence.command_over();
            silence.reset();
        }
        assert!(!off.hush());
        assert!(skip.hush());
    }
}
