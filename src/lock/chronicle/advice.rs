//! What the figures of a rule advise: one file, one function for each kind of advice, each silent unless the figures carry
//! it. Says how many it goes by, and nothing about what it cannot have seen (other proxies, clients past lockward).

use super::figures::{Figures, Seen};
use super::words::{length, rounded_up, setting};
use super::{Chronicle, ENOUGH_HOLDS};
use crate::event::RuleIndex;
use crate::lock::rule::{Mode, OwnerPart, Rule};

/// So many leases must have ended before a rule is said to hold no locks.
const ENOUGH_ENDS: u64 = 20;
/// So many releases by others must have come before a pool is thought of.
const ENOUGH_FOREIGN: u64 = 20;
/// So many leases must have been granted before it says something that all went to one owner.
const ENOUGH_GRANTS: u64 = 100;
/// So many operations must have been observed before a rule is said to be safe to enforce.
const ENOUGH_OPERATIONS: u64 = 1000;
/// The least that is advised as `default_ttl`.
const LEAST_DEFAULT_TTL_MS: u64 = 30_000;

/// The kinds of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never released: markers.
    NotALock,
    /// Holders overrun the TTL.
    TtlTooShort,
    /// Locks are taken without a TTL.
    NoTtl,
    /// Releases come from others than the acquires, or everybody is one.
    ChooseOwner,
    /// What enforcing would have refused.
    Enforce,
}

/// What one rule should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Which kind of advice.
    pub kind: Kind,
    /// The advice with its figures, as a few short sentences.
    pub text: String,
    /// A line to put into the rule, where there is one.
    pub line: Option<String>,
}

type Said = Option<(String, Option<String>)>;

impl Chronicle {
    /// All advice on this rule, which stands at this place.
    pub fn advice(&self, index: RuleIndex, rule: &Rule) -> Vec<Advice> {
        match self.figures(index) {
            Some(figures) if rule.mode != Mode::Off => on_rule(rule, figures),
            _ => Vec::new(),
        }
    }
}

fn on_rule(rule: &Rule, figures: &Figures) -> Vec<Advice> {
    let advice = |kind: Kind, said: Said| said.map(|(text, line)| Advice { kind, text, line });
    // Nothing else is worth saying of what is no lock.
    if let Some(alone) = advice(Kind::NotALock, not_a_lock(figures)) {
        return vec![alone];
    }
    let all = [
        advice(Kind::TtlTooShort, ttl_too_short(rule, figures)),
        advice(Kind::NoTtl, no_ttl(rule, figures)),
        advice(Kind::ChooseOwner, choose_owner(rule, figures)),
        advice(Kind::Enforce, enforce(rule, figures)),
    ];
    all.into_iter().flatten().collect()
}

fn not_a_lock(figures: &Figures) -> Said {
    let (totals, counts) = (&figures.totals, &figures.counts);
    let ends = totals.expired + totals.released + counts.ended_otherwise;
    // Also what was refused or came in vain was meant as a release.
    let releases = totals.released + totals.late + totals.foreign + counts.vain;
    let nearly_all_ran_out = totals.expired * 10 >= ends * 9;
    if ends < ENOUGH_ENDS || releases * 100 >= ends || !nearly_all_ran_out {
        return None;
    }
    let released = match releases {
        0 => "none was ever released".to_owned(),
        releases => format!("only {releases} were released"),
    };
    let text = format!(
        "Of {ends} leases that ended, {} ran out and {released}: these look like markers, not locks.",
        totals.expired
    );
    Some((text, Some("mode = \"off\"".to_owned())))
}

fn ttl_too_short(rule: &Rule, figures: &Figures) -> Said {
    let (holds, late) = (figures.hold.count(), figures.counts.late_holds);
    if holds < ENOUGH_HOLDS || late == 0 || late * 1000 < holds {
        return None;
    }
    let (needed_ms, covered) = if holds < 1000 {
        (figures.hold.max_ms(), "all of them")
    } else {
        (figures.hold.quantile_ms(0.999), "99.9 %")
    };
    let cover_ms = rounded_up(needed_ms);
    let usual_ms = figures.ttl.quantile_ms(0.5);
    let mut text = format!(
        "The TTL is too short for {} of the holds: {late} of {holds} were released after it had run out. \
         {} would have covered {covered}",
        share(late, holds),
        length(cover_ms)
    );
    if figures.ttl.count() == 0 {
        text.push('.');
    } else if cover_ms > usual_ms {
        text.push_str(&format!("; the usual TTL is {}.", length(usual_ms)));
    } else {
        text.push_str(", as the usual TTL does: it is the shorter ones that are too short.");
    }
    let (granted, counts) = (figures.totals.granted, &figures.counts);
    let line = if counts.injected * 2 > granted {
        Some(format!("default_ttl = \"{}\"", setting(cover_ms)))
    } else if counts.reduced * 2 > granted {
        Some(format!("max_ttl = \"{}\"", setting(cover_ms)))
    } else if rule.mode == Mode::Enforce && !rule.renew {
        text.push_str(" Set it in the client, or let lockward renew leases while their owner is connected.");
        Some("renew = true".to_owned())
    } else {
        None
    };
    Some((text, line))
}

