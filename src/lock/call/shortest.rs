//! The commonest calls and what their scripts need to be done in the shortest way: the first lines of `acquire_first.lua`,
//! `release_first.lua` and `extend_first.lua`. Says only whether that way may be tried; whether it can be gone, the
//! script finds out.

use super::super::idiom::{self, Extend, Flags, Refusal, Until};
use super::build::{rule, text};
use super::{Call, Context, Piece, Request};

/// The longest window that fits into the fifteen digits that the makings of a record have for it.
const MOST_WINDOW_MS: u64 = 999_999_999_999_999;
/// The longest TTL that is extended by in the shortest way: some thirty years.
const MOST_TTL_MS: i64 = 1_000_000_000_000;

/// What `acquire_first.lua` wants to know for a grant in the shortest way.
pub(super) struct Grant {
    pub(super) makings: Piece,
    pub(super) owner: Piece,
    /// The argument that is the value.
    pub(super) value: usize,
    pub(super) ttl_ms: Option<u64>,
}

/// `None` where the long way is needed in any case: the spelling is another, or the rule has something to add.
pub(super) fn grant(call: &Call, request: &Request<'_>, context: &Context<'_>) -> Option<Grant> {
    let (value, ttl_ms) = idiom::plain_acquire(request)?;
    let subject = call.subjects.first()?;
    let rule = rule(subject, context)?;
    let ttl_stays = match ttl_ms {
        Some(ttl) => rule.max_ttl_ms.is_none_or(|max| ttl <= max),
        None => rule.max_ttl_ms.is_none() && rule.default_ttl_ms.is_none(),
    };
    let window = rule.late_release_window_ms;
    if rule.fencing || !ttl_stays || window > MOST_WINDOW_MS {
        return None;
    }
    let (token, connection, ttl) = (subject.token.0, context.connection, ttl_ms.unwrap_or(0));
    Some(Grant {
        makings: text(format!("{token}{window:015} {connection} 1 {ttl} {window}")),
        owner: text(subject.owner.to_string()),
        value,
        ttl_ms,
    })
}

/// How the first lease of this connection on a record stands in it, from the grant's time on.
pub(super) fn first_lease(context: &Context<'_>) -> Piece {
    text(format!(" {} 1 ", context.connection))
}

/// Whether an extend may be tried in the shortest way: nothing but a new TTL, and no rule that cuts it.
pub(super) fn extend(call: &Call, extend: Extend, context: &Context<'_>) -> bool {
    let subject = call.subjects.first();
    let cut = subject.is_none_or(|subject| rule(subject, context).is_none_or(|rule| rule.max_ttl_ms.is_some()));
    let short = matches!(extend.until, Until::In(1..=MOST_TTL_MS));
    short && !cut && extend.refusal == Refusal::Zero && extend.flags == Flags::default()
}
