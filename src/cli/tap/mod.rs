//! `lockward tap`: each event of a running lockward's locks as a line, as it happens. It does not reconnect: whoever
//! reads the lines must know that none is missing, so it ends with an error when lockward goes away.

pub(super) mod line;
mod summary;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::output::Closed;
use super::shown::shown_json;
use super::signals::{asked_to_end, reader_gone};
use super::target::Target;
use super::{complain, runtime};
use crate::admin::api::{EVENTS, Event, EventsQuery};
use crate::admin::client::{Client, ClientError, Message};
use crate::config::duration;
use summary::Summary;

/// Show each lock event as it happens.
#[derive(Args)]
pub(super) struct Tap {
    /// A glob as in SCAN MATCH ('lock:*'); without any of *?[ every key that contains it.
    pattern: Option<String>,
    #[command(flatten)]
    target: Target,
    /// Only those under the rule of this name.
    #[arg(long)]
    rule: Option<String>,
    /// Only those of this database.
    #[arg(long)]
    db: Option<u32>,
    /// Only events of these kinds.
    #[arg(long, value_name = "EVENT", value_delimiter = ',', value_parser = PossibleValuesParser::new(EVENTS))]
    event: Vec<String>,
    /// One JSON object a line, as the API says it.
    #[arg(long)]
    json: bool,
    /// At the end, counts by rule and event, and the keys fought for most.
    #[arg(long)]
    summary: bool,
    /// End after so many events.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so long, as 10s, 5m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    time: Option<u64>,
}

/// Why a tap ended.
enum End {
    /// It had shown what it was to show, or was told to end.
    Done,
    /// Nobody reads any more.
    Closed(Closed),
    /// lockward went away, or never was there.
    Failed(ClientError),
}

impl Tap {
    pub(super) fn run(self) -> Result<ExitCode, ExitCode> {
        let (client, _) = self.target.client()?;
        let query = EventsQuery {
            pattern: self.pattern.clone(),
            rule: self.rule.clone(),
            db: self.db,
            event: Some(self.event.join(",")).filter(|events| !events.is_empty()),
        };
        let mut printer = Printer::new(self.json);
        let runtime = runtime()?;
        let mut end = runtime.block_on(self.listen(&client, &query, &mut printer));
        // What still waits has nobody to wait for.
        runtime.shutdown_background();
        if self.summary
            && !matches!(end, End::Closed(_))
            && let Err(closed) = printer.summary()
            && matches!(end, End::Done)
        {
            end = End::Closed(closed);
        }
        match end {
            End::Done => Ok(ExitCode::SUCCESS),
            End::Closed(closed) => Err(closed.code()),
            End::Failed(error) => {
                complain(&error.to_string());
                Err(ExitCode::FAILURE)
            }
        }
    }

    async fn listen(&self, client: &Client, query: &EventsQuery, printer: &mut Printer) -> End {
        let asked = match asked_to_end(|| {}) {
            Ok(asked) => asked,
            Err(error) => return End::Closed(error.into()),
        };
        let time = self.time;
        let over = async move {
            match time {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = asked => End::Done,
            () = reader_gone() => End::Closed(io::Error::from(io::ErrorKind::BrokenPipe).into()),
            () = over => End::Done,
            end = self.show(client, query, printer) => end,
        }
    }

    async fn show(&self, client: &Client, query: &EventsQuery, printer: &mut Printer) -> End {
        let mut stream = match client.listen("events", query).await {
            Ok(stream) => stream,
            Err(error) => return End::Failed(error),
        };
        loop {
            let message = match stream.next().await {
                Ok(message) => message,
                Err(error) => return End::Failed(error),
            };
            if let Err(closed) = printer.show(&message) {
                return End::Closed(closed);
            }
            if self.count.is_some_and(|count| printer.shown >= count) {
                return End::Done;
            }
        }
    }
}

/// What an event of the kind `missed` says.
#[derive(Deserialize)]
struct Missed {
    missed: u64,
}

/// Writes lines and counts them.
struct Printer {
    json: bool,
    colours: bool,
    zone: TimeZone,
    summary: Summary,
    shown: u64,
}

impl Printer {
    fn new(json: bool) -> Printer {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Printer {
            json,
            colours: wanted && io::stdout().is_terminal(),
            zone: TimeZone::system(),
            summary: Summary::default(),
            shown: 0,
        }
    }

    fn show(&mut self, message: &Message) -> Result<(), Closed> {
        match message.event.as_str() {
            "lock" => {
                let Ok(event) = serde_json::from_str::<Event>(&message.data) else {
                    complain("an event came that this version does not understand");
                    return Ok(());
                };
                self.summary.count(&event);
                self.shown += 1;
                if self.json {
                    self.write(&shown_json(&one_line(&message.data)))
                } else {
                    self.write(&line::line(&event, &self.zone, self.colours))
                }
            }
            "missed" => {
                let missed = serde_json::from_str::<Missed>(&message.data).map_or(0, |missed| missed.missed);
                self.summary.missed(missed);
                if self.json {
                    self.write(&format!("{{\"missed\":{missed}}}"))
                } else {
                    complain(&format!("{missed} events were missed: this reader was too slow"));
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn summary(&self) -> Result<(), Closed> {
        if !self.json {
            return self.write(self.summary.text().trim_end_matches('\n'));
        }
        let json = self.summary.json().map_err(io::Error::other)?;
        self.write(&shown_json(&json))
    }

    /// One line, at once: somebody may be looking.
    fn write(&self, line: &str) -> Result<(), Closed> {
        let mut out = io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes())?;
        out.flush()?;
        Ok(())
    }
}

/// JSON may stand in several lines of data.
fn one_line(json: &str) -> String {
    json.replace('\n', " ")
}
