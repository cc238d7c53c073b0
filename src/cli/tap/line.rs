//! One event as one line: local time, what happened, key, owner, details. Colours are asked for by the caller.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::admin::api::Event;
use crate::cli::rows::{holder, key};
use crate::cli::shown::{shown_text, span, width};

/// The widest event word in common use.
const WORD_COLUMNS: usize = 15;

/// How a line is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Plain,
    Good,
    Warning,
    Bad,
    Dim,
}

impl Colour {
    /// The sequence that begins it (ECMA-48, SGR).
    fn begin(self) -> &'static str {
        match self {
            Colour::Plain => "",
            Colour::Good => "\x1b[32m",
            Colour::Warning => "\x1b[33m",
            Colour::Bad => "\x1b[31m",
            Colour::Dim => "\x1b[2m",
        }
    }
}

/// The line, without its end.
pub(super) fn line(event: &Event, zone: &TimeZone, colours: bool) -> String {
    let word = shown_text(&event.event);
    let gap = " ".repeat(WORD_COLUMNS.saturating_sub(width(&word)));
    let colour = if colours { colour(event) } else { Colour::Plain };
    let (begin, end) = match colour {
        Colour::Plain => ("", ""),
        colour => (colour.begin(), "\x1b[0m"),
    };
    let mut line = format!(
        "{} {begin}{word}{end}{gap} {}",
        clock(event.time_ms, zone),
        key(&event.key, &event.key_encoded)
    );
    if event.database != 0 {
        line.push_str(&format!(" (db {})", event.database));
    }
    line.push_str("  ");
    line.push_str(&holder(&event.owner, event.client_name.as_deref()));
    for detail in details(event) {
        line.push_str("  ");
        line.push_str(&detail);
    }
    line
}

/// Hours to milliseconds in the zone, of milliseconds since 1970.
pub(in crate::cli) fn clock(time_ms: u64, zone: &TimeZone) -> String {
    let stamp = i64::try_from(time_ms)
        .ok()
        .and_then(|time| Timestamp::from_millisecond(time).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    let time = zone.to_datetime(stamp);
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
    )
}

/// Everything that the event says beside what, where and who.
pub(in crate::cli) fn details(event: &Event) -> Vec<String> {
    let mut details = vec![format!("rule={}", shown_text(&event.rule))];
    let words = [
        ("operation", &event.operation),
        ("outcome", &event.outcome),
        ("reason", &event.reason),
        ("action", &event.action),
    ];
    for (name, word) in words {
        details.extend(word.as_ref().map(|word| format!("{name}={}", shown_text(word))));
    }
    let spans = [
        ("ttl", event.ttl_ms),
        ("held", event.held_ms),
        ("waited", event.waited_ms),
        ("overrun", event.overrun_ms),
    ];
    for (name, ms) in spans {
        details.extend(ms.map(|ms| format!("{name}={}", span(ms))));
    }
    details.extend(event.fence.map(|fence| format!("fence={fence}")));
    details.extend(event.count.map(|count| format!("count={count}")));
    if event.overlap {
        details.push("overlap".to_owned());
    }
    details
}

fn colour(event: &Event) -> Colour {
    match event.event.as_str() {
        _ if event.overlap => Colour::Bad,
        "acquired" | "released" => Colour::Good,
        "late_release" | "foreign_release" | "refused" | "renewal_lost" | "acquire_failed" => Colour::Bad,
        "contended" | "expired" | "taken_over" | "renewal_capped" | "debts_dropped" => Colour::Warning,
        "renewed" | "absent_release" => Colour::Dim,
        _ => Colour::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        Event {
            id: 7,
            time_ms: 1_700_000_000_123,
            event: "acquired".to_owned(),
            key: "lock:\u{1b}a".to_owned(),
            key_encoded: "lock:%1Ba".to_owned(),
            rule: "jobs".to_owned(),
            owner: "address=10.0.0.7".to_owned(),
            client_name: Some("worker".to_owned()),
            ttl_ms: Some(30_000),
            waited_ms: Some(1_200),
            fence: Some(17),
            overlap: true,
            ..Event::default()
        }
    }

    #[test]
    fn a_line_says_it_all_and_hides_nothing_in_it() {
        assert_eq!(
            line(&event(), &TimeZone::UTC, false),
            "22:13:20.123 acquired        lock:\\u{1b}a  address=10.0.0.7 (worker)  rule=jobs  ttl=30s  waited=1.2s  fence=17  \
             overlap"
        );
    }

    #[test]
    fn colours_are_for_the_word_only() {
        let mut event = event();
        assert!(line(&event, &TimeZone::UTC, true).contains("\u{1b}[31macquired\u{1b}[0m "));
        event.overlap = false;
        assert!(line(&event, &TimeZone::UTC, true).contains("\u{1b}[32macquired\u{1b}[0m "));
        event.event = "ended".to_owned();
        assert!(!line(&event, &TimeZone::UTC, true).contains('\u{1b}'));
    }

    #[test]
    fn no_time_panics() {
        assert_eq!(clock(u64::MAX, &TimeZone::UTC), "00:00:00.000");
        assert_eq!(clock(9_000_000_000_000_000, &TimeZone::UTC), "00:00:00.000");
    }
}
