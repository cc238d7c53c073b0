//! `lockward suggest`: which rules are missing and what those that are there should say, as a running lockward has seen
//! it. With `-o toml` only what can be pasted, so that `lockward suggest -o toml >> lockward.toml` works.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Closed, print, print_json};
use super::shown::{shown_text, span};
use super::target::Target;
use super::{complain, runtime};
use crate::admin::api::Suggestions;

/// Suggest rules by the traffic that was seen.
#[derive(Args)]
pub(super) struct Suggest {
    #[command(flatten)]
    target: Target,
    /// Advice for people, the API's JSON, or the rules alone, to be appended to a configuration.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// The API's own.
    Json,
    /// Rules only.
    Toml,
}

impl Suggest {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, _) = self.target.client()?;
        let suggestions = runtime()?.block_on(client.suggestions()).map_err(|error| {
            complain(&error.to_string());
            ExitCode::FAILURE
        })?;
        let printed = match self.output {
            Output::Text => print(&text(&suggestions)),
            Output::Json => print_json(&suggestions),
            Output::Toml => print(&toml(&suggestions)),
        };
        printed.map_err(Closed::code)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(suggestions: &Suggestions) -> String {
    let watched = suggestions.now_ms.saturating_sub(suggestions.since_ms);
    let mut out = format!("Traffic of the last {}.\n", span(watched));
    if suggestions.uncovered.is_empty() {
        out.push_str("\nNo key that no rule matches looks like a lock.\n");
    }
    for uncovered in &suggestions.uncovered {
        let _ = writeln!(
            out,
            "\n{}\n  {}",
            shown_text(&uncovered.pattern),
            shown_text(&uncovered.text)
        );
        let examples: Vec<String> = uncovered.examples.iter().map(|key| shown_text(key)).collect();
        let _ = writeln!(out, "  {} keys, such as {}", uncovered.keys, examples.join(", "));
        for line in pasted(&uncovered.toml) {
            let _ = writeln!(out, "    {line}");
        }
    }
    if !suggestions.rules.is_empty() {
        out.push_str("\nOn the rules that are there:\n");
    }
    for advice in &suggestions.rules {
        let _ = writeln!(out, "  {}: {}", shown_text(&advice.rule), shown_text(&advice.text));
        for line in advice.toml.iter().flat_map(|toml| pasted(toml)) {
            let _ = writeln!(out, "    {line}");
        }
    }
    if suggestions.dropped_keys > 0 {
        let _ = writeln!(
            out,
            "\n{} keys were not followed for want of room: the counts are too low.",
            suggestions.dropped_keys
        );
    }
    out
}

/// The new rules alone. Advice on a rule that is there cannot be appended: it stands in comments.
fn toml(suggestions: &Suggestions) -> String {
    let mut out = String::new();
    if let Some(rule) = suggestions
        .built_in
        .as_deref()
        .filter(|_| !suggestions.uncovered.is_empty())
    {
        out.push_str("\n# the rule that is built in as long as a configuration has none\n");
        for line in pasted(rule) {
            let _ = writeln!(out, "{line}");
        }
    }
    for uncovered in &suggestions.uncovered {
        let _ = writeln!(out, "\n# {}", shown_text(&uncovered.text));
        for line in pasted(&uncovered.toml) {
            let _ = writeln!(out, "{line}");
        }
    }
    for advice in &suggestions.rules {
        let _ = writeln!(
            out,
            "\n# rule {}: {}",
            shown_text(&advice.rule),
            shown_text(&advice.text)
        );
        for line in advice.toml.iter().flat_map(|toml| pasted(toml)) {
            let _ = writeln!(out, "#   {line}");
        }
    }
    out
}

/// Lines of TOML, to be read by a program again: it has escapes of its own for what is not printable, so whatever else
/// comes is left out and not escaped a second time.
fn pasted(toml: &str) -> impl Iterator<Item = String> {
    let lines = toml.trim().lines();
    let seen = |character: &char| matches!(character, ' '..='~') || character.escape_debug().len() == 1;
    lines.map(move |line| line.chars().filter(seen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::{Advice, AdviceKind, Uncovered};
    use crate::config::Config;
    use std::path::Path;

    fn suggestions() -> Suggestions {
        Suggestions {
            since_ms: 1_000,
            now_ms: 601_000,
            built_in: None,
            uncovered: vec![Uncovered {
                pattern: "app:mutex:*".to_owned(),
                keys: 12,
                acquires: 40,
                without_ttl: 2,
                releases: 38,
                examples: vec!["app:mutex:\u{1b}7".to_owned()],
                text: "taken with SET NX and given up with DEL".to_owned(),
                toml: "[[locks]]\npattern = \"app:mutex\\\\[1]:*\"\nmode = \"observe\"\n".to_owned(),
                ..Uncovered::default()
            }],
            rules: vec![Advice {
                rule: "default".to_owned(),
                kind: AdviceKind::TtlTooShort,
                text: "TTL too short for 3 % of holds".to_owned(),
                toml: Some("default_ttl = \"45s\"".to_owned()),
            }],
            dropped_keys: 5,
        }
    }

    #[test]
    fn advice_for_people() {
        assert_eq!(
            text(&suggestions()),
            "Traffic of the last 10m00s.\n\n\
             app:mutex:*\n  taken with SET NX and given up with DEL\n  \
             12 keys, such as app:mutex:\\u{1b}7\n    \
             [[locks]]\n    pattern = \"app:mutex\\\\[1]:*\"\n    mode = \"observe\"\n\n\
             On the rules that are there:\n  default: TTL too short for 3 % of holds\n    default_ttl = \"45s\"\n\n\
             5 keys were not followed for want of room: the counts are too low.\n"
        );
        assert!(text(&Suggestions::default()).contains("No key"));
    }

    #[test]
    fn the_rules_can_be_appended_to_a_configuration() {
        let before = "[[locks]]\npattern = \"lock:*\"";
        let whole = format!("{before}{}", toml(&suggestions()));
        let config = Config::parse(&whole, Path::new("test"), std::iter::empty()).expect("still a configuration");
        let names: Vec<&str> = config.config.rules.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["lock:*", "app:mutex\\[1]:*"]);
        assert_eq!(toml(&Suggestions::default()), "");
    }
}
