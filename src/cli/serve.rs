//! `lockward`: serves until it is told to stop. SIGTERM and SIGINT drain; a second one ends at once. SIGHUP reloads,
//! SIGUSR2 upgrades.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::successor::Itself;
use super::systemd::Manager;
use super::{Serve, Source, complain, runtime, say};
use crate::config::{self, Config, ConfigErrors, Entrance, Loaded, Place};
use crate::metrics::log::{self, LogHandle};
use crate::proxy::activation::Handed;
use crate::proxy::pulse::Pulse;
use crate::proxy::{Heir, Proxy, Ready, Reloader, Reread, Upgrader};
use crate::server::EmbeddedServer;

/// How often we look whether the embedded server is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Why it does not serve.
struct Fault {
    text: String,
    code: ExitCode,
}

pub(super) fn run(serve: &Serve) -> Result<ExitCode, ExitCode> {
    let itself = Itself::find(serve.with_server);
    // Before there are threads.
    let handed = Handed::take().map_err(|error| complained(&failed(&error.to_string())))?;
    let heir = handed.heir();
    start(serve, handed, itself).map_err(|fault| {
        let code = complained(&fault);
        // Whoever started this one to take its place goes on, and says why.
        if let Some(heir) = heir {
            heir.failed(&fault.text);
        }
        code
    })
}

fn start(serve: &Serve, handed: Handed, itself: Itself) -> Result<ExitCode, Fault> {
    let wrong = |errors: ConfigErrors| Fault {
        text: errors.to_string(),
        code: ExitCode::from(2),
    };
    let Loaded {
        mut config, warnings, ..
    } = serve.source.read().map_err(wrong)?;
    let handed = handed.meant_for(&config).map_err(|error| failed(&error.to_string()))?;
    if let Some(admin) = handed.admin() {
        config.admin.address = admin;
    }
    let log = log::init(config.log.level.word(), config.log.format).map_err(|error| failed(&error.to_string()))?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let mut server = if serve.with_server {
        Some(start_server(&mut config)?)
    } else {
        None
    };
    let runtime = runtime().map_err(|_| failed("no threads"))?;
    let reread = reread(&serve.source, &config, server.is_some(), handed.admin().is_some());
    let serving = serve_until_stopped(&config, handed, server.as_mut(), itself, (reread, log));
    let outcome = runtime.block_on(serving);
    // Whatever still waits has nobody to wait for.
    runtime.shutdown_background();
    drop(server);
    outcome
}

fn failed(text: &str) -> Fault {
    Fault {
        text: text.to_owned(),
        code: ExitCode::FAILURE,
    }
}

fn complained(fault: &Fault) -> ExitCode {
    complain(&fault.text);
    fault.code
}

fn start_server(config: &mut Config) -> Result<EmbeddedServer, Fault> {
    let server = EmbeddedServer::start(None).map_err(|error| failed(&error.to_string()))?;
    config.upstream.server.target = Place::Unix(server.socket().to_owned()).into();
    config.upstream.server.user = None;
    config.upstream.server.password = None;
    Ok(server)
}

/// Reads the settings as at the start: what was not taken from the file then, is not now.
fn reread(source: &Source, config: &Config, own_server: bool, admin_handed: bool) -> Box<Reread> {
    let file = source.config.clone();
    let server = own_server.then(|| config.upstream.server.clone());
    let admin = admin_handed.then(|| config.admin.address.clone());
    Box::new(move || {
        let mut loaded = Config::load(file.as_deref(), config::variables())?;
        if let Some(server) = &server {
            loaded.config.upstream.server.clone_from(server);
        }
        if let Some(admin) = &admin {
            loaded.config.admin.address.clone_from(admin);
        }
        Ok(loaded)
    })
}

