//! What happened to one lock, and its leases as a timeline: what the chronicle knows, with names and times for people.

use super::events::render;
use crate::admin::api::{Known, Span};
use crate::lock::chronicle;
use crate::proxy::shared::Shared;

/// Adds the history of this lock to what else is known of it.
pub(super) fn fill(shared: &Shared, database: u32, key: &[u8], known: &mut Known) {
    let (entries, spans): (Vec<_>, Vec<_>) = {
        let chronicle = shared.telling.chronicle();
        let Some(lock) = chronicle.lock(database, key) else {
            return;
        };
        known.history_dropped = lock.dropped();
        (lock.entries().cloned().collect(), lock.spans().cloned().collect())
    };
    let policy = shared.policy();
    let rule = policy.rules.find(key).map(|index| &*policy.rules.rule(index).name);
    let rule = rule.unwrap_or_default();
    let entries = entries.iter();
    known.history = entries
        .map(|entry| render(shared, database, key, rule, entry))
        .collect();
    known.spans = spans.iter().map(|span| shown(shared, span)).collect();
}

/// Locks whose history was forgotten to make room for others, since the start.
pub(super) fn dropped(shared: &Shared) -> u64 {
    shared.telling.chronicle().histories_dropped()
}

fn shown(shared: &Shared, span: &chronicle::Span) -> Span {
    Span {
        owner: span.owner.to_string(),
        connection: span.connection.to_string(),
        client_name: shared.clients.name(&span.connection),
        start_ms: shared.clock.unix_ms(span.start),
        due_ms: span.due.map(|due| shared.clock.unix_ms(due)),
        end_ms: span.end.map(|(end, _)| shared.clock.unix_ms(end)),
        ended: span.end.map(|(_, how)| how.word().to_owned()),
        late_release_ms: span.late.map(|late| shared.clock.unix_ms(late)),
        owed: span.is_owed(shared.now()),
        overlapped: span.overlapped,
    }
}
