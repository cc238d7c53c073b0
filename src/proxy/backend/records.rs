//! Lease records as they stand in the server, a page at a time, on lockward's own connection: the locks of all proxies.
//! Slow on purpose: one page at a time, and pauses between them, so that no operator can keep the server busy by it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::admin::api::{Record, RecordPage, RecordsQuery};
use crate::admin::{Answer, RecordsError};
use crate::lock::chore::{Chore, Done, Seen, Task};
use crate::lock::glob::escaped;
use crate::lock::record::lock_key;
use crate::lock::search::Search;
use crate::proxy::own::OwnError;
use crate::proxy::shared::Shared;
use crate::resp::frame;

/// Between the end of a page and the beginning of the next.
const PAUSE: Duration = Duration::from_millis(100);

/// Keys that the server looks at in one SCAN: some ten microseconds.
const COUNT: &str = "50";

/// SCANs for one page at most; it ends sooner when enough records are found. So a page looks at about 2000 keys.
const SCANS: usize = 40;

/// Locks on a page. One more SCAN may bring about as many again.
const ENOUGH: usize = 50;

/// Locks that are looked at at the same time.
const AT_ONCE: usize = 8;

/// Whoever asks for records has to wait for his turn.
pub(super) struct Records {
    shared: Arc<Shared>,
    /// When the next page may begin. Locked while one is read.
    turn: Arc<Mutex<Instant>>,
}

impl Records {
    pub(super) fn new(shared: Arc<Shared>) -> Records {
        Records {
            shared,
            turn: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// One page.
    pub(super) fn page(&self, query: &RecordsQuery) -> Answer<RecordPage, RecordsError> {
        let turn = Arc::clone(&self.turn);
        let cursor = cursor(query.cursor.as_deref());
        let reading = Reading {
            shared: Arc::clone(&self.shared),
            database: query.db,
            search: None,
        };
        let search = query.pattern.as_deref().map(Search::new).transpose();
        Box::pin(async move {
            let cursor = cursor?;
            let search = search.map_err(|fault| RecordsError::Query(fault.to_string()))?;
            let reading = Reading { search, ..reading };
            let turn = turn.try_lock_owned().map_err(|_| RecordsError::Busy)?;
            if Instant::now() < *turn {
                return Err(RecordsError::Busy);
            }
            let _turn = Turn(turn);
            reading.page(cursor).await
        })
    }
}

/// Held while a page is read; the pause begins when it is dropped, however the page came to its end.
struct Turn(OwnedMutexGuard<Instant>);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0 = Instant::now() + PAUSE;
    }
}

/// A cursor as the server gave it: a whole number.
fn cursor(text: Option<&str>) -> Result<u64, RecordsError> {
    let digits = text.unwrap_or("0");
    let number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.then(|| digits.parse().ok()).flatten();
    let wrong = "cursor: must be what the page before gave, or be left out for the first page";
    number.ok_or_else(|| RecordsError::Query(wrong.to_owned()))
}

/// What is looked for, and where.
struct Reading {
    shared: Arc<Shared>,
    database: u32,
    search: Option<Search>,
}

impl Reading {
    async fn page(&self, mut cursor: u64) -> Result<RecordPage, RecordsError> {
        let mut keys = Vec::new();
        let mut known = HashSet::new();
        for _ in 0..SCANS {
            let names;
            (cursor, names) = self.scan(cursor).await?;
            let prefix = &self.shared.policy().prefix;
            let found = names.iter().filter_map(|name| lock_key(prefix, name));
            let wanted = found.filter(|key| self.search.as_ref().is_none_or(|search| search.matches(key)));
            // SCAN may give a key twice.
            keys.extend(wanted.filter(|key| known.insert(key.clone())));
            if cursor == 0 || keys.len() >= ENOUGH {
                break;
            }
        }
        Ok(RecordPage {
            records: self.look(keys).await?,
            cursor: (cursor != 0).then(|| cursor.to_string()),
        })
    }