fn no_ttl(rule: &Rule, figures: &Figures) -> Said {
    let (without, got) = (figures.counts.without_ttl, figures.counts.got_ttl);
    if without == 0 || rule.default_ttl_ms.is_some() {
        return None;
    }
    let mut text = format!("{without} of {} locks were taken without a TTL", figures.totals.granted);
    text.push_str(&match got {
        0 => ": if such a client dies, its lock stays until somebody removes it.".to_owned(),
        got => format!(", and {got} were given one by a second command: if a client dies before that, its lock stays."),
    });
    let holds = figures.hold.count();
    let line = if holds < ENOUGH_HOLDS {
        text.push_str(&format!(
            " With {holds} holds seen, it is too early to say which default_ttl fits."
        ));
        None
    } else {
        let longest_ms = figures.hold.max_ms();
        let ttl_ms = rounded_up(longest_ms.saturating_mul(2).max(LEAST_DEFAULT_TTL_MS));
        text.push_str(&format!(" The longest of {holds} holds took {}.", length(longest_ms)));
        Some(format!("default_ttl = \"{}\"", setting(ttl_ms)))
    };
    Some((text, line))
}

fn choose_owner(rule: &Rule, figures: &Figures) -> Said {
    let narrow = |part: &OwnerPart| matches!(part, OwnerPart::Connection | OwnerPart::Process | OwnerPart::ClientName);
    if rule.owner.iter().any(narrow) {
        too_narrow(rule, figures)
    } else {
        too_wide(rule, figures)
    }
}

/// A connection pool under an owner that is one connection: the leases are never given up by their own.
fn too_narrow(rule: &Rule, figures: &Figures) -> Said {
    let (totals, counts) = (&figures.totals, &figures.counts);
    let releases = totals.released + totals.foreign;
    // Losers that delete what they did not get send foreign releases too; but then the holders' own come as well.
    let holders_did_not = match rule.mode {
        Mode::Enforce => totals.expired * 2 >= totals.foreign,
        Mode::Observe => counts.vain * 2 <= totals.foreign,
        Mode::Off => false,
    };
    if totals.foreign < ENOUGH_FOREIGN || totals.foreign <= totals.released || !holders_did_not {
        return None;
    }
    let text = format!(
        "{} of {releases} releases came from another owner than the acquire's, and the holders' own did not come: this is \
         what a connection pool looks like. With owner = \"address\", clients of one host may release for one another.",
        totals.foreign
    );
    Some((text, Some("owner = \"address\"".to_owned())))
}

/// Everybody is one owner, so that nobody's release is foreign.
fn too_wide(rule: &Rule, figures: &Figures) -> Said {
    let (totals, counts) = (&figures.totals, &figures.counts);
    let Seen::One(owner) = &figures.owners else { return None };
    let alone = !matches!(figures.connections, Seen::Several) || totals.contended + totals.late == 0;
    if alone || totals.granted < ENOUGH_GRANTS || rule.owner.contains(&OwnerPart::Any) {
        return None;
    }
    let so_far = format!(
        "All {} leases went to one owner, {owner}, on several connections",
        totals.granted
    );
    let (pooled, released) = (counts.pooled, totals.released);
    if released < ENOUGH_HOLDS {
        return None;
    }
    Some(if pooled * 100 < released {
        let text = format!(
            "{so_far}, so nobody's release counts as foreign. {} of {released} releases came through the connection of \
             their acquire: owner = \"connection\" would tell the clients apart.",
            released - pooled
        );
        (text, Some("owner = \"connection\"".to_owned()))
    } else {
        let text = format!(
            "{so_far}, so nobody's release counts as foreign. {pooled} of {released} releases came through another \
             connection, as from a pool. If there are several programs, let each give itself a name (CLIENT SETNAME)."
        );
        (text, Some("owner = \"client-name\"".to_owned()))
    })
}

fn enforce(rule: &Rule, figures: &Figures) -> Said {
    let operations = figures.counts.operations;
    if rule.mode != Mode::Observe || operations < ENOUGH_OPERATIONS {
        return None;
    }
    let (refused, late) = (figures.totals.would_refuse, figures.counts.would_refuse_late);
    let line = Some("mode = \"enforce\"".to_owned());
    if refused == 0 {
        let text = format!("Of {operations} lock operations, none would have been refused: it can be enforced.");
        return Some((text, line));
    }
    let of_all = share(refused, operations);
    let so_far = format!("Of {operations} lock operations, {refused} ({of_all}) would have been refused");
    Some(if late == refused {
        let text = format!("{so_far}, all of them by clients whose own lease had run out: enforced, they harm nobody.");
        (text, line)
    } else {
        let others = refused - late;
        let text = format!(
            "{so_far}: {late} by clients whose own lease had run out, {others} for other reasons. Look at those first: \
             is it the same owner under another name?"
        );
        (text, None)
    })
}

/// A part of a whole, as people say it.
fn share(part: u64, whole: u64) -> String {
    let thousandths = part.saturating_mul(1000) / whole.max(1);
    match (thousandths, thousandths % 10) {
        (0, _) => "less than 0.1 %".to_owned(),
        (1..100, tenths @ 1..) => format!("{}.{tenths} %", thousandths / 10),
        _ => format!("{} %", (thousandths + 5) / 10),
    }
}
