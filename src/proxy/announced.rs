//! Takes a load balancer's header off a connection, and not one byte of what the client sends behind it: that may be
//! the beginning of TLS. What a header says, the core knows; who may send one, the door.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;

use tokio::io::ReadBuf;

use super::socket::Socket;
use super::tls::Refusal;
use crate::metrics::Unwelcome;
use crate::resp::announced::{self, Announced};

/// Read at once, at most: most headers are shorter.
const CHUNK: usize = 256;

/// Reads the header; what follows stays with the system. Where the client comes from, if it says so.
///
/// # Errors
/// Why it does not come about: `None` if nothing came at all, as from who only looks whether the port is open.
pub(super) async fn take(mut socket: Socket) -> Result<(Socket, Option<SocketAddr>), Refusal> {
    let refused = |text: String| Some((Unwelcome::ProxyHeader, text));
    let mut header = Vec::new();
    loop {
        match announced::read(&header) {
            Ok(Announced::Client(address)) => return Ok((socket, Some(address))),
            Ok(Announced::Nobody) => return Ok((socket, None)),
            Ok(Announced::More(due)) => match more(&mut socket, &mut header, due).await {
                Ok(true) => {}
                Ok(false) | Err(_) if header.is_empty() => return Err(None),
                Ok(false) => return Err(refused("it left in the middle of its PROXY header".to_owned())),
                Err(error) => return Err(refused(format!("it left in the middle of its PROXY header: {error}"))),
            },
            Err(error) => return Err(refused(error.to_string())),
        }
    }
}

/// Waits for bytes, and takes as many as there are up to `due`. False: none come any more.
async fn more(socket: &mut Socket, header: &mut Vec<u8>, due: usize) -> io::Result<bool> {
    let mut chunk = [0; CHUNK];
    let mut buffer = ReadBuf::new(chunk.get_mut(..due.min(CHUNK)).unwrap_or_default());
    poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await?;
    header.extend_from_slice(buffer.filled());
    Ok(!buffer.filled().is_empty())
}
