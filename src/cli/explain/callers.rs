//! What becomes of an operation for each kind of caller: the rows of the decision table, and for releases the lines of the
//! accounting, each tried out on the lease model. The table and the model decide; only the situations are told here.

use serde::Serialize;
use uuid::Uuid;

use crate::event::{ConnectionId, Owner, RefusalReason, ReleaseOutcome, Token};
use crate::lock::decision::{Column, Row, Verdict, decide};
use crate::lock::model::{Caller, Debt, Holder, Lease, Lock, Model, Outcome};
use crate::lock::rule::{Rule, Unmanaged};

/// One kind of caller, and what becomes of his operation.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Case {
    /// Who asks, and what the lock is to him.
    pub caller: String,
    /// What is done.
    pub outcome: String,
    /// It is refused, or may be.
    pub refused: bool,
}

/// Each kind of caller, the first that fits first.
pub(super) fn cases(column: Column, rule: &Rule) -> Vec<Case> {
    match column {
        Column::Release => releases(rule),
        Column::Acquire | Column::Extend | Column::Overwrite | Column::Takeover => {
            Row::ALL.into_iter().map(|row| case(row, column, rule)).collect()
        }
    }
}

fn case(row: Row, column: Column, rule: &Rule) -> Case {
    let verdict = decide(row, column);
    let (outcome, refused) = match (verdict, rule.unmanaged) {
        (Verdict::Rule, Unmanaged::Allow) => ("applied, as Redis does it (unmanaged = \"allow\")", false),
        (Verdict::RuleLease, Unmanaged::Allow) => ("applied, and becomes a lease (unmanaged = \"allow\")", false),
        (Verdict::Rule | Verdict::RuleLease, Unmanaged::Refuse) => (
            "refused (unmanaged = \"refuse\"); open or adrift and the caller's: applied",
            true,
        ),
        (Verdict::Refuse | Verdict::RefuseUnlessRepair | Verdict::Contended, _) => (verdict.words(), true),
        (
            Verdict::Grant
            | Verdict::AsRedis
            | Verdict::Accounting
            | Verdict::SameLease
            | Verdict::AsBefore
            | Verdict::Open,
            _,
        ) => (verdict.words(), false),
    };
    Case {
        caller: row.words().to_owned(),
        outcome: outcome.to_owned(),
        refused,
    }
}

/// Whose something is.
#[derive(Clone, Copy)]
enum Whose {
    /// The caller's, by this very connection.
    Own,
    /// His owner's, by another connection.
    Sibling,
    /// Another owner's.
    Stranger,
}

/// A lock as somebody finds it.
#[derive(Clone, Copy)]
enum Found {
    Free,
    Unmanaged,
    Held(Whose),
}

/// A release, and what the lock and the debts are when it comes.
struct Situation {
    words: &'static str,
    lock: Found,
    debt: Option<Whose>,
}

const NOW: i64 = 1_000_000;

fn releases(rule: &Rule) -> Vec<Case> {
    let situation = |words, lock, debt| Situation { words, lock, debt };
    let all = [
        situation(
            "his own lease on it has expired, its release still owed (whoever holds it now)",
            Found::Held(Whose::Stranger),
            Some(Whose::Own),
        ),
        situation(
            "the connection that took the current lease, owing nothing",
            Found::Held(Whose::Own),
            None,
        ),
        situation(
            "the same, while another open connection of its owner owes a release",
            Found::Held(Whose::Own),
            Some(Whose::Sibling),
        ),
        situation(
            "same owner, other connection, owing nothing",
            Found::Held(Whose::Sibling),
            None,
        ),
        situation(
            "same owner, who owes a release",
            Found::Held(Whose::Sibling),
            Some(Whose::Sibling),
        ),
        situation("other owner, owing nothing", Found::Held(Whose::Stranger), None),
        situation(
            "other owner, who owes a release",
            Found::Held(Whose::Stranger),
            Some(Whose::Sibling),
        ),
        situation("anyone, lock unmanaged", Found::Unmanaged, None),
        situation("anyone, lock free", Found::Free, None),
    ];
    let owing = rule.late_release_window_ms > 0;
    all.into_iter()
        .filter(|situation| owing || situation.debt.is_none())
        .map(|situation| tried(&situation, rule))
        .collect()
}

