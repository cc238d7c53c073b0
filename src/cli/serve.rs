//! `lockward`: serves until it is told to stop. SIGTERM and SIGINT drain; a second one ends at once.

use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::{Serve, complain, runtime, say};
use crate::config::{Config, Format, Loaded, Place};
use crate::metrics::log;
use crate::proxy::Proxy;
use crate::server::EmbeddedServer;

pub(super) fn run(serve: &Serve) -> Result<ExitCode, ExitCode> {
    let Loaded { mut config, warnings } = serve.source.load()?;
    let format = match config.log.format {
        Format::Text => log::Format::Text,
        Format::Json => log::Format::Json,
    };
    let _log = log::init(config.log.level.word(), format).map_err(|error| failed(&error.to_string()))?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let server = if serve.with_server {
        Some(start_server(&mut config)?)
    } else {
        None
    };
    let runtime = runtime()?;
    let outcome = runtime.block_on(serve_until_stopped(&config, server.as_ref()));
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

async fn serve_until_stopped(config: &Config, server: Option<&EmbeddedServer>) -> Result<ExitCode, ExitCode> {
    let proxy = Proxy::bind(config).await.map_err(|error| failed(&error.to_string()))?;
    let stopped = stop_signals()?;
    tracing::info!(
        clients = %config.listen.place,
        admin = %config.admin.address,
        server = %config.upstream.server.place,
        "lockward {} listens",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(server) = server {
        say(&what_to_try(config, server));
    }
    proxy.serve(config, stopped).await;
    Ok(ExitCode::SUCCESS)
}

/// Ready at the first SIGTERM or SIGINT; the second one ends the process at once.
fn stop_signals() -> Result<impl Future<Output = ()>, ExitCode> {
    let cannot = |error: std::io::Error| failed(&format!("cannot listen for signals: {error}"));
    let mut term = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let first = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&first);
    tokio::spawn(async move {
        let mut seen = 0;
        loop {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            seen += 1;
            if seen > 1 {
                std::process::exit(130);
            }
            told.notify_one();
        }
    });
    Ok(async move { first.notified().await })
}

fn what_to_try(config: &Config, server: &EmbeddedServer) -> String {
    let at = match &config.listen.place {
        Place::Tcp(address) => format!("-h {} -p {}", address.host, address.port),
        Place::Unix(path) => format!("-s {}", path.display()),
    };
    format!(
        "\n\
         lockward serves on {} in front of a server of its own ({}).\n\
         Try, in another terminal:\n\
         \n\
         \u{20}   redis-cli {at} PING\n\
         \u{20}   redis-cli {at} SET lock:a 1 NX EX 30\n\
         \u{20}   redis-cli {at} LOCKWARD WHOAMI\n\
         \u{20}   curl http://{}/metrics\n\
         \u{20}   lockward demo\n\
         \n\
         The server itself, past lockward: redis-cli -s {}\n\
         Ctrl-C ends both.",
        config.listen.place,
        server.program().display(),
        config.admin.address,
        server.socket().display(),
    )
}
