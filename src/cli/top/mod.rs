//! `lockward top`: the lock table of a running lockward, live, on the whole terminal. Where there is no terminal it prints
//! the table once. It goes on asking when lockward goes away, and says so.

mod detail;
mod screen;
mod state;
mod terminal;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::locks::{Filter, columns_of_terminal, text};
use super::output::{Closed, print};
use super::signals::asked_to_end;
use super::target::Target;
use super::{complain, runtime};
use crate::admin::api::{LockDetail, LocksQuery, Snapshot};
use crate::admin::client::{Client, ClientError, Stream};
use state::{Action, Front, View};
use terminal::{Input, Terminal};

/// Before lockward is asked again after it went away.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Ages and TTLs go on between two tables; the lock that is looked at is asked for as often.
const TICK: Duration = Duration::from_secs(1);

/// Show the lock table as it changes, on the whole terminal.
#[derive(Args)]
pub(super) struct Top {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    target: Target,
    /// Print the table once and end, as it is done where there is no terminal.
    #[arg(long)]
    once: bool,
}

impl Top {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, _) = self.target.client()?;
        let query = self.filter.query();
        let runtime = runtime()?;
        let ended = if self.once || !std::io::stdout().is_terminal() {
            runtime.block_on(once(&client, &query))
        } else {
            runtime.block_on(live(&client, query))
        };
        // The thread that reads keys ends by itself.
        runtime.shutdown_background();
        ended
    }
}

fn failed(error: &ClientError) -> ExitCode {
    complain(&error.to_string());
    ExitCode::FAILURE
}

async fn once(client: &Client, query: &LocksQuery) -> Result<ExitCode, ExitCode> {
    let query = LocksQuery {
        limit: Some(state::ROWS),
        ..query.clone()
    };
    // The first table of the live ones has everything, and of one moment.
    let mut stream = client.listen("live", &query).await.map_err(|error| failed(&error))?;
    let snapshot = next_table(&mut stream).await.map_err(|error| failed(&error))?;
    let mut page = format!("{}\n", screen::figures(&snapshot));
    let contended = screen::contended(&snapshot.rules);
    if !contended.is_empty() {
        page.push_str(&format!("contended in the last minute: {contended}\n"));
    }
    if let Some(reason) = &snapshot.not_ready {
        page.push_str(&format!("not ready: {}\n", super::shown::shown_text(reason)));
    }
    page.push('\n');
    page.push_str(&text(&snapshot.table, columns_of_terminal()));
    print(&page).map_err(Closed::code)?;
    Ok(ExitCode::SUCCESS)
}

/// The next table that comes; anything else is passed over.
async fn next_table(stream: &mut Stream) -> Result<Snapshot, ClientError> {
    loop {
        let message = stream.next().await?;
        if message.event == "snapshot" {
            return stream.parse(&message);
        }
    }
}

/// What the stream of tables tells.
enum News {
    Table(Box<Snapshot>),
    Trouble(String),
}

async fn live(client: &Client, query: LocksQuery) -> Result<ExitCode, ExitCode> {
    let mut view = View::new(client.address(), query);
    // Before the terminal is taken: a wrong address or filter is said as everywhere.
    let first = client
        .listen("live", &view.query)
        .await
        .map_err(|error| failed(&error))?;
    let cannot = |error: std::io::Error| {
        terminal::give_back();
        complain(&format!("this terminal cannot be used: {error}"));
        ExitCode::FAILURE
    };
    let asked = asked_to_end(terminal::give_back).map_err(cannot)?;
    let mut asked = std::pin::pin!(asked);
    let terminal = Terminal::take().map_err(cannot)?;
    let zone = TimeZone::system();
    let mut listening = Listening::begin(client, &view.query, Some(first));
    let mut looking = None;
    let mut inputs = terminal::inputs();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut came = Instant::now();
    loop {
        let later = u64::try_from(came.elapsed().as_millis()).unwrap_or(u64::MAX);
        view.later(later);
        let (columns, rows) = Terminal::size();
        terminal
            .show(&screen::draw(&mut view, columns, rows, &zone))
            .map_err(cannot)?;
        let action = tokio::select! {
            _ = &mut asked => Action::Quit,
            input = inputs.recv() => match input {
                Some(Input::Pressed(key)) => view.press(key),
                Some(Input::Resized) => Action::Nothing,
                None => Action::Quit,
            },
            Some(news) = listening.told.recv() => {
                match news {
                    News::Table(snapshot) => {
                        came = Instant::now();
                        view.take(*snapshot);
                    }
                    News::Trouble(text) => view.trouble = Some(text),
                }
                Action::Nothing
            }
            found = answer(&mut looking) => {
                if let Some(Looking { database, key_encoded, .. }) = looking.take() {
                    view.take_detail(database, &key_encoded, found);
                }
                Action::Nothing
            }
            // One question at a time, however long its answer takes.
            _ = ticks.tick() => match view.front {
                Front::Detail(_) if !view.paused && looking.is_none() => Action::AskDetail,
                _ => Action::Nothing,
            },
        };
        match action {
            Action::Nothing => {}
            Action::AskAnew => listening = Listening::begin(client, &view.query, None),
            Action::AskDetail => looking = Looking::begin(client, &view),
            Action::Quit => break,
        }
    }
    drop(terminal);
    Ok(ExitCode::SUCCESS)
}