fn tried(situation: &Situation, rule: &Rule) -> Case {
    let Outcome::Release { outcome, refused, .. } = model(situation, rule).release(&caller(rule), NOW) else {
        return Case {
            caller: situation.words.to_owned(),
            outcome: "nothing".to_owned(),
            refused: false,
        };
    };
    let why = match (outcome, refused) {
        (ReleaseOutcome::Late, _) => "the oldest debt is paid, the lock stays",
        (_, Some(RefusalReason::Unmanaged)) => "the rule refuses it, the lock stays",
        (_, Some(RefusalReason::Foreign | RefusalReason::Late)) => "the lock stays",
        (ReleaseOutcome::Absent, None) => "there is nothing to release",
        (ReleaseOutcome::Unmanaged, None) => "done as Redis does it",
        (_, None) => "the lease is released",
    };
    Case {
        caller: situation.words.to_owned(),
        outcome: format!("{}: {why}", outcome.word()),
        refused: refused.is_some(),
    }
}

fn caller(rule: &Rule) -> Caller {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    Caller {
        owner: owner(Whose::Own),
        connection: connection(Whose::Own),
        token: Token(Uuid::nil()),
        allow: rule.unmanaged == Unmanaged::Allow,
        window_ms: signed(rule.late_release_window_ms),
        default_ms: rule.default_ttl_ms.map(signed),
        max_ms: rule.max_ttl_ms.map(signed),
    }
}

fn model(situation: &Situation, rule: &Rule) -> Model {
    let window_ms = i64::try_from(rule.late_release_window_ms).unwrap_or(i64::MAX);
    let expiry = Some(NOW + 30_000);
    let holder = |whose| Holder {
        owner: owner(whose),
        connection: connection(whose),
        open: true,
        owing: true,
        token: Token(Uuid::nil()),
        acquired_at: NOW,
    };
    let debt = |whose| Debt {
        number: 1,
        owner: owner(whose),
        connection: connection(whose),
        due: NOW - 1,
        open: true,
    };
    let lease = match situation.lock {
        Found::Held(whose) => Some(Lease {
            holder: Some(holder(whose)),
            due: expiry,
            doubts: Vec::new(),
        }),
        Found::Free | Found::Unmanaged => None,
    };
    Model {
        lock: (!matches!(situation.lock, Found::Free)).then_some(Lock { expiry }),
        lease,
        debts: situation.debt.map(debt).into_iter().collect(),
        window_ms,
        ..Model::default()
    }
}

fn owner(whose: Whose) -> Owner {
    match whose {
        Whose::Own | Whose::Sibling => "own".into(),
        Whose::Stranger => "stranger".into(),
    }
}

fn connection(whose: Whose) -> ConnectionId {
    let number = match whose {
        Whose::Own => 1,
        Whose::Sibling => 2,
        Whose::Stranger => 3,
    };
    ConnectionId {
        instance: "0000000000000000".into(),
        number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(column: Column, rule: &Rule) -> Vec<String> {
        cases(column, rule).into_iter().map(|case| case.outcome).collect()
    }

    #[test]
    fn releases_come_out_as_the_accounting_says() {
        let rule = Rule::new("lock:*");
        let words: Vec<String> = outcomes(Column::Release, &rule)
            .iter()
            .filter_map(|outcome| outcome.split(':').next().map(str::to_owned))
            .collect();
        assert_eq!(
            words,
            [
                "late",
                "released",
                "late",
                "pooled",
                "late",
                "foreign",
                "late",
                "unmanaged",
                "absent"
            ]
        );
    }

    #[test]
    fn without_a_window_nothing_is_owed() {
        let rule = Rule {
            late_release_window_ms: 0,
            unmanaged: Unmanaged::Refuse,
            ..Rule::new("lock:*")
        };
        assert_eq!(
            outcomes(Column::Release, &rule),
            [
                "released: the lease is released",
                "pooled: the lease is released",
                "foreign: the lock stays",
                "unmanaged: the rule refuses it, the lock stays",
                "absent: there is nothing to release"
            ]
        );
    }

    #[test]
    fn what_the_rule_decides_is_said() {
        let mut rule = Rule::new("lock:*");
        assert!(outcomes(Column::Extend, &rule)[2].contains("unmanaged = \"allow\""));
        rule.unmanaged = Unmanaged::Refuse;
        assert!(cases(Column::Overwrite, &rule)[2].refused);
    }
}
