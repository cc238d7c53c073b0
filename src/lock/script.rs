//! The Lua scripts that make each decision atomic on the server: their texts, put together once from small parts, and
//! their SHA1 names. What they decide is written a second time, as the model, which a test holds against them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha1::{Digest, Sha1};

use crate::resp::texts;

/// Every script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    /// `SET … NX` without GET, `SETNX`.
    Acquire,
    /// One key written by a command that can take, refresh, overwrite or take over a lock.
    Write,
    /// `MSET`, `MSETNX`, `MSETEX`.
    MultiWrite,
    /// `DEL`, `UNLINK`.
    Release,
    /// One key given up by another command (`GETDEL`, `EXPIRE k 0`, `MOVE` …).
    Remove,
    /// The expiry of one key changed; a point in the past is a release.
    Extend,
    /// `RENAME`, `RENAMENX` of a lock.
    Rename,
    /// `MIGRATE` of several keys.
    Migrate,
    /// `COPY … REPLACE` into another database.
    CopyAway,
    /// Brings records in line behind a self-checked command.
    Reconcile,
    /// Reads the fencing token.
    Fence,
    /// `DELEX … IFEQ`, `DELIFEQ`, `SET … IFEQ` on servers that lack them.
    Emulate,
    /// Renewal.
    Renew,
    /// Release on disconnect or by force.
    Free,
    /// Marks a closed connection.
    Gone,
    /// Drops the debts of an owner that has ended.
    Drop,
    /// Looks what became of a lease.
    Check,
    /// Reads a lock and its record.
    Inspect,
}

/// The commands that the scripts run beside the client's own: what an ACL user needs, together with `EVAL`, `EVALSHA`
/// and the record keys. `SELECT` and `DIGEST` are left out: only rare commands need them.
pub const COMMANDS: [&str; 14] = [
    "HGET",
    "HGETALL",
    "HSET",
    "HDEL",
    "DEL",
    "EXISTS",
    "GET",
    "SET",
    "PEXPIRETIME",
    "PEXPIRE",
    "PEXPIREAT",
    "PERSIST",
    "PTTL",
    "TIME",
];

impl Script {
    /// Every script, for `SCRIPT LOAD`.
    pub const ALL: [Script; 18] = [
        Script::Acquire,
        Script::Write,
        Script::MultiWrite,
        Script::Release,
        Script::Remove,
        Script::Extend,
        Script::Rename,
        Script::Migrate,
        Script::CopyAway,
        Script::Reconcile,
        Script::Fence,
        Script::Emulate,
        Script::Renew,
        Script::Free,
        Script::Gone,
        Script::Drop,
        Script::Check,
        Script::Inspect,
    ];

