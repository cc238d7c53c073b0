//! What kind of server it is, by its INFO: version, mode, role, replicas. Only judges.

use super::finding::{Finding, quoted};
use crate::proxy::own::facts::Facts;

/// The oldest versions that have all that the lock scripts use (PEXPIRETIME, NX with GET, error texts as they are).
const OLDEST_REDIS: (u32, u32) = (7, 0);
const OLDEST_VALKEY: (u32, u32) = (7, 2);

/// What keeps everything else from being asked: a Sentinel, a server that is loading.
pub(super) fn closed(info: &Facts) -> Option<Finding> {
    if info.says("redis_mode", "sentinel") {
        let watched = match (info.part("master0", "name"), info.part("master0", "address")) {
            (Some(name), Some(address)) => {
                let name = quoted(name);
                format!(
                    "redis-sentinel://HOST:PORT,…/{name}; it watches {name} at redis://{}",
                    quoted(address)
                )
            }
            _ => "redis-sentinel://HOST:PORT,…/NAME; redis-cli SENTINEL MASTERS says which names it has".to_owned(),
        };
        let found = "this is a Sentinel, which holds no keys";
        let means = format!("name all sentinels in upstream.url and they are asked for the master: {watched}");
        return Some(Finding::error("server", found).means(means));
    }
    if info.says("loading", "1") {
        let left = info
            .number("loading_eta_seconds")
            .map_or(String::new(), |seconds| format!(", about {seconds} s are left"));
        let found = format!("the server is loading its data{left}");
        return Some(Finding::error("server", found).means("until then it serves nobody; check again when it is done"));
    }
    None
}

/// Version and mode.
pub(super) fn judge(info: &Facts) -> Vec<Finding> {
    let mut findings = vec![version(info)];
    if info.says("cluster_enabled", "1") || info.says("redis_mode", "cluster") {
        findings.push(Finding::error("server", "cluster mode is on (cluster_enabled:1)").means(
            "lockward speaks to one server and follows no MOVED: locks in slots of other nodes would fail; take a server \
             without cluster mode",
        ));
    }
    findings.extend(role(info));
    findings
}

fn version(info: &Facts) -> Finding {
    let (name, text, oldest) = match (info.text("valkey_version"), info.text("redis_version")) {
        (Some(text), _) => ("valkey", text, OLDEST_VALKEY),
        (None, Some(text)) => ("redis", text, OLDEST_REDIS),
        (None, None) => return Finding::warning("server", "it does not say its version").means(NEEDS),
    };
    let shown = quoted(text);
    match numbers(text) {
        None => Finding::warning("server", format!("{name} {shown}: an unknown version")).means(NEEDS),
        Some(version) if version < oldest => {
            Finding::error("server", format!("{name} {shown} is too old")).means(NEEDS)
        }
        Some(_) => Finding::ok("server", format!("{name} {shown}")),
    }
}

const NEEDS: &str = "lockward needs Redis 7.0 or newer, or Valkey 7.2 or newer, or the lock scripts fail";

/// Major and minor.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// A replica takes no locks.
fn role(info: &Facts) -> Option<Finding> {
    if !info.says("role", "slave") && !info.says("role", "replica") {
        return None;
    }
    let primary = match (info.text("master_host"), info.text("master_port")) {
        (Some(host), Some(port)) => format!(" of {}:{}", quoted(host), quoted(port)),
        _ => String::new(),
    };
    let means = if info.says("slave_read_only", "0") {
        "it takes writes that its primary never sees and overwrites, so locks taken here protect nothing"
    } else {
        "it is read-only, so every acquire and release is refused"
    };
    let found = format!("the server is a replica{primary}");
    Some(Finding::error("replication", found).means(format!("{means}; upstream.url must name the primary")))
}

