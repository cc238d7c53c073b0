//! The task behind the own connection: connect, serve the calls in order with as many under way as the limit allows,
//! and when the connection is lost, wait a little and connect again. Calls that come meanwhile are answered at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::prepare::prepare;
use super::wire::{Fault, Link, encode_words, error_text};
use super::{Call, OwnError, Settings, State};
use crate::config::Server;
use crate::proxy::whereabouts::Whereabouts;

/// Requests under way on the connection.
const UNDER_WAY: usize = 256;

pub(super) async fn run(
    server: Server,
    whereabouts: Whereabouts,
    settings: Arc<Settings>,
    mut queue: mpsc::Receiver<Call>,
    state: watch::Sender<State>,
) {
    let mut failures = 0;
    loop {
        let ready = answering_away(&mut queue, &state, ready(&server, &whereabouts, &settings)).await;
        let fault = match ready {
            None => return,
            Some(Err(fault)) => fault,
            Some(Ok((link, found, number))) => {
                failures = 0;
                state.send_replace(found);
                let mut served = Served::new(link, server.database, &settings);
                let fault = tokio::select! {
                    fault = served.serve(&mut queue) => fault,
                    () = whereabouts.moved_from(number) => Some(Fault::Moved),
                };
                let reason = fault
                    .as_ref()
                    .map_or_else(|| "it was stopped".to_owned(), Fault::to_string);
                served.fail_all(&reason);
                match fault {
                    None => return,
                    Some(fault) => fault,
                }
            }
        };
        state.send_modify(|state| {
            state.up = false;
            state.error = Some(fault.to_string());
        });
        if matches!(fault, Fault::Moved) {
            failures = 0;
        } else {
            whereabouts.doubt();
        }
        let number = whereabouts.number();
        let until = Instant::now() + pause(&settings, failures);
        failures += 1;
        let waiting = async {
            tokio::select! {
                () = sleep_until(until) => {}
                () = whereabouts.moved_from(number) => {}
            }
        };
        if answering_away(&mut queue, &state, waiting).await.is_none() {
            return;
        }
    }
}

/// Awaits something while the server is away; calls are answered with an error meanwhile. `None`: no handle is left.
async fn answering_away<T>(
    queue: &mut mpsc::Receiver<Call>,
    state: &watch::Sender<State>,
    wait: impl Future<Output = T>,
) -> Option<T> {
    tokio::pin!(wait);
    loop {
        tokio::select! {
            result = &mut wait => return Some(result),
            call = queue.recv() => {
                let reason = state.borrow().error.clone().unwrap_or_else(|| "not yet connected".to_owned());
                let _ = call?.answer.send(Err(OwnError::Away(reason)));
            }
        }
    }
}

/// A connection that is ready, what is known of the server, and that server's number.
async fn ready(server: &Server, whereabouts: &Whereabouts, settings: &Settings) -> Result<(Link, State, u64), Fault> {
    let known = whereabouts.known(settings.connect_timeout).await;
    let (place, number) = known.map_err(Fault::Nowhere)?;
    let connecting = async {
        let limit = settings.connect_timeout;
        let mut link = Link::connect(&place, server.tls, &settings.certificates, limit).await?;
        let limit = settings.connect_timeout + settings.call_timeout;
        let prepared = tokio::time::timeout(limit, prepare(&mut link, server, settings)).await;
        let state = prepared.unwrap_or(Err(Fault::Stalled(limit)))?;
        Ok((link, state, number))
    };
    tokio::select! {
        ready = connecting => ready,
        () = whereabouts.moved_from(number) => Err(Fault::Moved),
    }
}

/// Doubles with each failure, and takes a random part off, so that many proxies do not come all at once.
fn pause(settings: &Settings, failures: u32) -> Duration {
    let shortest = settings.longest_pause / 40;
    let full = shortest
        .saturating_mul(1 << failures.min(10))
        .min(settings.longest_pause);
    let entropy = u32::from(Uuid::new_v4().as_bytes()[0]);
    full - full * entropy / 512
}

/// What the next replies belong to.
enum Waiting {
    Call {
        answer: tokio::sync::oneshot::Sender<Result<Vec<Bytes>, OwnError>>,
        replies: usize,
        got: Vec<Bytes>,
    },
    Select(u32),
    Ping,
}

