//! What each path answers, held against the file: the status, the type and the body, for every status that stands there.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockward::admin::api::{Event, Known, LockList, RecordPage, RuleView, Suggestions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admin_backend::{Admin, Reader, Reply, SECRET, ask, get, send};
use crate::spec::Spec;

/// Statuses that are told elsewhere or cannot be brought about here: an answer that takes ten seconds, a crash.
const ELSEWHERE: [&str; 2] = ["500", "504"];
const RELOAD: &str = "/-/reload";
const UPGRADE: &str = "/-/upgrade";
const PAUSE: &str = "/-/pause";
const RESUME: &str = "/-/resume";

fn sample<T: DeserializeOwned>(spec: &Spec, name: &str) -> T {
    serde_json::from_value(spec.sample(spec.schema(name), true)).unwrap()
}

/// An admin side that shows something of everything.
async fn full(spec: &Spec) -> Admin {
    let admin = Admin::start(SECRET).await;
    *admin.backend.table.lock().unwrap() = sample::<LockList>(spec, "LockList");
    *admin.backend.known.lock().unwrap() = sample::<Known>(spec, "Known");
    *admin.backend.rules.lock().unwrap() = vec![sample::<RuleView>(spec, "RuleView")];
    *admin.backend.page.lock().unwrap() = sample::<RecordPage>(spec, "RecordPage");
    *admin.backend.advice.lock().unwrap() = sample::<Suggestions>(spec, "Suggestions");
    admin
}

/// Where the answer to this stands in the file, checked on the way.
fn described(spec: &Spec, method: &str, path: &str, answer: &Reply) -> String {
    let status = answer.status.to_string();
    let at = format!("{method} {path} {status}");
    let responses = &spec.0["paths"][path][method.to_lowercase()]["responses"];
    let response = spec.resolved(&responses[&status]);
    assert!(response.is_object(), "{at} is not in the file: {}", answer.body);
    let content = response["content"].as_object().expect("a type");
    let fits = |kind: &String| answer.head.contains(&format!("content-type: {kind}"));
    let kind = content
        .keys()
        .find(|kind| fits(kind))
        .unwrap_or_else(|| panic!("{at}: {}", answer.head));
    if kind == "application/json" {
        spec.check(&content[kind]["schema"], &answer.json(), &at).unwrap();
    }
    for header in response["headers"].as_object().into_iter().flatten() {
        let name = header.0.to_lowercase();
        assert!(
            answer.head.contains(&format!("\r\n{name}: ")),
            "{at} has no {name}: {}",
            answer.head
        );
    }
    at
}

