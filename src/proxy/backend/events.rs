//! What happened to a lock, as JSON has it and as a sentence: for the event stream and for a lock's history. Owner tokens
//! and values are in nothing that comes in here.

use crate::admin::api;
use crate::admin::encode;
use crate::event::{Action, DropReason, Operation, Refusal, RefusalReason, Release, ReleaseOutcome, Renewal};
use crate::lock::chronicle::words::length;
use crate::lock::chronicle::{Entry, Granted, Happening};
use crate::proxy::shared::Shared;
use crate::proxy::telling::Untold;

/// One event of the stream.
pub(super) fn event(shared: &Shared, untold: &Untold) -> api::Event {
    let policy = shared.policy();
    let rule = &policy.rules.rule(untold.rule).name;
    render(shared, untold.database, &untold.key, rule, &untold.entry)
}

/// An entry about this lock.
pub(super) fn render(shared: &Shared, database: u32, key: &[u8], rule: &str, entry: &Entry) -> api::Event {
    let mut event = api::Event {
        id: entry.id,
        time_ms: shared.clock.unix_ms(entry.at),
        key: String::from_utf8_lossy(key).into_owned(),
        key_encoded: encode(key),
        database,
        rule: rule.to_owned(),
        owner: entry.owner.to_string(),
        connection: entry.connection.to_string(),
        client_name: shared.clients.name(&entry.connection),
        text: text(entry),
        ..api::Event::default()
    };
    if entry.count > 1 {
        event.count = Some(entry.count);
        event.until_ms = Some(shared.clock.unix_ms(entry.until));
    }
    details(&entry.what, &mut event);
    event
}

fn details(what: &Happening, event: &mut api::Event) {
    event.event = name(what).to_owned();
    match what {
        Happening::Granted(granted) => {
            event.ttl_ms = granted.ttl_ms;
            event.fence = granted.fence;
            event.waited_ms = granted.waited_ms;
            event.overlap = granted.overlap;
        }
        Happening::Release(release, action) => {
            event.outcome = Some(release.outcome.word().to_owned());
            event.held_ms = release.held_ms;
            event.overrun_ms = release.overrun_ms;
            event.action = action.map(|action| action.word().to_owned());
        }
        Happening::Refused(refusal) => {
            event.operation = Some(refusal.operation.word().to_owned());
            event.reason = Some(refusal.reason.word().to_owned());
            event.action = Some(refusal.action.word().to_owned());
        }
        Happening::Extended(ttl_ms, _) | Happening::Overwritten(ttl_ms, _) => event.ttl_ms = *ttl_ms,
        Happening::Expired(held_ms) => event.held_ms = *held_ms,
        Happening::DebtsDropped(reason, _) => event.reason = Some(reason.word().to_owned()),
        Happening::Contended
        | Happening::AcquireFailed
        | Happening::TakenOver
        | Happening::Ended
        | Happening::Renewal(_) => {}
    }
}

/// The word for it in the stream and its filter.
fn name(what: &Happening) -> &'static str {
    match what {
        Happening::Granted(_) => "acquired",
        Happening::Contended => "contended",
        Happening::AcquireFailed => "acquire_failed",
        Happening::Release(release, _) => match release.outcome {
            ReleaseOutcome::Late => "late_release",
            ReleaseOutcome::Foreign => "foreign_release",
            ReleaseOutcome::Absent => "absent_release",
            ReleaseOutcome::Released
            | ReleaseOutcome::Pooled
            | ReleaseOutcome::Unmanaged
            | ReleaseOutcome::SelfChecked
            | ReleaseOutcome::Disconnect
            | ReleaseOutcome::Forced => "released",
        },
        Happening::Refused(_) => "refused",
        Happening::Extended(..) => "extended",
        Happening::Overwritten(..) => "overwritten",
        Happening::TakenOver => "taken_over",
        Happening::Expired(_) => "expired",
        Happening::Ended => "ended",
        Happening::Renewal(Renewal::Extended) => "renewed",
        Happening::Renewal(Renewal::Lost) => "renewal_lost",
        Happening::Renewal(Renewal::Capped) => "renewal_capped",
        Happening::DebtsDropped(..) => "debts_dropped",
    }
}

