//! The decision table: what happens to a command on a lock, by who asks and what it means. One match, no wildcard: a
//! new row or column does not compile before somebody has thought about each of its fields. A test prints it into
//! `docs/decisions.md`. Releases are decided by the accounting in `model`; the same table is written as Lua in `scripts`.

/// Who asks. The first that fits, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    /// Anyone; there is no lock.
    Free,
    /// The connection that acquired the current lease.
    Holder,
    /// Anyone; the lock has no live lease, is open, or has drifted away from the caller's own lease.
    Unmanaged,
    /// The current lease's owner, on a connection that owes a release on this very key.
    Debtor,
    /// The current lease's owner, on any other connection.
    Sibling,
    /// Anyone else; also of a lock that has drifted away from somebody else's lease.
    Other,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// To take it if it is free.
    Acquire,
    /// To give it up.
    Release,
    /// To change its expiry.
    Extend,
    /// To replace the value.
    Overwrite,
    /// To replace the value and learn the old one.
    Takeover,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Applied: a new lease.
    Grant,
    /// As Redis does it without the key.
    AsRedis,
    /// Refused as the command itself does it, because the lock is there.
    Contended,
    /// By the release accounting.
    Accounting,
    /// Applied, the lease stays, the record follows the expiry.
    SameLease,
    /// By the rule: applied as Redis does it, or refused.
    Rule,
    /// By the rule: applied, and it becomes a lease, or refused.
    RuleLease,
    /// Applied, the lock stays what it was.
    AsBefore,
    /// Refused.
    Refuse,
    /// Refused, but for a TTL given to a current lease that has none.
    RefuseUnlessRepair,
    /// Applied, the lock is open to all from now on.
    Open,
}

impl Row {
    /// Every row, the first that fits first.
    pub const ALL: [Row; 6] = [
        Row::Free,
        Row::Holder,
        Row::Unmanaged,
        Row::Debtor,
        Row::Sibling,
        Row::Other,
    ];

    /// As the documentation says it.
    pub fn words(self) -> &'static str {
        match self {
            Row::Free => "anyone, lock free",
            Row::Holder => "holder, own connection",
            Row::Unmanaged => "anyone, lock unmanaged or open (or adrift and the caller's)",
            Row::Debtor => "same owner, own debt on this key",
            Row::Sibling => "same owner, other connection",
            Row::Other => "other owner (or adrift and not the caller's)",
        }
    }
}

impl Column {
    /// Every column.
    pub const ALL: [Column; 5] = [
        Column::Acquire,
        Column::Release,
        Column::Extend,
        Column::Overwrite,
        Column::Takeover,
    ];

    /// As the documentation says it.
    pub fn words(self) -> &'static str {
        match self {
            Column::Acquire => "acquire",
            Column::Release => "release",
            Column::Extend => "extend",
            Column::Overwrite => "overwrite",
            Column::Takeover => "takeover",
        }
    }
}

impl Verdict {
    /// As the documentation says it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Grant => "granted, new lease",
            Verdict::AsRedis => "as Redis without the key",
            Verdict::Contended => "contended",
            Verdict::Accounting => "by accounting",
            Verdict::SameLease => "applied, same lease, the record follows",
            Verdict::Rule => "by the rule",
            Verdict::RuleLease => "by the rule; applied: becomes a lease",
            Verdict::AsBefore => "applied, the lock stays what it was",
            Verdict::Refuse => "refused",
            Verdict::RefuseUnlessRepair => {
                "refused; a TTL of at least 10 s (or `max_ttl`, if shorter) for a current lease without one: applied"
            }
            Verdict::Open => "applied, the record is marked open",
        }
    }
}

/// The table.
pub fn decide(row: Row, column: Column) -> Verdict {
    match (row, column) {
        (Row::Free, Column::Acquire) => Verdict::Grant,
        (Row::Free, Column::Release) => Verdict::Accounting,
        (Row::Free, Column::Extend) => Verdict::AsRedis,
        (Row::Free, Column::Overwrite) => Verdict::Grant,
        (Row::Free, Column::Takeover) => Verdict::Grant,
        (Row::Holder, Column::Acquire) => Verdict::Contended,
        (Row::Holder, Column::Release) => Verdict::Accounting,
        (Row::Holder, Column::Extend) => Verdict::SameLease,
        (Row::Holder, Column::Overwrite) => Verdict::SameLease,
        (Row::Holder, Column::Takeover) => Verdict::SameLease,
        (Row::Unmanaged, Column::Acquire) => Verdict::Contended,
        (Row::Unmanaged, Column::Release) => Verdict::Accounting,
        (Row::Unmanaged, Column::Extend) => Verdict::Rule,
        (Row::Unmanaged, Column::Overwrite) => Verdict::RuleLease,
        (Row::Unmanaged, Column::Takeover) => Verdict::AsBefore,
        (Row::Debtor, Column::Acquire) => Verdict::Contended,
        (Row::Debtor, Column::Release) => Verdict::Accounting,
        (Row::Debtor, Column::Extend) => Verdict::Refuse,
        (Row::Debtor, Column::Overwrite) => Verdict::Refuse,
        (Row::Debtor, Column::Takeover) => Verdict::Refuse,
        (Row::Sibling, Column::Acquire) => Verdict::Contended,
        (Row::Sibling, Column::Release) => Verdict::Accounting,
        (Row::Sibling, Column::Extend) => Verdict::SameLease,
        (Row::Sibling, Column::Overwrite) => Verdict::SameLease,
        (Row::Sibling, Column::Takeover) => Verdict::SameLease,
        (Row::Other, Column::Acquire) => Verdict::Contended,
        (Row::Other, Column::Release) => Verdict::Accounting,
        (Row::Other, Column::Extend) => Verdict::RefuseUnlessRepair,
        (Row::Other, Column::Overwrite) => Verdict::Refuse,
        (Row::Other, Column::Takeover) => Verdict::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::path::Path;

    fn page() -> String {
        let mut page = String::from(
            "# What a command on a lock does\n\nWritten by the test `lock::decision`; the table itself stands in \
             `src/lock/decision.rs`. The first row from the top that fits decides.\n\n| caller is ↓ \\ meaning → |",
        );
        for column in Column::ALL {
            let _ = write!(page, " {} |", column.words());
        }
        page.push_str("\n|---|---|---|---|---|---|\n");
        for row in Row::ALL {
            let _ = write!(page, "| {} |", row.words());
            for column in Column::ALL {
                let _ = write!(page, " {} |", decide(row, column).words());
            }
            page.push('\n');
        }
        page
    }

    #[test]
    fn the_page_shows_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/decisions.md");
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        if known != page() {
            std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("the folder can be made");
            std::fs::write(&path, page()).expect("the page can be written");
            panic!("docs/decisions.md was out of date and has been written anew: look at it and commit it");
        }
    }
}
