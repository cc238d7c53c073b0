//! Draws `lockward top` as lines for a window of a given size: the head, the table, one lock. A plain function of what is
//! shown; every line fits the window, and everything in it is printable.

use jiff::tz::TimeZone;

use super::detail;
use super::state::{Front, View};
use crate::admin::api::{RuleView, Snapshot, Sort};
use crate::cli::locks::foot;
use crate::cli::rows::{COLUMNS, cells};
use crate::cli::shown::{cut, shown_text, width};
use crate::cli::table::Table;

/// Contention is shown of so long a time, in milliseconds.
const RECENT_MS: u64 = 60_000;
/// So many rules with contention are named.
const RULES_NAMED: usize = 4;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    /// As chosen.
    Inverse,
    Warning,
    Bad,
}

/// One line of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub text: String,
    pub style: Style,
}

fn line(text: impl Into<String>, style: Style) -> Line {
    Line {
        text: text.into(),
        style,
    }
}

/// The window, line by line, the top first; exactly as many as fit.
pub(super) fn draw(view: &mut View, columns: usize, rows: usize, zone: &TimeZone) -> Vec<Line> {
    let mut lines = head(view);
    let body = rows.saturating_sub(lines.len() + 1);
    let inside = match &view.front {
        Front::Detail(detail) => detail::lines(detail, body, zone),
        Front::Table | Front::Search(_) => table(view, columns, body),
    };
    view.page = body.saturating_sub(1).max(1);
    lines.extend(inside);
    lines.truncate(rows.saturating_sub(1));
    lines.resize(rows.saturating_sub(1), line("", Style::Plain));
    lines.push(keys(view));
    for line in &mut lines {
        line.text = cut(&line.text, columns);
    }
    lines.truncate(rows);
    lines
}

/// How many are held and wait, where they are fought for, and what is wrong.
fn head(view: &View) -> Vec<Line> {
    let mut lines = vec![line(title(view), Style::Bold)];
    if let Some(snapshot) = &view.snapshot {
        lines.push(contention(&snapshot.rules));
    }
    let not_ready = view.snapshot.as_ref().and_then(|snapshot| snapshot.not_ready.as_ref());
    if let Some(trouble) = &view.trouble {
        lines.push(line(format!("NO NEWS: {}", shown_text(trouble)), Style::Bad));
    } else if let Some(reason) = not_ready {
        lines.push(line(format!("NOT READY: {}", shown_text(reason)), Style::Bad));
    }
    lines.push(line(asked(view), Style::Dim));
    lines
}

fn title(view: &View) -> String {
    let mut title = format!("lockward {}", view.address);
    if let Some(snapshot) = &view.snapshot {
        title.push_str("   ");
        title.push_str(&figures(snapshot));
    }
    if view.paused {
        title.push_str("   PAUSED");
    }
    title
}

/// How many locks are held, and what about them.
pub(super) fn figures(snapshot: &Snapshot) -> String {
    let sum = |figure: fn(&RuleView) -> u64| snapshot.rules.iter().map(figure).sum::<u64>();
    let mut text = format!("{} held   {} waiting", snapshot.table.total, sum(|rule| rule.waiters));
    let without = sum(|rule| rule.without_ttl);
    if without > 0 {
        text.push_str(&format!("   {without} without TTL"));
    }
    text
}

fn contention(rules: &[RuleView]) -> Line {
    match contended(rules) {
        text if text.is_empty() => line("no contention in the last minute", Style::Dim),
        text => line(format!("contended in the last minute: {text}"), Style::Warning),
    }
}

/// The rules whose locks were fought for in the last minute, the busiest first; empty if there were none.
pub(super) fn contended(rules: &[RuleView]) -> String {
    let mut counts: Vec<(u64, &RuleView)> = rules.iter().map(|rule| (last_minute(rule), rule)).collect();
    counts.retain(|(count, _)| *count > 0);
    counts.sort_by(|(one, first), (other, second)| other.cmp(one).then_with(|| first.name.cmp(&second.name)));
    let named = counts.iter().take(RULES_NAMED);
    let mut words: Vec<String> = named
        .map(|(count, rule)| format!("{} {count} ({} waiting)", shown_text(&rule.name), rule.waiters))
        .collect();
    if counts.len() > RULES_NAMED {
        words.push(format!("and {} more rules", counts.len() - RULES_NAMED));
    }
    words.join(", ")
}