/// A connection at work.
struct Served<'a> {
    link: Link,
    settings: &'a Settings,
    database: u32,
    output: BytesMut,
    waiting: VecDeque<(Instant, Waiting)>,
    /// A call that waits for its SELECT: were it sent along, it would act on the wrong database if SELECT is refused.
    held: Option<Call>,
    last_activity: Instant,
}

impl<'a> Served<'a> {
    fn new(link: Link, database: u32, settings: &'a Settings) -> Self {
        Served {
            link,
            settings,
            database,
            output: BytesMut::new(),
            waiting: VecDeque::new(),
            held: None,
            last_activity: Instant::now(),
        }
    }

    /// Serves until the connection is lost, or (`None`) until no handle is left.
    async fn serve(&mut self, queue: &mut mpsc::Receiver<Call>) -> Option<Fault> {
        loop {
            let oldest = self.waiting.front().map(|(sent, _)| *sent);
            let next_alarm = match oldest {
                Some(sent) => sent + self.settings.call_timeout,
                None => self.last_activity + self.settings.idle_ping,
            };
            let has_room = self.held.is_none() && self.waiting.len() < UNDER_WAY;
            tokio::select! {
                read = self.link.reader.read_buf(&mut self.link.input) => {
                    if let Err(fault) = self.received(read) {
                        return Some(fault);
                    }
                }
                written = self.link.writer.write_buf(&mut self.output), if !self.output.is_empty() => {
                    if let Err(error) = written {
                        return Some(error.into());
                    }
                }
                call = queue.recv(), if has_room => self.take(call?),
                () = sleep_until(next_alarm) => {
                    if oldest.is_some() {
                        return Some(Fault::Stalled(self.settings.call_timeout));
                    }
                    self.send(&["PING"], Waiting::Ping);
                }
            }
        }
    }

    fn take(&mut self, call: Call) {
        // Whoever asked has given up: nothing is done for nobody.
        if call.answer.is_closed() {
            return;
        }
        let database = call.database.unwrap_or(self.database);
        if database == self.database {
            self.output.extend_from_slice(&call.request);
            let waiting = Waiting::Call {
                answer: call.answer,
                replies: call.replies,
                got: Vec::new(),
            };
            self.wait_for(waiting);
        } else {
            self.held = Some(call);
            self.send(&["SELECT", &database.to_string()], Waiting::Select(database));
        }
    }

    fn send(&mut self, arguments: &[&str], waiting: Waiting) {
        encode_words(arguments, &mut self.output);
        self.wait_for(waiting);
    }

    fn wait_for(&mut self, waiting: Waiting) {
        self.last_activity = Instant::now();
        self.waiting.push_back((self.last_activity, waiting));
    }

    fn received(&mut self, read: std::io::Result<usize>) -> Result<(), Fault> {
        if read? == 0 {
            return Err(Fault::Closed);
        }
        while let Some(reply) = self.link.next_reply()? {
            // A reply that nobody waits for: the connection is out of step.
            let Some((sent, waiting)) = self.waiting.pop_front() else {
                return Err(Fault::NoReply);
            };
            match waiting {
                Waiting::Ping => {}
                Waiting::Select(database) => self.selected(database, &reply),
                Waiting::Call {
                    answer,
                    replies,
                    mut got,
                } => {
                    got.push(reply);
                    if got.len() < replies {
                        self.waiting.push_front((sent, Waiting::Call { answer, replies, got }));
                    } else {
                        let _ = answer.send(Ok(got));
                    }
                }
            }
        }
        Ok(())
    }

    fn selected(&mut self, database: u32, reply: &[u8]) {
        let held = self.held.take();
        match error_text(reply) {
            None => {
                self.database = database;
                if let Some(call) = held {
                    self.take(call);
                }
            }
            Some(text) => {
                if let Some(call) = held {
                    let _ = call.answer.send(Err(OwnError::Refused(format!("SELECT: {text}"))));
                }
            }
        }
    }

    /// Answers everybody who still waits.
    fn fail_all(&mut self, reason: &str) {
        if let Some(call) = self.held.take() {
            let _ = call.answer.send(Err(OwnError::Away(reason.to_owned())));
        }
        for (_, waiting) in self.waiting.drain(..) {
            if let Waiting::Call { answer, .. } = waiting {
                let _ = answer.send(Err(OwnError::Lost(reason.to_owned())));
            }
        }
    }
}
