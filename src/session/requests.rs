//! The way in: requests are cut out of the client's bytes, looked at once, and sent on with a note of how their answer
//! is to be read. Does not know what an answer looks like.

use bytes::{Bytes, BytesMut};

use super::pending::{Expect, Notice, Pending, Protocol, Special};
use super::{BUFFER_LIMIT, STREAM_FROM, Session, Stage};
use crate::command::{self, CommandId, Role, Row};
use crate::event::Time;
use crate::resp::announced::{self, SIGNATURE};
use crate::resp::request::{RequestError, RequestScanner, Scanned};
use crate::resp::{Args, encode, texts, word};

/// How every TLS connection begins: a handshake record, in one of its versions.
const TLS_HELLO: &[u8] = &[0x16, 0x03];

/// A request as it came, and what the table knows of it.
pub(super) struct Request<'a> {
    /// The bytes as they came.
    pub raw: &'a [u8],
    /// Its arguments.
    pub args: Args<'a>,
    /// Which command.
    pub id: CommandId,
    /// More bytes of the client stand behind it.
    pub more: bool,
    /// When it was complete.
    pub now: Time,
}

/// What became of a request.
#[derive(PartialEq, Eq)]
pub(super) enum Taken {
    /// It is on its way.
    Yes,
    /// It has to wait until every answer due has come.
    NotYet,
}

impl Session {
    /// Takes what requests it can from `input` and returns how many bytes that were.
    pub(super) fn take_requests(&mut self, input: &[u8], now: Time) -> usize {
        let mut at = 0;
        loop {
            at += self.take_plain_requests(input.get(at..).unwrap_or_default(), now);
            let rest = input.get(at..).unwrap_or_default();
            if rest.is_empty() || !self.may_take() {
                return at;
            }
            let mut scanner = std::mem::take(&mut self.scanner);
            let taken = if self.raw {
                self.to_upstream.extend_from_slice(rest);
                rest.len()
            } else if self.streaming {
                self.stream_on(&mut scanner, rest, now)
            } else {
                self.take_next(&mut scanner, rest, now)
            };
            self.scanner = scanner;
            if taken == 0 {
                return at;
            }
            at += taken;
        }
    }

    /// Nothing was asked yet.
    fn is_new(&self) -> bool {
        self.heard == Time::default() && self.pending.is_empty()
    }

    pub(super) fn may_take(&self) -> bool {
        !self.held_back()
            && !matches!(self.stage, Stage::Ended { .. })
            && self.accepts_requests()
            && self.to_upstream.len() < BUFFER_LIMIT
            && self.pending.has_room()
            && self.line_has_room()
    }

    /// Requests that came before the end of the stream still count; those behind a QUIT or an error do not.
    fn accepts_requests(&self) -> bool {
        !self.deaf && !self.is_held()
    }

    /// Takes one request, or what may go on of it before it is complete. Returns the bytes taken; 0: it has to wait.
    fn take_next(&mut self, scanner: &mut RequestScanner, rest: &[u8], now: Time) -> usize {
        if let Some(0x16 | b'\r') = rest.first()
            && self.is_new()
            && let Some(taken) = self.take_foreign(rest)
        {
            return taken;
        }
        match scanner.scan(rest) {
            Ok(Scanned::NeedMore) => self.begin_stream(scanner, rest, now),
            Ok(Scanned::Empty { len }) => {
                if self.has_own_line() {
                    self.to_upstream.extend_from_slice(rest.get(..len).unwrap_or_default());
                }
                self.push(Pending::new(
                    CommandId::OTHER,
                    Expect::Special(Box::new(Special::Blank)),
                    now,
                ));
                scanner.next();
                len
            }
            Ok(Scanned::Request { len }) => {
                let raw = rest.get(..len).unwrap_or_default();
                let args = scanner.args(raw);
                let canonical = scanner.canonical() && len < STREAM_FROM;
                let taken = if scanner.ambiguous() {
                    let mut array = BytesMut::new();
                    encode::command(&mut array, args.iter().collect::<Vec<_>>());
                    self.take_request(&array, args, canonical, rest.len() > len, now)
                } else {
                    self.take_request(raw, args, canonical, rest.len() > len, now)
                };
                if taken == Taken::NotYet {
                    self.gated = true;
                    return 0;
                }
                scanner.next();
                len
            }
            Err(error) => {
                self.broken(&error, now);
                rest.len()
            }
        }
    }

    /// What no client begins with. To a server it would be the beginning of a line, whose end may never come, or
    /// commands full of noise. Returns the bytes taken; 0: more must come before anybody can say what it is. `None`:
    /// it is nothing of the kind.
    fn take_foreign(&mut self, rest: &[u8]) -> Option<usize> {
        let protocol = if rest.starts_with(TLS_HELLO) {
            Protocol::Tls
        } else if rest.starts_with(SIGNATURE) {
            Protocol::ProxyHeader
        } else if SIGNATURE.starts_with(rest) {
            // Empty lines, as far as it goes: nobody waits for an answer.
            return Some(0);
        } else {
            return None;
        };
        self.close_foreign(protocol);
        Some(rest.len())
    }

