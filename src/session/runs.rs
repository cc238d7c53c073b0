//! Runs of plain requests and of plain answers: those that are passed on as they are, one like the other, most of all
//! traffic. A run is copied at once, and each of its frames costs little more than finding its end. Whatever is not plain
//! ends a run and goes its own way; so nothing is decided here that the long way would decide otherwise.

use super::answers::Sink;
use super::{BUFFER_LIMIT, STREAM_FROM, Session};
use crate::command::{self, CommandId, Keys, Role, Row};
use crate::event::Time;
use crate::resp::reply;

/// Names up to this length are remembered.
const NAME_MAX: usize = 15;

/// A command as the client spelled it last, and what the table says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    name: [u8; NAME_MAX],
    /// 0: none yet.
    len: u8,
    id: CommandId,
    row: Option<&'static Row>,
    /// It is merely forwarded, by any connection, and has one key at most.
    plain: bool,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            name: [0; NAME_MAX],
            len: 0,
            id: CommandId::OTHER,
            row: None,
            plain: false,
        }
    }
}

impl Known {
    /// The command of this name, which becomes the last one if the table knows it.
    #[inline]
    pub(super) fn find(&mut self, name: &[u8]) -> (CommandId, Option<&'static Row>) {
        if self.len > 0 && self.name.get(..usize::from(self.len)) == Some(name) {
            return (self.id, self.row);
        }
        let (id, row) = command::lookup(name);
        if let (Some(row), Some(place)) = (row, self.name.get_mut(..name.len())) {
            place.copy_from_slice(name);
            self.len = name.len() as u8;
            self.id = id;
            self.row = Some(row);
            self.plain = is_plain(row);
        }
        (id, row)
    }

    /// The row of a plain command of this name, which is the last one then; with a number of arguments that it can have.
    #[inline]
    fn plain(&mut self, name: &[u8], argc: usize) -> Option<&'static Row> {
        let (_, row) = self.find(name);
        row.filter(|row| {
            self.plain && self.row.is_some_and(|last| std::ptr::eq(last, *row)) && command::arity_ok(row, argc)
        })
    }

    /// Whether it is the last one.
    pub(super) fn is(&self, id: CommandId) -> bool {
        self.len > 0 && self.id == id
    }
}

fn is_plain(row: &Row) -> bool {
    let one_key = matches!(row.keys, Keys::None | Keys::Range { first: 1, last: 1, .. });
    // `SORT_RO` names keys by patterns.
    row.role == Role::Forward && one_key && row.name != "sort_ro" && command::shareable(row)
}

impl Session {
    /// Takes plain requests from the start of `input` for as long as they are whole, and returns how many bytes that were.
    pub(super) fn take_plain_requests(&mut self, input: &[u8], now: Time) -> usize {
        if self.raw || self.streaming || !self.may_take() || !self.plain_line() {
            return 0;
        }
        let guard = self.policy.rules.any_enforce().then_some(&self.policy.rules);
        let room = self.room_in_run();
        let (mut at, mut taken) = (0, 0);
        while taken < room && self.to_upstream.len() + at < BUFFER_LIMIT {
            let rest = input.get(at..).unwrap_or_default();
            if !self.scanner.usual(rest) {
                break;
            }
            let args = self.scanner.args(rest);
            let Some(row) = self.last.plain(args.get(0).unwrap_or_default(), args.len()) else {
                break;
            };
            // A long one would hold up those who share the connection.
            if self.shares() && self.scanner.end() >= STREAM_FROM {
                break;
            }
            let record = |key| guard.is_some_and(|rules| rules.is_record(key));
            if command::only_key(row, args).is_some_and(record) {
                break;
            }
            self.pending.push_plain(self.last.id, now);
            at += self.scanner.end();
            taken += 1;
            self.scanner.next();
        }
        if taken > 0 {
            self.gated = false;
            self.waits_since = None;
            self.to_upstream.extend_from_slice(input.get(..at).unwrap_or_default());
            self.asked(taken);
        }
        at
    }

    /// Takes plain answers to plain requests from the start of `input`, and returns how many bytes that were.
    pub(super) fn take_plain_answers(&mut self, input: &[u8], limit: usize, now: Time) -> usize {
        let listening = self.monitoring || self.subscriptions.any() || !self.silence.is_off();
        if self.sink != Sink::Idle || self.elements.is_some() || self.transaction.is_open() || listening {
            return 0;
        }
        let mut at = 0;
        while !self.pending.has_specials() && self.to_downstream.len() + at < limit {
            let due = self.pending.plain_at_front();
            let mut count = 0;
            while count < due && self.to_downstream.len() + at < limit {
                let Some(len) = input.get(at..).and_then(reply::usual) else {
                    break;
                };
                at += len;
                count += 1;
            }
            if count == 0 {
                break;
            }
            let Some(done) = self.pending.pop_plain(count) else {
                break;
            };
            self.error = false;
            self.stayed(&done, now);
            self.note_settled(&done, now);
            if count < due {
                break;
            }
        }
        if at > 0 {
            self.to_downstream
                .extend_from_slice(input.get(..at).unwrap_or_default());
            if self.pending.is_empty() {
                self.in_transaction = false;
                self.pending.settle();
            }
        }
        at
    }
}
