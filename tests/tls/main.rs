//! TLS on both sides of a running proxy, with certificates made here: who gets in, what is said to the operator of one
//! that does not fit, and that new certificates are for new connections only. The TLS server behind a proxy is another
//! proxy, so that the server needs no TLS; `tests/checks/tls.py` has a server that speaks it.

mod papers;
#[path = "../real_server/mod.rs"]
mod real_server;
mod rig;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lockward::proxy::tls::Certificates;
use papers::Papers;
use real_server::{RealServer, redis};
use rig::{Client, LONG, Running, ask, config, is_closed, plain, settings, start};

/// Papers for a server called localhost and a client.
fn usual() -> Papers {
    let papers = Papers::new();
    papers.sign("server", &["localhost"]);
    papers.sign("client", &[]);
    papers
}

/// The line in `[listen]`, with clients' certificates asked for.
fn listens(papers: &Papers) -> String {
    format!(
        "tls = {{ cert = \"{}\", key = \"{}\", client_ca = \"{}\" }}",
        papers.path("server.pem"),
        papers.path("server.key"),
        papers.path("ca.pem")
    )
}

fn to(server: &RealServer) -> String {
    format!("url = \"redis://127.0.0.1:{}\"", server.port())
}

#[test]
fn a_client_with_a_certificate_gets_in_by_both_versions_and_nobody_else_does() {
    let server = RealServer::start(&redis());
    let (papers, others) = (usual(), usual());
    let proxy = start(&listens(&papers), &to(&server));
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let client = Client {
            version,
            ..Client::of(&papers)
        };
        assert_eq!(client.ping(proxy.port).expect("an answer"), "+PONG\r\n", "{version:?}");
    }
    let nobody = Client {
        shows: None,
        ..Client::of(&papers)
    };
    let stranger = Client {
        shows: Some((&others, "client")),
        ..Client::of(&papers)
    };
    let distrustful = Client::of(&others);
    nobody.ping(proxy.port).expect_err("no certificate");
    proxy.has_closed("client_certificate", 1);
    stranger.ping(proxy.port).expect_err("another authority's certificate");
    proxy.has_closed("client_certificate", 2);
    distrustful.ping(proxy.port).expect_err("it does not know the server");
    proxy.has_closed("handshake", 1);
}

#[test]
fn without_client_ca_a_client_needs_no_certificate() {
    let server = RealServer::start(&redis());
    let papers = usual();
    let (cert, key) = (papers.path("server.pem"), papers.path("server.key"));
    let proxy = start(&format!("tls = {{ cert = \"{cert}\", key = \"{key}\" }}"), &to(&server));
    let client = Client {
        shows: None,
        ..Client::of(&papers)
    };
    assert_eq!(client.ping(proxy.port).expect("an answer"), "+PONG\r\n");
}

