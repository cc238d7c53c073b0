//! The admin side on a real socket, with a backend in memory: what it shows, bad hosts, odd keys, slow clients. Requests
//! are written by hand, so that wrong ones can be.

mod admin_backend;

use std::time::{Duration, Instant};

use admin_backend::{Admin, SECRET, ask, get, send};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn metrics_health_and_rules_are_shown() {
    let admin = Admin::start(SECRET).await;
    let metrics = get(admin.address, "/metrics").await;
    assert_eq!((metrics.status, metrics.body.as_str()), (200, "metrics_here 1\n"));
    assert!(
        metrics
            .head
            .contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        metrics.head
    );
    assert_eq!(get(admin.address, "/livez").await.body, "ok\n");
    assert_eq!(get(admin.address, "/readyz").await.status, 200);
    admin.backend.unready("draining");
    let ready = get(admin.address, "/readyz").await;
    assert_eq!((ready.status, ready.body.as_str()), (503, "draining\n"));
    assert_eq!(get(admin.address, "/livez").await.status, 200);
    assert_eq!(get(admin.address, "/api/v1/rules").await.json()[0]["name"], "jobs");
}

#[tokio::test]
async fn every_answer_says_what_browsers_may_do_with_it() {
    let admin = Admin::start(SECRET).await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/page.css"),
        ("GET", "/page.js"),
        ("GET", "/icon.svg"),
        ("GET", "/metrics"),
        ("GET", "/livez"),
        ("GET", "/api/v1/locks/lock:a"),
        ("GET", "/api/v1/locks?sort=size"),
        ("GET", "/nothing"),
        ("HEAD", "/api/v1/live"),
        ("OPTIONS", "/api/v1/rules"),
        ("DELETE", "/api/v1/locks/lock:a"),
    ] {
        let answer = ask(admin.address, method, path, "Origin: http://evil.example\r\n").await;
        for header in [
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ] {
            let found = answer.head.matches(&format!("\r\n{header}\r\n")).count();
            assert_eq!(found, 1, "{method} {path}: {header}\n{}", answer.head);
        }
        assert!(!answer.head.contains("access-control"), "{path}");
    }
}

#[tokio::test]
async fn the_page_is_served_with_its_types() {
    let admin = Admin::start(SECRET).await;
    for (path, kind, word) in [
        ("/", "text/html; charset=utf-8", "<!doctype html>"),
        ("/page.css", "text/css; charset=utf-8", "color-scheme"),
        ("/page.js", "text/javascript; charset=utf-8", ""),
        ("/icon.svg", "image/svg+xml", "<svg"),
    ] {
        let answer = get(admin.address, path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            answer.head.contains(&format!("content-type: {kind}\r\n")),
            "{}",
            answer.head
        );
        assert!(answer.body.to_lowercase().contains(word), "{path}");
        let head = ask(admin.address, "HEAD", path, "").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        assert!(
            head.head
                .contains(&format!("content-length: {}\r\n", answer.body.len())),
            "{}",
            head.head
        );
    }
}

