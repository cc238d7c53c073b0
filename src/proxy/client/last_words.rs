//! The last bytes to a client: written so that they arrive even if it has sent more that nobody read. Decides nothing.

use std::future::poll_fn;
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{sleep, timeout};

use super::carry::{Moved, flush, with_scratch};
use crate::proxy::stream::Stream;

/// How long a client may take to read its last answers once everything else is over.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long we listen on after our last word, so that the system does not throw it away for unread requests.
const LINGER: Duration = Duration::from_secs(1);

/// Writes the last bytes and closes. Tells how many of them were written.
pub(super) async fn say(mut stream: Stream, mut bytes: BytesMut) -> usize {
    let length = bytes.len();
    // The end goes in the packet of the last byte, so that nobody who reads that asks for more.
    stream.socket().hold_back();
    let writing = async {
        loop {
            match flush(&stream, &mut bytes) {
                Moved::Done => return true,
                Moved::Gone => return false,
                Moved::Full => {
                    if poll_fn(|cx| stream.poll_write_ready(cx)).await.is_err() {
                        return false;
                    }
                }
            }
        }
    };
    let all = timeout(LAST_WORDS, writing).await.unwrap_or(false);
    let written = length - bytes.len();
    if !all {
        return written;
    }
    stream.half_close().await;
    let listening = async {
        loop {
            let read = poll_fn(|cx| with_scratch(|scratch| stream.poll_discard(cx, scratch)));
            if let Ok(0) | Err(_) = read.await {
                return;
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = sleep(LINGER) => {}
    }
    written
}
