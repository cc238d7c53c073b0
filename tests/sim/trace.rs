//! What happened in a run, line by line: the last lines for whoever has to understand a failure, all of them for the
//! comparison of two runs.

use std::collections::VecDeque;

/// How many lines a failure shows.
const SHOWN: usize = 40;

pub enum Trace {
    /// Nothing is kept.
    Off,
    Last(VecDeque<String>),
    All(Vec<String>),
}

impl Trace {
    pub fn last() -> Trace {
        Trace::Last(VecDeque::new())
    }

    pub fn line(&mut self, now: u64, text: impl FnOnce() -> String) {
        match self {
            Trace::Off => {}
            Trace::Last(lines) => {
                if lines.len() == SHOWN {
                    lines.pop_front();
                }
                lines.push_back(format!("{now:>10} {}", text()));
            }
            Trace::All(lines) => lines.push(format!("{now:>10} {}", text())),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Trace::Off => String::new(),
            Trace::Last(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
            Trace::All(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        }
    }
}