#[tokio::test]
async fn every_answer_that_stands_in_the_file_is_given_and_is_as_it_says() {
    let spec = Spec::read();
    let admin = full(&spec).await;
    let token = format!("Authorization: Bearer {SECRET}\r\n");
    let lock = "/api/v1/locks/{key}";
    let foreign = "Origin: http://evil.example\r\n";
    let mut given = BTreeSet::new();
    for (method, path, asked, headers) in [
        ("GET", "/metrics", "/metrics", ""),
        ("GET", "/livez", "/livez", ""),
        ("GET", "/readyz", "/readyz", ""),
        ("GET", "/api/v1/rules", "/api/v1/rules", ""),
        ("GET", "/api/v1/suggestions", "/api/v1/suggestions", ""),
        ("GET", "/api/v1/openapi.json", "/api/v1/openapi.json", ""),
        (
            "GET",
            "/api/v1/locks",
            "/api/v1/locks?sort=waiters&order=asc&warned=true",
            "",
        ),
        ("GET", "/api/v1/locks", "/api/v1/locks?sort=size", ""),
        ("GET", lock, "/api/v1/locks/lock:a?db=2", ""),
        ("GET", lock, "/api/v1/locks/", ""),
        ("GET", lock, "/api/v1/locks/lock:broken", ""),
        ("GET", lock, "/api/v1/locks/lock:%zz", ""),
        ("GET", lock, "/api/v1/locks/plain", ""),
        ("DELETE", lock, "/api/v1/locks/lock:a?db=1&reason=gone", &token),
        ("DELETE", lock, "/api/v1/locks/lock:absent", &token),
        ("DELETE", lock, "/api/v1/locks/lock:broken", &token),
        ("DELETE", lock, "/api/v1/locks/plain", &token),
        ("DELETE", lock, "/api/v1/locks/lock:a?db=x", &token),
        ("DELETE", lock, "/api/v1/locks/lock:a", ""),
        ("DELETE", lock, "/api/v1/locks/lock:a", &format!("{token}{foreign}")),
        ("POST", RELOAD, RELOAD, &token),
        ("POST", RELOAD, RELOAD, ""),
        ("POST", RELOAD, RELOAD, &format!("{token}{foreign}")),
        ("POST", UPGRADE, UPGRADE, &token),
        ("POST", UPGRADE, UPGRADE, ""),
        ("POST", UPGRADE, UPGRADE, &format!("{token}{foreign}")),
        ("POST", PAUSE, "/-/pause?for=2m&wait=1s", &token),
        ("POST", PAUSE, "/-/pause?for=6m", &token),
        ("POST", PAUSE, PAUSE, ""),
        ("POST", PAUSE, PAUSE, &format!("{token}{foreign}")),
        ("POST", RESUME, RESUME, &token),
        ("POST", RESUME, RESUME, ""),
        ("POST", RESUME, RESUME, &format!("{token}{foreign}")),
        ("GET", "/api/v1/pause", "/api/v1/pause", ""),
        ("GET", "/api/v1/pause", "/api/v1/pause", foreign),
        ("GET", "/api/v1/process", "/api/v1/process", ""),
        ("GET", "/api/v1/process", "/api/v1/process", foreign),
        ("GET", "/api/v1/records", "/api/v1/records?db=1&cursor=5", ""),
        ("GET", "/api/v1/records", "/api/v1/records?pattern=busy", ""),
        ("GET", "/api/v1/records", "/api/v1/records?pattern=away", ""),
        ("GET", "/api/v1/records", "/api/v1/records?pattern=wrong", ""),
        ("GET", "/api/v1/records", "/api/v1/records", foreign),
        ("GET", "/api/v1/rules", "/api/v1/rules", foreign),
        ("GET", "/api/v1/suggestions", "/api/v1/suggestions", foreign),
        ("GET", "/api/v1/openapi.json", "/api/v1/openapi.json", foreign),
        ("GET", "/api/v1/locks", "/api/v1/locks", foreign),
        ("GET", lock, "/api/v1/locks/lock:a", foreign),
        ("GET", "/api/v1/live", "/api/v1/live?limit=0", ""),
        ("GET", "/api/v1/live", "/api/v1/live", foreign),
        ("GET", "/api/v1/events", "/api/v1/events?db=x", ""),
        ("GET", "/api/v1/events", "/api/v1/events", foreign),
    ] {
        let answer = ask(admin.address, method, asked, headers).await;
        given.insert(described(&spec, method, path, &answer));
    }
    admin.backend.unready("draining");
    given.insert(described(&spec, "GET", "/readyz", &get(admin.address, "/readyz").await));
    *admin.backend.reloaded.lock().unwrap() = Err("lockward.toml:3: log.levl: unknown key".to_owned());
    *admin.backend.upgraded.lock().unwrap() = Err("lockward.toml:3: log.levl: unknown key".to_owned());
    for path in [RELOAD, UPGRADE, PAUSE] {
        let answer = ask(admin.address, "POST", path, &token).await;
        given.insert(described(&spec, "POST", path, &answer));
    }
    for (method, path) in [
        ("GET", "/metrics"),
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/api/v1/rules"),
        ("GET", "/api/v1/suggestions"),
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/api/v1/process"),
        ("GET", "/api/v1/pause"),
        ("POST", RELOAD),
        ("POST", RESUME),
        ("POST", UPGRADE),
    ] {
        let answer = send(admin.address, &format!("{method} {path} HTTP/1.1\r\n\r\n")).await;
        given.insert(described(&spec, method, path, &answer));
    }
    given.extend(misdirected(&spec, &admin).await);
    given.extend(streams(&spec, &admin).await);
    let mut missing = BTreeSet::new();
    for (path, operations) in spec.0["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for status in operation["responses"]
                .as_object()
                .into_iter()
                .flat_map(|responses| responses.keys())
            {
                missing.insert(format!("{} {path} {status}", method.to_uppercase()));
            }
        }
    }
    missing.retain(|at| !given.contains(at) && !ELSEWHERE.iter().any(|status| at.ends_with(status)));
    assert!(missing.is_empty(), "in the file, and not tried here: {missing:#?}");
}

