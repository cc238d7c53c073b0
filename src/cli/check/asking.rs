//! Asks the server, step by step, and hands what it said to those who judge. Changes no key and no setting, and goes on
//! where a question is refused.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use tokio::time::timeout;

use super::clock;
use super::finding::{Finding, Level, quoted};
use super::rights::{self, For, NEEDS, Need, Tried, Verdict};
use super::search::search;
use super::{keeping, rules, sentinels, server};
use crate::config::{Config, Place, Target};
use crate::lock::chore::{Chore, Task};
use crate::lock::features::Features;
use crate::lock::record::record_name;
use crate::proxy;
use crate::proxy::own::facts::Facts;
use crate::proxy::own::look::Look;
use crate::proxy::tls::Certificates;
use crate::resp::frame;

/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long all of it may take, however slow the server is.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the clock is looked at; the quickest answer counts.
const CLOCK_LOOKS: usize = 3;
/// What CONFIG GET is asked for.
const PARAMETERS: [&str; 10] = [
    "maxmemory-policy",
    "maxmemory",
    "save",
    "appendonly",
    "appendfsync",
    "stop-writes-on-bgsave-error",
    "min-replicas-to-write",
    "replica-read-only",
    "busy-reply-threshold",
    "lua-time-limit",
];
/// The record of the lock of this name is tried; nobody has such a lock.
const NOBODYS: &[u8] = b"lockward-check";

/// Everything there is to find.
pub(super) async fn ask(config: &Config, certificates: Arc<Certificates>, users: &[String]) -> Vec<Finding> {
    let mut asking = Asking {
        config,
        certificates,
        findings: Vec::new(),
    };
    let whole = timeout(LIMIT, asking.all(users)).await;
    let whole = whole.unwrap_or_else(|_| Err(format!("the check was not done within {LIMIT:?}")));
    if let Err(text) = whole {
        let found = format!("{}: {}", config.upstream.server.target, quoted(&text));
        asking.add(Finding::error("connection", found));
    }
    asking.findings
}

struct Asking<'a> {
    config: &'a Config,
    certificates: Arc<Certificates>,
    findings: Vec<Finding>,
}

