//! lockward's own connection against real servers: probes, reconnects, AUTH, databases, scripts, stalls.

mod real_server;

use std::time::Duration;

use bytes::Bytes;
use lockward::config::{HostPort, Place, Secret, Server, Target};
use lockward::event::Token;
use lockward::lock::chore::{Chore, Done, Task};
use lockward::lock::features::Features;
use lockward::lock::script::Script;
use lockward::proxy::own::{self, Handle, OwnError, Settings, State};
use real_server::{RealServer, redis, valkey};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;
use uuid::Uuid;

/// Valkey 9.1 has MSETEX as well as its own DELIFEQ.
const VALKEY_9_1: Features = Features {
    delex: false,
    delifeq: true,
    msetex: true,
    set_ifeq: true,
    set_ifne: false,
    login: false,
};

/// The server as the configuration names it, for a user without a password.
fn target(server: &RealServer) -> Server {
    let address = HostPort {
        host: "127.0.0.1".to_owned(),
        port: server.port(),
    };
    Server {
        target: Place::Tcp(address).into(),
        tls: false,
        user: None,
        password: None,
        database: 0,
    }
}

fn spawn(server: Server, settings: Settings) -> Handle {
    let Target::Place(place) = server.target.clone() else {
        panic!("no place: {}", server.target);
    };
    own::spawn(server, place.into(), settings)
}

fn logging_in(server: &RealServer, user: &str, password: &str) -> Server {
    Server {
        user: Some(user.to_owned()),
        password: Some(Secret::new(password)),
        ..target(server)
    }
}

fn settings() -> Settings {
    let mut settings = Settings::new("lockward:");
    settings.call_timeout = Duration::from_millis(500);
    settings.longest_pause = Duration::from_millis(200);
    settings.idle_ping = Duration::from_millis(300);
    settings
}

fn chore(database: u32) -> Chore {
    let token = Token(Uuid::from_u128(7));
    Chore {
        database,
        key: Bytes::from_static(b"lock:a"),
        task: Task::Check { token },
    }
}

fn words(line: &str) -> Vec<Bytes> {
    line.split(' ')
        .map(|word| Bytes::copy_from_slice(word.as_bytes()))
        .collect()
}

async fn ask(handle: &Handle, database: u32, line: &str) -> String {
    let reply = handle.command(Some(database), words(line)).await.unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

/// Waits until the state is as wanted.
async fn until(handle: &Handle, wanted: impl Fn(&State) -> bool) -> State {
    let mut state = handle.state();
    let found = timeout(Duration::from_secs(10), state.wait_for(|state| wanted(state))).await;
    found
        .unwrap_or_else(|_| panic!("the state stays {:?}", handle.state().borrow()))
        .unwrap()
        .clone()
}

async fn up(server: &RealServer) -> Handle {
    let handle = spawn(target(server), settings());
    until(&handle, |state| state.up).await;
    handle
}

#[tokio::test]
async fn redis_has_the_newer_commands_from_8_4_on() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    let state = handle.state().borrow().clone();
    let version = state.version.strip_prefix("redis ").expect("the server names itself");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap());
    let newer = (parts.next().unwrap(), parts.next().unwrap()) >= (8, 4);
    let features = Features {
        delex: newer,
        delifeq: false,
        msetex: newer,
        set_ifeq: newer,
        set_ifne: newer,
        login: false,
    };
    assert_eq!((state.features, state.error), (features, None));
    assert_eq!(ask(&handle, 0, "DBSIZE").await, ":0\r\n");
}

#[tokio::test]
async fn valkey_9_1_has_delifeq_msetex_and_set_ifeq() {
    let server = RealServer::start(&valkey());
    let handle = up(&server).await;
    let state = handle.state().borrow().clone();
    assert!(state.version.starts_with("valkey 9."), "{}", state.version);
    assert_eq!(state.features, VALKEY_9_1);
    assert_eq!(ask(&handle, 0, "DBSIZE").await, ":0\r\n");
}

#[tokio::test]
async fn a_full_memory_hides_no_command() {
    let server = RealServer::start(&valkey());
    let handle = up(&server).await;
    assert_eq!(ask(&handle, 0, "CONFIG SET maxmemory 1").await, "+OK\r\n");
    assert!(ask(&handle, 0, "SET a b").await.starts_with("-OOM"));
    let again = up(&server).await;
    let features = again.state().borrow().features;
    assert_eq!(features, VALKEY_9_1);
}

