//! What a check found: one thing each, with how bad it is, what it means for locks, and the lines to paste. Knows how a
//! report is written, and asks nobody.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::shown::{cut, wrapped};

/// A text of the server's takes no more columns than this in a finding.
const LONGEST_QUOTE: usize = 160;
/// Columns of the text, if its words let it.
const COLUMNS: usize = 120;
/// Where a finding begins behind its level and topic.
const INDENT: usize = 22;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Locks can be lost, or somebody sees something wrong.
    Warning,
    /// lockward does not work so.
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What it is about, in a word.
    pub(super) topic: &'static str,
    /// What was found.
    pub(super) found: String,
    /// What that means for locks, and what to do; empty where nothing need be said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) means: String,
    /// Lines to paste into redis-cli or a shell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) paste: Vec<String>,
}

impl Finding {
    pub(super) fn new(level: Level, topic: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            level,
            topic,
            found: found.into(),
            means: String::new(),
            paste: Vec::new(),
        }
    }

    pub(super) fn ok(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Level::Ok, topic, found)
    }

    pub(super) fn note(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Level::Note, topic, found)
    }

    pub(super) fn warning(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Level::Warning, topic, found)
    }

    pub(super) fn error(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Level::Error, topic, found)
    }

    /// Says what it means.
    pub(super) fn means(mut self, text: impl Into<String>) -> Finding {
        self.means = text.into();
        self
    }

    /// Adds a line to paste.
    pub(super) fn paste(mut self, line: impl Into<String>) -> Finding {
        self.paste.push(line.into());
        self
    }
}

/// All that a check found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Where the server is; `None` if it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) notes: usize,
}

impl Report {
    pub(super) fn new(server: Option<String>, findings: Vec<Finding>) -> Report {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        Report {
            server,
            errors: count(Level::Error),
            warnings: count(Level::Warning),
            notes: count(Level::Note),
            findings,
        }
    }

    /// Whether the check failed. `strict`: a warning is enough.
    pub(super) fn failed(&self, strict: bool) -> bool {
        self.errors > 0 || strict && self.warnings > 0
    }

    /// Each finding with a topic other than `without`: a line with its level, below it what it means and what to paste.
    pub(super) fn text(&self, without: &str) -> String {
        let mut text = String::new();
        let mut pasted = false;
        for finding in self.findings.iter().filter(|finding| finding.topic != without) {
            let head = format!("{:<9}{:<13}", finding.level.word(), finding.topic);
            text.push_str(&wrapped(&head, &finding.found, COLUMNS));
            if !finding.means.is_empty() {
                text.push_str(&wrapped(&" ".repeat(INDENT), &finding.means, COLUMNS));
            }
            for line in &finding.paste {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{:indent$}{line}", "", indent = INDENT + 4);
                pasted |= ["ACL SETUSER", "CONFIG SET"].iter().any(|word| line.starts_with(word));
            }
        }
        let _ = writeln!(
            text,
            "\n{}, {}, {}",
            counted(self.errors, "error"),
            counted(self.warnings, "warning"),
            counted(self.notes, "note")
        );
        if pasted {
            text.push_str(
                "CONFIG SET and ACL SETUSER last until the server restarts; CONFIG REWRITE and ACL SAVE keep them.\n",
            );
        }
        text
    }
}

/// `1 error`, `2 errors`.
fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

/// A text of the server's in a finding: one line of it, and not too much.
pub(super) fn quoted(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default().trim(), LONGEST_QUOTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_it_means_and_what_to_paste() {
        let findings = vec![
            Finding::warning("configuration", "said before"),
            Finding::ok("server", "redis 7.0.15"),
            Finding::warning("eviction", "allkeys-lru")
                .means("a held lock can go")
                .paste("CONFIG SET maxmemory-policy noeviction"),
        ];
        let report = Report::new(Some("h:1".to_owned()), findings);
        assert_eq!(
            report.text("configuration"),
            "ok       server       redis 7.0.15\n\
             warning  eviction     allkeys-lru\n                      \
             a held lock can go\n                          \
             CONFIG SET maxmemory-policy noeviction\n\n\
             0 errors, 2 warnings, 0 notes\n\
             CONFIG SET and ACL SETUSER last until the server restarts; CONFIG REWRITE and ACL SAVE keep them.\n"
        );
        assert!(!report.failed(false) && report.failed(true));
        assert!(Report::new(None, vec![Finding::error("server", "old")]).failed(false));
    }

    #[test]
    fn long_texts_go_on_below_themselves() {
        let out = wrapped("note     rules        ", &"word ".repeat(40), COLUMNS);
        assert_eq!(out.lines().count(), 3);
        assert!(
            out.lines().all(|line| line.len() <= COLUMNS && !line.ends_with(' ')),
            "{out}"
        );
        assert!(out.lines().skip(1).all(|line| line.find('w') == Some(INDENT)), "{out}");
        let without = Report::new(None, vec![Finding::ok("server", "redis 7.0.15")]).text("");
        assert_eq!(
            without.lines().count(),
            3,
            "the finding, an empty line, the sum: {without}"
        );
    }

    #[test]
    fn what_a_server_says_stays_short() {
        assert_eq!(quoted("ERR no\r\nand more"), "ERR no");
        assert!(quoted(&"x".repeat(10_000)).chars().count() <= LONGEST_QUOTE);
    }
}