#[tokio::test]
async fn a_reading_that_takes_its_time_holds_up_nobody_else() {
    let admin = Admin::start(SECRET).await;
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (held, is_held) = tokio::sync::oneshot::channel();
    let backend = std::sync::Arc::clone(&admin.backend);
    // Whoever reads the table is stuck, with his thread, until this one lets go.
    let holder = std::thread::spawn(move || {
        let _table = backend.table.lock();
        held.send(()).unwrap();
        wait.recv().unwrap();
    });
    is_held.await.unwrap();
    let address = admin.address;
    let stuck: Vec<_> = [
        "/api/v1/locks",
        "/api/v1/locks?warned=true",
        "/api/v1/locks",
        "/api/v1/suggestions",
    ]
    .map(|path| tokio::spawn(async move { ask(address, "GET", path, "").await.status }))
    .into();
    for path in ["/livez", "/api/v1/rules", "/api/v1/locks/lock:a", "/metrics"] {
        assert_eq!(ask(address, "GET", path, "").await.status, 200, "{path}");
    }
    assert!(stuck.iter().all(|request| !request.is_finished()));
    go_on.send(()).unwrap();
    holder.join().unwrap();
    for request in stuck {
        assert_eq!(request.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn pages_of_other_origins_ask_for_nothing_of_the_api() {
    let admin = Admin::start(SECRET).await;
    let token = format!("Authorization: Bearer {SECRET}\r\n");
    for header in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        for path in [
            "/api/v1/locks",
            "/api/v1/locks/lock:a",
            "/api/v1/suggestions",
            "/api/v1/rules",
            "/api/v1/records",
            "/api/v1/events",
            "/api/v1/live?sort=ttl",
        ] {
            assert_eq!(
                ask(admin.address, "GET", path, header).await.status,
                403,
                "{path} {header}"
            );
        }
        let path = "/api/v1/locks/lock:a";
        let answer = ask(admin.address, "DELETE", path, &format!("{token}{header}")).await;
        assert_eq!(answer.status, 403, "{header}");
        assert!(
            answer.json()["error"].as_str().unwrap().contains("origin"),
            "{}",
            answer.body
        );
        // A link to the page works.
        assert_eq!(ask(admin.address, "GET", "/", header).await.status, 200, "{header}");
    }
    assert_eq!(
        admin.backend.releases().len() + admin.backend.asked.lock().unwrap().len(),
        0
    );
    let own = format!(
        "{token}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        admin.address
    );
    let answer = ask(admin.address, "DELETE", "/api/v1/locks/lock:a", &own).await;
    assert_eq!((answer.status, admin.backend.releases().len()), (200, 1));
}

#[tokio::test]
async fn no_answer_has_the_token_in_it() {
    let admin = Admin::start(SECRET).await;
    let headers = format!("Authorization: Bearer {SECRET}\r\nCookie: token={SECRET}\r\n");
    for method in ["GET", "DELETE", "POST", "OPTIONS", "TRACE"] {
        for path in [
            "/",
            "/metrics",
            "/livez",
            "/readyz",
            "/api/v1/locks",
            "/api/v1/locks/lock:a",
            "/api/v1/locks/plain",
            "/api/v1/rules",
            "/api/v1/records",
            "/api/v1/suggestions",
            "/api/v1/openapi.json",
            "/nothing",
        ] {
            let answer = ask(admin.address, method, path, &headers).await;
            let told = answer.head.contains(SECRET) || answer.body.contains(SECRET);
            assert!(!told, "{method} {path}\n{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_lock_is_shown_with_its_record_and_without_a_token() {
    let admin = Admin::start(SECRET).await;
    let answer = get(admin.address, "/api/v1/locks/lock:a?db=3").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({
            "key": "lock:a", "key_encoded": "lock:a", "database": 3, "rule": "jobs", "exists": true, "state": "held",
            "ttl_ms": 1200, "owner": "address=10.0.0.7", "connection": "0123456789abcdef-7", "connection_open": true,
            "fence": 41, "acquired_at_ms": 1_700_000_000_000_i64,
            "debts": [{ "owner": "address=10.0.0.8", "expired_at_ms": 1_700_000_000_500_i64 }],
            "server_error": null,
            "known": { "lease": null, "waiting": 0, "waiters": [], "history": [], "history_dropped": 0, "spans": [] },
        })
    );
}

#[tokio::test]
async fn keys_may_hold_any_bytes() {
    let admin = Admin::start(SECRET).await;
    for (path, key) in [
        ("lock:a/b/c", &b"lock:a/b/c"[..]),
        ("lock:a%2Fb%25%3f", b"lock:a/b%?"),
        ("lock:%00%ff%0d%0a", b"lock:\0\xff\r\n"),
        ("lock:a+b", b"lock:a+b"),
        ("lock:%E2%82%AC", "lock:€".as_bytes()),
        ("lock:..%2f..", b"lock:../.."),
        ("", b""),
    ] {
        let answer = get(admin.address, &format!("/api/v1/locks/{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(admin.backend.last_key(), key, "{path}");
    }
    let answer = get(admin.address, "/api/v1/locks/lock:%ff%2e").await;
    assert_eq!(
        (&answer.json()["key"], &answer.json()["key_encoded"]),
        (&json!("lock:\u{fffd}."), &json!("lock:%FF%2E"))
    );
}

#[tokio::test]
async fn wrong_requests_get_an_error_in_json() {
    let admin = Admin::start(SECRET).await;
    for (method, path, status, word) in [
        ("GET", "/nothing", 404, "nothing at this path"),
        ("GET", "/api/v1/locks/plain", 404, "no lock rule"),
        ("GET", "/api/v1/locks/lock:%zz", 400, "percent"),
        ("GET", "/api/v1/locks/lock:a?db=x", 400, "db"),
        ("GET", "/api/v1/locks/lock:a?db=-1", 400, "db"),
        ("GET", "/api/v1/locks/lock:a?database=1", 400, "database"),
        ("GET", "/api/v1/locks?sort=size", 400, "sort"),
        ("GET", "/api/v1/locks?older=5m", 400, "older"),
        ("GET", "/api/v1/live?limit=many", 400, "limit"),
        ("GET", "/api/v1/events?database=1", 400, "database"),
        ("GET", "/api/v1/events?rule=job", 400, "rule"),
        ("GET", "/api/v1/events?event=acquired,relased", 400, "relased"),
        ("GET", "/api/v1/records?db=x", 400, "db"),
        ("POST", "/", 405, "method"),
        ("OPTIONS", "/api/v1/events", 405, "method"),
        ("POST", "/api/v1/locks/lock:a", 405, "method"),
        ("OPTIONS", "/metrics", 405, "method"),
    ] {
        let answer = ask(admin.address, method, path, "").await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        let json = answer.json();
        assert!(json["error"].as_str().unwrap().contains(word), "{path}: {json}");
    }
}

#[tokio::test]
async fn only_names_that_no_web_page_can_have_are_answered() {
    let admin = Admin::start(SECRET).await;
    for (host, status) in [
        ("Host: localhost:9180\r\n", 200),
        ("Host: [::1]\r\n", 200),
        ("Host: locks.example.org\r\n", 200),
        ("Host: lockward\r\n", 200),
        ("Host: evil.example\r\n", 421),
        ("Host: 127.0.0.1.evil.example:9180\r\n", 421),
        ("Host: localhost\r\nHost: evil.example\r\n", 400),
        ("Host: a@localhost\r\n", 400),
        ("", 400),
    ] {
        for path in [
            "/livez",
            "/metrics",
            "/",
            "/page.js",
            "/api/v1/rules",
            "/api/v1/locks",
            "/api/v1/records",
            "/api/v1/openapi.json",
        ] {
            let answer = send(admin.address, &format!("GET {path} HTTP/1.1\r\n{host}\r\n")).await;
            // What names no lock is told to scrapers and probes by any name.
            let status = if status == 421 && matches!(path, "/livez" | "/metrics") {
                200
            } else {
                status
            };
            assert_eq!(answer.status, status, "{path} {host:?}");
        }
    }
    assert_eq!(send(admin.address, "GET /livez HTTP/1.0\r\n\r\n").await.status, 200);
    for path in ["/api/v1/events", "/api/v1/live"] {
        let answer = send(
            admin.address,
            &format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        )
        .await;
        assert_eq!(answer.status, 421, "{path}");
    }
    let token = format!("Host: evil.example\r\nAuthorization: Bearer {SECRET}\r\n");
    let answer = send(
        admin.address,
        &format!("DELETE /api/v1/locks/lock:a HTTP/1.1\r\n{token}\r\n"),
    )
    .await;
    assert_eq!((answer.status, admin.backend.releases().len()), (421, 0));
}

#[tokio::test]
async fn clients_that_send_nothing_hold_up_nobody_for_long() {
    let admin = Admin::start(SECRET).await;
    let mut idle = Vec::new();
    for number in 0..70 {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /livez HTT").await.unwrap();
        }
        idle.push(stream);
    }
    let start = Instant::now();
    assert_eq!(get(admin.address, "/livez").await.status, 200);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    for (stream, what) in idle
        .iter_mut()
        .zip(["a head that never ends", "a head that never begins"])
    {
        let closed = timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "{what} is given up");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_sending_side_gets_its_answer() {
    let admin = Admin::start(SECRET).await;
    let mut stream = TcpStream::connect(admin.address).await.unwrap();
    stream
        .write_all(format!("GET /livez HTTP/1.1\r\nHost: {}\r\n\r\n", admin.address).as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("ok\n"), "{text}");
}

#[tokio::test]
async fn a_backend_that_never_answers_is_given_up() {
    let admin = Admin::start(SECRET).await;
    let answer = get(admin.address, "/api/v1/locks/lock:slow").await;
    assert_eq!(answer.status, 504, "{}", answer.body);
}

#[tokio::test]
async fn bodies_and_endless_heads_are_not_read_for_ever() {
    let admin = Admin::start(SECRET).await;
    let headers = format!("Authorization: Bearer {SECRET}\r\nContent-Length: 1000000000\r\n");
    assert_eq!(
        ask(admin.address, "DELETE", "/api/v1/locks/lock:a", &headers)
            .await
            .status,
        200
    );
    let mut stream = TcpStream::connect(admin.address).await.unwrap();
    let mut sent = 0;
    while stream.write_all(&[b'a'; 8192]).await.is_ok() {
        sent += 8192;
        assert!(sent < 64 * 1024 * 1024, "reads on for ever");
    }
}

#[tokio::test]
async fn a_shutdown_ends_the_listener_at_once_and_connections_soon() {
    let admin = Admin::start(SECRET).await;
    let _idle = TcpStream::connect(admin.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    let address = admin.stop().await;
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(TcpStream::connect(address).await.is_err());
}
