//! One lock in `lockward top`: what the server says of it, who holds it and who waits, and what happened to it lately.

use jiff::tz::TimeZone;

use super::screen::{Line, Style};
use super::state::Detail;
use crate::admin::api::{Event, Lock, LockDetail, Waiter};
use crate::cli::rows::{holder, key};
use crate::cli::shown::{shown_text, span};
use crate::cli::tap::line::{clock, details};

/// The part of it that fits, as it is scrolled.
pub(super) fn lines(detail: &Detail, rows: usize, zone: &TimeZone) -> Vec<Line> {
    let all = match &detail.found {
        None => vec![plain(format!(
            "asking for {} …",
            key(&detail.key_encoded, &detail.key_encoded)
        ))],
        Some(Err(text)) => vec![Line {
            text: shown_text(text),
            style: Style::Bad,
        }],
        Some(Ok(found)) => of_lock(found, zone),
    };
    // The last line can be scrolled to the top, no further.
    let scrolled = detail.scrolled.min(all.len().saturating_sub(1));
    all.into_iter().skip(scrolled).take(rows).collect()
}

fn plain(text: String) -> Line {
    Line {
        text,
        style: Style::Plain,
    }
}

fn title(text: &str) -> Line {
    Line {
        text: text.to_owned(),
        style: Style::Bold,
    }
}

fn field(name: &str, value: String) -> Line {
    plain(format!("{name:<12}{value}"))
}

fn of_lock(found: &LockDetail, zone: &TimeZone) -> Vec<Line> {
    let record = &found.record;
    let mut lines = vec![
        title(&key(&record.key, &record.key_encoded)),
        field("database", record.database.to_string()),
        field("rule", record.rule.as_deref().map_or("none".to_owned(), shown_text)),
        field("server", on_server(found)),
    ];
    for debt in &record.debts {
        let expired = u64::try_from(debt.expired_at_ms).unwrap_or(0);
        lines.push(field(
            "owed",
            format!(
                "a release by {}, expired {}",
                shown_text(&debt.owner),
                clock(expired, zone)
            ),
        ));
    }
    match &found.known.lease {
        Some(lease) => lines.extend(of_lease(lease, zone)),
        None => lines.push(field("holder", "none that this lockward knows".to_owned())),
    }
    lines.push(plain(String::new()));
    lines.push(title(&format!("{} waiting", found.known.waiting)));
    lines.extend(found.known.waiters.iter().map(of_waiter));
    lines.push(plain(String::new()));
    lines.push(title("history, the latest first"));
    lines.extend(found.known.history.iter().rev().map(|event| of_event(event, zone)));
    if found.known.history_dropped > 0 {
        lines.push(plain(format!(
            "and {} older ones forgotten",
            found.known.history_dropped
        )));
    }
    lines
}

fn on_server(found: &LockDetail) -> String {
    if let Some(error) = &found.server_error {
        return format!("could not be asked: {}", shown_text(error));
    }
    let mut text = shown_text(&found.record.state);
    if found.record.exists {
        text.push_str(&match found.record.ttl_ms {
            Some(ttl) => format!(", TTL left {}", span(ttl)),
            None => ", no TTL".to_owned(),
        });
    }
    if let Some(fence) = found.record.fence {
        text.push_str(&format!(", fencing token {fence}"));
    }
    text
}

fn of_lease(lease: &Lock, zone: &TimeZone) -> Vec<Line> {
    let connected = if lease.connected { "open" } else { "closed" };
    let from = lease
        .client_address
        .as_deref()
        .map_or_else(String::new, |address| format!(" from {}", shown_text(address)));
    let mut lines = vec![
        field("holder", holder(&lease.owner, lease.client_name.as_deref())),
        field(
            "connection",
            format!("{}{from}, {connected}", shown_text(&lease.connection)),
        ),
        field(
            "since",
            format!("{} ({})", clock(lease.since_ms, zone), span(lease.held_ms)),
        ),
        field(
            "TTL",
            match (lease.ttl_ms, lease.ttl_left_ms) {
                (Some(ttl), Some(left)) => format!("{}, {} left", span(ttl), span(left)),
                _ => "none".to_owned(),
            },
        ),
        field(
            "extended",
            format!(
                "{} times by clients, {} times by lockward",
                lease.extensions, lease.renewals
            ),
        ),
    ];
    lines.extend(lease.warnings.iter().map(|warning| Line {
        text: format!("{:<12}{}", "warning", shown_text(&warning.text)),
        style: Style::Warning,
    }));
    lines
}

