//! Release by force through the admin side: who may, what is done, and the client of the command line.

mod admin_backend;

use admin_backend::{Admin, SECRET, ask};
use lockward::admin::client::{self, ClientError, Released};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_release_needs_the_token() {
    let admin = Admin::start(SECRET).await;
    for header in [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Bearer {SECRET}x\r\n"),
        format!("Authorization: Bearer {}\r\n", &SECRET[1..]),
        format!("Authorization: Basic {SECRET}\r\n"),
        format!("Authorization: {SECRET}\r\n"),
        format!("X-Token: {SECRET}\r\n"),
    ] {
        let answer = ask(admin.address, "DELETE", "/api/v1/locks/lock:a", &header).await;
        assert_eq!(answer.status, 401, "{header}");
        assert!(answer.head.contains("www-authenticate: bearer") && !answer.body.contains(SECRET));
    }
    assert_eq!(admin.backend.releases().len(), 0);
    let header = format!("authorization: bearer {SECRET}\r\n");
    assert_eq!(
        ask(admin.address, "DELETE", "/api/v1/locks/lock:a", &header)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn without_a_configured_token_nothing_is_released() {
    let admin = Admin::start("").await;
    for header in ["", "Authorization: Bearer \r\n", "Authorization: Bearer x\r\n"] {
        let answer = ask(admin.address, "DELETE", "/api/v1/locks/lock:a", header).await;
        assert_eq!(answer.status, 403);
        assert!(
            answer.json()["error"]
                .as_str()
                .unwrap()
                .contains("set `token` in [admin]")
        );
    }
    assert_eq!(admin.backend.releases().len(), 0);
}

#[tokio::test]
async fn a_release_names_the_lock_to_the_backend() {
    let admin = Admin::start(SECRET).await;
    let header = format!("Authorization: Bearer {SECRET}\r\n");
    let path = "/api/v1/locks/lock:a%2fb?db=2&reason=worker+died%0agone";
    let answer = ask(admin.address, "DELETE", path, &header).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "released": true, "held_ms": 5000 }))
    );
    let releases = admin.backend.releases();
    assert_eq!((releases[0].database, &releases[0].key[..]), (2, &b"lock:a/b"[..]));

    let absent = ask(admin.address, "DELETE", "/api/v1/locks/lock:absent", &header).await;
    assert_eq!((absent.status, &absent.json()["released"]), (404, &json!(false)));
    let broken = ask(admin.address, "DELETE", "/api/v1/locks/lock:broken", &header).await;
    assert_eq!(
        (broken.status, broken.json()),
        (502, json!({ "error": "the server is away" }))
    );
    let plain = ask(admin.address, "DELETE", "/api/v1/locks/plain", &header).await;
    assert_eq!(
        (plain.status, admin.backend.releases().len()),
        (404, 3),
        "what is no lock is never released"
    );
}

#[tokio::test]
async fn the_client_releases_locks() {
    let admin = Admin::start(SECRET).await;
    let address = admin.address.to_string();
    let key = b"lock:a/\xff%?#&.. ";
    let done = client::release(&address, SECRET, 4, key, "stuck & old+").await.unwrap();
    assert_eq!(done, Released::Freed { held_ms: Some(5000) });
    let release = admin.backend.releases().remove(0);
    assert_eq!((release.database, &release.key[..]), (4, &key[..]));
    let by_name = format!("localhost:{}", admin.address.port());
    assert_eq!(
        client::release(&by_name, SECRET, 0, b"lock:absent", "").await.unwrap(),
        Released::Absent
    );
}

#[tokio::test]
async fn the_client_says_whose_fault_it_is() {
    let admin = Admin::start(SECRET).await;
    let address = admin.address.to_string();
    let refused = client::release(&address, "wrong", 0, b"lock:a", "").await;
    assert!(
        matches!(refused, Err(ClientError::Refused { status: 401, .. })),
        "{refused:?}"
    );
    let refused = client::release(&address, "", 0, b"lock:a", "").await;
    assert!(
        matches!(refused, Err(ClientError::Refused { status: 401, .. })),
        "{refused:?}"
    );
    let refused = client::release(&address, SECRET, 0, b"plain", "").await;
    assert!(
        matches!(refused, Err(ClientError::Refused { status: 404, .. })),
        "{refused:?}"
    );
    let unsendable = client::release(&address, "a\nb", 0, b"lock:a", "").await;
    assert!(matches!(unsendable, Err(ClientError::Unsendable(_))), "{unsendable:?}");
    let unsendable = client::release(&address, SECRET, 0, &[0; 100_000], "").await;
    assert!(matches!(unsendable, Err(ClientError::Unsendable(_))), "{unsendable:?}");
    let nobody = admin.stop().await;
    let unreachable = client::release(&nobody.to_string(), SECRET, 0, b"lock:a", "").await;
    assert!(
        matches!(unreachable, Err(ClientError::Connect { .. })),
        "{unreachable:?}"
    );
}

#[tokio::test]
async fn the_client_knows_what_is_not_lockward() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        for answer in [
            "-ERR unknown command\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "",
        ] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    for _ in 0..3 {
        let foreign = client::release(&address, SECRET, 0, b"lock:a", "").await;
        assert!(matches!(foreign, Err(ClientError::Foreign { .. })), "{foreign:?}");
    }
}
