//! The last bytes to a client: written so that they arrive even if it has sent more that nobody read. Decides nothing.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::Interest;
use tokio::time::{sleep, timeout};

use super::carry::{Moved, flush, with_scratch, would_block};
use crate::proxy::stream::Stream;

/// How long a client may take to read its last answers once everything else is over.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long we listen on after our last word, so that the system does not throw it away for unread requests.
const LINGER: Duration = Duration::from_secs(1);

/// Writes the last bytes and closes. Tells whether they were all written.
pub(super) async fn say(mut stream: Stream, mut bytes: BytesMut) -> bool {
    let writing = async {
        loop {
            match flush(&stream, &mut bytes) {
                Moved::Done => return true,
                Moved::Gone => return false,
                Moved::Full => {
                    if stream.ready(Interest::WRITABLE).await.is_err() {
                        return false;
                    }
                }
            }
        }
    };
    if !timeout(LAST_WORDS, writing).await.unwrap_or(false) {
        return false;
    }
    stream.half_close().await;
    let listening = async {
        loop {
            if stream.ready(Interest::READABLE).await.is_err() {
                return;
            }
            let ended = with_scratch(|scratch| match stream.try_read(scratch) {
                Ok(len) => len == 0,
                Err(error) => !would_block(&error),
            });
            if ended {
                return;
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = sleep(LINGER) => {}
    }
    true
}
