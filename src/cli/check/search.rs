//! Looks for a key of each rule, by SCAN and within bounds, so that a large server is not kept busy. Judges nothing.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::rights::refusal;
use super::rules::{Matcher, Searched, literal};
use crate::config::Config;
use crate::lock::rule::Rule;
use crate::proxy::own::facts::Facts;
use crate::proxy::own::look::Look;
use crate::resp::frame;

/// The search ends after this.
const LIMIT: Duration = Duration::from_secs(3);
/// Keys that the server looks at in one SCAN: some 100 microseconds.
const COUNT: u64 = 1000;
/// SCANs for one pattern in one database.
const SCANS: u64 = 100;
/// Databases that are looked into.
const DATABASES: usize = 16;

/// For each rule whether it matches a key, in any database that has some. The inner `Err`: what the server said to SCAN;
/// the outer: what became of the connection.
pub(super) async fn search<'a>(
    look: &mut Look,
    config: &'a Config,
    info: &Facts,
) -> Result<Result<Vec<(&'a Rule, Searched)>, String>, String> {
    let matcher = Matcher::new(config);
    let mut databases = info.databases();
    let cut_short = databases.len() > DATABASES;
    databases.truncate(DATABASES);
    if databases.is_empty() {
        databases.push(config.upstream.server.database);
    }
    let searched = Searched {
        cut_short,
        ..Searched::default()
    };
    let mut results: Vec<_> = config.rules.iter().map(|rule| (rule, searched)).collect();
    let mut searching = Searching {
        look,
        matcher,
        records: config.records.prefix.as_bytes(),
        until: Instant::now() + LIMIT,
    };
    for database in databases {
        let selected = searching.look.ask(&["SELECT", &database.to_string()]).await?;
        if let Some(text) = refusal(&selected) {
            return Ok(Err(text));
        }
        let keys = info
            .part(&format!("db{database}"), "keys")
            .and_then(|keys| keys.parse().ok());
        for (index, (rule, searched)) in results.iter_mut().enumerate() {
            if searched.found {
                continue;
            }
            match searching.rule(index, rule, keys).await? {
                Ok(more) => {
                    searched.found = more.found;
                    searched.looked_at = searched.looked_at.saturating_add(more.looked_at);
                    searched.cut_short |= more.cut_short;
                }
                Err(text) => return Ok(Err(text)),
            }
        }
    }
    Ok(Ok(results))
}

struct Searching<'a> {
    look: &'a mut Look,
    matcher: Matcher,
    /// What the names of lease records begin with: they are nobody's locks.
    records: &'a [u8],
    until: Instant,
}

impl Searching<'_> {
    /// One rule in the database that is selected, which has so many keys.
    async fn rule(&mut self, index: usize, rule: &Rule, keys: Option<u64>) -> Result<Result<Searched, String>, String> {
        let mut all = Searched::default();
        for pattern in &rule.patterns {
            let one = match literal(pattern) {
                true => self.exists(index, pattern, keys).await?,
                false => self.scan(index, pattern, keys).await?,
            };
            match one {
                Ok(one) => {
                    all.found |= one.found;
                    all.looked_at = all.looked_at.max(one.looked_at);
                    all.cut_short |= one.cut_short;
                }
                Err(text) => return Ok(Err(text)),
            }
            if all.found {
                break;
            }
        }
        Ok(Ok(all))
    }

    async fn exists(
        &mut self,
        index: usize,
        key: &[u8],
        keys: Option<u64>,
    ) -> Result<Result<Searched, String>, String> {
        let reply = self.look.ask(&[b"EXISTS", key]).await?;
        if let Some(text) = refusal(&reply) {
            return Ok(Err(text));
        }
        Ok(Ok(Searched {
            found: frame::bulk(&reply) == Some(b"1") && self.is_of(index, key),
            looked_at: keys.unwrap_or(0),
            cut_short: false,
        }))
    }

    async fn scan(
        &mut self,
        index: usize,
        pattern: &[u8],
        keys: Option<u64>,
    ) -> Result<Result<Searched, String>, String> {
        let mut cursor = Bytes::from_static(b"0");
        let count = COUNT.to_string();
        for scans in 1..=SCANS {
            let words = [&b"SCAN"[..], &cursor, b"MATCH", pattern, b"COUNT", count.as_bytes()];
            let reply = self.look.ask(&words).await?;
            if let Some(text) = refusal(&reply) {
                return Ok(Err(text));
            }
            let Some((next, found)) = scanned(&reply, |key| self.is_of(index, key)) else {
                return Ok(Err("an answer to SCAN that cannot be read".to_owned()));
            };
            let whole = next == b"0"[..];
            let looked_at = scans * COUNT;
            if found || whole || Instant::now() > self.until {
                return Ok(Ok(Searched {
                    found,
                    looked_at: if whole { keys.unwrap_or(0) } else { looked_at },
                    cut_short: !whole,
                }));
            }
            cursor = next;
        }
        Ok(Ok(Searched {
            found: false,
            looked_at: SCANS * COUNT,
            cut_short: true,
        }))
    }

    /// Whether the key is a lock of this rule, and not of one before it.
    fn is_of(&self, index: usize, key: &[u8]) -> bool {
        !key.starts_with(self.records) && self.matcher.is_of(index, key)
    }
}

/// Reads the answer to SCAN: the next cursor, and whether one of the keys is wanted.
fn scanned(reply: &Bytes, mut wanted: impl FnMut(&[u8]) -> bool) -> Option<(Bytes, bool)> {
    let mut parts = frame::elements(reply)?;
    let cursor = frame::bulk(parts.next()?)?;
    let digits = !cursor.is_empty() && cursor.len() <= 20 && cursor.iter().all(u8::is_ascii_digit);
    let mut keys = frame::elements(parts.next()?)?.filter_map(frame::bulk);
    digits.then(|| (reply.slice_ref(cursor), keys.any(&mut wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_scan_are_read() {
        let read = |reply: &'static [u8]| scanned(&Bytes::from_static(reply), |key| key == b"lock:a");
        let whole = b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$6\r\nlock:a\r\n";
        assert_eq!(read(whole), Some((Bytes::from_static(b"0"), true)));
        assert_eq!(
            read(b"*2\r\n$2\r\n17\r\n*0\r\n"),
            Some((Bytes::from_static(b"17"), false))
        );
        for broken in [
            &b"*2\r\n$1\r\nx\r\n*0\r\n"[..],
            b"*2\r\n$-1\r\n*0\r\n",
            b"*1\r\n$1\r\n0\r\n",
            b"*2\r\n$21\r\n111111111111111111111\r\n*0\r\n",
            b":1\r\n",
        ] {
            assert_eq!(read(broken), None, "{}", broken.escape_ascii());
        }
    }
}
