//! Runs of plain requests and of plain answers: those that are passed on as they are, one like the other, most of all
//! traffic. A run is copied at once, and each of its frames costs little more than finding its end. Whatever is not plain
//! ends a run and goes its own way; so nothing is decided here that the long way would decide otherwise.

use super::answers::Sink;
use super::{BUFFER_LIMIT, STREAM_FROM, Session};
use crate::command::{self, CommandId, Keys, Role, Row};
use crate::event::Time;
use crate::lock::rule::Rules;
use crate::lock::scout::Sight;
use crate::resp::reply;
use crate::resp::request::{self, RequestScanner};

/// Names up to this length are remembered.
const NAME_MAX: usize = 15;
/// The longest head: `*64`, `$15` and such a name, each with its line end.
const HEAD_MAX: usize = 27;

/// A command as the client spelled it last, and what the table says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    name: [u8; NAME_MAX],
    /// 0: none yet.
    len: u8,
    id: CommandId,
    row: Option<&'static Row>,
    /// It has one key at most, and is merely forwarded by any connection, unless that key concerns somebody.
    plain: bool,
    head: Head,
}

/// How a plain request begins, up to its first argument, as the client wrote it: what begins so again is the same command
/// with as many arguments.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    bytes: [u8; HEAD_MAX],
    /// 0: none yet.
    len: u8,
    /// How many arguments stand behind it.
    arguments: u8,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            name: [0; NAME_MAX],
            len: 0,
            id: CommandId::OTHER,
            row: None,
            plain: false,
            head: Head::default(),
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
            self.head.len = 0;
        }
        (id, row)
    }

    /// Whether it is the last one.
    pub(super) fn is(&self, id: CommandId) -> bool {
        self.len > 0 && self.id == id
    }

    /// The length of the request at the start of `input`, if it has come whole, begins as the last plain one did, and its
    /// key concerns nobody.
    #[inline]
    fn again(&self, input: &[u8], rules: &Rules) -> Option<usize> {
        let head = self.head.bytes.get(..usize::from(self.head.len))?;
        if head.is_empty() || !input.starts_with(head) {
            return None;
        }
        let (first, len) = request::bulks(input, head.len(), self.head.arguments.into())?;
        let row = self.row?;
        let key = || input.get(first.start..first.end).unwrap_or_default();
        let concerned = match (row.keys, row.role) {
            (Keys::None, _) => false,
            (_, Role::Lock(_)) => rules.decides(key()),
            _ => rules.any_enforce() && rules.is_record(key()),
        };
        (!concerned).then_some(len)
    }

    /// Gets to know how the request at the start of `input` begins, if it is a plain one that has come whole. Whether its
    /// key concerns somebody is left to [`again`](Self::again).
    fn learn(&mut self, input: &[u8], scanner: &mut RequestScanner) -> bool {
        if !scanner.usual(input) {
            return false;
        }
        let args = scanner.args(input);
        let name = args.get(0).unwrap_or_default();
        let Some(row) = self.find(name).1 else { return false };
        let last = self.row.is_some_and(|last| std::ptr::eq(last, row));
        if !last || !self.plain || !command::arity_ok(row, args.len()) || !head_says_all(row, args.len()) {
            return false;
        }
        let Some(head) = scanner.head(input) else { return false };
        let Some(place) = self.head.bytes.get_mut(..head.len()) else {
            return false;
        };
        place.copy_from_slice(head);
        self.head.len = head.len() as u8;
        self.head.arguments = (args.len() - 1) as u8;
        scanner.next();
        true
    }
}

fn is_plain(row: &Row) -> bool {
    let one_key = matches!(row.keys, Keys::None | Keys::Range { first: 1, last: 1, .. });
    // `SORT_RO` names keys by patterns.
    one_key && row.name != "sort_ro" && command::shareable(row)
}

/// Whether the number of its arguments tells that a request looks like no lock operation, or no lock operation that has to
/// be told where no rule matches.
fn head_says_all(row: &Row, argc: usize) -> bool {
    match row.role {
        Role::Lock(idiom) => !Sight::possible(idiom, argc),
        _ => true,
    }
}

impl Session {
    /// Takes plain requests from the start of `input` for as long as they are whole, and returns how many bytes that were.
    pub(super) fn take_plain_requests(&mut self, input: &[u8], now: Time) -> usize {
        if self.raw || !self.scanner.between() || !self.may_take() || !self.plain_line() {
            return 0;
        }
        // A long one would hold up those who share the connection.
        let longest = if self.shares() { STREAM_FROM } else { usize::MAX };
        let limit = BUFFER_LIMIT.saturating_sub(self.to_upstream.len());
        let room = self.room_in_run();
        let (mut at, mut taken, mut learnt) = (0, 0, false);
        loop {
            let mut alike = 0;
            while taken + alike < room && at < limit {
                let again = self.last.again(input.get(at..).unwrap_or_default(), &self.policy.rules);
                let Some(len) = again.filter(|len| *len < longest) else {
                    break;
                };
                at += len;
                alike += 1;
            }
            if alike > 0 {
                self.pending.push_plain(self.last.id, alike, now);
                taken += alike;
            } else if learnt {
                break;
            }
            let rest = input.get(at..).unwrap_or_default();
            learnt = taken < room && at < limit && self.last.learn(rest, &mut self.scanner);
            if !learnt {
                break;
            }
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
