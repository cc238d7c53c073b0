//! A proxy inside the test, and a client that speaks TLS to it with nothing hidden.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockward::admin::Backend;
use lockward::config::Config;
use lockward::proxy::Proxy;
use lockward::proxy::tls::Certificates;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use tokio::runtime::Runtime;

use super::papers::Papers;

/// Longer than anything here takes.
pub const LONG: Duration = Duration::from_secs(10);

pub fn config(text: &str) -> Config {
    Config::parse(text, Path::new("test"), std::iter::empty())
        .unwrap_or_else(|errors| panic!("{text}\n{errors}"))
        .config
}

/// A proxy that runs as long as the value lives.
pub struct Running {
    pub port: u16,
    pub backend: Arc<dyn Backend>,
    pub certificates: Arc<Certificates>,
    _runtime: Runtime,
}

/// Starts a proxy with these lines in `[listen]` and `[upstream]`.
pub fn start(listen: &str, upstream: &str) -> Running {
    let config = config(&settings(listen, upstream));
    let runtime = Runtime::new().expect("a runtime");
    let proxy = runtime.block_on(Proxy::bind(&config)).expect("a proxy");
    let running = (proxy.port(), proxy.backend(), proxy.certificates());
    runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });
    Running {
        port: running.0.expect("a port"),
        backend: running.1,
        certificates: running.2,
        _runtime: runtime,
    }
}

pub fn settings(listen: &str, upstream: &str) -> String {
    format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n{listen}\n[admin]\naddress = \"127.0.0.1:0\"\n[upstream]\n{upstream}\n"
    )
}

impl Running {
    /// The counter of connections that were closed, by reason.
    pub fn closed(&self, reason: &str) -> u32 {
        let series = format!("lockward_connections_refused_total{{reason=\"{reason}\"}} ");
        let metrics = self.backend.metrics_text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
        value.expect("the series is there").parse().expect("a number")
    }

    /// Waits until that many were closed.
    #[track_caller]
    pub fn has_closed(&self, reason: &str, count: u32) {
        let begun = Instant::now();
        while self.closed(reason) != count {
            assert!(
                begun.elapsed() < LONG,
                "{reason}: {} and not {count}",
                self.closed(reason)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A client, by what it trusts and shows.
pub struct Client<'a> {
    pub trusts: &'a Papers,
    pub shows: Option<(&'a Papers, &'a str)>,
    pub version: &'static SupportedProtocolVersion,
}

pub type Line = StreamOwned<ClientConnection, TcpStream>;

impl<'a> Client<'a> {
    pub fn of(papers: &'a Papers) -> Client<'a> {
        Client {
            trusts: papers,
            shows: Some((papers, "client")),
            version: &rustls::version::TLS13,
        }
    }

    pub fn connect(&self, port: u16) -> Line {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(&self.trusts.read("ca.pem")).expect("a certificate");
        roots.add(root).expect("a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[self.version])
            .expect("a version")
            .with_root_certificates(roots);
        let config = match self.shows {
            None => builder.with_no_client_auth(),
            Some((papers, name)) => {
                let chain = CertificateDer::from_pem_slice(&papers.read(&format!("{name}.pem")));
                let key = PrivateKeyDer::from_pem_slice(&papers.read(&format!("{name}.key")));
                builder
                    .with_client_auth_cert(vec![chain.expect("a certificate")], key.expect("a key"))
                    .expect("they belong together")
            }
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        StreamOwned::new(connection, plain(port))
    }

    /// One `PING` on a connection of its own.
    pub fn ping(&self, port: u16) -> io::Result<String> {
        ask(&mut self.connect(port), b"PING\r\n", 7)
    }
}

pub fn plain(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    socket.set_read_timeout(Some(LONG)).expect("a socket option");
    socket.set_nodelay(true).expect("a socket option");
    socket
}

/// Sends bytes and reads an answer of this length.
pub fn ask(line: &mut (impl Read + Write), bytes: &[u8], length: usize) -> io::Result<String> {
    line.write_all(bytes)?;
    line.flush()?;
    let mut answer = vec![0; length];
    line.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Whether the other side closes, whatever it says before.
pub fn is_closed(socket: &mut TcpStream) -> bool {
    let mut said = Vec::new();
    match socket.read_to_end(&mut said) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}
