//! What came by, counted: by event, by rule, and the keys that were fought for most. Bounded: keys beyond a number are
//! counted together.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::Serialize;

use crate::admin::api::Event;
use crate::cli::rows::key;
use crate::cli::shown::{shown_text, span};
use crate::cli::table::{Column, Table};

/// So many keys are told apart.
const MOST_KEYS: usize = 10_000;
/// So many rules and kinds of events are, which are few unless what answers is no lockward.
const MOST_WORDS: usize = 1_000;
/// So many keys are shown.
const SHOWN: usize = 10;

/// What came by.
#[derive(Debug, Default)]
pub(super) struct Summary {
    events: BTreeMap<String, u64>,
    rules: BTreeMap<String, BTreeMap<String, u64>>,
    keys: HashMap<(u32, String), Fought>,
    /// Refused tries on keys for which there was no room.
    others: u64,
    missed: u64,
}

/// How one key was fought for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Fought {
    contended: u64,
    longest_wait_ms: u64,
}

/// The same for machines.
#[derive(Serialize)]
struct Counts<'a> {
    events: &'a BTreeMap<String, u64>,
    rules: &'a BTreeMap<String, BTreeMap<String, u64>>,
    contended_keys: Vec<KeyCounts>,
    contended_on_other_keys: u64,
    missed: u64,
}

#[derive(Serialize)]
struct KeyCounts {
    database: u32,
    key_encoded: String,
    contended: u64,
    longest_wait_ms: u64,
}

impl Summary {
    /// Counts one event.
    pub(super) fn count(&mut self, event: &Event) {
        bump(&mut self.events, &event.event);
        if self.rules.len() < MOST_WORDS || self.rules.contains_key(&event.rule) {
            bump(self.rules.entry(event.rule.clone()).or_default(), &event.event);
        }
        let contended = event.event == "contended";
        let waited = event.waited_ms.unwrap_or(0);
        if !contended && waited == 0 {
            return;
        }
        let id = (event.database, event.key_encoded.clone());
        if self.keys.len() >= MOST_KEYS && !self.keys.contains_key(&id) {
            self.others += u64::from(contended);
            return;
        }
        let fought = self.keys.entry(id).or_default();
        fought.contended += u64::from(contended);
        fought.longest_wait_ms = fought.longest_wait_ms.max(waited);
    }

    /// Counts events that did not come.
    pub(super) fn missed(&mut self, count: u64) {
        self.missed = self.missed.saturating_add(count);
    }

    /// The keys fought for most, first.
    fn top(&self) -> Vec<(&(u32, String), Fought)> {
        let mut keys: Vec<_> = self.keys.iter().map(|(id, fought)| (id, *fought)).collect();
        keys.sort_by(|(one_id, one), (other_id, other)| other.cmp(one).then(one_id.cmp(other_id)));
        keys.truncate(SHOWN);
        keys
    }

    /// For people, with a line end behind it.
    pub(super) fn text(&self) -> String {
        let total: u64 = self.events.values().sum();
        let mut out = format!("\n{total} events");
        if self.missed > 0 {
            let _ = write!(out, ", and {} missed: this reader was too slow", self.missed);
        }
        out.push('\n');
        if total == 0 {
            return out;
        }
        let mut table = Table::new(&[
            ("RULE", Column::Words),
            ("EVENT", Column::Words),
            ("COUNT", Column::Figures),
        ]);
        for (rule, events) in &self.rules {
            for (event, count) in events {
                table.push(vec![shown_text(rule), shown_text(event), count.to_string()]);
            }
        }
        push_lines(&mut out, &table);
        if self.keys.is_empty() {
            return out;
        }
        out.push('\n');
        let mut table = Table::new(&[
            ("MOST FOUGHT FOR", Column::Words),
            ("CONTENDED", Column::Figures),
            ("LONGEST WAIT", Column::Figures),
        ]);
        for ((database, encoded), fought) in self.top() {
            let mut name = key(encoded, encoded);
            if *database != 0 {
                let _ = write!(name, " (db {database})");
            }
            table.push(vec![name, fought.contended.to_string(), span(fought.longest_wait_ms)]);
        }
        push_lines(&mut out, &table);
        if self.others > 0 {
            let _ = writeln!(
                out,
                "and {} more tries on keys beyond the first {MOST_KEYS}",
                self.others
            );
        }
        out
    }

    /// For machines, as one line.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let keys = self.top().into_iter().map(|((database, encoded), fought)| KeyCounts {
            database: *database,
            key_encoded: encoded.clone(),
            contended: fought.contended,
            longest_wait_ms: fought.longest_wait_ms,
        });
        let counts = Counts {
            events: &self.events,
            rules: &self.rules,
            contended_keys: keys.collect(),
            contended_on_other_keys: self.others,
            missed: self.missed,
        };
        serde_json::to_string(&serde_json::json!({ "summary": counts }))
    }
}

fn push_lines(out: &mut String, table: &Table) {
    for line in table.lines(None) {
        let _ = writeln!(out, "{line}");
    }
}

fn bump(counts: &mut BTreeMap<String, u64>, word: &str) {
    let room = counts.len() < MOST_WORDS;
    match counts.get_mut(word) {
        Some(count) => *count += 1,
        None if room => {
            counts.insert(word.to_owned(), 1);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(word: &str, key: &str, waited_ms: Option<u64>) -> Event {
        Event {
            event: word.to_owned(),
            key_encoded: key.to_owned(),
            rule: "jobs".to_owned(),
            waited_ms,
            ..Event::default()
        }
    }

    #[test]
    fn counts_by_rule_and_the_keys_fought_for() {
        let mut summary = Summary::default();
        assert_eq!(summary.text(), "\n0 events\n");
        for _ in 0..3 {
            summary.count(&event("contended", "lock:b", None));
        }
        summary.count(&event("contended", "lock:a", None));
        summary.count(&event("acquired", "lock:b", Some(1_500)));
        summary.count(&event("released", "lock:c", None));
        summary.missed(4);
        assert_eq!(
            summary.text(),
            "\n6 events, and 4 missed: this reader was too slow\n\
             RULE  EVENT      COUNT\n\
             jobs  acquired       1\n\
             jobs  contended      4\n\
             jobs  released       1\n\n\
             MOST FOUGHT FOR  CONTENDED  LONGEST WAIT\n\
             lock:b                   3          1.5s\n\
             lock:a                   1           0ms\n"
        );
        let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
        assert_eq!(json["summary"]["events"]["contended"], 4);
        assert_eq!(json["summary"]["contended_keys"][0]["key_encoded"], "lock:b");
        assert_eq!(json["summary"]["missed"], 4);
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut summary = Summary::default();
        for number in 0..2 * MOST_KEYS {
            let mut event = event("contended", &format!("lock:{number}"), None);
            event.rule = number.to_string();
            event.event = if number % 2 == 0 {
                "contended".to_owned()
            } else {
                number.to_string()
            };
            event.waited_ms = Some(1);
            summary.count(&event);
        }
        assert_eq!(summary.keys.len(), MOST_KEYS);
        assert!(summary.rules.len() <= MOST_WORDS && summary.events.len() <= MOST_WORDS);
        assert_eq!(summary.others, MOST_KEYS as u64 / 2);
    }
}
