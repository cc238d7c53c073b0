//! `lockward`: serves until it is told to stop. SIGTERM and SIGINT drain; a second one ends at once. SIGHUP reloads.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{Serve, Source, complain, runtime, say};
use crate::config::{self, Config, Loaded, Place, Server};
use crate::metrics::log::{self, LogHandle};
use crate::proxy::{Proxy, Reloader, Reread};
use crate::server::EmbeddedServer;

/// How often we look whether the embedded server is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(super) fn run(serve: &Serve) -> Result<ExitCode, ExitCode> {
    let Loaded { mut config, warnings } = serve.source.load()?;
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
    let reread = reread(&serve.source, server.is_some().then(|| config.upstream.server.clone()));
    let outcome = runtime.block_on(serve_until_stopped(&config, server.as_mut(), (reread, log)));
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
    config.upstream.server.place = Place::Unix(server.socket().to_owned());
    config.upstream.server.user = None;
    config.upstream.server.password = None;
    Ok(server)
}

/// Reads the settings as at the start; `embedded` is the server of our own, whatever the file names.
fn reread(source: &Source, embedded: Option<Server>) -> Box<Reread> {
    let file = source.config.clone();
    Box::new(move || {
        let mut loaded = Config::load(file.as_deref(), config::variables())?;
        if let Some(server) = &embedded {
            loaded.config.upstream.server.clone_from(server);
        }
        Ok(loaded)
    })
}

async fn serve_until_stopped(
    config: &Config,
    server: Option<&mut EmbeddedServer>,
    (reread, log): (Box<Reread>, LogHandle),
) -> Result<ExitCode, ExitCode> {
    let proxy = Proxy::bind(config).await.map_err(|error| failed(&error.to_string()))?;
    proxy.rereads(reread, log, config);
    let stopped = signals(proxy.reloader())?;
    tracing::info!(
        clients = %config.listen.place,
        admin = %config.admin.address,
        server = %config.upstream.server.place,
        "lockward {} listens",
        env!("CARGO_PKG_VERSION")
    );
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
    if let Place::Unix(path) = &config.listen.place {
        // Left behind it would only look like somebody who listens.
        let _ = std::fs::remove_file(path);
    }
    if orphaned {
        return Err(failed(
            "the embedded server has ended by itself, so there is nothing left to serve",
        ));
    }
    Ok(ExitCode::SUCCESS)
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
        loop {
            let code = tokio::select! {
                _ = term.recv() => 143,
                _ = interrupt.recv() => 130,
                _ = hangup.recv() => {
                    let reloader = reloader.clone();
                    // It has told the log what came of it.
                    let _ = tokio::task::spawn_blocking(move || reloader.reload()).await;
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
    let at = match &config.listen.place {
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
        config.listen.place,
        server.program().display(),
        config.admin.address,
        server.socket().display(),
    )
}
