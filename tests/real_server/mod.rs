//! A real Redis or Valkey for tests: on a free port of the loopback and a unix socket, with a folder of its own, ended
//! with the value, also by a panic. Speaks to it no further than to see that it listens.
//!
//! The Redis is `LOCKWARD_TEST_REDIS` or `redis-server` on PATH; the Valkey is `LOCKWARD_TEST_VALKEY`, which must be
//! set: a Valkey that is not tested must not look tested.

// Each test program uses its part of this.
#![allow(dead_code)]

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A server that does not listen by then never will.
const START_LIMIT: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The Redis to test with.
pub fn redis() -> String {
    std::env::var("LOCKWARD_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned())
}

/// The Valkey to test with.
pub fn valkey() -> String {
    std::env::var("LOCKWARD_TEST_VALKEY")
        .expect("LOCKWARD_TEST_VALKEY must name a valkey-server (`make test` sets it): this test runs on both servers")
}

/// A running server.
pub struct RealServer {
    program: String,
    options: Vec<String>,
    folder: PathBuf,
    port: u16,
    process: Child,
}

impl RealServer {
    pub fn start(program: &str) -> RealServer {
        RealServer::start_with(program, &[])
    }

    /// Starts the program with more options. Somebody else may take the free port before the server does: then the
    /// server ends, and the next port is tried.
    pub fn start_with(program: &str, options: &[&str]) -> RealServer {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        for _ in 0..5 {
            let (folder, port) = (new_folder(), free_port());
            let mut server = RealServer {
                process: launch(program, &options, &folder, port),
                program: program.to_owned(),
                options: options.clone(),
                folder,
                port,
            };
            if server.listens() {
                return server;
            }
        }
        panic!("{program} does not start");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        stream
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Asks it to end, and waits for that.
    pub fn end(&mut self) {
        self.signal("-TERM");
        let _ = self.process.wait();
    }

    /// Starts it again on the same port. It may not listen yet when this returns.
    pub fn restart(&mut self) {
        self.process = launch(&self.program, &self.options, &self.folder, self.port);
    }

    /// Sends it a signal, such as `-STOP`.
    pub fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// The socket comes behind the port, and nobody else makes one there: if it answers, both are ours.
    fn listens(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < START_LIMIT {
            if self.process.try_wait().expect("the state of a child").is_some() {
                return false;
            }
            if UnixStream::connect(self.socket()).is_ok() {
                return true;
            }
            sleep(LOOK_AGAIN);
        }
        false
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn new_folder() -> PathBuf {
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("lockward-test-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the server");
    folder
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port()
}

fn launch(program: &str, options: &[String], folder: &Path, port: u16) -> Child {
    let port = port.to_string();
    Command::new(program)
        .args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .arg("--dir")
        .arg(folder)
        .arg("--unixsocket")
        .arg(folder.join("s"))
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {program}: {error}"))
}