    /// Nothing is taken from a client that speaks another protocol.
    fn close_foreign(&mut self, protocol: Protocol) {
        self.notices.push(Notice::Foreign(protocol));
        self.turn_deaf();
    }

    fn stream_on(&mut self, scanner: &mut RequestScanner, rest: &[u8], now: Time) -> usize {
        match scanner.scan_stream(rest) {
            Ok(step) => {
                self.to_upstream
                    .extend_from_slice(rest.get(..step.taken).unwrap_or_default());
                if step.done {
                    self.streaming = false;
                    // A streamed request's time begins when its last byte came.
                    self.stamp_youngest(now);
                    scanner.next();
                }
                step.taken
            }
            Err(error) => {
                self.broken_stream(&error);
                rest.len()
            }
        }
    }

    /// The client broke the protocol: it hears what the server would have said, after its answers due, and no more.
    fn broken(&mut self, error: &RequestError, now: Time) {
        if *error == RequestError::CrossProtocol {
            self.notices.push(Notice::Foreign(Protocol::Http));
        }
        if let Some(line) = error.reply() {
            let words = Special::LastWords(Bytes::from(line));
            self.push(Pending::new(CommandId::OTHER, Expect::Special(Box::new(words)), now));
        }
        self.turn_deaf();
    }

    /// The same in the middle of a request that the server has the beginning of. It waits for the line of the next
    /// argument; what the client sent there must not reach it, in case it reads it more kindly than we do.
    fn broken_stream(&mut self, error: &RequestError) {
        self.streaming = false;
        self.to_upstream.extend_from_slice(b"!\r\n");
        let bytes = Bytes::from(error.reply().unwrap_or_default());
        if let Some(youngest) = self.pending.youngest_mut() {
            let errors_too = true;
            youngest.expect = Expect::Special(Box::new(Special::Replace { bytes, errors_too }));
        }
        self.turn_deaf();
    }

    fn take_request(&mut self, raw: &[u8], args: Args<'_>, canonical: bool, more: bool, now: Time) -> Taken {
        self.gated = false;
        let Some(name) = args.get(0) else {
            self.to_upstream.extend_from_slice(raw);
            return Taken::Yes;
        };
        let (id, row) = self.last.find(name);
        // No name of the table has a NUL byte.
        let (id, row) = if row.is_none() {
            if announced::is_line(raw) && self.is_new() {
                self.close_foreign(Protocol::ProxyHeader);
                return Taken::Yes;
            }
            command::lookup(word(name))
        } else {
            (id, row)
        };
        if !self.fits_line(row, args, canonical, now) {
            return Taken::NotYet;
        }
        let request = Request {
            raw,
            args,
            id,
            more,
            now,
        };
        if !self.last.is(id) && memchr::memchr(0, name).is_some() {
            // Some such names run as the command before the NUL byte, most as none: nobody could tell which reply is due.
            return self.refuse(&request, texts::NAME_WITH_NUL);
        }
        match row {
            // EXEC ends a transaction even if the server does not like its arguments.
            Some(row) if command::arity_ok(row, args.len()) || row.role == Role::Exec => self.dispatch(row, &request),
            // Unknown to us, or wrong: the server knows what to say.
            _ => self.forward(&request, false),
        }
    }

    fn dispatch(&mut self, row: &'static Row, request: &Request<'_>) -> Taken {
        if self.policy.rules.any_enforce() && (self.names_record(row, request) || self.looks_up_records(row, request)) {
            return self.refuse(request, texts::RECORD_KEY);
        }
        match row.role {
            Role::Forward if self.shares() && matches!(row.name, "acl" | "config") => self.rights_admin(request),
            Role::Forward => self.forward(request, false),
            Role::Blocking => self.blocking_command(row, request),
            Role::Lock(_) => self.lock_command(row, request),
            Role::Eval => self.script_command(row, request),
            Role::Keys | Role::Scan => self.listing(row.role, request),
            Role::Subscribe(_) | Role::Unsubscribe(_) => self.subscription(row.role, request),
            Role::Multi => self.open_transaction(request),
            Role::Exec | Role::Discard => self.close_transaction(row.role, request),
            Role::Watch | Role::Unwatch => self.watch(row, request),
            Role::Auth | Role::Hello | Role::Reset | Role::Select => self.change_identity(row.role, request),
            Role::Client => self.client_command(request),
            Role::Script => self.script_admin(request),
            Role::Flush | Role::SwapDb => self.flush(row.role, request),
            Role::Monitor => self.monitor(request),
            Role::Quit => self.quit(request),
            Role::Replication => self.replication(request),
            Role::Lockward => self.own_command(request),
        }
    }

