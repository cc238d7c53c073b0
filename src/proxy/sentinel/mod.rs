//! Follows the master by the sentinels: asks all of them regularly, and at once when one of them announces something or the
//! server behaves strangely; looks itself whether it is a master that they name; says where it is (`whereabouts`). Carries
//! nothing to it.

mod asking;
mod choice;
mod listening;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::tls::Certificates;
use super::whereabouts::{Finder, Whereabouts};
use crate::config::{Config, HostPort, Place, Secret, SentinelAccess, Sentinels, Server, Target};
use crate::metrics::Metrics;
pub(crate) use asking::{Answer, Role, Said, ask, role};
use choice::{Agreed, Known, agreed, may_be_left, newer};

/// How often all are asked while all is well: so an announcement that was lost is made up for.
const EVERY: Duration = Duration::from_secs(10);
/// The same while nobody knows the master, or it is not found where they say: at first, and after a while.
const IN_DOUBT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// Announcements and doubts make them be asked at once, but never more often than so.
const SHORTEST: Duration = Duration::from_millis(100);
/// So long after a switch all that answer have heard of it: they tell each other every two seconds.
const SETTLED: Duration = Duration::from_secs(10);
/// How long one of them may take for its answer, and the server that they name for its own.
const PATIENCE: Duration = Duration::from_secs(1);

/// How to come to the sentinels.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    user: Option<String>,
    password: Option<Secret>,
    tls: bool,
    certificates: Arc<Certificates>,
    limit: Duration,
}

impl Way {
    /// As the configuration says.
    pub(crate) fn new(config: &Config, certificates: Arc<Certificates>) -> Way {
        let SentinelAccess { user, password, tls } = config.upstream.sentinel.clone();
        Way {
            user,
            password,
            tls: tls && config.upstream.server.tls,
            certificates,
            limit: config.upstream.connect_timeout.min(PATIENCE),
        }
    }
}

/// Where the server is: at the place in the configuration, or where the sentinels say; those are asked from here on.
pub(super) fn whereabouts(config: &Config, certificates: &Arc<Certificates>, metrics: &Arc<Metrics>) -> Whereabouts {
    let target = &config.upstream.server.target;
    let sentinels = match target {
        Target::Place(place) => return Whereabouts::from(place.clone()),
        Target::Sentinels(sentinels) => sentinels.clone(),
    };
    let (finder, whereabouts) = Whereabouts::sought(target);
    let watch = Watch {
        asked: vec![Asked::default(); sentinels.hosts.len()],
        way: Arc::new(Way::new(config, Arc::clone(certificates))),
        server: config.upstream.server.clone(),
        sentinels: Arc::new(sentinels),
        finder,
        metrics: Arc::clone(metrics),
        known: None,
        since: Instant::now(),
        vain: Vec::new(),
        last: Instant::now(),
        due: Instant::now(),
        in_doubt: IN_DOUBT.0,
    };
    tokio::spawn(watch.run());
    whereabouts
}

/// One of the sentinels.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// A question is under way.
    pending: bool,
    /// What it said last of the master.
    said: Option<Said>,
    /// Whether anything was wrong last, and what. Only a change from one to the other is told.
    heard: Option<Result<(), String>>,
}

struct Watch {
    sentinels: Arc<Sentinels>,
    way: Arc<Way>,
    server: Server,
    finder: Finder,
    metrics: Arc<Metrics>,
    known: Option<Known>,
    /// When that was found.
    since: Instant,
    /// In the order of the URL.
    asked: Vec<Asked>,
    /// Masters that were looked at since the last questions, and are none.
    vain: Vec<(HostPort, String)>,
    /// When all were asked last, and when they are next.
    last: Instant,
    due: Instant,
    /// How long after a doubt they are asked again.
    in_doubt: Duration,
}

type Questions = JoinSet<(usize, Result<Answer, String>)>;

impl Watch {
    /// Runs as long as anybody wants to know.
    async fn run(mut self) {
        let doubts = self.finder.doubts();
        let mut listening = JoinSet::new();
        for host in self.sentinels.hosts.clone() {
            let (way, sentinels, doubts) = (Arc::clone(&self.way), Arc::clone(&self.sentinels), Arc::clone(&doubts));
            listening.spawn(async move { listening::run(&way, host, &sentinels.name, &doubts).await });
        }
        let mut questions = Questions::new();
        while self.finder.is_heard() {
            // Who answers first is not kept waiting by who answers never.
            tokio::select! {
                Some(answered) = questions.join_next() => {
                    // A question neither panics nor is cancelled.
                    if let Ok((index, answer)) = answered {
                        self.answered(index, answer).await;
                    }
                    if questions.is_empty() {
                        self.all_answered().await;
                    }
                }
                () = doubts.notified() => self.due = self.due.min(self.last + SHORTEST),
                () = sleep_until(self.due) => self.ask_all(&mut questions),
            }
        }
    }

    fn ask_all(&mut self, questions: &mut Questions) {
        self.last = Instant::now();
        self.due = self.last + EVERY;
        self.vain.clear();
        for (index, (asked, host)) in self.asked.iter_mut().zip(&self.sentinels.hosts).enumerate() {
            if !mem::replace(&mut asked.pending, true) {
                let (way, sentinels, host) = (Arc::clone(&self.way), Arc::clone(&self.sentinels), host.clone());
                questions.spawn(async move { (index, ask(&way, &host, &sentinels.name).await) });
            }
        }
    }

