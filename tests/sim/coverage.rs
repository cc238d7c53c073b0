//! How often each row of the decision table and each line of the accounting was reached, over many runs. A simulation
//! that never gets somewhere proves nothing about it.

use std::collections::BTreeMap;

use lockward::event::{Renewal, What};
use lockward::lock::chore::{Done, Task};
use lockward::lock::script::Script;

use crate::request::Meaning;
use crate::server::keyspace::Bytes;
use crate::serving::script_of;

/// The rows of the decision table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Free,
    Holder,
    Unmanaged,
    Debtor,
    Sibling,
    Other,
}

impl Place {
    const ALL: [Place; 6] = [
        Place::Free,
        Place::Holder,
        Place::Unmanaged,
        Place::Debtor,
        Place::Sibling,
        Place::Other,
    ];
}

/// Everything else that has to be reached.
const LINES: &[&str] = &[
    "release: own debt paid",
    "release: holder pays an open debt of its owner",
    "release: released",
    "release: owner's debt paid while he holds",
    "release: pooled",
    "release: owner's debt paid, lock free or another's",
    "release: foreign",
    "release: unmanaged, as Redis",
    "release: unmanaged, refused",
    "release: absent",
    "doubtful payment settled by a release",
    "doubtful payment returns at the expiry",
    "debt dropped: window",
    "debt dropped: cap",
    "connection marked as gone",
    "debts dropped with their owner",
    "overlap",
    "expired lease found by a grant",
    "ttl injected",
    "ttl reduced",
    "taken over",
    "self-checked release",
    "renewal: extended",
    "renewal: capped",
    "renewal: lost",
    "renewal: doubtful",
    "released on disconnect",
    "released by force",
    "found ended by a look",
    "found expired by a look",
    "refused extend: late",
    "refused extend: foreign",
    "refused extend: unmanaged",
    "refused overwrite: late",
    "refused overwrite: foreign",
    "refused overwrite: unmanaged",
    "acquire failed",
    "refused by the shield",
    "refused by the shield behind an older release",
    "looked at before an acquire",
];

#[derive(Default)]
pub struct Coverage {
    table: BTreeMap<(Place, Meaning), u64>,
    lines: BTreeMap<&'static str, u64>,
    /// Scripts that the server did not know, and reconciles.
    pub healed: u64,
    pub reconciles: u64,
    /// Releases of a sibling's lease by the documented exception.
    pub exceptions: u64,
}

impl Coverage {
    pub fn table(&mut self, meaning: Meaning, place: Place) {
        *self.table.entry((place, meaning)).or_default() += 1;
    }

    fn line(&mut self, line: &'static str) {
        debug_assert!(LINES.contains(&line), "{line}");
        *self.lines.entry(line).or_default() += 1;
    }

    /// A client that was refused asks again, and lockward looks first.
    pub fn looked(&mut self) {
        self.line("looked at before an acquire");
    }

    /// One part of a release's report.
    pub fn release(&mut self, place: Place, own_debt: bool, part: &str, doubt: bool) {
        let word = part.split(' ').next().unwrap_or_default();
        let line = match (word, place) {
            ("late", _) if own_debt => "release: own debt paid",
            ("late", Place::Holder) => "release: holder pays an open debt of its owner",
            ("late", Place::Sibling | Place::Debtor) => "release: owner's debt paid while he holds",
            ("late", _) => "release: owner's debt paid, lock free or another's",
            ("released", _) => "release: released",
            ("pooled", _) => "release: pooled",
            ("foreign", _) => "release: foreign",
            ("unmanaged", _) if part.contains("refused") => "release: unmanaged, refused",
            ("unmanaged", _) => "release: unmanaged, as Redis",
            ("absent", _) => "release: absent",
            _ => return,
        };
        self.line(line);
        if doubt && matches!(word, "released" | "pooled") {
            self.line("doubtful payment settled by a release");
        }
    }

    /// A lease was found expired, and the payment under it was doubtful.
    pub fn doubt_returns(&mut self) {
        self.line("doubtful payment returns at the expiry");
    }