impl Asking<'_> {
    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn failed(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }

    /// As whom lockward's own connection comes: without a password it does not log in.
    fn user(&self) -> &str {
        let server = &self.config.upstream.server;
        let named = server.user.as_deref().filter(|_| server.password.is_some());
        named.unwrap_or("default")
    }

    /// `Err`: the connection was lost or never came about, in words.
    async fn all(&mut self, users: &[String]) -> Result<(), String> {
        let upstream = &self.config.upstream;
        let Some(place) = self.place().await else { return Ok(()) };
        let (tls, limit) = (upstream.server.tls, upstream.connect_timeout);
        let mut look = Look::connect(&place, tls, &self.certificates, limit, PATIENCE).await?;
        if let Some(text) = look.login(&upstream.server).await? {
            self.add(self.not_let_in(&text));
            return Ok(());
        }
        let info = self.info(&mut look).await?;
        if let Some(finding) = server::closed(&info) {
            self.add(finding);
            return Ok(());
        }
        self.findings.extend(server::judge(&info));
        let config = self.settings(&mut look).await?;
        // A server that lockward cannot work with is asked nothing more, but what is known of it is said.
        let works = !self.failed();
        if works {
            let own = self.user().to_owned();
            self.rights(&mut look, &own, true).await?;
            self.scripts(place).await;
            for user in users {
                self.rights(&mut look, user, false).await?;
            }
        }
        self.clock(&mut look).await?;
        self.findings.extend(server::scripts(&config));
        self.findings.extend(keeping::eviction(&info, &config));
        self.findings.extend(keeping::persistence(&info, &config));
        self.findings.extend(server::replication(&info, &config));
        if works {
            match search(&mut look, self.config, &info).await? {
                Ok(searched) => self.findings.extend(rules::judge(&searched)),
                Err(text) => self.add(unseen("whether keys match the rules", &text)),
            }
        } else {
            let found = "rights, scripts and rules were not tried on this server";
            self.add(Finding::note("not seen", found));
        }
        Ok(())
    }

    /// Where the server is. `None`: the sentinels name none that is one.
    async fn place(&mut self) -> Option<Place> {
        match &self.config.upstream.server.target {
            Target::Place(place) => Some(place.clone()),
            Target::Sentinels(named) => {
                let (place, findings) = sentinels::master(self.config, &self.certificates, named).await;
                self.findings.extend(findings);
                place
            }
        }
    }

    /// The server refused the login, or everybody who has none.
    fn not_let_in(&self, text: &str) -> Finding {
        let server = &self.config.upstream.server;
        let said = quoted(text);
        let means = if text.starts_with("NOAUTH") {
            "the server asks for a password: put it into upstream.url (or LOCKWARD_UPSTREAM__URL), \
             redis://user:password@host"
        } else if text.starts_with("WRONGPASS") {
            "user or password in upstream.url (or LOCKWARD_UPSTREAM__URL) is wrong, or the user is off: ACL GETUSER tells"
        } else if text.contains("without any password configured") {
            "the server asks for no password: take it out of upstream.url"
        } else {
            "the server lets nobody in from here"
        };
        let found = match (&server.user, &server.password) {
            (_, None) => format!("no login, and the server says: {said}"),
            (Some(user), _) => format!("the login of user {} was refused: {said}", quoted(user)),
            (None, _) => format!("the login with a password was refused: {said}"),
        };
        Finding::error("login", found).means(means)
    }

    async fn info(&mut self, look: &mut Look) -> Result<Facts, String> {
        let reply = look.ask(&["INFO"]).await?;
        if let Some(text) = rights::refusal(&reply) {
            self.add(unseen("version, memory, persistence and replication", &text));
        }
        Ok(Facts::from_info(frame::bulk(&reply).unwrap_or_default()))
    }

    /// One parameter at a time: older servers take no more.
    async fn settings(&mut self, look: &mut Look) -> Result<Facts, String> {
        let mut facts = Facts::default();
        for parameter in PARAMETERS {
            let reply = look.ask(&["CONFIG", "GET", parameter]).await?;
            if let Some(text) = rights::refusal(&reply) {
                let mut finding = unseen("settings of the server", &text);
                if text.starts_with("NOPERM") {
                    let user = rights::word(self.user().as_bytes());
                    finding = finding.paste(format!("ACL SETUSER {user} +config|get"));
                }
                self.add(finding);
                break;
            }
            // An answer that cannot be read is as good as none.
            let _ = facts.add_config(&reply);
        }
        Ok(facts)
    }

    async fn clock(&mut self, look: &mut Look) -> Result<(), String> {
        let mut looks = Vec::new();
        for _ in 0..CLOCK_LOOKS {
            let asked = Instant::now();
            let reply = look.ask(&["TIME"]).await?;
            let round_trip = asked.elapsed();
            if let Some(text) = rights::refusal(&reply) {
                self.add(unseen("the server's clock", &text));
                break;
            }
            looks.extend(looked_at_clock(&reply, round_trip));
        }
        self.findings.extend(clock::judge(&looks));
        Ok(())
    }

    async fn rights(&mut self, look: &mut Look, user: &str, own: bool) -> Result<(), String> {
        let prefix = &self.config.records.prefix;
        let fencing = rules::in_force(&self.config.rules).any(|rule| rule.fencing || rule.emulate);
        let record = record_name(prefix, NOBODYS);
        let mut trials = Trials {
            look,
            user: (!own).then_some(user),
            database: self.config.upstream.server.database.to_string(),
        };
        let mut tried = Tried {
            user: user.to_owned(),
            own,
            needs: Vec::new(),
            patterns: Vec::new(),
        };
        let wanted = |need: &&Need| match need.whose {
            For::Scripts => true,
            For::Fencing => fencing,
            For::Connection | For::Own | For::Comfort(_) => own,
        };
        for need in NEEDS.iter().filter(wanted) {
            tried.needs.push((need, trials.one(need.words, &record).await?));
        }
        for pattern in rules::in_force(&self.config.rules).flat_map(|rule| &rule.patterns) {
            let Some(key) = rules::example(pattern) else { continue };
            tried.patterns.push((pattern.to_vec(), trials.key(&key).await?));
        }
        let enforced = rules::enforced(&self.config.rules);
        self.findings.extend(rights::judge(&tried, prefix, enforced));
        Ok(())
    }

    /// Loads the scripts, runs one that only reads, and asks for newer commands: as the proxy does it.
    async fn scripts(&mut self, place: Place) {
        if self.failed() {
            self.add(Finding::note(
                "not seen",
                "the lock scripts were not tried, for the errors above",
            ));
            return;
        }
        let own = proxy::own(self.config, Arc::clone(&self.certificates), place.into());
        let mut state = own.state();
        let settled = timeout(PATIENCE, state.wait_for(|state| state.up || state.error.is_some())).await;
        let state = match settled {
            Ok(Ok(state)) => state.clone(),
            _ => {
                let found = format!("lockward's own connection was not ready within {PATIENCE:?}");
                return self.add(Finding::error("scripts", found));
            }
        };
        // Where rules only observe, no script is needed yet.
        let level = match rules::enforced(&self.config.rules) || !state.up {
            true => Level::Error,
            false => Level::Warning,
        };
        if let Some(error) = state.error {
            return self.add(Finding::new(level, "scripts", quoted(&error)));
        }
        let patterns = rules::in_force(&self.config.rules).flat_map(|rule| &rule.patterns);
        let key = patterns.filter_map(|pattern| rules::example(pattern)).next();
        let chore = Chore {
            database: self.config.upstream.server.database,
            key: Bytes::from(key.unwrap_or_else(|| NOBODYS.to_vec())),
            task: Task::Inspect,
        };
        self.add(match own.chore(chore).await {
            Ok(_) => Finding::ok("scripts", "the lock scripts are loaded and run"),
            Err(error) => Finding::new(
                level,
                "scripts",
                format!(
                    "the server does not run the lock scripts: {}",
                    quoted(&error.to_string())
                ),
            ),
        });
        self.add(newer(state.features));
    }
}