#[tokio::test]
async fn the_server_may_die_and_come_back() {
    let mut server = RealServer::start(&redis());
    let handle = up(&server).await;
    assert_eq!(handle.chore(chore(0)).await, Ok(Done::Ended));
    server.kill();
    let down = until(&handle, |state| !state.up).await;
    assert!(down.version.starts_with("redis "));
    let reason = until(&handle, |state| {
        state.error.as_ref().is_some_and(|error| error.contains("refused"))
    })
    .await;
    assert!(
        reason
            .error
            .unwrap()
            .starts_with(&format!("cannot connect to 127.0.0.1:{}", server.port()))
    );
    // `Away` says that nobody waited for an answer.
    assert!(matches!(handle.chore(chore(0)).await, Err(OwnError::Away(_))));
    server.restart();
    until(&handle, |state| state.up && state.error.is_none()).await;
    assert_eq!(handle.chore(chore(0)).await, Ok(Done::Ended));
}

#[tokio::test]
async fn a_user_logs_in_and_a_wrong_password_is_said_without_it() {
    let server = RealServer::start(&redis());
    let admin = up(&server).await;
    assert_eq!(
        ask(&admin, 0, "ACL SETUSER keeper on >marked-secret-user-password ~* +@all").await,
        "+OK\r\n"
    );
    let handle = spawn(logging_in(&server, "keeper", "marked-secret-user-password"), settings());
    until(&handle, |state| state.up).await;
    assert_eq!(ask(&handle, 0, "ACL WHOAMI").await, "$6\r\nkeeper\r\n");
    let wrong = logging_in(&server, "keeper", "wr0ng");
    assert!(!format!("{wrong:?}").contains("wr0ng"));
    let refused = spawn(wrong, settings());
    let state = until(&refused, |state| state.error.is_some()).await;
    let error = state.error.unwrap();
    assert!(
        !state.up && error.starts_with("AUTH: WRONGPASS") && !error.contains("wr0ng"),
        "{error}"
    );
}

#[tokio::test]
async fn a_user_without_scripts_is_told_so_and_the_connection_serves() {
    let server = RealServer::start(&redis());
    let admin = up(&server).await;
    assert_eq!(
        ask(&admin, 0, "ACL SETUSER weak on >p ~lock:* +@all -@scripting").await,
        "+OK\r\n"
    );
    let handle = spawn(logging_in(&server, "weak", "p"), settings());
    let state = until(&handle, |state| state.up).await;
    assert!(state.error.unwrap().starts_with("SCRIPT LOAD: NOPERM"));
    let error = handle.chore(chore(0)).await.unwrap_err();
    assert!(
        matches!(&error, OwnError::Refused(text) if text.starts_with("NOPERM")),
        "{error}"
    );
}

#[tokio::test]
async fn every_command_runs_in_its_own_database() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..400 {
        let handle = handle.clone();
        calls.spawn(async move { ask(&handle, number % 4, &format!("SET key:{number} {number}")).await });
    }
    while let Some(reply) = calls.join_next().await {
        assert_eq!(reply.unwrap(), "+OK\r\n");
    }
    for database in 0..4 {
        assert_eq!(ask(&handle, database, "DBSIZE").await, ":100\r\n");
        assert_eq!(
            ask(&handle, database, &format!("GET key:{database}")).await,
            format!("$1\r\n{database}\r\n")
        );
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_leaves_the_others_alone() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    assert_eq!(ask(&handle, 3, "SET a 1").await, "+OK\r\n");
    let error = handle.command(Some(99), words("DEL a")).await.unwrap_err();
    assert_eq!(
        error,
        OwnError::Refused("SELECT: ERR DB index is out of range".to_owned())
    );
    assert_eq!(ask(&handle, 3, "GET a").await, "$1\r\n1\r\n");
}