    /// The text that is sent to the server.
    pub fn text(self) -> &'static str {
        SCRIPTS.get(self as usize).map_or("", |script| script.text.as_str())
    }

    /// The SHA1 of the text, 40 lower-case hex digits: how `EVALSHA` names it.
    pub fn sha1(self) -> &'static str {
        SCRIPTS.get(self as usize).map_or("", |script| script.sha1.as_str())
    }

    /// What it is put together from.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Script::Acquire => &[ACQUIRE_FIRST, LOOK, WHO, GRANT, FAILURE, ACQUIRE_THEN],
            Script::Write => &[LOOK, WHO, FINISH, ROW, RIGHTS, GRANT, HELD, FAILURE, WRITE, RUN],
            Script::MultiWrite => &[LOOK, WHO, FINISH, ROW, RIGHTS, GRANT, HELD, MULTI, FAILURE, RUN],
            Script::Release => &[RELEASE_FIRST, LOOK, FINISH, ACCOUNT, RELEASE, FAILURE, RUN],
            Script::Remove => &[LOOK, WHO, FINISH, RIGHTS, ACCOUNT, REFUSAL, REMOVE, FAILURE, RUN],
            Script::Extend => &[
                EXTEND_FIRST,
                LOOK,
                WHO,
                FINISH,
                ROW,
                RIGHTS,
                ACCOUNT,
                REFUSAL,
                EXTEND,
                FAILURE,
                RUN,
            ],
            Script::Rename => &[
                LOOK, WHO, FINISH, ROW, RIGHTS, ACCOUNT, REFUSAL, GRANT, HELD, RENAME, FAILURE, RUN,
            ],
            Script::Migrate => &[
                LOOK,
                WHO,
                FINISH,
                ACCOUNT,
                include_str!("scripts/migrate.lua"),
                FAILURE,
                RUN,
            ],
            Script::CopyAway => &[LOOK, HELD, include_str!("scripts/away.lua"), FAILURE, RUN],
            Script::Reconcile => &[LOOK, WHO, FINISH, ROW, RECONCILE, FAILURE, RUN],
            Script::Fence => &[LOOK, WHO, FENCE, FAILURE, RUN],
            Script::Emulate => &[LOOK, WHO, FINISH, ROW, RIGHTS, ACCOUNT, EMULATE, FAILURE, RUN],
            Script::Renew => &[LOOK, FINISH, include_str!("scripts/renew.lua"), FAILURE, RUN],
            Script::Free => &[LOOK, FINISH, include_str!("scripts/free.lua"), FAILURE, RUN],
            Script::Gone => &[LOOK, FINISH, include_str!("scripts/gone.lua"), FAILURE, RUN],
            Script::Drop => &[LOOK, FINISH, include_str!("scripts/drop.lua"), FAILURE, RUN],
            Script::Check => &[LOOK, FINISH, include_str!("scripts/check.lua"), FAILURE, RUN],
            Script::Inspect => &[LOOK, include_str!("scripts/inspect.lua"), FAILURE, RUN],
        }
    }
}

const LOOK: &str = include_str!("scripts/look.lua");
const WHO: &str = include_str!("scripts/who.lua");
const FINISH: &str = include_str!("scripts/finish.lua");
const ACCOUNT: &str = include_str!("scripts/account.lua");
const RIGHTS: &str = include_str!("scripts/rights.lua");
const ROW: &str = include_str!("scripts/row.lua");
const GRANT: &str = include_str!("scripts/grant.lua");
const HELD: &str = include_str!("scripts/held.lua");
const REFUSAL: &str = include_str!("scripts/refusal.lua");
const FAILURE: &str = include_str!("scripts/failure.lua");
const RUN: &str = include_str!("scripts/run.lua");
const ACQUIRE_FIRST: &str = include_str!("scripts/acquire_first.lua");
const ACQUIRE_THEN: &str = include_str!("scripts/acquire_then.lua");
const WRITE: &str = include_str!("scripts/write.lua");
const MULTI: &str = include_str!("scripts/multi.lua");
const RELEASE_FIRST: &str = include_str!("scripts/release_first.lua");
const RELEASE: &str = include_str!("scripts/release.lua");
const REMOVE: &str = include_str!("scripts/remove.lua");
const EXTEND_FIRST: &str = include_str!("scripts/extend_first.lua");
const EXTEND: &str = include_str!("scripts/extend.lua");
const RENAME: &str = include_str!("scripts/rename.lua");
const RECONCILE: &str = include_str!("scripts/reconcile.lua");
const FENCE: &str = include_str!("scripts/fence.lua");
const EMULATE: &str = include_str!("scripts/emulate.lua");

struct Prepared {
    text: String,
    sha1: String,
}

/// In the order of [`Script::ALL`], which is the order of the variants.
static SCRIPTS: LazyLock<Vec<Prepared>> = LazyLock::new(|| Script::ALL.iter().map(|script| prepare(*script)).collect());