    fn names_record(&self, row: &Row, request: &Request<'_>) -> bool {
        let rules = &self.policy.rules;
        if let Some(key) = command::only_key(row, request.args) {
            return rules.is_record(key);
        }
        command::keys(row, request.args)
            .filter_map(|index| request.args.get(index))
            .any(|key| rules.is_record(key))
    }

    /// `SORT … BY pattern GET pattern` reads keys that it only describes. A pattern that begins otherwise may lead to a
    /// record still, by elements made for that; as a script may that names no key.
    fn looks_up_records(&self, row: &Row, request: &Request<'_>) -> bool {
        let prefix = self.policy.prefix.as_bytes();
        matches!(row.name, "sort" | "sort_ro")
            && request
                .args
                .iter()
                .skip(2)
                .any(|word| word.starts_with(prefix) && word.contains(&b'*'))
    }

    /// Sends the request on as it came; one reply will come back as it is.
    pub(super) fn forward(&mut self, request: &Request<'_>, blocking: bool) -> Taken {
        self.to_upstream.extend_from_slice(request.raw);
        self.expect(request, Expect::Forward, blocking, false);
        Taken::Yes
    }

    /// Sends the request on as it came; its answer is read specially.
    pub(super) fn special(&mut self, request: &Request<'_>, special: Special) -> Taken {
        self.to_upstream.extend_from_slice(request.raw);
        self.expect(request, Expect::Special(Box::new(special)), false, false);
        Taken::Yes
    }

    /// Inside a transaction nothing blocks; unless the server has refused the transaction.
    fn blocking_command(&mut self, row: &Row, request: &Request<'_>) -> Taken {
        let waits = command::may_wait(row, request.args);
        self.to_upstream.extend_from_slice(request.raw);
        self.push(Pending {
            waits,
            blocking: waits && !self.in_transaction,
            ..Pending::new(request.id, Expect::Forward, request.now)
        });
        Taken::Yes
    }

    /// Notes what the answer to a request that was just sent will be.
    pub(super) fn expect(&mut self, request: &Request<'_>, expect: Expect, blocking: bool, lock: bool) {
        self.push(Pending {
            lock,
            blocking,
            ..Pending::new(request.id, expect, request.now)
        });
    }

    pub(super) fn push(&mut self, pending: Pending) {
        self.ask(&pending);
        self.waits_since = None;
        self.pending.push(pending);
        if self.pending.has_specials() {
            self.settle_unanswered();
        }
    }

    /// Refuses a request with an error of ours, in its turn. The server is asked something harmless in its place, so
    /// that a client that has not logged in is told that first. Inside a transaction it is asked something that it
    /// refuses too, so that EXEC aborts as it would after an error of its own.
    pub(super) fn refuse(&mut self, request: &Request<'_>, text: &str) -> Taken {
        let mut line = BytesMut::new();
        encode::error(&mut line, text.as_bytes());
        // No server knows the second one, so none queues it.
        let asked: &[u8] = if self.in_transaction {
            b"LOCKWARD.REFUSED"
        } else {
            b"PING"
        };
        encode::command(&mut self.to_upstream, [asked]);
        let special = Special::Replace {
            bytes: line.freeze(),
            errors_too: true,
        };
        self.expect(request, Expect::Special(Box::new(special)), false, false);
        Taken::Yes
    }

    /// Begins to stream a long request whose keys are known and concern nobody. Returns the bytes taken.
    fn begin_stream(&mut self, scanner: &mut RequestScanner, rest: &[u8], now: Time) -> usize {
        if rest.len() < STREAM_FROM || scanner.inline() {
            return 0;
        }
        let args = scanner.args(rest);
        let Some(name) = args.get(0) else { return 0 };
        let (id, row) = command::lookup(name);
        let Some(row) = row.filter(|_| memchr::memchr(0, name).is_none()) else {
            return 0;
        };
        if !self.fits_line(Some(row), args, false, now) {
            return 0;
        }
        let plain = matches!(row.role, Role::Forward | Role::Lock(_));
        if !plain || !command::early(row, args, scanner.announced()) || self.concerns_us(row, args) {
            return 0;
        }
        let len = scanner.looked_at();
        let raw = rest.get(..len).unwrap_or_default();
        self.gated = false;
        self.forward(
            &Request {
                raw,
                args,
                id,
                more: true,
                now,
            },
            false,
        );
        scanner.stream();
        self.streaming = true;
        len
    }

    fn concerns_us(&self, row: &Row, args: Args<'_>) -> bool {
        let rules = &self.policy.rules;
        command::keys(row, args)
            .filter_map(|index| args.get(index))
            .any(|key| rules.is_record(key) || rules.find(key).is_some())
    }
}
