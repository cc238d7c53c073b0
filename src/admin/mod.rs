//! The HTTP side: metrics, health, the locks and rules as tables and as streams, release by force, the page. It has its
//! powers from a [`Backend`] and knows nothing of sockets to clients or servers. One request for each connection,
//! everything bounded in size, number and time, so that nobody can make it hang. No CORS: web pages of other origins get
//! nothing.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub mod api;
pub mod client;
mod encoding;
mod hosts;
mod routes;
mod socket;
mod stream;

use crate::lock::chore::{Done, Seen};
pub(crate) use encoding::encode;
use socket::{Progress, Socket};

use api::{
    Event, Known, LockList, LocksQuery, Pause, Process, RecordPage, RecordsQuery, Reloaded, RuleView, Suggestions,
    Upgraded,
};

/// The most connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 64;

/// For the head of a request to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// For one connection from accept to close, whatever its peer does, unless it is told a stream.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// For connections to end after the shutdown began.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Before accepting again after a failure, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most bytes of a request's head: holds the longest path that the HTTP library reads (64 KiB).
const MAX_HEAD: usize = 128 * 1024;

/// A future in a box, as trait objects need it.
pub type Answer<T, E = String> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Why there is no page of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordsError {
    /// The operator's: one was asked for a moment ago, or is being read. Nothing was sent to the server.
    Busy,
    /// The operator's: what is wrong with the query.
    Query(String),
    /// The server's: it is away or refused.
    Upstream(String),
}

/// What the admin side can see and do. Errors are sentences for the operator.
pub trait Backend: Send + Sync + 'static {
    /// Whether clients should be sent here: the server is reachable and the proxy is not draining. The error is the
    /// reason.
    fn ready(&self) -> Result<(), String>;

    /// All metrics in the Prometheus text format.
    fn metrics_text(&self) -> String;

    /// The name of the rule that makes this key a lock, if one does.
    fn rule_of(&self, key: &[u8]) -> Option<Arc<str>>;

    /// Reads a lock and its record.
    fn inspect(&self, database: u32, key: Bytes) -> Answer<Seen>;

    /// Releases whatever holds the lock: [`Done::Freed`] or [`Done::Absent`]. The future is awaited to its end, whether
    /// the operator waits or not. Who asked, and why, is logged here and not there.
    fn force_release(&self, database: u32, key: Bytes) -> Answer<Done>;

    /// Reads the configuration anew and puts it into force, or says what is wrong with it. Blocks as reading a file does.
    fn reload(&self) -> Result<Reloaded, String>;

    /// The process itself.
    fn process(&self) -> Process;

    /// Has a new process take this one's place, or says why nothing has changed. Blocks until that serves, or for some
    /// seconds.
    fn upgrade(&self) -> Result<Upgraded, String>;

    /// Holds clients back for `length` from now on, and waits for at most `wait` until nothing is under way.
    fn pause(&self, length: Duration, wait: Duration) -> Answer<Pause>;

    /// Lets clients go on.
    fn resume(&self) -> Answer<Pause>;

    /// Whether clients are held back.
    fn paused(&self) -> Answer<Pause>;

    /// The rules in force, with their figures.
    fn rules(&self) -> Vec<RuleView>;

    /// Whether a rule in force has this name.
    fn has_rule(&self, name: &str) -> bool;

    /// The lock table, filtered and sorted. The error says what is wrong with the query. It may take its time and blocks
    /// the thread, so it is called on one for that, and never by more than two at once; so are the suggestions.
    fn locks(&self, query: &LocksQuery) -> Result<LockList, String>;

    /// What this proxy itself knows of a lock.
    fn known(&self, database: u32, key: &[u8]) -> Known;

    /// A page of lease records, read from the server.
    fn records(&self, query: &RecordsQuery) -> Answer<RecordPage, RecordsError>;

    /// Advice on rules. Blocks as the lock table does.
    fn suggestions(&self) -> Suggestions;

    /// Everything that happens to locks from now on. Whoever reads too slowly is told how many he missed.
    fn events(&self) -> broadcast::Receiver<Arc<Event>>;

    /// Changes whenever anything may have changed that the table or the rules show, other than by the passing of time.
    fn changes(&self) -> watch::Receiver<()>;
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
struct Peer(SocketAddr);

/// Serves until `shutdown` ends, then ends the streams and gives open connections two seconds. `token` is what calls that
/// change something must present; if it is empty they are refused. `hosts` are the names by which this address may be
/// called besides IP literals, `localhost` and names without a dot.
pub async fn serve(
    listener: TcpListener,
    backend: Arc<dyn Backend>,
    token: String,
    hosts: Vec<String>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (end, ending) = watch::channel(false);
    let router = routes::router(backend, token, &hosts, ending);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let accepting = async {
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let router = router.clone();
                    connections.spawn(async move {
                        connection(stream, Peer(peer), router).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener could not accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
            // Forgets the connections that are over.
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown => {}
    }
    drop(listener);
    let _ = end.send(true);
    // What is not over by then is aborted when the set is dropped.
    let _ = timeout(SHUTDOWN_TIMEOUT, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn connection(stream: TcpStream, peer: Peer, router: Router) {
    let progress = Arc::new(Progress::default());
    let socket = Socket::new(stream, Arc::clone(&progress));
    let heard = Arc::clone(&progress);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        heard.heard();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(Arc::clone(&heard));
        TowerToHyperService::new(router.clone()).call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    // A peer that breaks off or sends nonsense harms only itself: hyper has answered him if he can be answered.
    let over = timeout(CONNECTION_TIMEOUT, &mut connection).await;
    if over.is_err() && progress.is_streaming() {
        // Bounded by what the peer reads, and by the end of lockward.
        let _ = connection.await;
    }
}