/// A task that ends with this.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells every table of one query from now on, and asks again whenever lockward has gone away. Each query has a channel
/// of its own: what an earlier one has still to say goes with it.
struct Listening {
    told: mpsc::Receiver<News>,
    _task: Task<()>,
}

impl Listening {
    fn begin(client: &Client, query: &LocksQuery, first: Option<Stream>) -> Listening {
        let (client, query) = (client.clone(), query.clone());
        let (tell, told) = mpsc::channel(4);
        let mut open = first;
        let task = tokio::spawn(async move {
            loop {
                let error = match open.take() {
                    Some(stream) => tell_tables(stream, &tell).await,
                    None => match client.listen("live", &query).await {
                        Ok(stream) => tell_tables(stream, &tell).await,
                        Err(error) => error,
                    },
                };
                if tell.send(News::Trouble(error.to_string())).await.is_err() {
                    return;
                }
                sleep(ASK_AGAIN).await;
            }
        });
        Listening {
            told,
            _task: Task(task),
        }
    }
}

async fn tell_tables(mut stream: Stream, tell: &mpsc::Sender<News>) -> ClientError {
    loop {
        match next_table(&mut stream).await {
            // Nobody listens only at the very end.
            Ok(snapshot) => drop(tell.send(News::Table(Box::new(snapshot))).await),
            Err(error) => return error,
        }
    }
}

/// The question for the lock that is looked at. Another one, or none, takes its place.
struct Looking {
    database: u32,
    key_encoded: String,
    task: Task<Result<LockDetail, ClientError>>,
}

impl Looking {
    fn begin(client: &Client, view: &View) -> Option<Looking> {
        let Front::Detail(detail) = &view.front else {
            return None;
        };
        let (client, database, key_encoded) = (client.clone(), detail.database, detail.key_encoded.clone());
        let key = key_encoded.clone();
        let task = Task(tokio::spawn(async move { client.lock(&key, database).await }));
        Some(Looking {
            database,
            key_encoded,
            task,
        })
    }
}

/// What came of the question; never, if there is none.
async fn answer(looking: &mut Option<Looking>) -> Result<LockDetail, String> {
    let Some(looking) = looking else {
        return std::future::pending().await;
    };
    match (&mut looking.task.0).await {
        Ok(found) => found.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::admin::api::LockList;

    /// Tells each stream that comes, forever, which of all it is: as the total of its tables.
    async fn counting() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        tokio::spawn(async move {
            for total in 1.. {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(async move {
                    let table = LockList {
                        total,
                        ..LockList::default()
                    };
                    let snapshot = Snapshot {
                        table,
                        ..Snapshot::default()
                    };
                    let data = serde_json::to_string(&snapshot).expect("JSON");
                    let mut text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_owned();
                    let _ = stream.read(&mut [0; 4096]).await;
                    while stream.write_all(text.as_bytes()).await.is_ok() {
                        text = format!("event: snapshot\ndata: {data}\n\n");
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn nothing_is_told_of_an_earlier_query() {
        let client = Client::new(&counting().await);
        let mut listening = Listening::begin(&client, &LocksQuery::default(), None);
        for query in 1..4 {
            // As many as are held for a slow screen.
            while listening.told.len() < 4 {
                tokio::task::yield_now().await;
            }
            match listening.told.recv().await {
                Some(News::Table(snapshot)) => assert_eq!(snapshot.table.total, query),
                Some(News::Trouble(text)) => panic!("{text}"),
                None => panic!("nothing is told"),
            }
            listening = Listening::begin(&client, &LocksQuery::default(), None);
        }
    }

    #[tokio::test]
    async fn a_question_that_is_replaced_is_asked_no_longer() {
        // It never answers.
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let client = Client::new(&silent.local_addr().expect("it listens").to_string());
        let mut view = View::new(client.address(), LocksQuery::default());
        assert!(Looking::begin(&client, &view).is_none());
        let detail = |key: &str| state::Detail {
            database: 0,
            key_encoded: key.to_owned(),
            found: None,
            scrolled: 0,
        };
        view.front = Front::Detail(Box::new(detail("a")));
        let mut looking = Looking::begin(&client, &view);
        let first = looking.as_ref().map(|looking| looking.task.0.abort_handle());
        let first = first.expect("a lock is looked at");
        let (_stream, _) = silent.accept().await.expect("it is asked");
        assert!(!first.is_finished());
        view.front = Front::Detail(Box::new(detail("b")));
        looking = Looking::begin(&client, &view).or(looking);
        while !first.is_finished() {
            tokio::task::yield_now().await;
        }
        assert!(looking.is_some_and(|looking| looking.key_encoded == "b" && !looking.task.0.is_finished()));
    }
}
