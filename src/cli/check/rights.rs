//! What an ACL user needs for locks, how each right is tried without changing anything, and the one line that grants what
//! is missing. A right is tried by using it on a key that nobody has, in a way that does nothing or that the command
//! refuses behind the ACL; `ACL DRYRUN` asks the same for another user. Asks nobody itself.

use super::finding::{Finding, Level, quoted};
use crate::lock::glob::escaped;
use crate::resp::frame;

/// Stands for the name of a lease record in [`Need::words`].
pub(super) const RECORD: &str = "{record}";
/// Stands for the number of the database.
pub(super) const DATABASE: &str = "{database}";

/// Who needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Everybody who takes locks: the scripts run it.
    Scripts,
    /// The same, where a rule has fencing or emulate.
    Fencing,
    /// lockward's own connection, which does not come about without.
    Connection,
    /// lockward's own connection.
    Own,
    /// lockward's own connection, which does without: what is then not so.
    Comfort(&'static str),
}

/// One right, and a request that tries it.
#[derive(Debug)]
pub(super) struct Need {
    /// As ACL SETUSER writes it.
    pub(super) right: &'static str,
    /// The request.
    pub(super) words: &'static [&'static str],
    pub(super) whose: For,
}

const fn scripts(right: &'static str, words: &'static [&'static str]) -> Need {
    Need {
        right,
        words,
        whose: For::Scripts,
    }
}

/// A script name that no script has.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";

/// Every right. HSET has a field without a value and SET an expiry of 0: both are refused before a key is looked at.
pub(super) const NEEDS: [Need; 21] = [
    scripts("+eval", &["EVAL", "return 1", "1", RECORD]),
    scripts("+evalsha", &["EVALSHA", NO_SCRIPT, "1", RECORD]),
    scripts("+hgetall", &["HGETALL", RECORD]),
    scripts("+hget", &["HGET", RECORD, "field"]),
    scripts("+hset", &["HSET", RECORD, "field", "value", "field"]),
    scripts("+hdel", &["HDEL", RECORD, "field"]),
    scripts("+del", &["DEL", RECORD]),
    scripts("+exists", &["EXISTS", RECORD]),
    scripts("+pexpiretime", &["PEXPIRETIME", RECORD]),
    scripts("+pexpire", &["PEXPIRE", RECORD, "1"]),
    scripts("+pexpireat", &["PEXPIREAT", RECORD, "1"]),
    scripts("+persist", &["PERSIST", RECORD]),
    scripts("+pttl", &["PTTL", RECORD]),
    scripts("+time", &["TIME"]),
    Need {
        right: "+get",
        words: &["GET", RECORD],
        whose: For::Fencing,
    },
    Need {
        right: "+set",
        words: &["SET", RECORD, "value", "PX", "0"],
        whose: For::Fencing,
    },
    Need {
        right: "+select",
        words: &["SELECT", DATABASE],
        whose: For::Connection,
    },
    Need {
        right: "+script|load",
        words: &["SCRIPT", "LOAD", "return 1"],
        whose: For::Own,
    },
    Need {
        right: "+scan",
        words: &["SCAN", "0", "COUNT", "1"],
        whose: For::Comfort("lease records cannot be listed"),
    },
    Need {
        right: "+command|info",
        words: &["COMMAND", "INFO", "DELEX"],
        whose: For::Comfort("newer lock commands of the server count as missing"),
    },
    Need {
        right: "+info",
        words: &["INFO", "server"],
        whose: For::Comfort("the server's version is not known"),
    },
];

/// Tries a key of a rule's pattern: the first has all rights on it that a script needs, the second, which writes, is for
/// users who may not run scripts.
pub(super) const KEY_TRIALS: [&[&str]; 2] = [
    &["EVAL", "return 1", "1", RECORD],
    &["HSET", RECORD, "field", "value", "field"],
];

/// What the server said to a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The user may.
    Allowed,
    /// He may not run the command.
    NoCommand,
    /// He may run it, but not on this key.
    NoKey,
    /// The server does not know the command.
    Unknown,
    /// It could not be asked: what the server said.
    Unasked(String),
}

/// Reads the answer to a right that was used.
pub(super) fn used(reply: &[u8]) -> Verdict {
    match refusal(reply) {
        Some(text) if text.starts_with("NOPERM") => denied(&text),
        Some(text) if text.contains("unknown command") || text.contains("unknown subcommand") => Verdict::Unknown,
        // Whatever else it complains of, it looked at the rights before.
        _ => Verdict::Allowed,
    }
}