fn last_minute(rule: &RuleView) -> u64 {
    let steps = RECENT_MS.div_ceil(rule.recent.step_ms.max(1));
    let steps = usize::try_from(steps).unwrap_or(usize::MAX);
    rule.recent.contended.iter().rev().take(steps).sum()
}

/// By what rows were chosen, and how many there are.
fn asked(view: &View) -> String {
    let sort = match view.query.sort {
        Sort::Age => "oldest first",
        Sort::Ttl => "least TTL first",
        Sort::Waiters => "most waiters first",
        Sort::Key => "by key",
    };
    let mut text = sort.to_owned();
    if let Some(pattern) = &view.query.pattern {
        text.push_str(&format!("   only {}", shown_text(pattern)));
    }
    if view.query.warned {
        text.push_str("   only with warnings");
    }
    match &view.snapshot {
        Some(snapshot) => text.push_str(&format!("   {}", foot(&snapshot.table))),
        None if view.trouble.is_none() => text.push_str("   waiting for the first table"),
        None => {}
    }
    text
}

fn table(view: &View, columns: usize, rows: usize) -> Vec<Line> {
    let locks = view.locks();
    let fit = rows.saturating_sub(1).max(1);
    // The page that holds the chosen row.
    let first = view.chosen / fit * fit;
    let mut table = Table::new(&COLUMNS);
    for lock in locks.iter().skip(first).take(fit) {
        table.push(cells(lock, view.later_ms));
    }
    let mut lines = table.lines(Some(columns)).into_iter();
    let mut shown: Vec<Line> = lines.next().map(|head| line(head, Style::Bold)).into_iter().collect();
    for (place, (text, lock)) in lines.zip(locks.iter().skip(first)).enumerate() {
        let style = match lock.warnings.is_empty() {
            _ if first + place == view.chosen => Style::Inverse,
            true => Style::Plain,
            false => Style::Warning,
        };
        let text = if style == Style::Inverse {
            let gap = " ".repeat(columns.saturating_sub(width(&text)));
            text + &gap
        } else {
            text
        };
        shown.push(line(text, style));
    }
    shown
}

