//! What a real server answers to raw bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::real_server::{self, RealServer};

const ANSWER_LIMIT: Duration = Duration::from_secs(20);

pub struct Server(RealServer);

impl Server {
    pub fn redis(options: &[&str]) -> Server {
        Server(RealServer::start_with(&real_server::redis(), options))
    }

    pub fn valkey(options: &[&str]) -> Server {
        Server(RealServer::start_with(&real_server::valkey(), options))
    }

    fn connect(&self) -> TcpStream {
        let stream = self.0.connect();
        stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a timeout");
        stream
    }

    /// Everything that the server answers to `input` and the end of the stream behind it.
    pub fn answer_to(&self, input: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The server may refuse and close before it has read all.
        let _ = stream.write_all(input);
        let _ = stream.shutdown(Shutdown::Write);
        read_to_end(&mut stream)
    }

    /// Everything that the server answers to `input` until it closes by itself.
    pub fn answer_until_closed(&self, input: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let _ = stream.write_all(input);
        read_to_end(&mut stream)
    }
}

/// Reads until the other side closes; a reset counts, since a server that closes with bytes unread sends one.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server does not close: {error}; so far {}", answer.escape_ascii()),
    }
    answer
}