/// A question that was refused. Rights that the proxy itself needs come with a line of their own.
fn unseen(what: &str, text: &str) -> Finding {
    Finding::note("not seen", what).means(quoted(text))
}

/// Rights tried on the server, by use, or for another user by ACL DRYRUN.
struct Trials<'a> {
    look: &'a mut Look,
    user: Option<&'a str>,
    database: String,
}

impl Trials<'_> {
    async fn one(&mut self, words: &[&str], record: &[u8]) -> Result<Verdict, String> {
        let request = words.iter().map(|word| match *word {
            rights::RECORD => record,
            rights::DATABASE => self.database.as_bytes(),
            word => word.as_bytes(),
        });
        let asked: Vec<&[u8]> = match self.user {
            Some(user) => [&b"ACL"[..], b"DRYRUN", user.as_bytes()]
                .into_iter()
                .chain(request)
                .collect(),
            None => request.collect(),
        };
        let reply = self.look.ask(&asked).await?;
        Ok(match self.user {
            Some(_) => rights::dry_run(&reply),
            None => rights::used(&reply),
        })
    }

    /// Whether a key may be used as the scripts use it.
    async fn key(&mut self, key: &[u8]) -> Result<Verdict, String> {
        let mut verdict = Verdict::NoCommand;
        for words in rights::KEY_TRIALS {
            verdict = self.one(words, key).await?;
            if verdict != Verdict::NoCommand {
                break;
            }
        }
        Ok(verdict)
    }
}

/// Reads the answer to TIME: seconds and microseconds.
fn looked_at_clock(reply: &Bytes, round_trip: Duration) -> Option<clock::Look> {
    let mut numbers = frame::elements(reply)?.map(|element| {
        let text = std::str::from_utf8(frame::bulk(element)?).ok()?;
        text.parse::<i64>().ok()
    });
    let (seconds, microseconds) = (numbers.next()??, numbers.next()??);
    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(clock::Look {
        ours_us: i64::try_from(ours.as_micros()).ok()?,
        server_us: seconds.checked_mul(1_000_000)?.checked_add(microseconds)?,
        round_trip_us: i64::try_from(round_trip.as_micros()).ok()?,
    })
}

fn newer(features: Features) -> Finding {
    let all = [
        ("DELEX", features.delex),
        ("DELIFEQ", features.delifeq),
        ("MSETEX", features.msetex),
        ("SET IFEQ", features.set_ifeq),
        ("SET IFNE", features.set_ifne),
    ];
    let names = |wanted: bool| -> Vec<&str> {
        let some = all.iter().filter(|(_, has)| *has == wanted);
        some.map(|(name, _)| *name).collect()
    };
    let found = match (names(true).join(", "), names(false).join(", ")) {
        (has, lacks) if has.is_empty() => format!("the server lacks {lacks}"),
        (has, lacks) if lacks.is_empty() => return Finding::ok("features", format!("the server has {has}")),
        (has, lacks) => format!("the server has {has}; it lacks {lacks}"),
    };
    Finding::ok("features", found).means(
        "a client that sends one that is missing gets the server's own error, or where a rule says emulate = true, an answer",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_and_strange_times_are_not() {
        let look = |reply: &'static [u8]| looked_at_clock(&Bytes::from_static(reply), Duration::from_micros(40));
        let seen = look(b"*2\r\n$10\r\n1800000000\r\n$3\r\n250\r\n").expect("a time");
        assert_eq!((seen.server_us, seen.round_trip_us), (1_800_000_000_000_250, 40));
        for strange in [
            &b"*1\r\n$1\r\n1\r\n"[..],
            b"*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n",
            b"*2\r\n$-1\r\n$-1\r\n",
            b"+OK\r\n",
            b"",
        ] {
            assert!(look(strange).is_none(), "{}", strange.escape_ascii());
        }
    }

    #[test]
    fn newer_commands_are_named() {
        let features = Features {
            delifeq: true,
            set_ifeq: true,
            ..Features::default()
        };
        assert_eq!(
            newer(features).found,
            "the server has DELIFEQ, SET IFEQ; it lacks DELEX, MSETEX, SET IFNE"
        );
        assert!(newer(Features::default()).found.starts_with("the server lacks DELEX, "));
    }
}
