//! An explanation as text for people.

use std::fmt::Write as _;

use super::keys::Key;
use super::sent::Sent;
use super::view::{Explanation, Operation};
use crate::cli::shown::{width, wrapped};

/// Text in so many columns, as far as words can be moved.
const COLUMNS: usize = 110;
/// Where the second column begins.
const INDENT: usize = 11;

/// The whole text, with a line end behind it.
pub(super) fn text(explanation: &Explanation) -> String {
    let mut out = String::new();
    item(&mut out, "command", &explanation.about);
    for key in &explanation.keys {
        item(&mut out, "key", &of_key(key));
    }
    if let (Some(meaning), Some(text)) = (explanation.meaning, &explanation.meaning_text) {
        item(&mut out, "meaning", &format!("{meaning}: {text}"));
    }
    for note in &explanation.notes {
        item(&mut out, "note", note);
    }
    for operation in &explanation.operations {
        of_operation(&mut out, operation, explanation.treatment == "observe");
    }
    if let Some(answer) = &explanation.answered {
        let _ = writeln!(
            out,
            "\nlockward answers by itself, unless the server refuses a PING in its place:\n  {answer}"
        );
    }
    of_sent(&mut out, explanation);
    out
}

fn of_key(key: &Key) -> String {
    let mut text = format!("{}: ", key.key);
    if key.record {
        text.push_str("belongs to lockward (a lease record)");
        return text;
    }
    match (&key.rule, &key.pattern, key.mode, &key.owner) {
        (Some(rule), Some(pattern), Some(mode), Some(owner)) => {
            let by = if rule == pattern {
                String::new()
            } else {
                format!(" ({pattern})")
            };
            let _ = write!(text, "rule \"{rule}\"{by}, mode {mode}");
            if mode != "off" {
                let _ = write!(text, ", owner = {owner}");
            }
        }
        _ => text.push_str("no lock"),
    }
    if !key.passed.is_empty() {
        let _ = write!(text, "; not matched by {}", key.passed.join(", "));
    }
    text
}

fn of_operation(out: &mut String, operation: &Operation, observed: bool) {
    let _ = writeln!(
        out,
        "\n{} of {} under rule \"{}\"{}, the first line that fits decides:",
        operation.operation,
        operation.keys.join(", "),
        operation.rule,
        if observed {
            ", as it would be in enforce mode"
        } else {
            ""
        }
    );
    let cases = &operation.callers;
    let longest = cases.iter().map(|case| width(&case.caller)).max().unwrap_or(0);
    for case in cases {
        let gap = " ".repeat(longest - width(&case.caller));
        let mark = if case.refused { '-' } else { '+' };
        let _ = writeln!(out, "  {mark} {}{gap}  {}", case.caller, case.outcome);
    }
    let would = if observed { "would be" } else { "is" };
    let _ = writeln!(
        out,
        "  what is refused (-) {would} answered with: {}",
        operation.refused_with
    );
}

fn of_sent(out: &mut String, explanation: &Explanation) {
    let mut requests = explanation.sent.iter();
    let title = match (explanation.untouched, explanation.sent.len()) {
        (_, 0) => "nothing goes to the server",
        (true, 1) => "to the server, as it came",
        (true, _) => "to the server, as it came, and in the same write behind it (its answer is swallowed)",
        (false, _) => "to the server, in place of the command",
    };
    let _ = writeln!(out, "\n{title}:");
    if explanation.untouched
        && let Some(first) = requests.next()
    {
        let _ = writeln!(out, "  {}", first.bytes);
    }
    for request in requests {
        of_request(out, request);
    }
}

fn of_request(out: &mut String, request: &Sent) {
    if let Some(script) = &request.script {
        let _ = writeln!(out, "  script     {script}");
        let _ = writeln!(out, "  keys       {}", quoted(&request.keys));
        let _ = writeln!(out, "  arguments  {}", quoted(&request.arguments));
    }
    let _ = writeln!(out, "  bytes      {}", request.bytes);
    if let Some(lua) = request.lua {
        let _ = writeln!(out, "  text");
        for line in lua.lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
}

fn quoted(words: &[String]) -> String {
    let bare = |word: &&String| !word.is_empty() && !word.contains(' ');
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            Some(word)
                .filter(bare)
                .map_or_else(|| format!("\"{word}\""), String::clone)
        })
        .collect();
    words.join(" ")
}

/// A name and its text, wrapped.
fn item(out: &mut String, name: &str, text: &str) {
    out.push_str(&wrapped(&format!("{name:<INDENT$}"), text, COLUMNS));
}