fn of_waiter(waiter: &Waiter) -> Line {
    plain(format!(
        "  {}  for {}, {} tries",
        holder(&waiter.owner, waiter.client_name.as_deref()),
        span(waiter.waited_ms),
        waiter.tries
    ))
}

fn of_event(event: &Event, zone: &TimeZone) -> Line {
    let time = clock(event.time_ms, zone);
    if !event.text.is_empty() {
        return plain(format!("  {time} {}", shown_text(&event.text)));
    }
    let what = [
        shown_text(&event.event),
        holder(&event.owner, event.client_name.as_deref()),
    ];
    plain(format!("  {time} {}  {}", what.join("  "), details(event).join("  ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::{Debt, Known, Record, Warning, WarningKind};

    fn event(word: &str, text: &str) -> Event {
        Event {
            event: word.to_owned(),
            owner: "address=10.0.0.8".to_owned(),
            rule: "jobs".to_owned(),
            text: text.to_owned(),
            ..Event::default()
        }
    }

    fn found() -> LockDetail {
        let lease = Lock {
            owner: "address=10.0.0.7".to_owned(),
            connection: "0123-7".to_owned(),
            client_name: Some("worker\n".to_owned()),
            client_address: Some("10.0.0.7:4000".to_owned()),
            since_ms: 1_700_000_000_000,
            held_ms: 61_000,
            ttl_ms: Some(90_000),
            ttl_left_ms: Some(29_000),
            extensions: 2,
            warnings: vec![Warning {
                kind: WarningKind::Overrun,
                text: "An earlier holder may still be at work.".to_owned(),
            }],
            ..Lock::default()
        };
        LockDetail {
            record: Record {
                key: "lock:a".to_owned(),
                key_encoded: "lock:a".to_owned(),
                rule: Some("jobs".to_owned()),
                exists: true,
                state: "held".to_owned(),
                ttl_ms: Some(29_000),
                fence: Some(17),
                debts: vec![Debt {
                    owner: "address=10.0.0.9".to_owned(),
                    expired_at_ms: 1_699_999_999_000,
                }],
                ..Record::default()
            },
            server_error: None,
            known: Known {
                lease: Some(lease),
                waiting: 1,
                waiters: vec![Waiter {
                    owner: "address=10.0.0.8".to_owned(),
                    waited_ms: 5_000,
                    tries: 12,
                    ..Waiter::default()
                }],
                history: vec![event("contended", ""), event("expired", "its lease ran out\u{1b}")],
                history_dropped: 3,
                spans: Vec::new(),
            },
        }
    }

    fn shown(found: Result<LockDetail, String>, scrolled: usize, rows: usize) -> Vec<String> {
        let detail = Detail {
            database: 0,
            key_encoded: "lock:a".to_owned(),
            found: Some(found),
            scrolled,
        };
        let lines = lines(&detail, rows, &TimeZone::UTC);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn all_that_is_known_of_one_lock() {
        assert_eq!(
            shown(Ok(found()), 0, 100),
            [
                "lock:a",
                "database    0",
                "rule        jobs",
                "server      held, TTL left 29s, fencing token 17",
                "owed        a release by address=10.0.0.9, expired 22:13:19.000",
                "holder      address=10.0.0.7 (worker\\n)",
                "connection  0123-7 from 10.0.0.7:4000, closed",
                "since       22:13:20.000 (1m01s)",
                "TTL         1m30s, 29s left",
                "extended    2 times by clients, 0 times by lockward",
                "warning     An earlier holder may still be at work.",
                "",
                "1 waiting",
                "  address=10.0.0.8  for 5.0s, 12 tries",
                "",
                "history, the latest first",
                "  00:00:00.000 its lease ran out\\u{1b}",
                "  00:00:00.000 contended  address=10.0.0.8  rule=jobs",
                "and 3 older ones forgotten",
            ]
        );
    }

    #[test]
    fn it_scrolls_to_its_last_line_and_says_what_is_wrong() {
        assert_eq!(
            shown(Ok(found()), 12, 2),
            ["1 waiting", "  address=10.0.0.8  for 5.0s, 12 tries"]
        );
        assert_eq!(shown(Ok(found()), usize::MAX, 5), ["and 3 older ones forgotten"]);
        assert_eq!(shown(Err("no\n".to_owned()), 0, 5), ["no\\n"]);
        let mut away = found();
        away.server_error = Some("the server is away".to_owned());
        assert_eq!(
            shown(Ok(away), 3, 1),
            ["server      could not be asked: the server is away"]
        );
    }
}