    pub fn report(&mut self, report: &str) {
        let words = [
            (" window=", "debt dropped: window"),
            (" cap=", "debt dropped: cap"),
            (" overlap", "overlap"),
            (" injected", "ttl injected"),
            (" reduced", "ttl reduced"),
            (" expired=", "expired lease found by a grant"),
            ("refused extend late", "refused extend: late"),
            ("refused extend foreign", "refused extend: foreign"),
            ("refused extend unmanaged", "refused extend: unmanaged"),
            ("refused overwrite late", "refused overwrite: late"),
            ("refused overwrite foreign", "refused overwrite: foreign"),
            ("refused overwrite unmanaged", "refused overwrite: unmanaged"),
            ("takenover", "taken over"),
        ];
        for (word, line) in words {
            if report.contains(word) {
                self.line(line);
            }
        }
    }

    pub fn event(&mut self, what: &What) {
        match what {
            What::AcquireFailed => self.line("acquire failed"),
            What::Contended { shielded: true } => self.line("refused by the shield"),
            What::Renewal(Renewal::Extended) => self.line("renewal: extended"),
            What::Renewal(Renewal::Capped) => self.line("renewal: capped"),
            What::Renewal(Renewal::Lost) => self.line("renewal: lost"),
            What::Release(release) => match release.outcome.word() {
                "self_checked" => self.line("self-checked release"),
                "disconnect" => self.line("released on disconnect"),
                "forced" => self.line("released by force"),
                _ => {}
            },
            _ => {}
        }
    }

    pub fn chore(&mut self, task: &Task, done: &Done) {
        match (task, done) {
            (Task::Renew { .. }, Done::Doubtful) => self.line("renewal: doubtful"),
            (Task::Check { .. }, Done::Ended) => self.line("found ended by a look"),
            (Task::Check { .. }, Done::Expired) => self.line("found expired by a look"),
            _ => {}
        }
    }

    /// The lock that the shield refuses was released through the same proxy before, and taken again.
    pub fn shield_after_release(&mut self) {
        self.line("refused by the shield behind an older release");
    }

    /// A chore of the keeper changed a record.
    pub fn marked(&mut self, args: &[Bytes]) {
        match script_of(args) {
            Some(Script::Gone) => self.line("connection marked as gone"),
            Some(Script::Drop) => self.line("debts dropped with their owner"),
            _ => {}
        }
    }

    pub fn add(&mut self, other: &Coverage) {
        for (cell, count) in &other.table {
            *self.table.entry(*cell).or_default() += count;
        }
        for (line, count) in &other.lines {
            *self.lines.entry(line).or_default() += count;
        }
        self.healed += other.healed;
        self.reconciles += other.reconciles;
        self.exceptions += other.exceptions;
    }

    /// What was never reached.
    pub fn missing(&self) -> Vec<String> {
        let cells = Place::ALL
            .iter()
            .flat_map(|place| Meaning::TABLE.iter().map(|meaning| (*place, *meaning)));
        let cells = cells
            .filter(|cell| !self.table.contains_key(cell))
            .map(|(place, meaning)| format!("{place:?} × {meaning:?}"));
        let lines = LINES
            .iter()
            .filter(|line| !self.lines.contains_key(*line))
            .map(|line| (*line).to_owned());
        let others = [("a script healed", self.healed), ("a reconcile", self.reconciles)];
        let others = others
            .into_iter()
            .filter(|(_, count)| *count == 0)
            .map(|(name, _)| name.to_owned());
        cells.chain(lines).chain(others).collect()
    }

    /// The counts as a table for people.
    pub fn text(&self) -> String {
        let mut text = format!("{:<11}", "");
        for meaning in Meaning::TABLE {
            text += &format!("{:>11}", format!("{meaning:?}"));
        }
        for place in Place::ALL {
            text += &format!("\n{:<11}", format!("{place:?}"));
            for meaning in Meaning::TABLE {
                text += &format!("{:>11}", self.table.get(&(place, meaning)).unwrap_or(&0));
            }
        }
        for line in LINES {
            text += &format!("\n{:>8}  {line}", self.lines.get(line).unwrap_or(&0));
        }
        let (healed, reconciles, exceptions) = (self.healed, self.reconciles, self.exceptions);
        text + &format!(
            "\n{healed:>8}  scripts healed\n{reconciles:>8}  reconciles\n{exceptions:>8}  exceptions of promise 2\n"
        )
    }
}
