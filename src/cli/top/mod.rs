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

/// What the two ends of the network tell.
enum News {
    Table(Box<Snapshot>),
    Trouble(String),
    Detail {
        database: u32,
        key_encoded: String,
        found: Box<Result<LockDetail, String>>,
    },
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
    let (tell, mut told) = mpsc::channel(4);
    let mut listening = listen(client, &view.query, Some(first), &tell);
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
            Some(news) = told.recv() => {
                if matches!(news, News::Table(_)) {
                    came = Instant::now();
                }
                hear(&mut view, news);
                Action::Nothing
            }
            _ = ticks.tick() => match view.front {
                Front::Detail(_) if !view.paused => Action::AskDetail,
                _ => Action::Nothing,
            },
        };
        match action {
            Action::Nothing => {}
            Action::AskAnew => listening = listen(client, &view.query, None, &tell),
            Action::AskDetail => ask_detail(client, &view, &tell),
            Action::Quit => break,
        }
    }
    drop(listening);
    drop(terminal);
    Ok(ExitCode::SUCCESS)
}

fn hear(view: &mut View, news: News) {
    match news {
        News::Table(snapshot) => view.take(*snapshot),
        News::Trouble(text) => view.trouble = Some(text),
        News::Detail {
            database,
            key_encoded,
            found,
        } => view.take_detail(database, &key_encoded, *found),
    }
}

/// A task that ends with this.
struct Listening(tokio::task::JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells every table that comes from now on, and asks again whenever lockward has gone away.
fn listen(client: &Client, query: &LocksQuery, first: Option<Stream>, tell: &mpsc::Sender<News>) -> Listening {
    let (client, query, tell) = (client.clone(), query.clone(), tell.clone());
    let mut open = first;
    Listening(tokio::spawn(async move {
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
    }))
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

/// Asks for the lock that is looked at.
fn ask_detail(client: &Client, view: &View, tell: &mpsc::Sender<News>) {
    let Front::Detail(detail) = &view.front else { return };
    let (client, tell) = (client.clone(), tell.clone());
    let (database, key_encoded) = (detail.database, detail.key_encoded.clone());
    tokio::spawn(async move {
        let found = client.lock(&key_encoded, database).await;
        let news = News::Detail {
            database,
            key_encoded,
            found: Box::new(found.map_err(|error| error.to_string())),
        };
        // Nobody listens only at the very end.
        let _ = tell.send(news).await;
    });
}