#[test]
fn what_is_no_tls_is_closed_and_counted_and_nothing_of_it_is_done() {
    let server = RealServer::start(&redis());
    let papers = usual();
    let listen = format!("{}\nhandshake_timeout = \"300ms\"", listens(&papers));
    let proxy = start(&listen, &to(&server));
    let junk: [&[u8]; 3] = [b"SET a 1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[0xff; 100]];
    for (count, bytes) in (1..).zip(junk) {
        let mut socket = plain(proxy.port);
        socket.write_all(bytes).expect("sent");
        assert!(is_closed(&mut socket));
        proxy.has_closed("plain_on_tls", count);
    }
    // It begins as TLS does, and goes on with plain bytes: in its handshake, and as if it were over.
    let mut socket = plain(proxy.port);
    socket
        .write_all(b"\x16\x03\x01\x00\x05SET a\r\nSET a 1\r\n")
        .expect("sent");
    assert!(is_closed(&mut socket));
    proxy.has_closed("handshake", 1);
    // Nothing, or not enough, in time.
    let begun = Instant::now();
    let (mut silent, mut slow) = (plain(proxy.port), plain(proxy.port));
    slow.write_all(b"\x16\x03\x01").expect("sent");
    assert!(is_closed(&mut silent) && is_closed(&mut slow));
    assert!(begun.elapsed() >= Duration::from_millis(250) && begun.elapsed() < LONG);
    proxy.has_closed("handshake_timeout", 2);
    // Who only looks whether the port is open is none of them.
    drop(plain(proxy.port));
    sleep(Duration::from_millis(50));
    let all = ["plain_on_tls", "handshake", "handshake_timeout", "client_certificate"];
    assert_eq!(all.map(|reason| proxy.closed(reason)), [3, 1, 2, 0]);
    let answer = ask(&mut server.connect(), b"EXISTS a\r\n", 4).expect("an answer");
    assert_eq!(answer, ":0\r\n");
}

#[test]
fn tls_and_http_at_a_plain_port_are_closed_and_counted() {
    let server = RealServer::start(&redis());
    let papers = usual();
    let proxy = start("", &to(&server));
    Client::of(&papers).ping(proxy.port).expect_err("no TLS there");
    proxy.has_closed("tls_on_plain", 1);
    let mut socket = plain(proxy.port);
    for byte in *b"\x16\x03\x01\x02" {
        socket.write_all(&[byte]).expect("sent");
        sleep(Duration::from_millis(5));
    }
    assert!(is_closed(&mut socket));
    proxy.has_closed("tls_on_plain", 2);
    let mut socket = plain(proxy.port);
    socket.write_all(b"POST / HTTP/1.1\r\n\r\n").expect("sent");
    assert!(is_closed(&mut socket));
    proxy.has_closed("http", 1);
    assert_eq!(
        ask(&mut plain(proxy.port), b"PING\r\n", 7).expect("an answer"),
        "+PONG\r\n"
    );
}

/// A pipeline of values, 1 MiB each, and all answers, while neither side waits for the other.
#[test]
fn large_values_go_both_ways_and_the_end_is_said() {
    let server = RealServer::start(&redis());
    let papers = usual();
    let proxy = start(&listens(&papers), &to(&server));
    let value = vec![b'v'; 1 << 20];
    let mut line = Client::of(&papers).connect(proxy.port);
    for key in 0..4 {
        let head = format!("*3\r\n$3\r\nSET\r\n$2\r\nk{key}\r\n${}\r\n", value.len());
        line.write_all(head.as_bytes()).expect("sent");
        line.write_all(&value).expect("sent");
        line.write_all(b"\r\n").expect("sent");
    }
    for key in 0..4 {
        line.write_all(format!("GET k{key}\r\n").as_bytes()).expect("sent");
    }
    // Half closed: the answers come all the same, and then the end, said as TLS says it.
    line.conn.send_close_notify();
    line.flush().expect("sent");
    let mut heard = Vec::new();
    line.read_to_end(&mut heard).expect("the end is said, not cut off");
    let one = value.len() + b"$1048576\r\n\r\n".len();
    assert_eq!(heard.len(), 4 * (5 + one));
    assert!(heard.starts_with(b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n$1048576\r\nvvv"));
}

/// Two proxies, one behind the other, with TLS between them.
fn chain(server: &RealServer, papers: &Papers, mode: &str) -> (Running, Running) {
    // What is a lock is the outer one's business.
    let rule = "[[locks]]\npattern = \"lock:*\"\nmode = \"off\"";
    let inner = start(&listens(papers), &format!("{}\n{rule}", to(server)));
    let outer = start("", &format!("{}\nmode = \"{mode}\"", through(&inner, papers, "client")));
    (inner, outer)
}

/// The lines in `[upstream]` for a proxy in front of `inner`.
fn through(inner: &Running, papers: &Papers, shows: &str) -> String {
    format!(
        "url = \"rediss://127.0.0.1:{}\"\n\
         tls = {{ ca = \"{}\", cert = \"{}\", key = \"{}\", server_name = \"localhost\" }}",
        inner.port,
        papers.path("ca.pem"),
        papers.path(&format!("{shows}.pem")),
        papers.path(&format!("{shows}.key"))
    )
}

#[track_caller]
fn becomes_ready(proxy: &Running) {
    let begun = Instant::now();
    while let Err(reason) = proxy.backend.ready() {
        assert!(begun.elapsed() < LONG, "{reason}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits for a reason that says this.
#[track_caller]
fn stays_unready(proxy: &Running, part: &str) {
    let begun = Instant::now();
    loop {
        let said = proxy.backend.ready().expect_err("it cannot be ready").to_string();
        if said.contains(part) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{said}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn tls_to_the_server_in_both_modes_for_clients_and_for_lockward_itself() {
    let server = RealServer::start(&redis());
    let papers = usual();
    for mode in ["dedicated", "shared"] {
        let (_inner, outer) = chain(&server, &papers, mode);
        becomes_ready(&outer);
        let mut socket = plain(outer.port);
        assert_eq!(ask(&mut socket, b"PING\r\n", 7).expect("an answer"), "+PONG\r\n");
        let many = b"SET lock:a 1 NX EX 30\r\n".repeat(1000);
        let answers = ask(&mut socket, &many, 5 * 1000).expect("answers");
        assert!(answers == format!("+OK\r\n{}", "$-1\r\n".repeat(999)), "{mode}");
        // A block, which takes a connection of its own in shared mode, and what comes behind it.
        let answers = ask(&mut socket, b"BLPOP no 0.1\r\nDEL lock:a\r\nPING\r\n", 5 + 4 + 7).expect("answers");
        assert_eq!(answers, "*-1\r\n:1\r\n+PONG\r\n", "{mode}");
    }
}

#[test]
fn a_certificate_that_does_not_fit_is_explained() {
    let server = RealServer::start(&redis());
    let (papers, others) = (usual(), usual());
    papers.sign("server", &["redis.example.org"]);
    let inner = start(&listens(&papers), &to(&server));
    let unready = |upstream: String, part: &str| stays_unready(&start("", &upstream), part);
    unready(
        through(&inner, &papers, "client"),
        "the server's certificate is not for localhost but for DnsName(\"redis.example.org\"); set upstream.tls.server_name",
    );
    let right_name = |text: String| text.replace("\"localhost\"", "\"redis.example.org\"");
    unready(
        right_name(through(&inner, &others, "client")),
        "the server's certificate is signed by none of those in upstream.tls.ca",
    );
    // It trusts the server, and shows what the server does not know.
    let cert = others.path("client.pem");
    let text = right_name(through(&inner, &papers, "client"));
    let text = text.replace(&papers.path("client.pem"), &cert);
    let text = text.replace(&papers.path("client.key"), &others.path("client.key"));
    unready(text, "the server does not accept the certificate in upstream.tls.cert");
    let ca = papers.path("ca.pem");
    let bare = |name: &str| {
        format!(
            "url = \"rediss://127.0.0.1:{}\"\ntls = {{ ca = \"{ca}\", server_name = \"{name}\" }}",
            inner.port
        )
    };
    unready(
        bare("redis.example.org"),
        "the server wants a certificate: set cert and key",
    );
    let plain = format!(
        "url = \"rediss://127.0.0.1:{}\"\ntls = {{ ca = \"{ca}\" }}",
        server.port()
    );
    unready(
        plain,
        "TLS: no answer within 2s; perhaps the server does not speak TLS at this port",
    );
}

#[test]
fn new_certificates_are_for_new_connections_and_all_or_none() {
    let server = RealServer::start(&redis());
    let (old, new) = (usual(), usual());
    let proxy = start(&listens(&old), &to(&server));
    let mut open = Client::of(&old).connect(proxy.port);
    ask(&mut open, b"PING\r\n", 7).expect("an answer");
    // One file of the three is of no use: nothing changes.
    let broken = listens(&new).replace(&new.path("ca.pem"), "/nowhere/ca.pem");
    let fault = proxy.certificates.reload(&config(&settings(&broken, &to(&server))));
    let fault = fault.expect_err("a file that is not there").to_string();
    assert!(
        fault.starts_with("listen.tls.client_ca: /nowhere/ca.pem: cannot be read: "),
        "{fault}"
    );
    Client::of(&old).ping(proxy.port).expect("the old one is in force");
    let good = config(&settings(&listens(&new), &to(&server)));
    proxy.certificates.reload(&good).expect("good files");
    Client::of(&new).ping(proxy.port).expect("the new one is in force");
    Client::of(&old).ping(proxy.port).expect_err("the old one is not");
    assert_eq!(ask(&mut open, b"PING\r\n", 7).expect("it stays as it is"), "+PONG\r\n");
}

/// Clients that come and go, and ask, while their proxy is given one certificate after the other.
#[test]
fn a_reload_under_load_loses_no_request() {
    let server = RealServer::start(&redis());
    let papers = usual();
    let (inner, outer) = chain(&server, &papers, "dedicated");
    becomes_ready(&outer);
    let stop = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let (stop, papers, inner, outer) = (&stop, &papers, inner.port, outer.port);
                scope.spawn(move || {
                    let mut asked = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let mut over_tls = Client::of(papers).connect(inner);
                        let mut to_tls = plain(outer);
                        for _ in 0..5 {
                            let request = format!("ECHO {number}{asked:05}\r\n");
                            let wanted = format!("$6\r\n{number}{asked:05}\r\n");
                            let answer = ask(&mut over_tls, request.as_bytes(), wanted.len());
                            assert_eq!(answer.expect("an answer"), wanted);
                            let answer = ask(&mut to_tls, request.as_bytes(), wanted.len());
                            assert_eq!(answer.expect("an answer"), wanted);
                            asked += 1;
                        }
                    }
                    asked
                })
            })
            .collect();
        for _ in 0..10 {
            sleep(Duration::from_millis(50));
            papers.sign("server", &["localhost"]);
            let both = [
                (&inner, settings(&listens(&papers), &to(&server))),
                (&outer, settings("", &through(&inner, &papers, "client"))),
            ];
            for (proxy, text) in both {
                proxy.certificates.reload(&config(&text)).expect("good files");
            }
        }
        stop.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|client| client.join().expect("no panic"))
            .sum::<u32>()
    });
    assert!(asked > 50, "{asked} questions");
}

#[test]
fn a_file_that_is_of_no_use_is_named_at_the_start_and_none_of_it_is_shown() {
    let (papers, others) = (usual(), usual());
    papers.write("empty.pem", "");
    papers.write("junk.pem", "-----BEGIN hunter2\n");
    papers.write("half.pem", "-----BEGIN PRIVATE KEY-----\nhunter2\n");
    let good = listens(&papers);
    let cases = [
        (
            "server.pem",
            papers.path("none.pem"),
            "listen.tls.cert",
            "cannot be read: No such file",
        ),
        (
            "server.pem",
            papers.path("empty.pem"),
            "listen.tls.cert",
            "holds no certificate in PEM",
        ),
        ("server.key", papers.path("junk.pem"), "listen.tls.key", "is no PEM"),
        ("server.key", papers.path("half.pem"), "listen.tls.key", "is no PEM"),
        (
            "server.key",
            papers.path("server.pem"),
            "listen.tls.key",
            "holds no private key",
        ),
        (
            "server.key",
            others.path("server.key"),
            "listen.tls.key",
            "is not the key of the certificate in ",
        ),
        (
            "ca.pem",
            papers.path("server.key"),
            "listen.tls.client_ca",
            "holds no certificate in PEM",
        ),
    ];
    for (file, instead, key, text) in cases {
        let listen = good.replace(&papers.path(file), &instead);
        let config = config(&settings(&listen, "url = \"redis://127.0.0.1:1\""));
        let fault = Certificates::read(&config).expect_err(&instead).to_string();
        assert!(fault.starts_with(&format!("{key}: {instead}: {text}")), "{fault}");
        assert!(!fault.contains("hunter"), "{fault}");
    }
    let shown = format!(
        "{:?}",
        Certificates::read(&config(&settings(&good, ""))).expect("good files")
    );
    assert_eq!(shown, "Certificates { incoming: 1, outgoing: false }");
}
