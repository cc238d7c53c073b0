//! Channels. They are no keys, not even those that are sharded as keys are.

use crate::command::role::{Channels, Role};
use crate::command::row::{NONE, Row, known, plain};

pub(super) const ROWS: &[Row] = &[
    known("psubscribe", -2, NONE, Role::Subscribe(Channels::Pattern)),
    plain("publish", 3, NONE),
    plain("pubsub", -2, NONE),
    known("punsubscribe", -1, NONE, Role::Unsubscribe(Channels::Pattern)),
    plain("spublish", 3, NONE),
    known("ssubscribe", -2, NONE, Role::Subscribe(Channels::Shard)),
    known("subscribe", -2, NONE, Role::Subscribe(Channels::Plain)),
    known("sunsubscribe", -1, NONE, Role::Unsubscribe(Channels::Shard)),
    known("unsubscribe", -1, NONE, Role::Unsubscribe(Channels::Plain)),
];
