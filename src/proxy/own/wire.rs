//! The own connection's bytes, and those of a question to a sentinel: connecting, asking, cutting replies at their ends.
//! Only our own small replies come this way; a client's bytes never do.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::config::Place;
use crate::proxy::socket::Socket;
use crate::proxy::stream::Stream;
use crate::proxy::tls::Certificates;
use crate::resp::encode;
use crate::resp::reply::ReplyScanner;

/// A reply of the server longer than this ends the connection.
const LONGEST_REPLY: usize = 16 * 1024 * 1024;

/// Why a connection ended or did not come about.
#[derive(Debug, Error)]
pub(in crate::proxy) enum Fault {
    #[error("{0}")]
    Nowhere(String),
    #[error("the sentinels name another master")]
    Moved,
    #[error("cannot connect to {0}: {1}")]
    Connect(Place, io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the server did not answer within {0:?}")]
    Stalled(Duration),
    #[error("the answer is no RESP, or longer than any can be")]
    NoReply,
    #[error("{command}: {text}")]
    Refused { command: &'static str, text: String },
}

/// An open connection with what has been read of the next reply.
pub(in crate::proxy) struct Link {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) input: BytesMut,
    replies: ReplyScanner,
    /// How much of `input` the scanner has seen.
    scanned: usize,
    /// The longest reply, in bytes.
    longest: usize,
}

impl Link {
    /// Connects within `limit`, with TLS if that is wanted.
    pub(in crate::proxy) async fn connect(
        place: &Place,
        wants_tls: bool,
        certificates: &Certificates,
        limit: Duration,
    ) -> Result<Link, Fault> {
        let tls = certificates.outgoing().filter(|_| wants_tls);
        if wants_tls && tls.is_none() && matches!(place, Place::Tcp(_)) {
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
            replies: ReplyScanner::new(),
            scanned: 0,
            longest: LONGEST_REPLY,
        })
    }

    /// The same for somebody from whom no longer reply is taken.
    pub(in crate::proxy) fn taking_at_most(self, longest: usize) -> Link {
        Link { longest, ..self }
    }

    /// Sends a request with `replies` replies and waits for them: while nothing else is under way.
    pub(super) async fn ask(&mut self, request: &[u8], replies: usize) -> Result<Vec<Bytes>, Fault> {
        self.writer.write_all(request).await?;
        self.writer.flush().await?;
        let mut got = Vec::with_capacity(replies.min(64));
        while got.len() < replies {
            got.push(self.hear().await?);
        }
        Ok(got)
    }

    /// Sends one command and waits for its reply.
    pub(in crate::proxy) async fn ask_one(&mut self, arguments: &[&str]) -> Result<Bytes, Fault> {
        let mut request = BytesMut::new();
        encode_words(arguments, &mut request);
        self.ask(&request, 1).await?.pop().ok_or(Fault::Closed)
    }

    /// Cuts the next whole reply off the input, if there is one.
    pub(super) fn next_reply(&mut self) -> Result<Option<Bytes>, Fault> {
        let rest = self.input.get(self.scanned..).unwrap_or_default();
        let step = self.replies.scan(rest).map_err(|_| Fault::NoReply)?;
        let length = self.scanned + step.taken;
        if step.done && length <= self.longest {
            self.replies.next();
            self.scanned = 0;
            return Ok(Some(self.input.split_to(length).freeze()));
        }
        self.scanned = length;
        match step.done || self.input.len() > self.longest {
            true => Err(Fault::NoReply),
            false => Ok(None),
        }
    }

    /// Sends a request whose answers are heard by [`Link::hear`].
    pub(in crate::proxy) async fn say(&mut self, arguments: &[&str]) -> Result<(), Fault> {
        let mut request = BytesMut::new();
        encode_words(arguments, &mut request);
        self.writer.write_all(&request).await?;
        Ok(self.writer.flush().await?)
    }

    /// Waits for what comes next. Nothing is lost when that is given up.
    pub(in crate::proxy) async fn hear(&mut self) -> Result<Bytes, Fault> {
        loop {
            if let Some(reply) = self.next_reply()? {
                return Ok(reply);
            }
            if self.reader.read_buf(&mut self.input).await? == 0 {
                return Err(Fault::Closed);
            }
        }
    }
}

/// Appends a request of these words.
pub(super) fn encode_words(words: &[&str], out: &mut BytesMut) {
    encode::command(out, words.iter().map(|word| word.as_bytes()));
}

/// The text of an error reply, without the dash and the line end; `None` for any other reply.
pub(in crate::proxy) fn error_text(reply: &[u8]) -> Option<String> {
    let text = reply.strip_prefix(b"-")?;
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}