/// Reads the answer to ACL DRYRUN: a text is a refusal, an error means that the question itself was refused.
pub(super) fn dry_run(reply: &[u8]) -> Verdict {
    match refusal(reply) {
        Some(text) if text.contains("Command '") && text.contains("not found") => Verdict::Unknown,
        Some(text) => Verdict::Unasked(quoted(&text)),
        None if reply.starts_with(b"+") => Verdict::Allowed,
        None => match frame::bulk(reply) {
            Some(text) => denied(&String::from_utf8_lossy(text)),
            None => Verdict::Unasked("an answer that cannot be read".to_owned()),
        },
    }
}

/// Keys: `No permissions to access a key`, `… to access one of the keys used as arguments`, `… to access the 'x' key`.
/// Commands: `… to run the 'x' command`.
fn denied(text: &str) -> Verdict {
    match text.contains(" to access ") {
        true => Verdict::NoKey,
        false => Verdict::NoCommand,
    }
}

/// The text of an error reply.
pub(super) fn refusal(reply: &[u8]) -> Option<String> {
    let text = reply.strip_prefix(b"-")?;
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}

/// All that was tried for one user.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) user: String,
    /// lockward's own user, and not one of the clients.
    pub(super) own: bool,
    pub(super) needs: Vec<(&'static Need, Verdict)>,
    /// Patterns of rules, and what the server said of a key of each.
    pub(super) patterns: Vec<(Vec<u8>, Verdict)>,
}

/// What is missing, and the line that grants it. `enforced`: a rule is enforced, so the rights are needed now.
pub(super) fn judge(tried: &Tried, prefix: &str, enforced: bool) -> Vec<Finding> {
    let user = quoted(&tried.user);
    let unasked = tried.needs.iter().find_map(|(_, verdict)| match verdict {
        Verdict::Unasked(text) => Some(text),
        _ => None,
    });
    if let Some(text) = unasked {
        return vec![not_asked(&user, text)];
    }
    let mut findings = Vec::new();
    let unknown: Vec<&str> = names(tried, |verdict| *verdict == Verdict::Unknown).collect();
    if !unknown.is_empty() {
        let found = format!("the server does not know {}", unknown.join(", ").to_uppercase());
        findings.push(Finding::error("rights", found).means(
            "the lock scripts cannot run: see rename-command in its configuration; a managed service may lack them, too",
        ));
    }
    findings.push(missing(tried, &user, prefix, enforced));
    findings
}

fn names<'a>(tried: &'a Tried, wanted: impl Fn(&Verdict) -> bool + 'a) -> impl Iterator<Item = &'a str> {
    let needs = tried.needs.iter().filter(move |(_, verdict)| wanted(verdict));
    needs.map(|(need, _)| need.right.trim_start_matches('+'))
}

fn missing(tried: &Tried, user: &str, prefix: &str, enforced: bool) -> Finding {
    let refused = |verdict: &Verdict| *verdict == Verdict::NoCommand;
    let lacking: Vec<&Need> = tried
        .needs
        .iter()
        .filter(|(_, verdict)| refused(verdict))
        .map(|(need, _)| *need)
        .collect();
    let commands = lacking.iter().map(|need| need.right.to_owned());
    let needed = lacking.iter().any(|need| !matches!(need.whose, For::Comfort(_)));

    let on_records = tried.needs.iter().filter(|(need, _)| need.words.contains(&RECORD));
    let verdicts: Vec<&Verdict> = on_records.map(|(_, verdict)| verdict).collect();
    let no_records = verdicts.iter().any(|verdict| **verdict == Verdict::NoKey);
    let records_unsure = verdicts.iter().all(|verdict| refused(verdict));
    let records = format!("%RW~{}*", word(escaped(prefix).as_bytes()));

    let keys = |wanted: Verdict| {
        let some = tried.patterns.iter().filter(move |(_, verdict)| *verdict == wanted);
        some.map(|(pattern, _)| format!("~{}", word(pattern)))
    };
    let no_keys: Vec<String> = keys(Verdict::NoKey).collect();
    let sure: Vec<String> = commands
        .chain(no_records.then(|| records.clone()))
        .chain(no_keys.iter().cloned())
        .collect();
    let unsure: Vec<String> = records_unsure
        .then_some(records)
        .into_iter()
        .chain(keys(Verdict::NoCommand))
        .collect();
    if sure.is_empty() && unsure.is_empty() {
        let found = format!("user {user} has all that the lock scripts need, on records and on keys of the rules");
        return Finding::ok("rights", found);
    }
    let unconnected = lacking.iter().any(|need| need.whose == For::Connection);
    let level = match needed || no_records || tried.own && !no_keys.is_empty() {
        true if enforced || unconnected => Level::Error,
        _ => Level::Warning,
    };
    let mut means = consequences(tried, needed || no_records, &no_keys, enforced);
    if unconnected {
        means.push("its own connection does not come about, so it is never ready".to_owned());
    }
    let comforts = lacking.iter().filter_map(|need| match need.whose {
        For::Comfort(without) => Some(without.to_owned()),
        _ => None,
    });
    means.extend(comforts);
    if !unsure.is_empty() {
        means.push("without the commands its keys could not be tried".to_owned());
    }
    let grant = sure.iter().chain(&unsure).map(String::as_str);
    let named = word(tried.user.as_bytes());
    let line = ["ACL", "SETUSER", &named].into_iter().chain(grant).collect::<Vec<_>>();
    Finding::new(level, "rights", format!("user {user} lacks {}", sure.join(" ")))
        .means(means.join("; "))
        .paste(line.join(" "))
}