/// Replicas of a primary, and what a failover does.
pub(super) fn replication(info: &Facts, config: &Facts) -> Vec<Finding> {
    if !info.says("role", "master") {
        return Vec::new();
    }
    let replicas = info.number("connected_slaves").unwrap_or(0);
    let wanted = config.number("min-replicas-to-write").unwrap_or(0);
    let mut findings = Vec::new();
    if wanted > 0
        && let Some(good) = info.number("min_slaves_good_slaves").filter(|good| *good < wanted)
    {
        let found = format!("{good} good replicas, and min-replicas-to-write is {wanted}");
        findings.push(
            Finding::warning("replication", found)
                .means("every write is refused with NOREPLICAS: nobody gets a lock until the replicas are back"),
        );
    } else if replicas == 0 {
        findings.push(
            Finding::note("replication", "a primary without replicas")
                .means("if this machine is lost, all locks are lost with it"),
        );
    } else {
        findings.push(with_replicas(replicas, wanted));
    }
    if config.says("replica-read-only", "no") {
        findings.push(
            Finding::note("replication", "replica-read-only is no")
                .means("should this server become a replica, it would still grant locks, which its primary never sees")
                .paste("CONFIG SET replica-read-only yes"),
        );
    }
    findings
}

fn with_replicas(replicas: u64, wanted: u64) -> Finding {
    let plural = if replicas == 1 { "replica" } else { "replicas" };
    let found = format!("a primary with {replicas} {plural}, min-replicas-to-write {wanted}");
    let means = "replication is asynchronous: a failover can lose the last grants, and a second client then gets a lock \
                 that is held";
    let finding = Finding::note("replication", found);
    if wanted > 0 {
        return finding.means(format!(
            "{means}; a primary that was cut off stops granting after min-replicas-max-lag seconds"
        ));
    }
    finding
        .means(format!(
            "{means}; and a primary that was cut off goes on granting, unless min-replicas-to-write is set"
        ))
        .paste("CONFIG SET min-replicas-to-write 1")
}

