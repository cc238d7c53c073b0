//! How the server is, as long as it is there: whether it takes writes, whether its memory is full, whether it is still the
//! process that it was. Asked every second on lockward's own connection, told in the log when it changes, and shown by
//! readiness and metrics. What a client asks meanwhile goes to the server all the same, and its own words come back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::own::facts::Facts;
use super::shared::Shared;

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);

/// What the server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Condition {
    /// Another one after each start of the server.
    pub run_id: String,
    /// It copies another server, and refuses writes (`READONLY`).
    pub replica: bool,
    /// Its memory is used up and it evicts nothing: it refuses what needs more (`OOM`), acquires among it. Releases need
    /// none.
    pub full: bool,
}

/// Asks as long as the proxy lives. A user who may not ask for INFO is told nothing here.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        sleep(EVERY).await;
        let words = ["INFO", "server", "replication", "memory"];
        let question = words.map(|word| Bytes::from_static(word.as_bytes())).to_vec();
        let answer = shared.own.command(None, question).await;
        let found = answer.as_ref().ok().and_then(|answer| read(answer));
        if answer.is_err() || found.as_ref().is_some_and(|found| found.replica) {
            shared.whereabouts.doubt();
        }
        if let Some(found) = found {
            shared.metrics.upstream_condition(found.replica, found.full);
            let found = Arc::new(found);
            let before = shared.condition.swap(Arc::clone(&found));
            tell(&shared, &before, &found);
        }
    }
}

fn tell(shared: &Shared, before: &Condition, now: &Condition) {
    if !before.run_id.is_empty() && before.run_id != now.run_id {
        shared.metrics.upstream_changed();
        // Whoever reconnects looks at the leases that are known: here it is only said why some of them are gone.
        tracing::warn!(
            before = before.run_id,
            now = now.run_id,
            leases_known = shared.keeper().len(),
            "the server was restarted, or is another one: locks that it did not keep are free"
        );
    }
    match (before.replica, now.replica) {
        (false, true) => tracing::error!(
            "the server is a replica: it refuses writes (READONLY), so no lock can be taken or released; not ready"
        ),
        (true, false) => tracing::info!("the server is a master again"),
        _ => {}
    }
    match (before.full, now.full) {
        (false, true) => {
            tracing::error!("the server's memory is full: it refuses acquires (OOM); releases and extends still work")
        }
        (true, false) => tracing::info!("the server has memory again"),
        _ => {}
    }
}

/// Reads an answer to INFO; `None` if it is none.
fn read(answer: &[u8]) -> Option<Condition> {
    let info = Facts::from_info(answer);
    let limit = info.number("maxmemory").filter(|limit| *limit > 0);
    let used = limit.zip(info.number("used_memory"));
    Some(Condition {
        run_id: info.text("run_id")?.to_owned(),
        replica: info.says("role", "slave"),
        full: info.says("maxmemory_policy", "noeviction") && used.is_some_and(|(limit, used)| used >= limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_says_how_it_is() {
        let info = |role: &str, used: u64, policy: &str| {
            format!(
                "$200\r\n# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n\r\n# Replication\r\nrole:{role}\r\n\r\n\
                 # Memory\r\nused_memory:{used}\r\nused_memory_human:1M\r\nmaxmemory:1000\r\nmaxmemory_policy:{policy}\r\n\r\n"
            )
        };
        let found = |text: String| read(text.as_bytes()).map(|found| (found.replica, found.full));
        assert_eq!(found(info("master", 999, "noeviction")), Some((false, false)));
        assert_eq!(found(info("slave", 1000, "noeviction")), Some((true, true)));
        assert_eq!(found(info("master", 2000, "allkeys-lru")), Some((false, false)));
        assert_eq!(found("-NOPERM no\r\n".to_owned()), None);
        assert_eq!(found("$9\r\nrun_id:a\u{ff}\r\n".to_owned()), Some((false, false)));
    }
}
