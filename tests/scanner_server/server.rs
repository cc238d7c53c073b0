//! A server process of its own on a free loopback port, ended with the test, also when that panics.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    pub fn redis(options: &[&str]) -> Server {
        let program = env::var("LOCKWARD_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned());
        Server::start(&program, options)
    }

    pub fn valkey(options: &[&str]) -> Server {
        let program = env::var("LOCKWARD_TEST_VALKEY").expect(
            "LOCKWARD_TEST_VALKEY must name a valkey-server program (`make test` sets it); without one the scanner is \
             not tried against Valkey",
        );
        Server::start(&program, options)
    }

    fn start(program: &str, options: &[&str]) -> Server {
        // Somebody else may take the port before the server does: then the server ends, and the next port is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")
                .and_then(|listener| listener.local_addr())
                .expect("a port")
                .port();
            let process = Command::new(program)
                .args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ])
                .arg("--dir")
                .arg(env::temp_dir())
                .args(options)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
            let mut server = Server { process, port };
            if server.is_up() {
                return server;
            }
        }
        panic!("{program} does not start");
    }

    fn is_up(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < START_LIMIT {
            if self.process.try_wait().expect("the state of a child").is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            sleep(Duration::from_millis(20));
        }
        false
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