/// How long a script may run until others are answered with BUSY.
pub(super) fn scripts(config: &Facts) -> Option<Finding> {
    /// Below this, in milliseconds, a pause of the machine makes a lock script look slow.
    const SHORT: u64 = 100;
    let limit = config
        .number("busy-reply-threshold")
        .or_else(|| config.number("lua-time-limit"))?;
    let found = format!("busy-reply-threshold is {limit} ms");
    match limit {
        0 => Some(
            Finding::note("scripts", found)
                .means("a client's script that does not end stops all locks, and no BUSY error says so"),
        ),
        1..SHORT => Some(Finding::note("scripts", found).means(
            "lock scripts take microseconds, but a pause of the machine within one makes the server answer BUSY to \
                 others; the default is 5000",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    /// What a Redis 6.2 says, shortened.
    const OLD: &[u8] = b"# Server\r\nredis_version:6.2.14\r\nredis_git_sha1:00000000\r\nredis_mode:standalone\r\n\
        os:Linux 5.10.0 x86_64\r\narch_bits:64\r\nprocess_id:1\r\ntcp_port:6379\r\nuptime_in_seconds:86400\r\n\r\n\
        # Memory\r\nused_memory:874288\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n# Persistence\r\n\
        loading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:0\r\n\r\n# Replication\r\nrole:master\r\n\
        connected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n";

    fn levels(info: &str) -> Vec<Level> {
        let judged = judge(&Facts::from_info(info.as_bytes()));
        judged.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn an_old_server_is_an_error_that_names_what_is_needed() {
        let judged = judge(&Facts::from_info(OLD));
        assert_eq!(judged.len(), 1, "{judged:?}");
        let finding = &judged[0];
        assert_eq!(
            (finding.level, finding.found.as_str()),
            (Level::Error, "redis 6.2.14 is too old")
        );
        assert!(finding.means.contains("Redis 7.0") && finding.means.contains("Valkey 7.2"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (info, level) in [
            ("redis_version:7.0.0", Level::Ok),
            ("redis_version:10.0.1", Level::Ok),
            ("redis_version:8.6.0", Level::Ok),
            ("redis_version:255.255.255", Level::Ok),
            ("redis_version:6.9.9", Level::Error),
            ("redis_version:2.8", Level::Error),
            // Valkey says redis_version 7.2.4 whatever it is.
            ("redis_version:7.2.4\nvalkey_version:9.1.2", Level::Ok),
            ("redis_version:7.2.4\nvalkey_version:7.2.5", Level::Ok),
            ("redis_version:7.2.4\nvalkey_version:7.1.0", Level::Error),
            ("redis_version:unstable", Level::Warning),
            ("redis_version:99999999999.0", Level::Warning),
            ("", Level::Warning),
        ] {
            assert_eq!(levels(info), [level], "{info}");
        }
    }

    #[test]
    fn a_cluster_and_a_replica_are_errors() {
        assert!(levels("redis_version:7.0.1\nredis_mode:cluster\ncluster_enabled:1").contains(&Level::Error));
        let info = "redis_version:7.0.1\nrole:slave\nmaster_host:10.0.0.5\nmaster_port:6379\nslave_read_only:1";
        let judged = judge(&Facts::from_info(info.as_bytes()));
        let finding = judged.last().expect("a finding");
        assert_eq!(finding.level, Level::Error);
        assert!(
            finding.found.contains("10.0.0.5:6379") && finding.means.contains("read-only"),
            "{finding:?}"
        );
        let writable = info.replace("read_only:1", "read_only:0");
        let judged = judge(&Facts::from_info(writable.as_bytes()));
        assert!(judged[1].means.contains("never sees"), "{judged:?}");
    }

    #[test]
    fn a_sentinel_and_a_loading_server_end_the_check() {
        let sentinel = "redis_version:7.0.15\nredis_mode:sentinel\n\
                        master0:name=mymaster,status=ok,address=10.0.0.5:6379,slaves=1,sentinels=3";
        let finding = closed(&Facts::from_info(sentinel.as_bytes())).expect("a finding");
        assert!(
            finding.means.contains("mymaster at redis://10.0.0.5:6379"),
            "{finding:?}"
        );
        let finding = closed(&Facts::from_info(b"loading:1\r\nloading_eta_seconds:12\r\n")).expect("a finding");
        assert!(finding.found.contains("12 s"), "{finding:?}");
        assert_eq!(closed(&Facts::from_info(OLD)), None);
    }

    #[test]
    fn what_a_failover_loses_is_said() {
        let judged = |info: &str, config: &str| {
            let (info, config) = (Facts::from_info(info.as_bytes()), Facts::from_info(config.as_bytes()));
            replication(&info, &config)
        };
        let alone = judged("role:master\nconnected_slaves:0", "");
        assert_eq!(alone[0].level, Level::Note);
        let open = judged("role:master\nconnected_slaves:2", "min-replicas-to-write:0");
        assert_eq!(open[0].paste, ["CONFIG SET min-replicas-to-write 1"]);
        assert!(open[0].means.contains("asynchronous"));
        let bound = judged(
            "role:master\nconnected_slaves:1\nmin_slaves_good_slaves:1",
            "min-replicas-to-write:1\nreplica-read-only:no",
        );
        assert_eq!((bound[0].level, bound[0].paste.len(), bound.len()), (Level::Note, 0, 2));
        let stuck = judged(
            "role:master\nconnected_slaves:0\nmin_slaves_good_slaves:0",
            "min-replicas-to-write:1",
        );
        assert_eq!(stuck[0].level, Level::Warning);
        assert!(stuck[0].means.contains("NOREPLICAS"));
    }

    #[test]
    fn a_short_script_limit_is_noted() {
        let judged = |text: &str| scripts(&Facts::from_info(text.as_bytes())).map(|finding| finding.level);
        assert_eq!(judged("busy-reply-threshold:5000"), None);
        assert_eq!(judged("lua-time-limit:5000"), None);
        assert_eq!(judged("lua-time-limit:10"), Some(Level::Note));
        assert_eq!(judged("busy-reply-threshold:0"), Some(Level::Note));
        assert_eq!(judged(""), None);
    }
}
