//! Publish and subscribe: how many channels the client has, told by the server's acknowledgements, and which frames
//! answer nothing. Keeps no names.

use super::Session;
use super::pending::{Expect, Special};
use crate::command::Channels;
use crate::resp::frame;
use crate::resp::number::integer;

/// How many channels, patterns and shard channels are subscribed.
#[derive(Default)]
pub(super) struct Subscriptions {
    plain: u64,
    patterns: u64,
    shards: u64,
}

/// One acknowledgement: of which family, and the count that the server gives in it.
struct Acknowledged {
    channels: Channels,
    total: u64,
}

/// A short word as the first element: what does the frame say?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// `message`, `pmessage`, `smessage`: answers nothing.
    Message,
    /// `subscribe` and its sisters.
    Acknowledgement,
    /// `invalidate`.
    Invalidate,
    /// Anything else.
    Other,
}

impl Said {
    pub(super) fn from_word(word: &[u8]) -> Said {
        match word {
            b"message" | b"pmessage" | b"smessage" => Said::Message,
            b"subscribe" | b"psubscribe" | b"ssubscribe" | b"unsubscribe" | b"punsubscribe" | b"sunsubscribe" => {
                Said::Acknowledgement
            }
            b"invalidate" => Said::Invalidate,
            _ => Said::Other,
        }
    }
}

impl Subscriptions {
    pub(super) fn any(&self) -> bool {
        self.plain + self.patterns + self.shards > 0
    }

    fn of(&self, channels: Channels) -> u64 {
        match channels {
            Channels::Plain => self.plain,
            Channels::Pattern => self.patterns,
            Channels::Shard => self.shards,
        }
    }

    /// The server counts channels and patterns together, and shard channels by themselves.
    fn note(&mut self, said: &Acknowledged) {
        match said.channels {
            Channels::Plain => self.plain = said.total.saturating_sub(self.patterns),
            Channels::Pattern => self.patterns = said.total.saturating_sub(self.plain),
            Channels::Shard => self.shards = said.total,
        }
    }
}

impl Session {
    /// Whether the next answer due is an acknowledgement.
    pub(super) fn awaits_acknowledgement(&self) -> bool {
        match self.current() {
            Some(Expect::Special(special)) => matches!(**special, Special::Acknowledge(_)),
            _ => false,
        }
    }

    /// A whole acknowledgement has come. Returns whether it was the last one that the current command asked for.
    pub(super) fn acknowledge(&mut self, frame: &[u8]) -> bool {
        let Some(said) = read(frame) else { return false };
        let before = self.subscriptions.of(said.channels);
        self.subscriptions.note(&said);
        let Some(Expect::Special(special)) = self.current_mut() else {
            return false;
        };
        let Special::Acknowledge(due) = &mut **special else {
            return false;
        };
        if due.channels != said.channels {
            return false;
        }
        let left = due.left.unwrap_or(before).max(1) - 1;
        due.left = Some(left);
        left == 0
    }
}

/// Reads `[word, channel, count]`.
fn read(frame: &[u8]) -> Option<Acknowledged> {
    let mut elements = frame::elements(frame)?;
    let word = frame::bulk(elements.next()?)?;
    elements.next()?;
    let total = u64::try_from(integer(frame::bulk(elements.next()?)?)?).ok()?;
    let channels = match word.first() {
        Some(b'p') => Channels::Pattern,
        Some(b's') if word.starts_with(b"ss") || word.starts_with(b"sunsub") => Channels::Shard,
        _ => Channels::Plain,
    };
    Some(Acknowledged { channels, total })
}
