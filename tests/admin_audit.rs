//! What an operator does through the admin side stands in the log: who, why and what came of it, and never the token.
//! Alone in its program: `tracing` remembers for the whole process that a line had nowhere to go when it came first.

mod admin_backend;
mod log_sink;

use admin_backend::{Admin, SECRET};
use lockward::admin::client;
use log_sink::Sink;
use serde_json::Value;
use tokio::task::JoinSet;

/// With a wrong token; far more than are logged in one second.
const CALLS: usize = 100;

#[tokio::test]
async fn releases_by_force_are_logged_with_who_and_why() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let admin = Admin::start(SECRET).await;
    let address = admin.address.to_string();
    client::release(&address, SECRET, 2, b"lock:a\n", "the worker\ndied & old+")
        .await
        .unwrap();
    client::release(&address, SECRET, 0, b"lock:absent", "").await.unwrap();
    client::release(&address, SECRET, 0, b"lock:broken", "")
        .await
        .unwrap_err();
    // All at once, so that on a slow machine, too, they come within a second or two.
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let address = address.clone();
        calls.spawn(async move { client::release(&address, "some-wrong-token", 0, b"lock:a", "").await });
    }
    while let Some(refused) = calls.join_next().await {
        refused.unwrap().unwrap_err();
    }

    let text = sink.text();
    assert!(!text.contains(SECRET) && !text.contains("some-wrong-token"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [released, absent, failed, refused @ ..] = &lines[..] else {
        panic!("{text}")
    };
    assert_eq!(
        (&released["target"], &released["level"]),
        (&"lockward::audit".into(), &"WARN".into())
    );
    assert_eq!(
        (&released["key"], &released["database"]),
        (&r"lock:a\n".into(), &2.into())
    );
    assert_eq!(
        (&released["why"], &released["result"]),
        (&r"the worker\ndied & old+".into(), &"released".into())
    );
    assert_eq!(released["rule"], "jobs");
    assert!(
        released["who"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{released}"
    );
    assert_eq!(
        (&absent["why"], &absent["result"]),
        (&"no reason given".into(), &"absent".into())
    );
    assert_eq!(failed["result"], "failed: the server is away");
    assert!(
        (20..CALLS).contains(&refused.len()),
        "a flood of wrong tokens is cut: {}",
        refused.len()
    );
}