    /// One has answered: if it knows more than was known, that is looked at.
    async fn answered(&mut self, index: usize, answer: Result<Answer, String>) {
        self.heard(index, &answer);
        let Some(asked) = self.asked.get_mut(index) else { return };
        asked.pending = false;
        asked.said = match answer {
            Ok(Answer::Master(said)) => Some(said),
            Ok(Answer::Unknown) | Err(_) => None,
        };
        let newest = asked.said.as_ref();
        let candidate = newest.and_then(|said| newer(self.known.as_ref(), said));
        self.try_one(candidate).await;
    }

    /// No question is under way.
    async fn all_answered(&mut self) {
        let answers: Vec<_> = self.asked.iter().map(|asked| asked.said.clone()).collect();
        let settled = self.since.elapsed() >= SETTLED;
        if let Some(Agreed { on, disputed }) = agreed(self.known.as_ref(), settled, &answers)
            && (!disputed || self.known_may_be_left().await)
        {
            self.try_one(Some(on)).await;
        }
        if self.known.is_none() {
            self.metrics.master_known(false);
            self.finder.not_found(&self.trouble());
            self.ask_again();
        } else if self.vain.is_empty() {
            self.in_doubt = IN_DOUBT.0;
        }
    }

    /// Asks the server that is taken for the master.
    async fn known_may_be_left(&self) -> bool {
        let Some(known) = &self.known else { return true };
        may_be_left(&self.role(&known.master).await)
    }

    async fn role(&self, master: &HostPort) -> Role {
        let place = Place::Tcp(master.clone());
        role(&self.server, &place, &self.way.certificates, self.way.limit).await
    }

    fn ask_again(&mut self) {
        self.due = self.due.min(Instant::now() + self.in_doubt);
        self.in_doubt = IN_DOUBT.1.min(self.in_doubt * 2);
    }

    /// Looks whether it is a master, and says so.
    async fn try_one(&mut self, candidate: Option<Known>) {
        let Some(candidate) = candidate else { return };
        if let Some(known) = self.known.as_mut().filter(|known| known.master == candidate.master) {
            return known.epoch = candidate.epoch;
        }
        if self.vain.iter().any(|(master, _)| *master == candidate.master) {
            return;
        }
        let vain = match self.role(&candidate.master).await {
            Role::Master => None,
            Role::Other(role) => Some(format!("it says that it is a {role}")),
            Role::Unreachable(text) => Some(text),
            Role::Untold(text) => {
                tracing::warn!(master = %candidate.master, said = text, "the master does not tell its role; the sentinels are taken at their word");
                None
            }
        };
        if let Some(text) = vain {
            tracing::debug!(master = %candidate.master, text, "no master where the sentinels name one");
            self.vain.push((candidate.master, text));
            return self.ask_again();
        }
        let (master, epoch, name) = (&candidate.master, candidate.epoch, &self.sentinels.name);
        match &self.known {
            None => tracing::info!(%master, epoch, name, "the sentinels name the master"),
            Some(before) => {
                self.metrics.upstream_switched();
                tracing::warn!(before = %before.master, now = %master, epoch, name, "the master has switched: connections to the one before are closed");
            }
        }
        self.metrics.master_known(true);
        self.finder.found(Place::Tcp(candidate.master.clone()));
        // What they said of others, they say again before it counts against this one.
        for asked in &mut self.asked {
            asked.said.take_if(|said| said.master != candidate.master);
        }
        self.since = Instant::now();
        self.known = Some(candidate);
    }

    /// Tells it when a sentinel goes or comes.
    fn heard(&mut self, index: usize, answer: &Result<Answer, String>) {
        let (Some(asked), Some(sentinel)) = (self.asked.get_mut(index), self.sentinels.hosts.get(index)) else {
            return;
        };
        let now = match answer {
            Ok(Answer::Master(_)) => Ok(()),
            Ok(Answer::Unknown) => Err(format!("it knows no master called {}", self.sentinels.name)),
            Err(text) => Err(text.clone()),
        };
        match (&asked.heard, &now) {
            (Some(Err(_)), Err(error)) => tracing::debug!(%sentinel, error, "a sentinel does not name the master"),
            (_, Err(error)) => tracing::warn!(%sentinel, error, "a sentinel does not name the master"),
            (Some(Err(_)), Ok(())) => tracing::info!(%sentinel, "a sentinel answers again"),
            _ => {}
        }
        asked.heard = Some(now);
        let answers = |asked: &&Asked| matches!(asked.heard, Some(Ok(())));
        let answering = self.asked.iter().filter(answers).count();
        self.metrics.sentinels(answering, self.asked.len() - answering);
    }

    /// Why no master is known.
    fn trouble(&self) -> String {
        if !self.vain.is_empty() {
            let found = self.vain.iter().map(|(master, text)| format!("{master}: {text}"));
            let found: Vec<String> = found.collect();
            return format!("no master is where the sentinels name one ({})", found.join("; "));
        }
        let pairs = self.sentinels.hosts.iter().zip(&self.asked);
        let said = pairs.filter_map(|(host, asked)| Some(format!("{host}: {}", asked.heard.as_ref()?.as_ref().err()?)));
        format!("no sentinel names the master ({})", said.collect::<Vec<_>>().join("; "))
    }
}