fn keys(view: &View) -> Line {
    match &view.front {
        Front::Search(text) => line(
            format!("search: {}_   (a glob, or part of a key; Enter, Esc)", shown_text(text)),
            Style::Bold,
        ),
        Front::Detail(_) => line("Esc back   up/down scroll   p pause   q quit", Style::Dim),
        Front::Table => line(
            "q quit   s sort   / search   w warnings   p pause   up/down choose   Enter one lock",
            Style::Dim,
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::state::{Detail, Key};
    use super::*;
    use crate::admin::api::{Lock, LockDetail, LockList, LocksQuery, Recent, Warning, WarningKind};

    fn lock(key: &str, held_ms: u64) -> Lock {
        Lock {
            key: key.to_owned(),
            key_encoded: crate::admin::client::key_encoded(key.as_bytes()),
            rule: "jobs".to_owned(),
            mode: "enforce".to_owned(),
            owner: "address=10.0.0.7".to_owned(),
            held_ms,
            ttl_left_ms: Some(9_000),
            ..Lock::default()
        }
    }

    fn view() -> View {
        let mut view = View::new("127.0.0.1:9180", LocksQuery::default());
        let mut late = lock("lock:\u{1b}[31m錠", 65_000);
        late.waiting = 12;
        late.warnings.push(Warning {
            kind: WarningKind::NearExpiry,
            text: String::new(),
        });
        view.take(Snapshot {
            table: LockList {
                total: 2,
                matched: 2,
                locks: vec![lock("lock:a", 4_000), late],
                ..LockList::default()
            },
            rules: vec![RuleView {
                name: "jobs".to_owned(),
                waiters: 12,
                without_ttl: 1,
                recent: Recent {
                    step_ms: 10_000,
                    contended: vec![1000, 1, 2, 3, 4, 5, 6],
                    ..Recent::default()
                },
                ..RuleView::default()
            }],
            not_ready: None,
        });
        view
    }

    fn drawn(view: &mut View, columns: usize, rows: usize) -> Vec<String> {
        let lines = draw(view, columns, rows, &TimeZone::UTC);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_window() {
        let mut view = view();
        view.later(1_000);
        assert_eq!(
            drawn(&mut view, 100, 9),
            [
                "lockward 127.0.0.1:9180   2 held   12 waiting   1 without TTL",
                "contended in the last minute: jobs 21 (12 waiting)",
                "oldest first   2 locks held",
                "KEY                RULE  OWNER              HELD  TTL LEFT  WAITING  WARNINGS",
                "lock:a             jobs  address=10.0.0.7   5.0s      8.0s        -                                 ",
                "lock:\\u{1b}[31m錠  jobs  address=10.0.0.7  1m06s      8.0s       12  near expiry",
                "",
                "",
                "q quit   s sort   / search   w warnings   p pause   up/down choose   Enter one lock",
            ]
        );
        let styles: Vec<Style> = draw(&mut view, 100, 7, &TimeZone::UTC)
            .into_iter()
            .map(|line| line.style)
            .collect();
        assert_eq!(styles[4..6], [Style::Inverse, Style::Warning]);
    }

    #[test]
    fn every_window_is_filled_and_nothing_stands_out() {
        let mut view = view();
        view.trouble = Some("lockward at 127.0.0.1:9180 has gone away\u{1b}".to_owned());
        for front in 0..3 {
            match front {
                1 => drop(view.press(Key::Letter('/'))),
                2 => {
                    view.press(Key::Escape);
                    view.press(Key::Enter);
                }
                _ => {}
            }
            for (columns, rows) in [(0, 0), (1, 1), (7, 3), (40, 12), (200, 60)] {
                let lines = drawn(&mut view, columns, rows);
                assert_eq!(lines.len(), rows);
                for line in lines {
                    assert!(
                        width(&line) <= columns && !line.contains('\u{1b}'),
                        "{columns}: {line:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_page_with_the_chosen_row_is_shown() {
        let mut view = view();
        let locks: Vec<Lock> = (0..40).map(|number| lock(&format!("lock:{number:02}"), 1)).collect();
        view.snapshot.as_mut().unwrap().table.locks = locks;
        drawn(&mut view, 100, 14);
        assert_eq!(view.page, 9);
        view.press(Key::PageDown);
        view.press(Key::PageDown);
        let lines = drawn(&mut view, 100, 14);
        assert!(
            lines[4].starts_with("lock:18") && lines[12].starts_with("lock:26"),
            "{lines:?}"
        );
        view.press(Key::End);
        assert!(drawn(&mut view, 100, 14)[7].starts_with("lock:39"));
    }

    #[test]
    fn what_is_wrong_is_said_on_top() {
        let mut view = view();
        view.snapshot.as_mut().unwrap().not_ready = Some("the server is away".to_owned());
        assert!(drawn(&mut view, 100, 9).contains(&"NOT READY: the server is away".to_owned()));
        view.trouble = Some("gone".to_owned());
        assert!(drawn(&mut view, 100, 9).contains(&"NO NEWS: gone".to_owned()));
    }

    #[test]
    fn one_lock_scrolls() {
        let mut view = view();
        view.press(Key::Enter);
        assert!(drawn(&mut view, 100, 9).iter().any(|line| line.contains("asking")));
        view.take_detail(0, "lock:a", Ok(LockDetail::default()));
        let before = drawn(&mut view, 100, 8);
        view.press(Key::Down);
        assert_ne!(drawn(&mut view, 100, 8), before);
        if let Front::Detail(detail) = &mut view.front {
            let detail: &mut Detail = detail;
            detail.scrolled = usize::MAX;
        }
        assert_eq!(drawn(&mut view, 100, 8).len(), 8);
    }

    proptest! {
        #[test]
        fn whatever_a_stranger_calls_himself_the_window_holds(
            words in prop::collection::vec("\\PC{0,12}|[\\x00-\\u{300}\u{202e}\u{200d}錠]{0,12}", 6),
            columns in 0_usize..120,
            rows in 0_usize..20,
        ) {
            let mut view = view();
            let snapshot = view.snapshot.as_mut().unwrap();
            snapshot.not_ready = Some(words[0].clone());
            snapshot.rules[0].name = words[1].clone();
            let lock = &mut snapshot.table.locks[0];
            *lock = self::lock(&words[2], 5);
            lock.owner = words[3].clone();
            lock.client_name = Some(words[4].clone());
            view.query.pattern = Some(words[5].clone());
            let lines = drawn(&mut view, columns, rows);
            prop_assert_eq!(lines.len(), rows);
            for line in lines {
                prop_assert!(width(&line) <= columns, "{}", line);
                prop_assert!(line.chars().all(|c| !c.is_control() && c.escape_debug().len() <= 2), "{}", line);
            }
        }
    }
}