/// A piece of Lua without the blanks that Lua can do without; quoted texts stay as they are.
pub fn squeezed(lua: &str) -> String {
    let mut out = String::with_capacity(lua.len());
    let mut quote = None;
    let mut letters = lua.chars().peekable();
    while let Some(letter) = letters.next() {
        let before = out.chars().next_back().unwrap_or('\n');
        let after = letters.peek().copied().unwrap_or('\n');
        match (quote, letter) {
            (None, ' ') => {
                // Behind a digit a point would belong to the number.
                let joined = "=~<>,+{}()'".contains(after) || after == '.' && !before.is_ascii_digit();
                if joined || "=<>,+{}().'".contains(before) {
                    continue;
                }
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(_), '\\') => {
                out.push(letter);
                out.extend(letters.next());
                continue;
            }
            (Some(opened), _) if opened == letter => quote = None,
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// The server keeps the text, and hashes it at each EVAL: so without comments, indentation and idle blanks.
fn prepare(script: Script) -> Prepared {
    let mut text = String::new();
    for line in script.parts().iter().flat_map(|part| part.lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with("--") {
            let line = line.replace("@LOCKHELD@", &texts::LOCK_HELD.replace('\'', "\\'"));
            text.push_str(&squeezed(&line));
            text.push('\n');
        }
    }
    let mut sha1 = String::with_capacity(40);
    for byte in Sha1::digest(text.as_bytes()) {
        let _ = write!(sha1, "{byte:02x}");
    }
    Prepared { text, sha1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_list_is_the_order_of_the_variants() {
        for (place, script) in Script::ALL.iter().enumerate() {
            assert_eq!(*script as usize, place, "{script:?}");
        }
    }

    #[test]
    fn no_script_declares_flags_or_keeps_a_placeholder() {
        for script in Script::ALL {
            let text = script.text();
            assert!(!text.starts_with("#!") && !text.contains('@'), "{script:?}: {text}");
            assert_eq!(script.sha1().len(), 40, "{script:?}");
        }
    }

    #[test]
    fn what_is_given_up_needs_no_memory() {
        for script in [
            Script::Release,
            Script::Remove,
            Script::Extend,
            Script::Reconcile,
            Script::Gone,
            Script::Drop,
        ] {
            for call in ["'SET'", "'HSET'", "'PSETEX'"] {
                assert!(!script.text().contains(call), "{script:?} uses {call}");
            }
        }
    }

    #[test]
    fn every_command_that_a_script_runs_is_in_the_list() {
        for script in Script::ALL {
            let text = script.text();
            for rest in text.split("call('").skip(1).chain(text.split("try('").skip(1)) {
                let name = rest.split('\'').next().unwrap_or_default();
                // SETNX stands only where it is the client's own command.
                let rare = ["SELECT", "DIGEST", "SETNX"].contains(&name);
                assert!(rare || COMMANDS.contains(&name), "{script:?} runs {name}");
            }
        }
    }

    #[test]
    fn a_client_is_told_every_permission_that_the_scripts_need() {
        let text = texts::noperm(b"NOPERM this user has no permissions", "locks:");
        let named = |word: &str| text.split([' ', '(', ')']).any(|other| other == word);
        for command in COMMANDS {
            let permission = format!("+{}", command.to_ascii_lowercase());
            assert!(named(&permission), "{permission} is missing: {text}");
        }
        assert!(named("%RW~locks:*"), "{text}");
    }

    #[test]
    fn blanks_go_only_where_nothing_depends_on_them() {
        for (lua, expected) in [
            ("local a, b = f(x) .. 'a = b'", "local a,b=f(x)..'a = b'"),
            ("x = 1 .. ' y\\' , z'", "x=1 ..' y\\' , z'"),
            ("if a ~= -1 and (b >= c - -d) then", "if a~=-1 and(b>=c - -d)then"),
            ("error({err = \"can't '\" .. n})", "error({err=\"can't '\"..n})"),
        ] {
            assert_eq!(squeezed(lua), expected);
        }
    }

    #[test]
    fn the_common_scripts_are_small() {
        for (script, most) in [
            (Script::Acquire, 6000),
            (Script::Release, 6000),
            (Script::Write, 10_000),
        ] {
            let length = script.text().len();
            assert!(length < most, "{script:?} has {length} bytes");
        }
    }
}
