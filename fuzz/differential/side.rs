//! The two sides: a server, and another one with lockward in front; and a connection of our own to each server, past
//! lockward, to see what it holds and to know when it has read what lies before it. Compares nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cases::{PASSWORD, array};
use crate::real_server::RealServer;

/// What does not come by then never does.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A lockward in front of a server; ends with the value.
pub struct Proxy {
    process: Child,
    config: PathBuf,
    /// What it says beside the protocol.
    log: PathBuf,
    /// So much of the log was looked at.
    read: usize,
    pub port: u16,
}

impl Proxy {
    /// `rules` stands at the end of the configuration.
    pub fn start(program: &str, server: &RealServer, mode: &str, rules: &str, password: bool) -> Proxy {
        let (port, admin) = (free_port(), free_port());
        let access = if password {
            format!(":{PASSWORD}@")
        } else {
            String::new()
        };
        let text = format!(
            "[listen]\naddress = \"127.0.0.1:{port}\"\n[admin]\naddress = \"127.0.0.1:{admin}\"\n[log]\nlevel = \"error\"\n\
             [upstream]\nurl = \"redis://{access}127.0.0.1:{}\"\nmode = \"{mode}\"\nconnect_timeout = \"60s\"\n{rules}",
            server.port()
        );
        let config = std::env::temp_dir().join(format!("lockward-differential-{}-{port}.toml", std::process::id()));
        std::fs::write(&config, text).expect("a folder for files that are soon gone");
        let log = config.with_extension("log");
        let stderr = File::create(&log).expect("a folder for files that are soon gone");
        let process = Command::new(program)
            .arg("--config")
            .arg(&config)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let mut proxy = Proxy {
            process,
            config,
            log,
            read: 0,
            port,
        };
        proxy.listens();
        proxy
    }

    fn listens(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            assert!(self.is_running(), "lockward does not start");
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port))
                && stream.write_all(b"PING\r\n").is_ok()
                && stream.read(&mut [0; 16]).is_ok_and(|size| size > 0)
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("lockward does not listen");
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// What it has said of a panic since this was asked last. A task that panics takes its connection along and nothing
    /// else, so that lockward runs on.
    pub fn panic(&mut self) -> Option<String> {
        let size = std::fs::metadata(&self.log).map_or(0, |file| file.len()) as usize;
        if size <= self.read {
            return None;
        }
        let said = std::fs::read(&self.log).unwrap_or_default();
        let new = String::from_utf8_lossy(said.get(self.read..).unwrap_or_default()).into_owned();
        self.read = said.len();
        new.contains("panicked").then_some(new)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.config);
        let _ = std::fs::remove_file(&self.log);
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port()
}

/// A connection that is told sound requests, one after the other; mostly past lockward.
pub struct Control {
    stream: TcpStream,
    count: u64,
}

impl Control {
    pub fn connect(port: u16, password: bool) -> Control {
        let mut control = Control {
            stream: connect(port),
            count: 0,
        };
        if password {
            control.ask(&["AUTH", PASSWORD]);
        }
        control
    }

    /// Everything that is answered to one command.
    pub fn ask(&mut self, request: &[&str]) -> Vec<u8> {
        self.count += 1;
        let end = format!("control-{}", self.count);
        let echo = format!("\r\n$4\r\nECHO\r\n${}\r\n{end}\r\n", end.len());
        let words: Vec<Vec<u8>> = request.iter().map(|word| word.as_bytes().to_vec()).collect();
        let sent = [&array(&words)[..], b"*2", echo.as_bytes()].concat();
        self.stream.write_all(&sent).expect("the server takes a command");
        let end = format!("${}\r\n{end}\r\n", end.len()).into_bytes();
        let mut answer = Vec::new();
        let mut part = [0; 1 << 16];
        while !answer.ends_with(&end) {
            let size = self.stream.read(&mut part).expect("the server answers");
            assert!(size > 0, "the server has closed");
            answer.extend(&part[..size]);
        }
        answer.truncate(answer.len() - end.len());
        answer
    }

    /// A digest of all that the server holds.
    pub fn digest(&mut self) -> Vec<u8> {
        self.ask(&["DEBUG", "DIGEST"])
    }

    /// How often each command was called, refused and had failed.
    pub fn counts(&mut self) -> Counts {
        let answer = String::from_utf8_lossy(&self.ask(&["INFO", "commandstats"])).into_owned();
        answer.lines().filter_map(count).collect()
    }
}

/// Calls, refused calls and failed calls by command.
pub type Counts = BTreeMap<String, [u64; 3]>;

/// `cmdstat_get:calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0`, without the times.
fn count(line: &str) -> Option<(String, [u64; 3])> {
    let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let figure = |wanted: &str| {
        let mut all = figures.split(',').filter_map(|figure| figure.split_once('='));
        let (_, number) = all.find(|(name, _)| *name == wanted)?;
        number.trim().parse().ok()
    };
    Some((
        name.to_owned(),
        [figure("calls")?, figure("rejected_calls")?, figure("failed_calls")?],
    ))
}

/// A connection that hides nothing.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream.set_nodelay(true).expect("a socket option");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket option");
    stream.set_write_timeout(Some(LIMIT)).expect("a socket option");
    stream
}

/// Whether a read only found nothing yet.
pub fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
