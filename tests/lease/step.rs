//! One step of a history: what is sent to the server, and what the model is told.

use lockward::event::Owner;
use lockward::lock::idiom::Kind;

use super::random::Random;

/// What happens to the lock at `key` (0 or 1), or to both.
#[derive(Clone, Debug)]
pub enum Step {
    /// A single-key command that writes; `xx`: only if it exists. `None` as TTL leaves what the command leaves.
    Write {
        kind: Kind,
        words: Vec<String>,
        ttl: Ttl,
        xx: bool,
    },
    /// `MSET`, `MSETNX` of both keys and a plain one.
    WriteBoth {
        nx: bool,
    },
    /// A command that gives up one key.
    Remove {
        words: Vec<String>,
        nil: bool,
    },
    /// `DEL` of both keys, one of them twice, and a plain one.
    RemoveBoth,
    /// A command that changes the expiry.
    Extend {
        words: Vec<String>,
        ttl: Ttl,
        nil: bool,
    },
    /// `RENAME` of the key to the other one.
    Rename {
        nx: bool,
    },
    /// Past the proxy.
    Direct {
        words: Vec<String>,
    },
    /// Past the proxy, and a reconcile behind it.
    SelfChecked {
        words: Vec<String>,
    },
    Gone,
    DropDebts {
        owner: Owner,
    },
    Renew {
        ttl: i64,
    },
    Free {
        by_force: bool,
    },
    Check,
    Fence,
}

/// What a command asks the expiry to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ttl {
    Keep,
    Never,
    In(i64),
    At(i64),
}

/// Lease times: short enough to pass within a history, or long.
const SHORT: [i64; 6] = [8, 25, 60, 120, 200, 30_000];

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

pub fn random(random: &mut Random, key: &str, owners: &[Owner], now: i64) -> Step {
    let ttl = random.pick(&SHORT);
    match random.below(100) {
        0..=27 => write(random, key, ttl),
        28..=30 => Step::WriteBoth { nx: random.chance(50) },
        31..=54 => {
            let (command, nil) = random.pick(&[
                ("DEL", false),
                ("DEL", false),
                ("DEL", false),
                ("UNLINK", false),
                ("GETDEL", true),
            ]);
            Step::Remove {
                words: words(&format!("{command} {key}")),
                nil,
            }
        }
        55 => Step::Remove {
            words: words(&format!("PEXPIRE {key} 0")),
            nil: false,
        },
        56 => Step::Remove {
            words: words(&format!("EXPIRE {key} -1")),
            nil: false,
        },
        57..=59 => Step::RemoveBoth,
        60..=71 => extend(random, key, ttl, now),
        72..=73 => Step::Rename { nx: random.chance(30) },
        74..=80 => Step::Direct {
            words: direct(random, key, ttl),
        },
        81..=85 => Step::SelfChecked {
            words: direct(random, key, ttl),
        },
        86..=89 => Step::Gone,
        90..=92 => Step::DropDebts {
            owner: owners[random.below(owners.len())].clone(),
        },
        93..=94 => Step::Renew { ttl },
        95..=96 => Step::Free {
            by_force: random.chance(30),
        },
        97 => Step::Check,
        _ => Step::Fence,
    }
}

fn write(random: &mut Random, key: &str, ms: i64) -> Step {
    let (kind, text, ttl, xx) = match random.below(16) {
        0..=6 => (Kind::Acquire, format!("set {key} v px {ms} Nx"), Ttl::In(ms), false),
        7..=8 => (Kind::Acquire, format!("SETNX {key} v"), Ttl::Never, false),
        9 => (Kind::Acquire, format!("SET {key} v NX GET PX {ms}"), Ttl::In(ms), false),
        10 => (Kind::Overwrite, format!("SET {key} v PX {ms}"), Ttl::In(ms), false),
        11 => (Kind::Overwrite, format!("PSETEX {key} {ms} v"), Ttl::In(ms), false),
        12 => (Kind::Overwrite, format!("SET {key} v KEEPTTL"), Ttl::Keep, false),
        13 => (Kind::Overwrite, format!("SET {key} v PX {ms} XX"), Ttl::In(ms), true),
        14 => (Kind::Takeover, format!("GETSET {key} v"), Ttl::Never, false),
        _ => (Kind::Takeover, format!("SET {key} v GET PX {ms}"), Ttl::In(ms), false),
    };
    Step::Write {
        kind,
        words: words(&text),
        ttl,
        xx,
    }
}

fn extend(random: &mut Random, key: &str, ms: i64, now: i64) -> Step {
    // Far enough from now on either side that the time in between does not matter.
    let point = now + random.pick(&[-5000, 400, 30_000]);
    let (text, ttl, nil) = match random.below(10) {
        0..=3 => (format!("PEXPIRE {key} {ms}"), Ttl::In(ms), false),
        4 => (format!("EXPIRE {key} 20"), Ttl::In(20_000), false),
        5 => (format!("PERSIST {key}"), Ttl::Never, false),
        6 => (format!("PEXPIREAT {key} {point}"), Ttl::At(point), false),
        7 => (format!("GETEX {key} PX {ms}"), Ttl::In(ms), true),
        8 => (format!("GETEX {key} PXAT {point}"), Ttl::At(point), true),
        _ => (format!("GETEX {key} PERSIST"), Ttl::Never, true),
    };
    Step::Extend {
        words: words(&text),
        ttl,
        nil,
    }
}

fn direct(random: &mut Random, key: &str, ms: i64) -> Vec<String> {
    words(&match random.below(6) {
        0..=1 => format!("DEL {key}"),
        2 => format!("PEXPIRE {key} {ms}"),
        3 => format!("PERSIST {key}"),
        4 => format!("SET {key} d PX {ms} NX"),
        _ => format!("SET {key} d"),
    })
}
