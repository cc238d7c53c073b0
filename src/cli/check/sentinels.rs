//! What the sentinels say: who answers, which master they name, what a failover would need. Asks them as lockward itself
//! does, and changes nothing there.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::finding::{Finding, quoted};
use super::rights;
use crate::config::{Config, HostPort, Place, Sentinels};
use crate::proxy::sentinel::{Answer, Role, Said, Way, ask, role};
use crate::proxy::tls::Certificates;

/// Asks all of them. The place of the master, if there is one, and what was found.
pub(super) async fn master(
    config: &Config,
    certificates: &Arc<Certificates>,
    sentinels: &Sentinels,
) -> (Option<Place>, Vec<Finding>) {
    let way = Arc::new(Way::new(config, Arc::clone(certificates)));
    let mut asking = JoinSet::new();
    for (index, host) in sentinels.hosts.iter().cloned().enumerate() {
        let (way, name) = (Arc::clone(&way), sentinels.name.clone());
        asking.spawn(async move { (index, ask(&way, &host, &name).await, host) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(index, ..)| *index);
    let answers: Vec<_> = answers.into_iter().map(|(_, answer, host)| (host, answer)).collect();
    let (newest, mut findings) = judge(&sentinels.name, &answers);
    let Some(place) = newest.map(|said| Place::Tcp(said.master)) else {
        return (None, findings);
    };
    let upstream = &config.upstream;
    let found = match role(&upstream.server, &place, certificates, upstream.connect_timeout).await {
        Role::Master => return (Some(place), findings),
        Role::Untold(text) => {
            findings.extend(untold(config, &text));
            return (Some(place), findings);
        }
        Role::Other(role) => format!("{place} is a {}, and no master", quoted(&role)),
        Role::Unreachable(text) => format!("the master at {place} does not answer: {}", quoted(&text)),
    };
    findings.push(Finding::error("sentinels", found).means("lockward waits until they name a master that is one"));
    (None, findings)
}

/// The server does not tell its role. Any refusal but this is told where the server itself is looked at.
fn untold(config: &Config, text: &str) -> Option<Finding> {
    let user = config.upstream.server.user.as_deref().unwrap_or("default");
    let found = format!("the server does not tell its role: {}", quoted(text));
    text.starts_with("NOPERM").then(|| {
        Finding::warning("sentinels", found)
            .means("the sentinels are taken at their word, be it a master or not")
            .paste(format!("ACL SETUSER {} +role", rights::word(user.as_bytes())))
    })
}

/// The newest word of the master, and what all answers mean.
fn judge(name: &str, answers: &[(HostPort, Result<Answer, String>)]) -> (Option<Said>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut said: Vec<(&HostPort, &Said)> = Vec::new();
    let mut unknown = Vec::new();
    for (host, answer) in answers {
        match answer {
            Ok(Answer::Master(master)) => said.push((host, master)),
            Ok(Answer::Unknown) => unknown.push(host.to_string()),
            Err(text) => findings.push(Finding::warning("sentinels", format!("{host}: {}", quoted(text)))),
        }
    }
    if !unknown.is_empty() {
        let found = format!("{}: no master is called {} there", unknown.join(", "), quoted(name));
        let means = "the name stands behind \"sentinel monitor\" in their files; SENTINEL MASTERS lists all";
        findings.push(Finding::warning("sentinels", found).means(means));
    }
    let Some((_, newest)) = said.iter().max_by_key(|(_, said)| said.epoch) else {
        let found = format!("no sentinel names a master called {}", quoted(name));
        findings.push(Finding::error("sentinels", found).means("without one lockward serves nobody"));
        return (None, findings);
    };
    let (agree, differ): (Vec<_>, Vec<_>) = said.iter().partition(|(_, said)| said.master == newest.master);
    let by: Vec<String> = agree.iter().map(|(host, _)| host.to_string()).collect();
    let (all, quorum) = (newest.others.saturating_add(1), newest.quorum);
    let found = format!(
        "{} is the master {}, say {}: quorum {quorum} of {all} sentinels, {} replicas, epoch {}",
        newest.master,
        quoted(name),
        by.join(", "),
        newest.replicas,
        newest.epoch
    );
    findings.push(Finding::ok("sentinels", found));
    for (host, said) in differ {
        let found = format!("{host} names another master, {} (epoch {})", said.master, said.epoch);
        findings.push(Finding::warning("sentinels", found).means("it lies behind, and is not followed"));
    }
    findings.extend(failover(newest, answers.len()));
    ((Some((*newest).clone())), findings)
}

/// What a failover needs, and may lack.
fn failover(said: &Said, named: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |found: String, means: &str| {
        findings.push(Finding::warning("sentinels", found).means(means));
    };
    let all = said.others.saturating_add(1);
    if said.flags.contains("_down") {
        let found = format!("they find the master down ({})", quoted(&said.flags));
        warn(found, "a failover may be near");
    }
    if said.replicas == 0 {
        let found = "the master has no replicas that they know".to_owned();
        warn(found, "there is nobody to take over: no failover can be");
    }
    if said.quorum > all || all < 3 {
        let found = format!("{all} sentinels, quorum {}", said.quorum);
        warn(
            found,
            "with fewer than three, or than the quorum, no failover happens when one machine is lost",
        );
    }
    if named as u64 != all {
        let found = format!("upstream.url names {named} sentinels, and they know of {all}");
        findings.push(
            Finding::note("sentinels", found)
                .means("name all of them, so that lockward finds the master whichever are lost"),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn host(port: u16) -> HostPort {
        let host = "h".to_owned();
        HostPort { host, port }
    }

    fn said(port: u16, epoch: u64) -> Result<Answer, String> {
        Ok(Answer::Master(Said {
            master: host(port),
            epoch,
            quorum: 2,
            replicas: 2,
            others: 2,
            flags: "master".to_owned(),
        }))
    }

    fn levels(answers: &[Result<Answer, String>]) -> (Option<u16>, Vec<Level>) {
        let answers: Vec<_> = answers
            .iter()
            .cloned()
            .zip(1..)
            .map(|(answer, port)| (host(port), answer))
            .collect();
        let (newest, findings) = judge("m", &answers);
        let levels = findings.iter().map(|finding| finding.level).collect();
        (newest.map(|said| said.master.port), levels)
    }

    #[test]
    fn the_newest_word_counts() {
        assert_eq!(
            levels(&[said(7, 1), said(7, 1), said(7, 1)]),
            (Some(7), vec![Level::Ok])
        );
        assert_eq!(
            levels(&[said(7, 1), said(8, 2), said(8, 2)]),
            (Some(8), vec![Level::Ok, Level::Warning])
        );
        let away = || Err("no answer".to_owned());
        assert_eq!(
            levels(&[away(), said(7, 1), said(7, 1)]),
            (Some(7), vec![Level::Warning, Level::Ok])
        );
        let hostile = said(7, u64::MAX).map(|answer| match answer {
            Answer::Master(said) => {
                let (others, quorum, replicas) = (u64::MAX, u64::MAX, u64::MAX);
                Answer::Master(Said {
                    others,
                    quorum,
                    replicas,
                    ..said
                })
            }
            Answer::Unknown => answer,
        });
        assert_eq!(levels(&[hostile]).0, Some(7), "the highest numbers that there are");
        assert_eq!(levels(&[away(), away(), Ok(Answer::Unknown)]).0, None);
        assert!(levels(&[away(), away(), Ok(Answer::Unknown)]).1.contains(&Level::Error));
    }

    #[test]
    fn what_a_failover_lacks_is_said() {
        let lacks = |quorum, replicas, others, flags: &str| {
            let said = Said {
                master: host(1),
                epoch: 0,
                quorum,
                replicas,
                others,
                flags: flags.to_owned(),
            };
            failover(&said, 3)
                .into_iter()
                .map(|finding| finding.level)
                .collect::<Vec<_>>()
        };
        assert_eq!(lacks(2, 2, 2, "master"), []);
        assert_eq!(lacks(2, 0, 2, "master"), [Level::Warning]);
        assert_eq!(lacks(4, 1, 2, "master"), [Level::Warning]);
        assert_eq!(lacks(1, 1, 0, "master"), [Level::Warning, Level::Note]);
        assert_eq!(lacks(2, 1, 2, "s_down,master"), [Level::Warning]);
    }
}
