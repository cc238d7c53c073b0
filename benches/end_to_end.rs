//! lockward beside a direct connection, on a real server: requests in a second for one client, alone and in pipelines,
//! and a whole lock cycle. Prints ratios; absolute figures are not stable on a shared machine.
//!
//! Needs a server program: `LOCKWARD_SERVER`, PATH, or what `scripts/get-server` fetched.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use lockward::config::{Config, HostPort, Place};
use lockward::proxy::Proxy;
use lockward::server::EmbeddedServer;

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$8\r\nuser:123\r\n";
const CYCLE: &[u8] = b"*6\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nEX\r\n$2\r\n30\r\n*2\r\n$3\r\nDEL\r\n$6\r\nlock:a\r\n";
const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_millis(400);

struct Load {
    name: &'static str,
    packet: Vec<u8>,
    answer: usize,
    requests: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = EmbeddedServer::start(None)?;
    let mut config = Config::parse("", Path::new("bench"), std::iter::empty())?.config;
    let anywhere = HostPort {
        host: Ipv4Addr::LOCALHOST.to_string(),
        port: 0,
    };
    config.upstream.server.target = Place::Unix(server.socket().to_owned()).into();
    config.listen.entrance.place = Place::Tcp(anywhere.clone());
    config.admin.address = anywhere;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let proxy = runtime.block_on(Proxy::bind(&config))?;
    let port = proxy.port().ok_or("no port")?;
    runtime.spawn(async move { proxy.serve(&config, std::future::pending()).await });

    let nothing = b"$-1\r\n".len();
    let loads = [
        Load {
            name: "GET, one by one",
            packet: GET.to_vec(),
            answer: nothing,
            requests: 1,
        },
        Load {
            name: "GET, pipelines of 16",
            packet: GET.repeat(16),
            answer: 16 * nothing,
            requests: 16,
        },
        Load {
            name: "lock cycle (SET NX EX, DEL)",
            packet: CYCLE.to_vec(),
            answer: 9,
            requests: 2,
        },
    ];
    println!(
        "{:<30} {:>14} {:>14} {:>8}",
        "one client", "direct /s", "lockward /s", "ratio"
    );
    for load in &loads {
        let mut ratios = Vec::new();
        let (mut direct, mut proxied) = (0.0, 0.0);
        for _ in 0..ROUNDS {
            direct = rate(&mut UnixStream::connect(server.socket())?, load)?;
            proxied = rate(&mut TcpStream::connect((Ipv4Addr::LOCALHOST, port))?, load)?;
            ratios.push(proxied / direct);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{:<30} {direct:>14.0} {proxied:>14.0} {:>8.2}",
            load.name,
            ratios[ROUNDS / 2]
        );
    }
    Ok(())
}

fn rate(stream: &mut (impl Read + Write), load: &Load) -> Result<f64, std::io::Error> {
    let mut answer = vec![0; load.answer];
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LENGTH {
        stream.write_all(&load.packet)?;
        stream.read_exact(&mut answer)?;
        done += load.requests;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}