/// The whole as one sentence, without the key.
fn text(entry: &Entry) -> String {
    let owner = &entry.owner;
    let often = |sentence: String| match entry.count {
        1 => sentence,
        count => format!(
            "{sentence}, {count} times in {}",
            length(entry.until.since(entry.at) / 1000)
        ),
    };
    match &entry.what {
        Happening::Granted(granted) => acquired(owner, granted),
        Happening::Contended if entry.several => often(format!("{owner} and others found it held")),
        Happening::Contended => often(format!("{owner} found it held")),
        Happening::AcquireFailed => often(format!("the server answered an error to the acquire of {owner}")),
        Happening::Release(release, action) => often(released(owner, release, *action)),
        Happening::Refused(refusal) => refused(owner, refusal),
        Happening::Extended(ttl_ms, cut) => often(format!("{owner} set its TTL to {}{}", ttl(*ttl_ms), cut_by(*cut))),
        Happening::Overwritten(ttl_ms, cut) => {
            format!(
                "{owner} overwrote the value of its lock; TTL {}{}",
                ttl(*ttl_ms),
                cut_by(*cut)
            )
        }
        Happening::TakenOver => format!("{owner} overwrote another owner's lock: open to all from now on"),
        Happening::Expired(held_ms) => {
            format!("the lease of {owner} ran out{}; its release is owed", after(*held_ms))
        }
        Happening::Ended => format!("the lease of {owner} had ended, unseen by this proxy"),
        Happening::Renewal(Renewal::Extended) => often(format!("lockward renewed the lease of {owner}")),
        Happening::Renewal(Renewal::Lost) => format!("lockward could not renew the lease of {owner}: it is gone"),
        Happening::Renewal(Renewal::Capped) => format!("the lease of {owner} is renewed no more: max_hold is reached"),
        Happening::DebtsDropped(DropReason::Window, count) => {
            format!("{count} owed releases are not waited for any more: older than late_release_window")
        }
        Happening::DebtsDropped(DropReason::Cap, count) => {
            format!("{count} owed releases are not waited for any more: there were more than 32")
        }
    }
}

fn acquired(owner: &str, granted: &Granted) -> String {
    let mut text = match granted.ttl_ms {
        Some(ttl_ms) => format!("{owner} acquired it for {}", length(ttl_ms)),
        None => format!("{owner} acquired it without a TTL"),
    };
    if granted.injected {
        text.push_str(" (default_ttl)");
    }
    text.push_str(cut_by(granted.reduced));
    if let Some(waited_ms) = granted.waited_ms {
        text.push_str(&format!(" after waiting {}", length(waited_ms)));
    }
    if granted.overlap {
        text.push_str(", while the last holder's release is owed: two may be at work");
    }
    text
}

fn released(owner: &str, release: &Release, action: Option<Action>) -> String {
    let held = after(release.held_ms);
    let done = |harm: &str| match action {
        Some(Action::Refused) => ", and was refused".to_owned(),
        Some(Action::Observed) => harm.to_owned(),
        None => String::new(),
    };
    match release.outcome {
        ReleaseOutcome::Released => format!("{owner} released it{held}"),
        ReleaseOutcome::Pooled => format!("{owner} released it through another connection{held}"),
        ReleaseOutcome::Late => {
            let late = release.overrun_ms.map_or("too late".to_owned(), |ms| {
                format!("{} after its TTL had run out", length(ms))
            });
            format!(
                "the release of {owner} came {late}{}",
                done(" (observed: it removed the lock of the next one)")
            )
        }
        ReleaseOutcome::Foreign => {
            let harm = done(" (observed: it removed it)");
            format!("{owner} tried to release another owner's lock{harm}")
        }
        ReleaseOutcome::Absent => format!("{owner} released a lock that nobody held"),
        ReleaseOutcome::Unmanaged if action == Some(Action::Refused) => {
            format!("{owner} tried to release a lock that has no lease, and was refused")
        }
        ReleaseOutcome::Unmanaged => format!("{owner} released a lock that had no lease"),
        ReleaseOutcome::SelfChecked => format!("a script or compare command of {owner} released it{held}"),
        ReleaseOutcome::Disconnect => format!("lockward released it: {owner} has disconnected"),
        ReleaseOutcome::Forced => format!("an operator released the lock of {owner} by force{held}"),
    }
}

