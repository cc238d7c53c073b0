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
    lines.push(title(&format!("{} waiting", found.known.waiters.len())));
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