fn consequences(tried: &Tried, needed: bool, no_keys: &[String], enforced: bool) -> Vec<String> {
    let mut means = Vec::new();
    if tried.own && (needed || !no_keys.is_empty()) {
        means.push(
            "lockward's own work (renewal, release on disconnect and by force, a look at a lock) fails".to_owned(),
        );
    } else if needed {
        means.push("its lock commands answer NOPERM".to_owned());
    } else if !no_keys.is_empty() {
        means.push("it takes no locks by these names".to_owned());
    }
    if !enforced && !means.is_empty() {
        means.push("as soon as a rule is enforced".to_owned());
    }
    means
}

/// Another user, and nobody may ask about him.
fn not_asked(user: &str, text: &str) -> Finding {
    if text.contains("not found") {
        return Finding::error("rights", format!("there is no user {user}")).means(quoted(text));
    }
    Finding::warning("rights", format!("the rights of user {user} could not be asked for")).means(format!(
        "the user of upstream.url needs +acl|dryrun for that: {}",
        quoted(text)
    ))
}

/// A word of a command line of redis-cli. ACL patterns hold no blanks; any byte is meant instead.
pub(super) fn word(text: &[u8]) -> String {
    let text: Vec<u8> = text
        .iter()
        .map(|byte| {
            if byte.is_ascii_whitespace() || *byte == 0 {
                b'?'
            } else {
                *byte
            }
        })
        .collect();
    match text
        .iter()
        .all(|byte| byte.is_ascii_graphic() && !b"'\"\\".contains(byte))
    {
        true => String::from_utf8_lossy(&text).into_owned(),
        false => format!("\"{}\"", text.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::script;

    fn tried(own: bool, verdict: impl Fn(&Need) -> Verdict) -> Tried {
        Tried {
            user: "app".to_owned(),
            own,
            needs: NEEDS.iter().map(|need| (need, verdict(need))).collect(),
            patterns: vec![(b"lock:*".to_vec(), Verdict::Allowed)],
        }
    }

    fn judged(tried: &Tried) -> Finding {
        let mut findings = judge(tried, "lockward:", true);
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    #[test]
    fn every_command_of_the_scripts_is_tried() {
        for command in script::COMMANDS.iter().chain(&["EVAL", "EVALSHA"]) {
            let need = NEEDS.iter().find(|need| need.words[0] == *command);
            let right = need.map(|need| need.right);
            assert_eq!(right, Some(&*format!("+{}", command.to_lowercase())));
        }
    }

    #[test]
    fn one_line_grants_all_that_is_missing() {
        let mut some = tried(true, |need| match need.right {
            "+hget" | "+scan" => Verdict::NoCommand,
            "+eval" => Verdict::NoKey,
            _ => Verdict::Allowed,
        });
        some.patterns.push((b"a b[\"]*".to_vec(), Verdict::NoKey));
        let finding = judged(&some);
        assert_eq!(finding.level, Level::Error);
        assert_eq!(
            finding.paste,
            ["ACL SETUSER app +hget +scan %RW~lockward:* ~\"a?b[\\\"]*\""]
        );
        assert!(
            finding.means.contains("renewal") && finding.means.contains("cannot be listed"),
            "{finding:?}"
        );
        let observed = judge(&some, "lockward:", false);
        assert_eq!(observed[0].level, Level::Warning);
    }

    #[test]
    fn what_lockward_can_do_without_is_a_warning() {
        let finding = judged(&tried(true, |need| match need.whose {
            For::Comfort(_) => Verdict::NoCommand,
            _ => Verdict::Allowed,
        }));
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(finding.paste, ["ACL SETUSER app +scan +command|info +info"]);
        assert_eq!(judged(&tried(true, |_| Verdict::Allowed)).level, Level::Ok);
    }

    #[test]
    fn a_client_may_be_meant_for_some_of_the_locks_only() {
        let mut client = tried(false, |_| Verdict::Allowed);
        client.patterns = vec![(b"job:*".to_vec(), Verdict::NoKey)];
        let finding = judged(&client);
        assert_eq!(
            (finding.level, &*finding.paste[0]),
            (Level::Warning, "ACL SETUSER app ~job:*")
        );
        let nothing = judged(&tried(false, |_| Verdict::NoCommand));
        assert_eq!(nothing.level, Level::Error);
        assert!(nothing.paste[0].ends_with("%RW~lockward:*"), "{nothing:?}");
        assert!(!nothing.found.contains("%RW"), "not tried, so not found: {nothing:?}");
    }

    #[test]
    fn answers_are_told_apart() {
        for (reply, verdict) in [
            (&b":0\r\n"[..], Verdict::Allowed),
            (b"-NOSCRIPT No matching script.\r\n", Verdict::Allowed),
            (
                b"-READONLY You can't write against a read only replica.\r\n",
                Verdict::Allowed,
            ),
            (
                b"-ERR wrong number of arguments for 'hset' command\r\n",
                Verdict::Allowed,
            ),
            (
                b"-NOPERM this user has no permissions to run the 'hget' command\r\n",
                Verdict::NoCommand,
            ),
            (
                b"-NOPERM User access has no permissions to run the 'script|load' command\r\n",
                Verdict::NoCommand,
            ),
            (
                b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
                Verdict::NoKey,
            ),
            (b"-NOPERM No permissions to access a key\r\n", Verdict::NoKey),
            (
                b"-ERR unknown command 'EVALSHA', with args beginning with: \r\n",
                Verdict::Unknown,
            ),
        ] {
            assert_eq!(used(reply), verdict, "{}", reply.escape_ascii());
        }
        assert_eq!(dry_run(b"+OK\r\n"), Verdict::Allowed);
        for (text, verdict) in [
            (
                "User app has no permissions to run the 'hget' command",
                Verdict::NoCommand,
            ),
            ("User app has no permissions to access the 'lock' key", Verdict::NoKey),
        ] {
            assert_eq!(dry_run(format!("${}\r\n{text}\r\n", text.len()).as_bytes()), verdict);
        }
        assert_eq!(dry_run(b"-ERR Command 'evalsha' not found\r\n"), Verdict::Unknown);
        for unasked in [&b"-NOPERM no\r\n"[..], b"-ERR User 'x' not found\r\n", b"$-1\r\n", b""] {
            let verdict = dry_run(unasked);
            assert!(matches!(verdict, Verdict::Unasked(_)), "{verdict:?}");
        }
    }

    #[test]
    fn who_cannot_be_asked_about_is_said() {
        let text = |text: &str| Verdict::Unasked(text.to_owned());
        let unknown = judged(&tried(false, |_| text("ERR User 'app' not found")));
        assert_eq!(unknown.level, Level::Error);
        let denied = judged(&tried(false, |_| {
            text("NOPERM no permissions to run the 'acl|dryrun' command")
        }));
        assert!(
            denied.level == Level::Warning && denied.means.contains("+acl|dryrun"),
            "{denied:?}"
        );
        let renamed = judge(
            &tried(true, |need| match need.right {
                "+evalsha" => Verdict::Unknown,
                _ => Verdict::Allowed,
            }),
            "lockward:",
            true,
        );
        assert_eq!(renamed[0].level, Level::Error);
        assert!(renamed[0].found.contains("EVALSHA"), "{renamed:?}");
    }
}