/// Asks for everything by a name that is not answered.
async fn misdirected(spec: &Spec, admin: &Admin) -> Vec<String> {
    let mut given = Vec::new();
    for (path, operations) in spec.0["paths"].as_object().unwrap() {
        for method in ["GET", "DELETE", "POST"] {
            if operations[method.to_lowercase()]["responses"]["421"].is_object() {
                let asked = path.replace("{key}", "lock:a");
                let request = format!("{method} {asked} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
                given.push(described(spec, method, path, &send(admin.address, &request).await));
            }
        }
    }
    given
}

/// Opens as many streams as there may be and one more; reads what they tell.
async fn streams(spec: &Spec, admin: &Admin) -> Vec<String> {
    let mut given = Vec::new();
    let mut readers = Vec::new();
    for path in ["/api/v1/events", "/api/v1/live"].into_iter().cycle().take(32) {
        let reader = Reader::open(admin.address, path).await;
        let reply = Reply {
            status: 200,
            head: reader.head.to_lowercase(),
            body: String::new(),
        };
        given.push(described(spec, "GET", path, &reply));
        readers.push((path, reader));
    }
    for path in ["/api/v1/events", "/api/v1/live"] {
        given.push(described(spec, "GET", path, &get(admin.address, path).await));
    }
    let event = Arc::new(sample::<Event>(spec, "Event"));
    for _ in 0..20 {
        admin.backend.events.send(Arc::clone(&event)).unwrap();
    }
    let mut told = BTreeSet::new();
    for (path, reader) in &mut readers[..2] {
        let events = &spec.0["paths"][&**path]["get"]["responses"]["200"]["content"]["text/event-stream"]["x-events"];
        for _ in 0..if *path == "/api/v1/live" { 1 } else { 3 } {
            let one = reader.next().await.unwrap();
            spec.check(&events[&one.event], &one.data, &one.event).unwrap();
            told.insert(one.event);
        }
    }
    assert!(told.iter().eq(["lock", "missed", "snapshot"]), "{told:?}");
    given
}

#[tokio::test]
async fn a_method_that_is_not_in_the_file_is_refused() {
    let spec = Spec::read();
    let admin = Admin::start(SECRET).await;
    for (path, operations) in spec.0["paths"].as_object().unwrap() {
        let asked = path.replace("{key}", "lock:a");
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND",
        ] {
            if matches!(&*asked, "/api/v1/events" | "/api/v1/live") && method == "GET" {
                continue;
            }
            let as_get = if method == "HEAD" {
                "get".to_owned()
            } else {
                method.to_lowercase()
            };
            let answer = ask(admin.address, method, &asked, "").await;
            let there = operations.get(&as_get).is_some();
            assert_eq!(answer.status != 405, there, "{method} {asked}: {}", answer.body);
            if !there {
                // A HEAD has no body.
                assert!(
                    method == "HEAD" || answer.json()["error"].is_string(),
                    "{method} {asked}"
                );
                let allowed = if asked.starts_with("/-/") { "post" } else { "get,head" };
                assert!(
                    answer.head.contains(&format!("\r\nallow: {allowed}")),
                    "{method} {asked}: {}",
                    answer.head
                );
            }
            if method == "HEAD" {
                assert_eq!(answer.body, "", "{asked}");
            }
        }
    }
}

#[tokio::test]
async fn the_file_is_served_with_this_version() {
    let admin = Admin::start(SECRET).await;
    let answer = get(admin.address, "/api/v1/openapi.json").await;
    let mut expected = Spec::read().0;
    assert_eq!(expected["info"]["version"], "0.0.0");
    expected["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    assert_eq!(answer.json(), expected);
    let openapi: &Value = &expected["openapi"];
    assert_eq!(openapi, "3.1.0");
}