async fn serve_until_stopped(
    config: &Config,
    handed: Handed,
    server: Option<&mut EmbeddedServer>,
    itself: Itself,
    (reread, log): (Box<Reread>, LogHandle),
) -> Result<ExitCode, Fault> {
    let opened = |entrance: &Entrance| handed.clients(&entrance.name);
    let places: Vec<Place> = config
        .entrances()
        .map(|entrance| opened(entrance).unwrap_or_else(|| entrance.place.clone()))
        .collect();
    // What the service manager opened is not ours to remove at the end.
    let ours: Vec<&Entrance> = config
        .entrances()
        .filter(|entrance| opened(entrance).is_none())
        .collect();
    let (heir, took_clients) = (handed.heir(), handed.places());
    let mut proxy = Proxy::take_over(config, handed)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    proxy.rereads(reread, log, config);
    let upgrades = proxy.upgrades(Box::new(itself));
    upgrades.map_err(|error| failed(&format!("cannot keep the listening sockets for an upgrade: {error}")))?;
    if let Some(heir) = &heir {
        take_over(&mut proxy, heir, config, took_clients).await?;
    }
    let clients: Vec<String> = places.iter().map(Place::to_string).collect();
    let clients = clients.join(", ");
    let stopped = signals(proxy.reloader(), proxy.upgrader())?;
    let stopped = announced(
        format!("serves clients on {clients}"),
        proxy.pulse(),
        heir.clone(),
        stopped,
    );
    if let Some(heir) = &heir {
        proxy.inherits(heir);
    }
    tracing::info!(
        %clients,
        admin = %config.admin.address,
        server = %config.upstream.server.target,
        "lockward {} listens",
        env!("CARGO_PKG_VERSION")
    );
    tell_of_listeners(config, &places);
    let mut orphaned = false;
    let ended = match server {
        None => proxy.serve(config, stopped).await,
        Some(server) => {
            say(&what_to_try(config, server));
            let stop = async {
                tokio::select! {
                    () = stopped => {}
                    () = ended(server) => orphaned = true,
                }
            };
            proxy.serve(config, stop).await
        }
    };
    for entrance in ours {
        let in_use = ended.sockets_in_use.contains(&entrance.place.to_string());
        if let (Place::Unix(path), false) = (&entrance.place, in_use) {
            // Left behind it would only look like somebody who listens.
            let _ = std::fs::remove_file(path);
        }
    }
    if orphaned {
        return Err(failed(
            "the embedded server has ended by itself, so there is nothing left to serve",
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Which rules hold where, if there is more than one way in.
fn tell_of_listeners(config: &Config, places: &[Place]) {
    for (entrance, place) in config.entrances().zip(places).filter(|_| !config.listeners.is_empty()) {
        let rules: Vec<&str> = config.rules_at(entrance).map(|rule| &*rule.name).collect();
        tracing::info!(listener = %entrance.name, %place, rules = rules.join(", "), "a listener and its rules");
    }
}

/// Tells the process whose place this one takes that it could, and waits to be told so.
async fn take_over(proxy: &mut Proxy, heir: &Heir, config: &Config, took_clients: Vec<String>) -> Result<(), Fault> {
    let ready = Ready {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        admin: config.admin.address.to_string(),
        took_clients,
        not_ready: proxy.readiness(config).await.err(),
    };
    let heir = heir.clone();
    let waiting = tokio::task::spawn_blocking(move || heir.ready(ready));
    let outcome = waiting.await.map_err(|error| failed(&error.to_string()))?;
    outcome.map_err(|text| failed(&text))
}

/// `stopped`, with the service manager, and the process whose place this one takes, told when it begins to be waited for
/// (by then the proxy serves). The manager is told as long as that lasts, and when it is over.
async fn announced(status: String, pulse: Pulse, heir: Option<Heir>, stopped: impl Future<Output = ()>) {
    let manager = Manager::find();
    if let Some(heir) = heir {
        heir.serving();
        // Before that the manager would not listen.
        heir.is_main().await;
    }
    manager.ready(&status);
    let feeding = manager.keep_alive(pulse);
    stopped.await;
    manager.stopping("draining");
    // The drain is bounded, and so is what the service manager waits for it.
    drop(feeding);
}

/// Waits until the embedded server has ended by itself.
async fn ended(server: &mut EmbeddedServer) {
    while !server.has_ended() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Ready at the first SIGTERM or SIGINT; the second one ends the process at once, with the code that signals have in a
/// shell. SIGHUP reloads the configuration, SIGUSR2 has a new process take this one's place.
fn signals(reloader: Reloader, upgrader: Upgrader) -> Result<impl Future<Output = ()>, Fault> {
    let cannot = |error: std::io::Error| failed(&format!("cannot listen for signals: {error}"));
    let mut term = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(cannot)?;
    let mut upgrade = signal(SignalKind::user_defined2()).map_err(cannot)?;
    let first = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&first);
    tokio::spawn(async move {
        let mut seen = 0;
        let mut reloading: Option<JoinHandle<_>> = None;
        loop {
            let code = tokio::select! {
                _ = term.recv() => 143,
                _ = interrupt.recv() => 130,
                _ = hangup.recv() => {
                    // One after the other; and however long the file takes, whoever wants an end is heard.
                    if reloading.as_ref().is_none_or(JoinHandle::is_finished) {
                        let reloader = reloader.clone();
                        reloading = Some(tokio::task::spawn_blocking(move || reload(&reloader)));
                    } else {
                        tracing::warn!("SIGHUP: a reload is under way already");
                    }
                    continue;
                }
                _ = upgrade.recv() => {
                    tracing::warn!(target: "lockward::audit", who = "SIGUSR2", "an operator asked for an upgrade");
                    let upgrader = upgrader.clone();
                    // What came of it stands in the log.
                    tokio::task::spawn_blocking(move || drop(upgrader.upgrade()));
                    continue;
                }
            };
            seen += 1;
            if seen > 1 {
                std::process::exit(code);
            }
            told.notify_one();
        }
    });
    Ok(async move { first.notified().await })
}

/// Reads the settings anew, and tells the service manager when that is over.
fn reload(reloader: &Reloader) {
    let manager = Manager::find();
    manager.reloading();
    let outcome = reloader.reload();
    manager.ready(match outcome {
        Ok(_) => "serves clients; the configuration was reloaded",
        Err(_) => "serves clients; the last reload failed, see the log",
    });
}

fn what_to_try(config: &Config, server: &EmbeddedServer) -> String {
    let program = std::env::current_exe().map_or_else(|_| "lockward".to_owned(), |path| path.display().to_string());
    let at = match &config.listen.entrance.place {
        Place::Tcp(address) => format!("-h {} -p {}", address.host, address.port),
        Place::Unix(path) => format!("-s {}", path.display()),
    };
    format!(
        "\n\
         lockward serves on {} in front of a server of its own ({}).\n\
         Try, in another terminal, with redis-cli or any other client:\n\
         \n\
         \u{20}   redis-cli {at} PING\n\
         \u{20}   redis-cli {at} SET lock:a 1 NX EX 30\n\
         \u{20}   redis-cli {at} LOCKWARD WHOAMI\n\
         \u{20}   {program} top\n\
         \u{20}   {program} demo\n\
         \n\
         and in a browser http://{}/ : who holds what and who waits, live (/metrics is there too).\n\
         The server itself, past lockward: redis-cli -s {}\n\
         Ctrl-C ends both.",
        config.listen.entrance.place,
        server.program().display(),
        config.admin.address,
        server.socket().display(),
    )
}
