//! The embedded server on a real server program: it answers, it ends with its owner however that ends, and it leaves
//! nothing behind. Needs a server on PATH, in LOCKWARD_SERVER or in the cache: `scripts/get-server` gets one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lockward::server::{EmbeddedServer, ServerError};

/// Set for the copy of this test program that holds a server for [`hold_a_server`].
const HOLD: &str = "LOCKWARD_TEST_HOLD_SERVER";

fn ask(socket: &Path, command: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut line)?;
    if let Some(length) = line
        .strip_prefix('$')
        .and_then(|rest| rest.trim().parse::<usize>().ok())
    {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        return Ok(String::from_utf8_lossy(&body).into_owned());
    }
    Ok(line.trim_end().to_owned())
}

fn pid_of(socket: &Path) -> u32 {
    let info = ask(socket, "INFO server").expect("INFO");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"))
        .expect("a process id in INFO");
    line.trim().parse().expect("a number")
}

fn is_running(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

/// A field of `/proc/PID/stat` by its place behind the program's name: 1 is the parent, 2 the process group.
fn stat_field(pid: u32, place: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    stat.rsplit(") ")
        .next()
        .and_then(|rest| rest.split(' ').nth(place))
        .expect("such a field")
        .to_owned()
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "still not so after 10 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Not a test of its own: what the copies of this program do that the tests below start and kill.
#[test]
fn hold_a_server() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let server = EmbeddedServer::start(None).expect("a server");
    println!("\nsocket {}", server.socket().display());
    std::io::stdout().flush().expect("stdout");
    std::thread::sleep(Duration::from_secs(60));
}

fn start_holder() -> (Child, PathBuf) {
    let mut holder = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "hold_a_server", "--nocapture"])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("a copy of this program");
    let lines = BufReader::new(holder.stdout.take().expect("its output")).lines();
    let socket = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("socket ").map(PathBuf::from));
    (holder, socket.expect("the copy names its socket"))
}

fn signal(name: &str, target: &str) {
    let status = Command::new("kill")
        .args(["-s", name, "--", target])
        .status()
        .expect("kill");
    assert!(status.success());
}

#[test]
fn answers_on_a_private_socket_and_ends_at_drop() {
    let server = EmbeddedServer::start(None).expect("a server (scripts/get-server gets one)");
    let socket = server.socket().to_owned();
    let directory = socket.parent().expect("a directory").to_owned();
    assert_eq!(ask(&socket, "PING").expect("an answer"), "+PONG");
    assert_eq!(
        std::fs::metadata(&directory).expect("it").permissions().mode() & 0o777,
        0o700
    );
    let pid = pid_of(&socket);
    drop(server);
    assert!(!is_running(pid), "the server outlived its owner");
    assert!(!directory.exists(), "the directory was left behind");
}

#[test]
fn ends_and_cleans_up_when_its_owner_is_killed() {
    let (mut holder, socket) = start_holder();
    let pid = pid_of(&socket);
    holder.kill().expect("SIGKILL");
    holder.wait().expect("its end");
    eventually("the server has ended", || !is_running(pid));
    eventually("its directory is gone", || !socket.parent().is_some_and(Path::exists));
}

#[test]
fn stands_outside_of_the_foreground_group_so_that_ctrl_c_does_not_reach_it() {
    let (mut holder, socket) = start_holder();
    let server_group = stat_field(pid_of(&socket), 2);
    let holder_group = stat_field(holder.id(), 2);
    holder.kill().expect("SIGKILL");
    holder.wait().expect("its end");
    assert_ne!(server_group, holder_group);
}

#[test]
fn a_signal_to_its_watcher_does_not_end_it() {
    let server = EmbeddedServer::start(None).expect("a server");
    let pid = pid_of(server.socket());
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let watcher = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.split(' ').nth(1))
        .expect("the parent")
        .to_owned();
    for name in ["INT", "HUP", "TERM"] {
        signal(name, &watcher);
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(ask(server.socket(), "PING").expect("an answer"), "+PONG");
    drop(server);
    assert!(!is_running(pid));
}

#[test]
fn two_live_side_by_side() {
    let first = EmbeddedServer::start(None).expect("a server");
    let second = EmbeddedServer::start(None).expect("a server");
    assert_eq!(ask(first.socket(), "SET k 1").expect("an answer"), "+OK");
    assert_eq!(ask(second.socket(), "EXISTS k").expect("an answer"), ":0");
    drop(first);
    assert_eq!(ask(second.socket(), "PING").expect("an answer"), "+PONG");
}

#[test]
fn a_program_that_is_no_server_is_named_in_the_error() {
    match EmbeddedServer::start(Some(PathBuf::from("/bin/false"))) {
        Err(ServerError::Ended { program, .. }) => assert!(program.ends_with("false"), "{}", program.display()),
        other => panic!("expected that it ended, got {other:?}"),
    }
    let error = EmbeddedServer::start(Some(PathBuf::from("no/such/program"))).expect_err("no program");
    assert!(error.to_string().contains("no/such/program"), "{error}");
}

/// Debian's redis-server is a link to redis-check-rdb, which looks at the name it is called by.
#[test]
fn a_program_is_called_by_the_name_of_its_link() {
    let folder = std::env::temp_dir().join(format!("lockward-link-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    let link = folder.join("redis-server");
    let program = std::env::var("LOCKWARD_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned());
    let program = if program.contains('/') {
        program.into()
    } else {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(&program))
            .find(|path| path.exists())
            .expect("a redis-server on PATH")
    };
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    let server = EmbeddedServer::start(Some(link.clone()));
    std::fs::remove_dir_all(&folder).expect("cleaned up");
    let server = server.expect("the server starts");
    assert_eq!(server.program(), link);
}
