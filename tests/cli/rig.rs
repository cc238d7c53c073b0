//! A lockward of its own in front of a real server, clients that speak to it, and the command line run against it as a
//! program. Everything is ended again, also by a panic.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::real_server::{self, RealServer};

pub const TOKEN: &str = "marked-secret-admin-token";

/// What does not happen by then never will.
const LIMIT: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The program that is tested, without variables of its own in the environment.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockward"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LOCKWARD_")) {
        command.env_remove(name);
    }
    command
}

pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port()
}

/// Waits until the condition holds.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "still not so after {LIMIT:?}: {what}");
        sleep(LOOK_AGAIN);
    }
}

/// What a run of the program came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A program that runs.
pub struct Running {
    process: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

fn reading(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    /// Its output is collected.
    pub fn start(command: &mut Command) -> Running {
        let mut running = Running::start_unread(command);
        running.out = running.process.stdout.take().map(reading);
        running
    }

    /// Its output can be read line by line, and closed.
    pub fn start_unread(command: &mut Command) -> Running {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let err = process.stderr.take().map(reading);
        Running {
            process,
            out: None,
            err,
        }
    }

    pub fn lines(&mut self) -> BufReader<std::process::ChildStdout> {
        BufReader::new(self.process.stdout.take().expect("not taken yet"))
    }

    pub fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub fn ended(&mut self) -> Ran {
        let process = &mut self.process;
        let status: ExitStatus = eventually("the program ends", || process.try_wait().expect("the state of a child"));
        let text =
            |thread: Option<JoinHandle<String>>| thread.map_or_else(String::new, |it| it.join().expect("it reads"));
        Ran {
            code: status.code(),
            out: text(self.out.take()),
            err: text(self.err.take()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the program to its end.
pub fn run(args: &[&str]) -> Ran {
    Running::start(program().args(args)).ended()
}

/// Runs a shell line in which `$L` is the program.
pub fn shell(line: &str) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("L", env!("CARGO_BIN_EXE_lockward"));
    Running::start(&mut command).ended()
}

/// A lockward that serves.
pub struct Lockward {
    /// Ended behind lockward.
    _server: RealServer,
    pub config: PathBuf,
    pub admin: String,
    port: u16,
    process: Running,
    folder: PathBuf,
}

impl Lockward {
    /// In front of a Redis, with these rules.
    pub fn start(rules: &str) -> Lockward {
        let server = RealServer::start(&real_server::redis());
        let folder = std::env::temp_dir().join(format!(
            "lockward-cli-{}-{}",
            std::process::id(),
            FOLDERS.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(&folder).expect("a folder");
        // Somebody else may take a free port before we do: then the next ones are tried.
        for _ in 0..5 {
            let (port, admin_port) = (free_port(), free_port());
            let config = folder.join("lockward.toml");
            let text = format!(
                "[listen]\naddress = \"127.0.0.1:{port}\"\n[upstream]\nurl = \"redis://127.0.0.1:{}\"\n[admin]\naddress = \
                 \"127.0.0.1:{admin_port}\"\ntoken = \"{TOKEN}\"\n{rules}",
                server.port()
            );
            std::fs::write(&config, text).expect("the configuration can be written");
            let mut process = Running::start(program().arg("--config").arg(&config));
            if serves(&mut process, port) {
                return Lockward {
                    _server: server,
                    config,
                    admin: format!("127.0.0.1:{admin_port}"),
                    port,
                    process,
                    folder,
                };
            }
        }
        panic!("lockward does not start");
    }

    /// Runs a command of the program against it.
    pub fn run(&self, args: &[&str]) -> Ran {
        Running::start(&mut self.command(args)).ended()
    }

    /// The same, not yet started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = program();
        command.args(args).arg("--config").arg(&self.config);
        command
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn stop(&mut self) {
        self.process.signal("-TERM");
        self.process.ended();
    }
}

impl Drop for Lockward {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serves(process: &mut Running, port: u16) -> bool {
    eventually("lockward serves or ends", || {
        let ended = process.process.try_wait().expect("the state of a child").is_some();
        let serves = !ended && TcpStream::connect(("127.0.0.1", port)).is_ok();
        (ended || serves).then_some(serves)
    })
}

/// A client of RESP2.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket option");
        Client(BufReader::new(stream))
    }

    /// Sends an inline command; the first line of the answer, and of a bulk string its text.
    pub fn ask(&mut self, line: &str) -> String {
        self.0
            .get_mut()
            .write_all(format!("{line}\r\n").as_bytes())
            .expect("it can be sent");
        let mut answer = self.line();
        if answer.starts_with('$') && answer != "$-1" {
            answer = self.line();
        }
        answer
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).expect("an answer");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }
}