fn refused(owner: &str, refusal: &Refusal) -> String {
    let operation = match refusal.operation {
        Operation::Release => "a release",
        Operation::Extend => "an extend",
        Operation::Overwrite => "an overwrite",
    };
    let why = match refusal.reason {
        RefusalReason::Late => "its own lease had run out",
        RefusalReason::Foreign => "the lock is another owner's",
        RefusalReason::Unmanaged => "the lock has no lease",
    };
    match refusal.action {
        Action::Refused => format!("{operation} by {owner} was refused: {why}"),
        Action::Observed => format!("{operation} by {owner} would have been refused: {why}"),
    }
}

fn ttl(ttl_ms: Option<u64>) -> String {
    ttl_ms.map_or("none".to_owned(), length)
}

fn cut_by(cut: bool) -> &'static str {
    if cut { " (max_ttl)" } else { "" }
}

fn after(held_ms: Option<u64>) -> String {
    held_ms.map_or(String::new(), |held_ms| format!(" after {}", length(held_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ConnectionId, Event, Time, What};

    fn entry(what: Happening) -> Entry {
        let event = Event {
            at: Time(0),
            database: 0,
            key: bytes::Bytes::from_static(b"lock:a"),
            rule: crate::event::RuleIndex(0),
            owner: "address=10.0.0.7".into(),
            connection: ConnectionId {
                instance: "a".into(),
                number: 1,
            },
            what: What::Contended { shielded: false },
        };
        Entry {
            what,
            ..Entry::new(1, &event, None)
        }
    }

    fn release(outcome: ReleaseOutcome, action: Option<Action>) -> Happening {
        let release = Release {
            outcome,
            held_ms: (outcome != ReleaseOutcome::Late).then_some(1200),
            overrun_ms: (outcome == ReleaseOutcome::Late).then_some(70),
        };
        Happening::Release(release, action)
    }

    #[test]
    fn sentences_say_who_did_what() {
        let granted = Granted {
            ttl_ms: Some(30_000),
            waited_ms: Some(1500),
            overlap: true,
            ..Granted::default()
        };
        let said = [
            (
                Happening::Granted(granted),
                "address=10.0.0.7 acquired it for 30 s after waiting 1.5 s, while the last holder's release is owed: \
                 two may be at work",
            ),
            (Happening::Contended, "address=10.0.0.7 found it held"),
            (
                release(ReleaseOutcome::Released, None),
                "address=10.0.0.7 released it after 1.2 s",
            ),
            (
                release(ReleaseOutcome::Late, None),
                "the release of address=10.0.0.7 came 70 ms after its TTL had run out",
            ),
            (
                release(ReleaseOutcome::Late, Some(Action::Refused)),
                "the release of address=10.0.0.7 came 70 ms after its TTL had run out, and was refused",
            ),
            (
                release(ReleaseOutcome::Foreign, Some(Action::Observed)),
                "address=10.0.0.7 tried to release another owner's lock (observed: it removed it)",
            ),
            (
                Happening::Expired(Some(30_000)),
                "the lease of address=10.0.0.7 ran out after 30 s; its release is owed",
            ),
        ];
        for (what, sentence) in said {
            assert_eq!(text(&entry(what)), sentence);
        }
        let tries = Entry {
            count: 12,
            several: true,
            until: Time(3_000_000),
            ..entry(Happening::Contended)
        };
        assert_eq!(
            text(&tries),
            "address=10.0.0.7 and others found it held, 12 times in 3 s"
        );
    }

    #[test]
    fn every_kind_has_its_word_and_its_fields() {
        let shown = |what: Happening| {
            let mut event = api::Event::default();
            details(&what, &mut event);
            event
        };
        let late = shown(release(ReleaseOutcome::Late, Some(Action::Refused)));
        assert_eq!(
            (
                late.event.as_str(),
                late.outcome.as_deref(),
                late.action.as_deref(),
                late.overrun_ms
            ),
            ("late_release", Some("late"), Some("refused"), Some(70))
        );
        for outcome in ReleaseOutcome::ALL {
            let event = shown(release(outcome, None));
            assert!(event.event.ends_with("release") || event.event == "released");
            assert_eq!(event.outcome.as_deref(), Some(outcome.word()));
        }
        let refusal = Refusal {
            operation: Operation::Extend,
            reason: RefusalReason::Foreign,
            action: Action::Observed,
            without_ttl: false,
        };
        let refused = shown(Happening::Refused(refusal));
        assert_eq!(
            (
                refused.event.as_str(),
                refused.operation.as_deref(),
                refused.reason.as_deref()
            ),
            ("refused", Some("extend"), Some("foreign"))
        );
    }
}
