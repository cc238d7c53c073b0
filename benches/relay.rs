//! A blind relay: what a proxy costs that looks at nothing. lockward is measured beside it (`scripts/bench`), so it is
//! as plain as tokio allows: one task and one connection to the server for each client, and `copy_bidirectional`.
//!
//! `relay PORT SERVER_PORT THREADS`, all on the loopback; with 0 threads everything runs on the main thread, as tokio's
//! current-thread runtime does, else on so many workers. It is a program for other programs, no criterion benchmark, and
//! handles no errors beyond ending the connection concerned.

use std::error::Error;
use std::net::Ipv4Addr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, server, threads] = arguments.as_slice() else {
        println!(
            "relay: a blind relay to measure lockward beside (relay PORT SERVER_PORT THREADS); scripts/bench runs it"
        );
        return Ok(());
    };
    let (port, server, threads) = (port.parse()?, server.parse()?, threads.parse()?);
    let mut builder = match threads {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build()?.block_on(serve(port, server))
}

async fn serve(port: u16, server: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (client, _) = listener.accept().await?;
        tokio::spawn(relay(client, server));
    }
}

async fn relay(mut client: TcpStream, server: u16) -> Result<(), std::io::Error> {
    let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut upstream).await?;
    Ok(())
}
