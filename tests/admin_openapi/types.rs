//! The types that the routes write, held against the schemas, in both directions.

use std::fmt::Debug;

use lockward::admin::api::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::spec::Spec;

/// Every value of the schema is one of the type, and comes back without a property more or less.
fn same<T: Serialize + DeserializeOwned + Debug>(name: &str) {
    let spec = Spec::read();
    let schema = spec.schema(name);
    for full in [true, false] {
        let sample = spec.sample(schema, full);
        let value: T =
            serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{name}: {error}: {sample}"));
        let back = serde_json::to_value(&value).unwrap();
        assert_eq!(
            back, sample,
            "{name}: what the schema says (right) is not what is written (left)"
        );
        spec.check(schema, &back, name).unwrap();
    }
}

/// What is written by default fits the schema.
fn by_default<T: Serialize + Default>(name: &str) {
    let spec = Spec::read();
    spec.check(spec.schema(name), &serde_json::to_value(T::default()).unwrap(), name)
        .unwrap();
}

#[test]
fn every_type_is_as_the_file_says() {
    same::<LockList>("LockList");
    same::<Dropped>("Dropped");
    same::<Lock>("Lock");
    same::<Waiter>("Waiter");
    same::<Warning>("Warning");
    same::<Known>("Known");
    same::<Span>("Span");
    same::<Event>("Event");
    same::<RuleView>("RuleView");
    same::<Totals>("Totals");
    same::<Spread>("Spread");
    same::<Recent>("Recent");
    same::<Record>("Record");
    same::<Debt>("Debt");
    same::<RecordPage>("RecordPage");
    same::<LockDetail>("LockDetail");
    same::<Suggestions>("Suggestions");
    same::<Uncovered>("Uncovered");
    same::<Advice>("Advice");
    same::<Snapshot>("Snapshot");
    same::<Reloaded>("Reloaded");
    same::<Process>("Process");
    same::<Pause>("Pause");
    same::<Upgraded>("Upgraded");
    by_default::<LockList>("LockList");
    by_default::<Known>("Known");
    by_default::<Event>("Event");
    by_default::<RecordPage>("RecordPage");
    by_default::<Suggestions>("Suggestions");
}

/// Its optional fields are left out, so a sample cannot find one that the file does not know. Here each one is named.
#[test]
fn an_event_with_everything_is_as_the_file_says() {
    let text = || Some("text".to_owned());
    let event = Event {
        id: 1,
        time_ms: 2,
        event: "acquired".to_owned(),
        key: "lock:a".to_owned(),
        key_encoded: "lock:a".to_owned(),
        database: 3,
        rule: "jobs".to_owned(),
        owner: "any".to_owned(),
        connection: "a-1".to_owned(),
        client_name: text(),
        outcome: text(),
        operation: text(),
        reason: text(),
        action: text(),
        ttl_ms: Some(4),
        held_ms: Some(5),
        waited_ms: Some(6),
        overrun_ms: Some(7),
        fence: Some(8),
        overlap: true,
        count: Some(9),
        until_ms: Some(10),
        text: "all of it".to_owned(),
    };
    let spec = Spec::read();
    let schema = spec.schema("Event");
    let written = serde_json::to_value(&event).unwrap();
    spec.check(schema, &written, "Event").unwrap();
    let described = spec.sample(schema, true);
    assert!(
        written
            .as_object()
            .unwrap()
            .keys()
            .eq(described.as_object().unwrap().keys())
    );
}

fn words<T: Serialize>(all: &[T]) -> Value {
    serde_json::to_value(all).unwrap()
}

#[test]
fn every_word_is_in_the_file() {
    let spec = Spec::read();
    let described = |name: &str, property: &str| spec.schema(name)["properties"][property]["enum"].clone();
    // A new kind does not compile until it stands here, and then below.
    let _ = |kind: WarningKind| match kind {
        WarningKind::NoTtl
        | WarningKind::LongHeld
        | WarningKind::NearExpiry
        | WarningKind::ForeignRelease
        | WarningKind::Overrun => {}
    };
    let warnings = words(&[
        WarningKind::NoTtl,
        WarningKind::LongHeld,
        WarningKind::NearExpiry,
        WarningKind::ForeignRelease,
        WarningKind::Overrun,
    ]);
    assert_eq!(described("Warning", "kind"), warnings);
    let _ = |kind: AdviceKind| match kind {
        AdviceKind::TtlTooShort
        | AdviceKind::NoTtl
        | AdviceKind::ChooseOwner
        | AdviceKind::NotALock
        | AdviceKind::MatchedNothing
        | AdviceKind::Enforce => {}
    };
    let advice = words(&[
        AdviceKind::TtlTooShort,
        AdviceKind::NoTtl,
        AdviceKind::ChooseOwner,
        AdviceKind::NotALock,
        AdviceKind::MatchedNothing,
        AdviceKind::Enforce,
    ]);
    assert_eq!(described("Advice", "kind"), advice);
    for kind in EVENTS {
        let text = spec.schema("Event")["properties"]["event"]["description"]
            .as_str()
            .unwrap();
        assert!(text.contains(&format!("`{kind}`")), "{kind} is not in: {text}");
    }
    let parameter = |name: &str| spec.0["components"]["parameters"][name]["schema"]["enum"].clone();
    assert_eq!(
        parameter("sort"),
        words(&[Sort::Age, Sort::Ttl, Sort::Waiters, Sort::Key])
    );
    assert_eq!(parameter("order"), words(&[Order::Asc, Order::Desc]));
}

/// The names of the parameters of a path's GET.
fn parameters(spec: &Spec, path: &str) -> Vec<String> {
    let parameters = spec.0["paths"][path]["get"]["parameters"]
        .as_array()
        .expect("parameters")
        .iter();
    let mut names: Vec<String> = parameters
        .map(|parameter| spec.resolved(parameter)["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

fn fields(query: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(query).unwrap();
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_query_is_as_the_file_says() {
    let spec = Spec::read();
    let text = || Some("text".to_owned());
    let locks = LocksQuery {
        pattern: text(),
        rule: text(),
        owner: text(),
        db: Some(1),
        older_than: text(),
        warned: true,
        sort: Sort::Age,
        order: Some(Order::Asc),
        limit: Some(1),
        offset: Some(1),
    };
    assert_eq!(parameters(&spec, "/api/v1/locks"), fields(&locks));
    assert_eq!(parameters(&spec, "/api/v1/live"), fields(&locks));
    let events = EventsQuery {
        pattern: text(),
        rule: text(),
        db: Some(1),
        event: text(),
    };
    assert_eq!(parameters(&spec, "/api/v1/events"), fields(&events));
    let records = RecordsQuery {
        pattern: text(),
        db: 1,
        cursor: text(),
    };
    assert_eq!(parameters(&spec, "/api/v1/records"), fields(&records));
    let defaults = &spec.0["components"]["parameters"];
    let LocksQuery { sort, warned, .. } = LocksQuery::default();
    assert_eq!(
        (
            &defaults["sort"]["schema"]["default"],
            &defaults["warned"]["schema"]["default"]
        ),
        (&json!(sort), &json!(warned))
    );
}
