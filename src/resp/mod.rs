//! The wire: incremental scanners for requests and replies, and an encoder. Knows bytes and frames, nothing of what a
//! command means. No values are built, nothing recurses, no memory grows by an announced length.

pub mod announced;
pub mod args;
pub mod encode;
pub mod frame;
mod inline;
pub mod number;
pub mod reply;
pub mod request;
pub mod texts;
mod whole;

pub use args::{Args, Span, is_word, word};
pub use encode::Resp;
