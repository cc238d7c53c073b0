//! The sentences around an explanation: what a row of the command table says, what a rule adds to an operation, what is
//! counted in observe mode, what goes out inside MULTI. Looks up, decides nothing.

use super::sent::Upstream;
use crate::command::{Role, Row};
use crate::config::{Config, duration};
use crate::lock::call::Request;
use crate::lock::features::Features;
use crate::lock::idiom::{Many, Meaning, Until, Write, Wrote};
use crate::lock::observe::{Ttl, written_ttl};
use crate::lock::rule::Rule;
use crate::lock::shield::{self, Spelling};
use crate::metrics::printable;
use crate::resp::is_word;

/// A server that has every newer command.
pub(super) const EVERYTHING: Features = Features {
    delex: true,
    delifeq: true,
    msetex: true,
    set_ifeq: true,
    set_ifne: true,
    login: false,
};

/// What becomes of bytes that servers read differently.
pub(super) const AS_ARRAY: &str = "it goes up as an array: servers read such bytes differently in an inline command";

/// What the table says of a command.
pub(super) fn about(row: &Row) -> String {
    let name = row.name.to_ascii_uppercase();
    let role = match row.role {
        Role::Forward => "forwarded untouched, whatever its keys",
        Role::Blocking => "forwarded untouched; its reply may be long in coming",
        Role::Lock(_) => "an operation on a lock, where a key of it is one",
        Role::Eval => "a script of the client's: taken at its word, also on locks",
        Role::Multi | Role::Exec | Role::Discard => "a transaction; lock commands in it are treated like those outside",
        Role::Watch | Role::Unwatch => "forwarded untouched; a lock that is watched is not renewed",
        Role::Subscribe(_) | Role::Unsubscribe(_) => "forwarded untouched; its channels are no keys",
        Role::Monitor | Role::Replication => "forwarded untouched; what follows is a stream",
        Role::Auth | Role::Hello | Role::Reset | Role::Select => {
            "forwarded untouched; what follows waits for the answer, since it changes who asks, and where"
        }
        Role::Quit => "forwarded untouched; the connection ends",
        Role::Client => {
            "forwarded untouched, but for CLIENT REPLY and CLIENT MAINT_NOTIFICATIONS; SETNAME may change the owner"
        }
        Role::Script => "forwarded untouched; after SCRIPT FLUSH the lock scripts are loaded again",
        Role::Keys | Role::Scan => "forwarded; where a rule enforces, lease records are left out of its answer",
        Role::Flush | Role::SwapDb => "forwarded untouched; locks may go with it, which is counted and logged",
        Role::Lockward => "lockward's own command",
    };
    format!("{name}: {role}")
}

/// A lock key in a command that is no operation on locks.
pub(super) fn of_others(row: &Row) -> Option<String> {
    match row.role {
        Role::Forward | Role::Blocking => Some(format!(
            "the key is a lock, but {} is no operation on a lease: it is never refused, and nothing is counted",
            row.name.to_ascii_uppercase()
        )),
        _ => None,
    }
}

/// What another server would make of it.
pub(super) fn of_newer(word: &str, text: &str) -> String {
    format!(
        "this is for a server as Redis 7.0; on one that has the newer commands it is {word} ({text}): see --features"
    )
}

/// What observe mode does.
pub(super) fn of_observe(rule: &Rule) -> String {
    let name = printable(rule.name.as_bytes());
    format!(
        "mode = \"observe\": nothing is changed and nothing refused; what enforce would refuse is counted in \
         lockward_lock_refusals_total{{rule=\"{name}\",action=\"observed\"}}"
    )
}

/// Listeners by which it may be otherwise, where none was named.
pub(super) fn of_listeners(config: &Config) -> Option<String> {
    let own = config
        .listeners
        .iter()
        .filter(|listener| config.has_own_rules(listener));
    let names: Vec<&str> = own.map(|listener| &*listener.name).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("this is by the general rules; listeners with their own (--listener): {names}")
    })
}

/// How it goes out where it is queued or pipelined.
pub(super) fn of_transactions(queued: &Upstream) -> String {
    if queued.untouched {
        return "inside MULTI the same is queued, and the element of the second is taken out of EXEC's answer"
            .to_owned();
    }
    let script = queued.requests.first().and_then(|first| first.script.as_deref());
    format!(
        "inside MULTI, in a pipeline and after a NOSCRIPT the same goes out as EVAL, with the text of the script{}; the \
         client's answer is of the same type everywhere",
        script.map_or_else(String::new, |script| format!(" ({script})"))
    )
}

