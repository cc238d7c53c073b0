//! A lock and its record as the server has them, read into the model's own terms.

use std::collections::HashMap;

use lockward::event::{ConnectionId, Owner, Token};
use lockward::lock::model::{Debt, Holder, Lease, Lock, Model};

use super::server::Value;

/// What the server says of one lock.
pub struct View {
    pub lock: Option<Lock>,
    pub fields: HashMap<String, String>,
    record_expiry: i64,
}

pub fn connection(text: &str) -> ConnectionId {
    let (instance, number) = text.rsplit_once('-').expect("instance and number");
    ConnectionId {
        instance: instance.into(),
        number: number.parse().expect("a number"),
    }
}

impl View {
    /// From `PEXPIRETIME lock`, `HGETALL record`, `PEXPIRETIME record`.
    pub fn read(lock: &Value, record: &Value, record_expiry: &Value) -> View {
        let lock = match lock.integer() {
            -2 => None,
            -1 => Some(Lock { expiry: None }),
            at => Some(Lock { expiry: Some(at) }),
        };
        // It may expire between the two reads.
        let gone = record_expiry.integer() == -2;
        let fields = record
            .array()
            .chunks(2)
            .filter(|_| !gone)
            .map(|pair| (pair[0].text(), pair[1].text()))
            .collect();
        View {
            lock,
            fields,
            record_expiry: record_expiry.integer(),
        }
    }

    /// Whether a record without a lease ends, and not before the last debt of it has left the window.
    pub fn ends_in_time(&self, model: &Model, slack: i64) -> bool {
        let stays = self.fields.is_empty() || model.lease.is_some();
        let last = model
            .debts
            .iter()
            .map(|debt| debt.due + model.window_ms)
            .max()
            .unwrap_or(0);
        stays || self.record_expiry >= last - slack && self.record_expiry > 0
    }

    pub fn model(&self) -> Model {
        let text = |name: &str| self.fields.get(name);
        let mut model = Model {
            lock: self.lock,
            ..Model::default()
        };
        if self.fields.is_empty() {
            return model;
        }
        // Version, the record's first expiry or else the time of the grant, connection, number, TTL, window.
        let packed: Vec<&str> = text("lease").expect("a lease").split(' ').collect();
        assert_eq!((packed.len(), packed[0]), (6, "2"), "{packed:?}");
        let number = |place: usize| packed[place].parse::<i64>().expect("a number");
        let (at, ttl) = (number(1), number(4));
        model.window_ms = number(5);
        let mut doubts = Vec::new();
        for number in text("debts").map(String::as_str).unwrap_or_default().split_whitespace() {
            let Some(packed) = text(&format!("debt:{number}")) else {
                continue;
            };
            let mut parts = packed.splitn(3, ' ');
            let mut part = || parts.next().expect("three parts");
            let debt = Debt {
                due: part().parse().expect("a number"),
                connection: connection(part()),
                owner: Owner::from(part()),
                number: number.parse().expect("a number"),
                open: text(&format!("open:{number}")).is_some(),
            };
            let list = if text(&format!("unpaid:{number}")).is_some() {
                &mut model.debts
            } else {
                &mut doubts
            };
            list.push(debt);
        }
        let due = (self.record_expiry >= 0).then(|| self.record_expiry - model.window_ms);
        let holder = text("token").map(|token| Holder {
            owner: Owner::from(text("owner").expect("an owner").as_str()),
            connection: connection(packed[2]),
            open: text("connection_open").is_some(),
            owing: text("owing").is_some(),
            token: Token(token.parse().expect("a token")),
            acquired_at: if ttl == 0 { at } else { at - model.window_ms - ttl },
        });
        if holder.is_some() || text("opened").is_some() {
            model.lease = Some(Lease { holder, due, doubts });
        }
        model
    }
}

/// Whether two models say the same of a lock, times aside by a few milliseconds and numbers aside.
pub fn alike(one: &Model, other: &Model, slack: i64) -> bool {
    let near = |a: Option<i64>, b: Option<i64>| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => (a - b).abs() <= slack,
        _ => false,
    };
    let debts = |a: &[Debt], b: &[Debt]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| {
                a.owner == b.owner && a.connection == b.connection && a.open == b.open && (a.due - b.due).abs() <= slack
            })
    };
    let holders = |a: &Option<Holder>, b: &Option<Holder>| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let same = (&a.owner, &a.connection, a.open, a.owing, a.token)
                == (&b.owner, &b.connection, b.open, b.owing, b.token);
            same && (a.acquired_at - b.acquired_at).abs() <= slack
        }
        _ => false,
    };
    let leases = match (&one.lease, &other.lease) {
        (None, None) => true,
        (Some(a), Some(b)) => holders(&a.holder, &b.holder) && near(a.due, b.due) && debts(&a.doubts, &b.doubts),
        _ => false,
    };
    let locks = one.lock.is_some() == other.lock.is_some()
        && near(
            one.lock.and_then(|lock| lock.expiry),
            other.lock.and_then(|lock| lock.expiry),
        );
    locks && leases && debts(&one.debts, &other.debts)
}
