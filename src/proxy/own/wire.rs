//! The own connection's bytes: connecting, asking, cutting replies at their ends. Only our own small replies
//! come this way, so redis-protocol's decoder finds the ends; a client's bytes never do.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::decode::decode_range;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::config::{Place, Server};
use crate::proxy::socket::Socket;
use crate::proxy::stream::Stream;
use crate::proxy::tls::Certificates;
use crate::resp::encode;

/// A reply longer than this ends the connection.
const LONGEST_REPLY: usize = 16 * 1024 * 1024;

/// Why a connection ended or did not come about.
#[derive(Debug, Error)]
pub(super) enum Fault {
    #[error("cannot connect to {0}: {1}")]
    Connect(Place, io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the server did not answer within {0:?}")]
    Stalled(Duration),
    #[error("the server's answer is no RESP2, or longer than 16 MiB")]
    NoReply,
    #[error("{command}: {text}")]
    Refused { command: &'static str, text: String },
}

/// An open connection with what has been read of the next reply.
pub(super) struct Link {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) input: BytesMut,
}

impl Link {
    pub(super) async fn connect(server: &Server, certificates: &Certificates, limit: Duration) -> Result<Link, Fault> {
        let place = &server.place;
        let tls = certificates.outgoing();
        if server.tls && tls.is_none() && matches!(place, Place::Tcp(_)) {
            // Never in the clear where TLS was asked for.
            let error = io::Error::new(io::ErrorKind::InvalidInput, "nothing was read for TLS");
            return Err(Fault::Connect(place.clone(), error));
        }
        let stream = Stream::connect(place, tls.as_deref(), limit)
            .await
            .map_err(|error| Fault::Connect(place.clone(), error))?;
        let (reader, writer): (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) = match stream {
            Stream::Plain(Socket::Tcp(stream)) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Stream::Plain(Socket::Unix(stream)) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Stream::Tls(stream) => {
                let (reader, writer) = tokio::io::split(stream);
                // It reads no more from the network at once than it has room for.
                (Box::new(BufReader::new(reader)), Box::new(writer))
            }
        };
        Ok(Link {
            reader,
            writer,
            input: BytesMut::new(),
        })
    }

    /// Sends a request with `replies` replies and waits for them: while nothing else is under way.
    pub(super) async fn ask(&mut self, request: &[u8], replies: usize) -> Result<Vec<Bytes>, Fault> {
        self.writer.write_all(request).await?;
        self.writer.flush().await?;
        let mut got = Vec::with_capacity(replies.min(64));
        while got.len() < replies {
            match self.next_reply()? {
                Some(reply) => got.push(reply),
                None if self.reader.read_buf(&mut self.input).await? == 0 => return Err(Fault::Closed),
                None => {}
            }
        }
        Ok(got)
    }

    /// Sends one command and waits for its reply.
    pub(super) async fn ask_one(&mut self, arguments: &[&str]) -> Result<Bytes, Fault> {
        let mut request = BytesMut::new();
        encode_words(arguments, &mut request);
        self.ask(&request, 1).await?.pop().ok_or(Fault::Closed)
    }

    /// Cuts the next whole reply off the input, if there is one.
    pub(super) fn next_reply(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.input.is_empty() {
            return Ok(None);
        }
        match decode_range(&self.input) {
            Ok(Some((_, length))) if length <= self.input.len() => Ok(Some(self.input.split_to(length).freeze())),
            Ok(None) if self.input.len() <= LONGEST_REPLY => Ok(None),
            _ => Err(Fault::NoReply),
        }
    }
}

/// Appends a request of these words.
pub(super) fn encode_words(words: &[&str], out: &mut BytesMut) {
    encode::command(out, words.iter().map(|word| word.as_bytes()));
}

/// The text of an error reply, without the dash and the line end; `None` for any other reply.
pub(super) fn error_text(reply: &[u8]) -> Option<String> {
    let text = reply.strip_prefix(b"-")?;
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}