/// What the rule adds.
pub(super) fn of_rule(meaning: &Meaning, request: &Request<'_>, rule: &Rule, now_ms: i64) -> Vec<String> {
    let mut notes = Vec::new();
    match meaning {
        Meaning::Acquire | Meaning::Write(_) => {
            notes.extend(of_ttl(request, rule));
            notes.extend(of_odd(meaning));
            notes.extend(of_shield(request, rule));
        }
        Meaning::ManyWritten { kind, .. } => {
            if rule.default_ttl_ms.is_none() && is_word(request.args.get(0).unwrap_or_default(), b"MSETNX") {
                notes.push(without_ttl());
            }
            if *kind == Many::Acquire || rule.default_ttl_ms.is_some() {
                notes.extend(rule.default_ttl_ms.map(given));
            }
        }
        Meaning::Extend(extend) => notes.extend(of_extend(extend.until, rule, now_ms)),
        Meaning::Other
        | Meaning::SelfChecked
        | Meaning::Release
        | Meaning::Remove(_)
        | Meaning::Rename
        | Meaning::ManyMoved { .. }
        | Meaning::CopyAway { .. }
        | Meaning::Emulate(_) => {}
    }
    if matches!(
        meaning,
        Meaning::Acquire | Meaning::Write(_) | Meaning::ManyWritten { .. }
    ) {
        notes.extend(of_grants(rule));
    }
    notes
}

fn of_grants(rule: &Rule) -> Vec<String> {
    let mut notes = Vec::new();
    if rule.fencing {
        notes.push("a new lease gets a fencing token: LOCKWARD FENCE key".to_owned());
    }
    if rule.renew {
        notes.push(format!(
            "renew: the lease is extended at a third of its TTL while its owner is connected, for at most {}",
            duration::text(rule.max_hold_ms)
        ));
    }
    if rule.release_on_disconnect {
        notes.push(format!(
            "release_on_disconnect: it ends {} after its owner's last connection here was closed",
            duration::text(rule.disconnect_grace_ms)
        ));
    }
    notes
}

fn of_shield(request: &Request<'_>, rule: &Rule) -> Option<String> {
    let window_ms = shield::window_us(rule)? / 1000;
    Spelling::of(request.idiom, request.args)?;
    Some(format!(
        "contention_shield: within {} of the server's last answer that the lock is held, it is refused without asking",
        duration::text(window_ms)
    ))
}

fn of_odd(meaning: &Meaning) -> Option<String> {
    let odd = matches!(meaning, Meaning::Write(Write { wrote: Wrote::Odd, .. }));
    odd.then(|| {
        "an option is not understood, so it is treated as the strictest thing it could be; the server has the last word"
            .to_owned()
    })
}

fn of_ttl(request: &Request<'_>, rule: &Rule) -> Option<String> {
    let by_date = |word: &[u8]| is_word(word, b"EXAT") || is_word(word, b"PXAT") || is_word(word, b"ABSTTL");
    match (written_ttl(request), rule.max_ttl_ms, rule.default_ttl_ms) {
        (Ttl::In(ms), Some(max), _) if u64::try_from(ms).is_ok_and(|ms| ms > max) => Some(format!(
            "its TTL of {} is cut to max_ttl = {}",
            duration::text(u64::try_from(ms).unwrap_or_default()),
            duration::text(max)
        )),
        (Ttl::In(ms), _, _) => u64::try_from(ms).ok().map(|ms| format!("TTL {}", duration::text(ms))),
        (Ttl::Keep, _, _) => Some("keeps the TTL that is there".to_owned()),
        (Ttl::Never, max, _) if request.args.iter().skip(3).any(by_date) => Some(match max {
            Some(max) => format!("its TTL is cut to max_ttl = {}, if it is longer", duration::text(max)),
            None => "expires at a point in time".to_owned(),
        }),
        (Ttl::Never, _, Some(default)) => Some(given(default)),
        (Ttl::Never, _, None) => Some(without_ttl()),
    }
}

fn given(default_ms: u64) -> String {
    format!("no TTL: a new lease gets default_ttl = {}", duration::text(default_ms))
}

fn without_ttl() -> String {
    "no TTL, and the rule gives none (default_ttl): a holder that crashes keeps the lock until somebody says `lockward \
     release`"
        .to_owned()
}

fn of_extend(until: Until, rule: &Rule, now_ms: i64) -> Option<String> {
    let left = match until {
        Until::In(ms) => Some(ms),
        Until::At(at) => Some(at.saturating_sub(now_ms)).filter(|left| *left > 0),
        Until::Never => None,
    };
    match (left, rule.max_ttl_ms) {
        (Some(ms), Some(max)) if u64::try_from(ms).is_ok_and(|ms| ms > max) => {
            Some(format!("longer than max_ttl: cut to {}", duration::text(max)))
        }
        (None, Some(_)) if until == Until::Never => {
            Some("max_ttl is set, so a lease that has a TTL keeps it: answered with 0".to_owned())
        }
        _ => None,
    }
}
