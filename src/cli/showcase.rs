//! `lockward demo`: a server and a proxy for the length of one play. The play itself stands in `demo`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use super::demo::{self, Endpoint};
use super::{complain, runtime};
use crate::config::{Config, HostPort, Place};
use crate::proxy::Proxy;
use crate::server::EmbeddedServer;

/// All clients of the play come from one address, so each connection has to be an owner of its own.
const SETTINGS: &str = "[[locks]]\npattern = \"lock:*\"\nowner = \"connection\"\n";

pub(super) fn run() -> Result<ExitCode, ExitCode> {
    play().map_err(|text| {
        complain(&text);
        ExitCode::FAILURE
    })
}

fn play() -> Result<ExitCode, String> {
    let server = EmbeddedServer::start(None).map_err(|error| error.to_string())?;
    let loaded = Config::parse(SETTINGS, Path::new("demo"), std::iter::empty()).map_err(|error| error.to_string())?;
    let mut config = loaded.config;
    let anywhere = HostPort {
        host: Ipv4Addr::LOCALHOST.to_string(),
        port: 0,
    };
    config.upstream.server.target = Place::Unix(server.socket().to_owned()).into();
    config.listen.entrance.place = Place::Tcp(anywhere.clone());
    config.admin.address = anywhere;
    let runtime = runtime().map_err(|_| "no runtime".to_owned())?;
    let proxy = runtime
        .block_on(Proxy::bind(&config))
        .map_err(|error| error.to_string())?;
    let port = proxy.port().ok_or("no port")?;
    let serving = runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });
    let direct = Endpoint::Unix(server.socket().to_owned());
    let proxied = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let shown = demo::run(&direct, &proxied, &mut io::stdout()).map_err(|error| error.to_string())?;
    serving.abort();
    runtime.shutdown_background();
    Ok(if shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
