//! The embedded server: a real Redis or Valkey as a child of lockward, on a private unix socket, for
//! `lockward --with-server`, `lockward demo` and tests.
//!
//! It downloads nothing (`scripts/get-server` does), keeps no data on disk, opens no TCP port and is no supervisor: a
//! server that dies stays dead. A shell: the core knows nothing of it.

mod find;

use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;
use uuid::Uuid;

pub use find::find_server;

/// How long a server may take until it answers PING. Valkey and Redis need some 20 ms on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(15);
/// How long the watcher may take to end the server and clean up.
const END_LIMIT: Duration = Duration::from_secs(5);
/// `sun_path` holds 108 bytes on Linux and 104 on macOS, the closing zero included.
const LONGEST_SOCKET_PATH: usize = 103;

/// Starts the server, waits for it or for the end of its own standard input, and clears the directory away.
///
/// Only lockward holds the other end of that pipe (std opens it close-on-exec), so the kernel closes it however
/// lockward ends, by SIGKILL too. SIGKILL for the server as well: it keeps nothing that is worth a clean exit.
const WATCHER: &str = r#"
directory=$1
shift
exec 3<&0 </dev/null
"$@" 3<&- >"$directory/server.log" 2>&1 &
server=$!
trap '' INT HUP TERM
{ read -r _ <&3; kill -KILL "$server"; } 2>/dev/null &
reader=$!
exec 3<&-
wait "$server"
code=$?
kill -KILL "$reader" 2>/dev/null
if [ "$code" -ge 128 ]; then rm -rf -- "$directory"; fi
exit "$code"
"#;

/// Why there is no embedded server.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No server program was found anywhere.
    #[error(
        "no valkey-server or redis-server found (looked at LOCKWARD_SERVER, on PATH and in .cache/servers): \
         run scripts/get-server, which needs no root, or set LOCKWARD_SERVER to a server program"
    )]
    NotFound,
    /// The program that was named is not there or cannot be executed.
    #[error("{path} ({named_by}) is not a program that can be run")]
    NotRunnable {
        /// The path as given.
        path: PathBuf,
        /// Who named it.
        named_by: &'static str,
    },
    /// The path of the socket would be too long for the system.
    #[error("the socket path {path} is longer than {LONGEST_SOCKET_PATH} bytes: set TMPDIR to a shorter directory")]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// Directory or process could not be made.
    #[error("cannot {what} for the embedded server: {source}")]
    Setup {
        /// What could not be done.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The server ended before it answered.
    #[error("the embedded server {program} ended at its start; its last words: {last_words}")]
    Ended {
        /// The server program.
        program: PathBuf,
        /// The end of its log.
        last_words: String,
    },
    /// The server did not answer in time.
    #[error("the embedded server {program} did not answer PING within {} s", START_LIMIT.as_secs())]
    Silent {
        /// The server program.
        program: PathBuf,
    },
}

/// A running server of lockward's own. It ends when this value is dropped, and also when lockward is killed.
#[derive(Debug)]
pub struct EmbeddedServer {
    watcher: Child,
    program: PathBuf,
    directory: PathBuf,
    socket: PathBuf,
}

impl EmbeddedServer {
    /// Starts `program`, or the server that [`find_server`] finds, and returns once it answers PING. Blocks the
    /// thread meanwhile (some 20 ms, 15 s at most).
    pub fn start(program: Option<PathBuf>) -> Result<EmbeddedServer, ServerError> {
        let program = match program {
            Some(path) => find::runnable(path, "as given")?,
            None => find_server()?,
        };
        let directory = private_directory()?;
        let socket = directory.join("server.sock");
        if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
            let _ = std::fs::remove_dir(&directory);
            return Err(ServerError::PathTooLong { path: socket });
        }
        let watcher = spawn_watcher(&program, &directory, &socket).map_err(|source| {
            let _ = std::fs::remove_dir_all(&directory);
            ServerError::Setup {
                what: "start a watcher process (sh)",
                source,
            }
        })?;
        let mut server = EmbeddedServer {
            watcher,
            program,
            directory,
            socket,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The unix socket that the server listens on. Its directory is open to this user only.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The program that runs.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.watcher.try_wait(), Ok(None))
    }

    fn wait_until_ready(&mut self) -> Result<(), ServerError> {
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            if answers_ping(&self.socket) {
                return Ok(());
            }
            if self.has_ended() {
                return Err(ServerError::Ended {
                    program: self.program.clone(),
                    last_words: self.last_words(),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(ServerError::Silent {
            program: self.program.clone(),
        })
    }

    fn last_words(&self) -> String {
        let log = std::fs::read(self.directory.join("server.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match lines.get(lines.len().saturating_sub(4)..) {
            Some(last) if !last.is_empty() => last.join(" / "),
            _ => String::from("none"),
        }
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let started = Instant::now();
        while started.elapsed() < END_LIMIT && matches!(self.watcher.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.watcher.kill();
        let _ = self.watcher.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn private_directory() -> Result<PathBuf, ServerError> {
    let directory = std::env::temp_dir().join(format!("lockward-{}", Uuid::new_v4().simple()));
    match DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => Ok(directory),
        Err(source) => Err(ServerError::Setup {
            what: "make a temporary directory",
            source,
        }),
    }
}

/// A process group of its own keeps Ctrl-C away: lockward drains first, and the server must live until then.
fn spawn_watcher(program: &Path, directory: &Path, socket: &Path) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", WATCHER, "lockward-server-watcher"])
        .arg(directory)
        .arg(program)
        .args([
            "--port",
            "0",
            "--unixsocketperm",
            "700",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .arg("--unixsocket")
        .arg(socket)
        .arg("--dir")
        .arg(directory)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

fn answers_ping(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let mut answer = [0u8; 7];
    stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut answer).is_ok() && answer == *b"+PONG\r\n"
}