#[tokio::test]
async fn lost_scripts_are_loaded_again() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    assert_eq!(handle.command(None, words("SCRIPT FLUSH")).await.unwrap(), "+OK\r\n");
    assert_eq!(handle.chore(chore(2)).await, Ok(Done::Ended));
    assert_eq!(handle.command(None, words("SCRIPT FLUSH")).await.unwrap(), "+OK\r\n");
    handle.reload_scripts().await.unwrap();
    let names: Vec<&str> = Script::ALL.iter().map(|script| script.sha1()).collect();
    let exist = ask(&handle, 0, &format!("SCRIPT EXISTS {}", names.join(" "))).await;
    assert_eq!(exist, format!("*{}\r\n{}", names.len(), ":1\r\n".repeat(names.len())));
}

#[tokio::test]
async fn a_stalled_server_holds_nobody_up() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    server.signal("-STOP");
    let error = timeout(Duration::from_secs(10), handle.chore(chore(0))).await;
    let error = error.expect("an answer though the server stands still").unwrap_err();
    assert!(matches!(error, OwnError::TimedOut | OwnError::Lost(_)), "{error}");
    let down = until(&handle, |state| !state.up).await;
    assert!(down.error.unwrap().contains("did not answer within"));
    server.signal("-CONT");
    until(&handle, |state| state.up).await;
    assert_eq!(handle.chore(chore(0)).await, Ok(Done::Ended));
}

#[tokio::test]
async fn an_idle_connection_notices_that_the_server_stalls() {
    let server = RealServer::start(&redis());
    let handle = up(&server).await;
    server.signal("-STOP");
    until(&handle, |state| !state.up).await;
    server.signal("-CONT");
    until(&handle, |state| state.up).await;
}

#[tokio::test]
async fn a_full_queue_is_an_error_and_every_call_ends() {
    let server = RealServer::start(&redis());
    let handle = spawn(
        target(&server),
        Settings {
            queue: 16,
            ..settings()
        },
    );
    until(&handle, |state| state.up).await;
    server.signal("-STOP");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..2000 {
        let handle = handle.clone();
        calls.spawn(async move { handle.chore(chore(0)).await });
    }
    let all = async {
        let mut full = 0;
        while let Some(result) = calls.join_next().await {
            full += usize::from(result.unwrap() == Err(OwnError::Full));
        }
        full
    };
    let full = timeout(Duration::from_secs(5), all).await.expect("a call hangs");
    assert!(full > 0);
    server.signal("-CONT");
}

#[tokio::test]
async fn an_answer_nested_without_end_costs_the_connection_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = HostPort {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().expect("an address").port(),
    };
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // It may be gone before it has read everything.
            let _ = stream.write_all(&b"*1\r\n".repeat(200_000)).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    let server = RealServer::start(&redis());
    let nested = Server {
        target: Place::Tcp(address).into(),
        ..target(&server)
    };
    let handle = spawn(nested, settings());
    until(&handle, |state| state.error.is_some()).await;
    assert!(!handle.state().borrow().up);
}

#[tokio::test]
async fn a_unix_socket_serves_as_well_and_long_replies_arrive_whole() {
    let server = RealServer::start(&redis());
    let by_socket = Server {
        target: Place::Unix(server.socket()).into(),
        tls: false,
        ..target(&server)
    };
    let handle = spawn(by_socket, settings());
    until(&handle, |state| state.up).await;
    let value = Bytes::from(vec![b'x'; 4 << 20]);
    let set = vec![Bytes::from_static(b"SET"), Bytes::from_static(b"long"), value.clone()];
    assert_eq!(handle.command(Some(0), set).await.unwrap(), "+OK\r\n");
    let reply = handle.command(Some(0), words("GET long")).await.unwrap();
    assert_eq!(reply.len(), value.len() + "$4194304\r\n\r\n".len());
    assert!(ask(&handle, 0, "NONSENSE").await.starts_with("-ERR unknown command"));
}

#[tokio::test]
async fn the_last_handle_closes_the_connection() {
    let server = RealServer::start(&redis());
    let first = up(&server).await;
    let second = up(&server).await;
    let clients = async |handle: &Handle| ask(handle, 0, "CLIENT LIST").await.matches("name=lockward ").count();
    assert_eq!(clients(&first).await, 2);
    drop(second);
    timeout(Duration::from_secs(5), async {
        while clients(&first).await != 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the connection stays open");
}
