//! `lockward`: serves until it is told to stop. SIGTERM and SIGINT drain; a second one ends at once. SIGHUP reloads.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::systemd::Manager;
use super::{Serve, Source, complain, runtime, say};
use crate::config::{self, Config, Entrance, Loaded, Place};
use crate::metrics::log::{self, LogHandle};
use crate::proxy::activation::Handed;
use crate::proxy::pulse::Pulse;
use crate::proxy::{Proxy, Reloader, Reread};
use crate::server::EmbeddedServer;

/// How often we look whether the embedded server is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(super) fn run(serve: &Serve) -> Result<ExitCode, ExitCode> {
    // Before there are threads.
    let handed = Handed::take().map_err(|error| failed(&error.to_string()))?;
    let Loaded {
        mut config, warnings, ..
    } = serve.source.load()?;
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
    let runtime = runtime()?;
    let reread = reread(&serve.source, &config, server.is_some(), handed.admin().is_some());
    let outcome = runtime.block_on(serve_until_stopped(&config, handed, server.as_mut(), (reread, log)));
    // Whatever still waits has nobody to wait for.
    runtime.shutdown_background();
    drop(server);
    outcome
}

fn failed(text: &str) -> ExitCode {
    complain(text);
    ExitCode::FAILURE
}

fn start_server(config: &mut Config) -> Result<EmbeddedServer, ExitCode> {
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
    (reread, log): (Box<Reread>, LogHandle),
) -> Result<ExitCode, ExitCode> {
    let handed_over = |entrance: &Entrance| handed.clients(&entrance.name);
    let places: Vec<Place> = config
        .entrances()
        .map(|entrance| handed_over(entrance).unwrap_or_else(|| entrance.place.clone()))
        .collect();
    // What was handed over is not ours to remove at the end.
    let ours: Vec<&Place> = config
        .entrances()
        .filter(|entrance| handed_over(entrance).is_none())
        .map(|entrance| &entrance.place)
        .collect();
    let proxy = Proxy::take_over(config, handed)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    proxy.rereads(reread, log, config);
    let clients: Vec<String> = places.iter().map(Place::to_string).collect();
    let clients = clients.join(", ");
    let stopped = signals(proxy.reloader())?;
    let stopped = announced(format!("serves clients on {clients}"), proxy.pulse(), stopped);
    tracing::info!(
        %clients,
        admin = %config.admin.address,
        server = %config.upstream.server.target,
        "lockward {} listens",
        env!("CARGO_PKG_VERSION")
    );
    tell_of_listeners(config, &places);
    let mut orphaned = false;
    match server {
        None => proxy.serve(config, stopped).await,
        Some(server) => {
            say(&what_to_try(config, server));
            let stop = async {
                tokio::select! {
                    () = stopped => {}
                    () = ended(server) => orphaned = true,
                }
            };
            proxy.serve(config, stop).await;
        }
    }
    for place in ours {
        if let Place::Unix(path) = place {
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

/// `stopped`, with the service manager told when it begins to be waited for (by then the proxy serves), as long as that
/// lasts, and when it is over.
async fn announced(status: String, pulse: Pulse, stopped: impl Future<Output = ()>) {
    let manager = Manager::find();
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
/// shell. SIGHUP reloads the configuration.
fn signals(reloader: Reloader) -> Result<impl Future<Output = ()>, ExitCode> {
    let cannot = |error: std::io::Error| failed(&format!("cannot listen for signals: {error}"));
    let mut term = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(cannot)?;
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
                    let reloader = reloader.clone();
                    // One after the other; and however long the file takes, whoever wants an end is heard.
                    if reloading.as_ref().is_none_or(JoinHandle::is_finished) {
                        reloading = Some(tokio::task::spawn_blocking(move || reloader.reload()));
                    } else {
                        tracing::warn!("SIGHUP: a reload is under way already");
                    }
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