    /// One SCAN: the next cursor, and the names of what may be records.
    async fn scan(&self, cursor: u64) -> Result<(u64, Vec<Bytes>), RecordsError> {
        let mut pattern = escaped(&self.shared.policy().prefix);
        pattern.push('*');
        let cursor = cursor.to_string();
        let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", COUNT, "TYPE", "hash"];
        let words = words.map(|word| Bytes::copy_from_slice(word.as_bytes())).to_vec();
        let reply = self.shared.own.command(Some(self.database), words).await;
        let reply = reply.map_err(|error| match error {
            OwnError::Refused(text) if text.starts_with("SELECT") => RecordsError::Query(format!("db: {text}")),
            error => RecordsError::Upstream(error.to_string()),
        })?;
        scanned(&reply).ok_or_else(|| {
            let error = reply.strip_prefix(b"-").map_or(OwnError::Unreadable, |text| {
                OwnError::Refused(String::from_utf8_lossy(text).trim_end().to_owned())
            });
            RecordsError::Upstream(error.to_string())
        })
    }

    /// Looks at the locks, some at a time.
    async fn look(&self, keys: Vec<Bytes>) -> Result<Vec<Record>, RecordsError> {
        let mut records = Vec::with_capacity(keys.len());
        for some in keys.chunks(AT_ONCE) {
            let under_way: Vec<_> = some.iter().map(|key| self.inspect(key.clone())).collect();
            for (key, seen) in some.iter().zip(under_way) {
                let seen = match seen.await.unwrap_or(Err(OwnError::Unreadable)) {
                    Ok(Done::Seen(seen)) => Some(seen),
                    // Something about this one lock: the others are shown all the same.
                    Ok(_) | Err(OwnError::Refused(_) | OwnError::Unreadable) => None,
                    Err(error) => return Err(RecordsError::Upstream(error.to_string())),
                };
                if seen.as_ref().is_none_or(tells_something) {
                    records.push(self.record(key, seen));
                }
            }
        }
        Ok(records)
    }

    fn inspect(&self, key: Bytes) -> JoinHandle<Result<Done, OwnError>> {
        let shared = Arc::clone(&self.shared);
        let chore = Chore {
            database: self.database,
            key,
            task: Task::Inspect,
        };
        tokio::spawn(async move { shared.own.chore(chore).await })
    }

    fn record(&self, key: &[u8], seen: Option<Seen>) -> Record {
        let policy = self.shared.policy();
        let rule = policy.rules.find(key).map(|rule| &*policy.rules.rule(rule).name);
        Record::new(self.database, key, rule, seen)
    }
}

/// Whether there is a lock, or something owed for one: between SCAN and look a record can vanish.
fn tells_something(seen: &Seen) -> bool {
    seen.exists || seen.owner.is_some() || !seen.debts.is_empty()
}

/// Reads the reply to SCAN.
fn scanned(reply: &Bytes) -> Option<(u64, Vec<Bytes>)> {
    let mut parts = frame::elements(reply)?;
    let cursor = std::str::from_utf8(frame::bulk(parts.next()?)?).ok()?.parse().ok()?;
    let names = frame::elements(parts.next()?)?;
    let names = names.map(|name| frame::bulk(name).map(|name| reply.slice_ref(name)));
    Some((cursor, names.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::glob::Glob;

    #[test]
    fn cursors_are_whole_numbers() {
        assert_eq!(cursor(None), Ok(0));
        assert_eq!(cursor(Some("18446744073709551615")), Ok(u64::MAX));
        for text in ["", "-1", "+1", " 1", "1 MATCH *", "18446744073709551616", "x"] {
            assert!(matches!(cursor(Some(text)), Err(RecordsError::Query(_))), "{text:?}");
        }
    }

    #[test]
    fn a_prefix_matches_only_itself() {
        for prefix in ["lockward:", "a*b", "[a]?", "\\", "^x-"] {
            let pattern = Glob::new(format!("{}*", escaped(prefix)).as_bytes());
            assert!(pattern.matches(format!("{prefix}{{lock:a}}").as_bytes()), "{prefix}");
            assert!(!pattern.matches(b"aXb{lock:a}"), "{prefix}");
            assert!(!pattern.matches(b"{lock:a}"), "{prefix}");
        }
    }

    #[test]
    fn replies_to_scan_are_read() {
        let reply = Bytes::from_static(b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$2\r\n\xff\n\r\n");
        let names = vec![Bytes::from_static(b"a"), Bytes::from_static(b"\xff\n")];
        assert_eq!(scanned(&reply), Some((17, names)));
        for broken in [
            &b"*2\r\n$1\r\n0\r\n*-1\r\n"[..],
            b"-ERR no",
            b"*1\r\n$1\r\n0\r\n",
            b"*2\r\n$1\r\nx\r\n*0\r\n",
        ] {
            assert_eq!(scanned(&Bytes::copy_from_slice(broken)), None);
        }
    }
}
