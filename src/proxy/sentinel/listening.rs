//! Listens to what one sentinel announces. An announcement only makes all of them be asked at once: nothing in it is
//! believed, and one that is lost is made up for by the next regular question.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Way;
use super::asking::enter;
use crate::config::HostPort;
use crate::proxy::own::wire::Link;
use crate::resp::frame;

/// A master has switched (all sentinels say so), or a replica was made one (only the sentinel that leads the failover; its
/// own word of the switch comes later, when all replicas follow).
const CHANNELS: [&str; 2] = ["+switch-master", "+promoted-slave"];
/// After so long a silence a PING goes out.
const SILENCE: Duration = Duration::from_secs(5);
/// Pauses before the next connection; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// Listens as long as the process lives, and connects anew when it has to.
pub(super) async fn run(way: &Way, sentinel: HostPort, name: &str, doubts: &Notify) {
    let mut pause = PAUSES.0;
    loop {
        if let Some(link) = subscribed(way, &sentinel).await {
            pause = PAUSES.0;
            // What was announced before is not heard any more.
            doubts.notify_one();
            listen(way, link, name, doubts).await;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// What goes wrong is found, and told, by the question that is asked regularly.
async fn subscribed(way: &Way, sentinel: &HostPort) -> Option<Link> {
    let subscribing = async {
        let mut link = enter(way, sentinel).await.ok()?;
        let mut words = vec!["SUBSCRIBE"];
        words.extend(CHANNELS);
        link.say(&words).await.ok()?;
        for _ in CHANNELS {
            link.hear().await.ok().filter(|answer| answer.first() == Some(&b'*'))?;
        }
        Some(link)
    };
    timeout(way.limit, subscribing).await.ok()?
}

/// Until the connection is lost, or silent though it was asked.
async fn listen(way: &Way, mut link: Link, name: &str, doubts: &Notify) {
    let mut asked = false;
    loop {
        let limit = if asked { way.limit } else { SILENCE };
        match timeout(limit, link.hear()).await {
            Ok(Ok(message)) => {
                asked = false;
                if concerns(&message, name) {
                    doubts.notify_one();
                }
            }
            Err(_)
                if !asked
                    && timeout(way.limit, link.say(&["PING"]))
                        .await
                        .is_ok_and(|said| said.is_ok()) =>
            {
                asked = true;
            }
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// Whether a message names this master.
fn concerns(message: &[u8], name: &str) -> bool {
    let text = frame::elements(message).and_then(|elements| frame::bulk(elements.last()?));
    text.is_some_and(|text| text.split(|byte| *byte == b' ').any(|word| word == name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_about_our_master_count() {
        let message = |text: &str| {
            format!(
                "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{text}\r\n",
                text.len()
            )
        };
        let heard = |text: &str| concerns(message(text).as_bytes(), "mymaster");
        assert!(heard("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
        assert!(heard("slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379"));
        assert!(!heard("mymaster2 10.0.0.1 6379 10.0.0.2 6379"));
        assert!(!concerns(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "mymaster"));
        assert!(!concerns(b"+mymaster\r\n", "mymaster"));
    }
}
