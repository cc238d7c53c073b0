//! Reads what a script reports of each lock, and says it in events. The words are those that the `.lua` files write:
//! `granted ttl=30000 fence=17 overlap`, `late overrun=12 refused=late`, parts for several locks separated by `;`.

use crate::event::{
    Action, ConnectionId, DropReason, Event, Grant, Operation, Owner, Refusal, RefusalReason, Release, ReleaseOutcome,
    Time, What,
};

use super::{Answer, Call, Subject};
use crate::lock::script::Script;

pub(super) fn events(call: &Call, answer: Answer<'_>, at: Time, database: u32, sink: &mut Vec<Event>) {
    match answer {
        Answer::Plain { first_line } => {
            if let (Some(subject), Some(what)) = (call.subjects.first(), plain(call, first_line)) {
                sink.push(event(call, subject, at, database, what));
            }
        }
        Answer::Reported(report) => {
            let Ok(report) = std::str::from_utf8(report) else {
                return;
            };
            for (subject, part) in call.subjects.iter().zip(report.split(';')) {
                let words = Words {
                    call,
                    subject,
                    at,
                    database,
                    text: part,
                };
                words.tell(sink);
            }
        }
    }
}

/// What an answer without a report says of the only lock, by its first line.
fn plain(call: &Call, line: &[u8]) -> Option<What> {
    let ttl_ms = call.ttl_ms;
    match (call.script, line) {
        // Done in the shortest way: nothing was as it should not be.
        (Script::Acquire, [b'+', ..] | b":1") => call.subjects.first().map(|subject| {
            What::Granted(Grant {
                token: subject.token,
                fence: None,
                ttl_ms,
                ttl_injected: false,
                ttl_reduced: false,
                overlap: false,
            })
        }),
        // How long it was held, the keeper knows.
        (Script::Release, b":1") => Some(What::Release(Release {
            outcome: ReleaseOutcome::Released,
            held_ms: None,
            overrun_ms: None,
        })),
        (Script::Extend, b":1") if ttl_ms.is_some() => Some(What::Extended { ttl_ms, reduced: false }),
        _ if !call.acquires => None,
        // Of a RESTORE: held.
        (_, line) if line.starts_with(b"-BUSYKEY") => Some(What::Contended { shielded: false }),
        (_, [b'-', ..]) => Some(What::AcquireFailed),
        _ => Some(What::Contended { shielded: false }),
    }
}

fn event(call: &Call, subject: &Subject, at: Time, database: u32, what: What) -> Event {
    Event {
        at,
        database,
        key: subject.key.clone(),
        rule: subject.rule,
        owner: subject.owner.clone(),
        connection: call.connection.clone(),
        what,
    }
}

/// What a script reports of one lock.
struct Words<'a> {
    call: &'a Call,
    subject: &'a Subject,
    at: Time,
    database: u32,
    text: &'a str,
}

impl<'a> Words<'a> {
    fn tell(&self, sink: &mut Vec<Event>) {
        self.expired(sink);
        let what = match self.text.split(' ').next().unwrap_or_default() {
            "granted" => {
                self.dropped(sink);
                self.grant()
            }
            "contended" => What::Contended { shielded: false },
            "failed" => What::AcquireFailed,
            "released" => self.release(ReleaseOutcome::Released),
            "pooled" => self.release(ReleaseOutcome::Pooled),
            "late" => self.release(ReleaseOutcome::Late),
            "foreign" => self.release(ReleaseOutcome::Foreign),
            "absent" => self.release(ReleaseOutcome::Absent),
            "unmanaged" => self.release(ReleaseOutcome::Unmanaged),
            "self_checked" => self.release(ReleaseOutcome::SelfChecked),
            "extended" => What::Extended {
                ttl_ms: self.number("ttl="),
                reduced: self.has("reduced"),
            },
            "overwritten" => What::Overwritten {
                ttl_ms: self.number("ttl="),
                reduced: self.has("reduced"),
            },
            "takenover" => What::TakenOver,
            "ended" => What::Ended,
            "refused" => match self.refused() {
                Some(what) => what,
                None => return,
            },
            _ => return,
        };
        sink.push(self.event(what));
        if let Some(reason) = self.value("refused=").and_then(reason) {
            sink.push(self.event(self.refusal(Operation::Release, reason)));
        }
    }

    fn event(&self, what: What) -> Event {
        event(self.call, self.subject, self.at, self.database, what)
    }

    /// `expired=held/connection/owner`: the last lease, which is somebody else's.
    fn expired(&self, sink: &mut Vec<Event>) {
        let Some(value) = self.value("expired=") else { return };
        let mut parts = value.splitn(3, '/');
        let held_ms = parts.next().and_then(|held| held.parse().ok());
        let (Some(connection), Some(owner)) = (parts.next().and_then(connection), parts.next()) else {
            return;
        };
        let what = What::Expired { held_ms };
        sink.push(Event {
            connection,
            owner: Owner::from(owner),
            ..self.event(what)
        });
    }

    fn dropped(&self, sink: &mut Vec<Event>) {
        for (word, reason) in [("window=", DropReason::Window), ("cap=", DropReason::Cap)] {
            if let Some(count) = self.value(word).and_then(|count| count.parse().ok()) {
                sink.push(self.event(What::DebtsDropped { reason, count }));
            }
        }
    }

    fn grant(&self) -> What {
        What::Granted(Grant {
            token: self.subject.token,
            fence: self.number("fence="),
            ttl_ms: self.number("ttl="),
            ttl_injected: self.has("injected"),
            ttl_reduced: self.has("reduced"),
            overlap: self.has("overlap"),
        })
    }

    fn release(&self, outcome: ReleaseOutcome) -> What {
        What::Release(Release {
            outcome,
            held_ms: self.number("held="),
            overrun_ms: self.number("overrun="),
        })
    }

    /// `refused extend late`, `refused overwrite foreign`.
    fn refused(&self) -> Option<What> {
        let mut words = self.text.split(' ').skip(1);
        let operation = match words.next()? {
            "extend" => Operation::Extend,
            "overwrite" => Operation::Overwrite,
            _ => return None,
        };
        Some(self.refusal(operation, reason(words.next()?)?))
    }

    fn refusal(&self, operation: Operation, reason: RefusalReason) -> What {
        let without_ttl = self.has("nottl");
        What::Refused(Refusal {
            operation,
            reason,
            action: Action::Refused,
            without_ttl,
        })
    }

    fn has(&self, word: &str) -> bool {
        self.text.split(' ').any(|known| known == word)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.text.split(' ').find_map(|word| word.strip_prefix(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }
}

fn reason(word: &str) -> Option<RefusalReason> {
    RefusalReason::ALL.into_iter().find(|reason| reason.word() == word)
}

/// A connection as [`ConnectionId`] prints it.
fn connection(text: &str) -> Option<ConnectionId> {
    let (instance, number) = text.rsplit_once('-')?;
    Some(ConnectionId {
        instance: instance.into(),
        number: number.parse().ok()?,
    })
}
