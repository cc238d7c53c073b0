//! deploy/config.schema.json against the program: the same defaults as config.toml, the same words and bounds as the
//! reader. That it has the same keys is a test beside the list of keys (src/config/keys.rs). Schema rules that JSON alone
//! can check are looked at by tests/packages/run.py with a validator.

use serde_json::{Map, Value, json};

use crate::load as parse;

const SCHEMA: &str = include_str!("../../deploy/config.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("a schema in JSON")
}

/// Each key with the head of the table that it stands in, and its schema.
fn keys() -> Vec<(String, String, Value)> {
    let schema = schema();
    let mut keys = Vec::new();
    let mut add = |head: &str, properties: &Value| {
        for (key, value) in properties.as_object().expect("properties") {
            keys.push((head.to_owned(), key.clone(), value.clone()));
        }
    };
    for (section, value) in schema["properties"].as_object().expect("properties") {
        if value["type"] == "object" {
            add(&format!("[{section}]"), &value["properties"]);
        }
    }
    add("[[listeners]]", &schema["$defs"]["listener"]["properties"]);
    add("[[locks]]", &schema["$defs"]["rule"]["properties"]);
    keys
}

/// Whether a file in which this key has this value is taken. `beside` are more keys of its table.
fn taken(head: &str, key: &str, value: &Value) -> bool {
    let beside = match (head, key) {
        ("[[locks]]", "pattern") => "name = \"n\"\n",
        ("[[locks]]", _) => "pattern = \"lock:*\"\n",
        ("[[listeners]]", "name") => "address = \"a:1\"\n",
        ("[[listeners]]", "address" | "unix") => "name = \"n\"\n",
        ("[[listeners]]", _) => "name = \"n\"\naddress = \"a:1\"\n",
        ("[upstream]", "sentinel_tls") => "url = \"rediss-sentinel://a/m\"\n",
        _ => "",
    };
    parse(&format!("{head}\n{beside}{key} = {value}\n")).is_ok()
}

#[test]
fn the_defaults_are_those_of_the_documented_file() {
    let documented: toml::Table = include_str!("../../config.toml").parse().expect("TOML");
    let documented = serde_json::to_value(documented).expect("a value of JSON");
    let mut found = Map::new();
    for (head, key, value) in keys() {
        let section = head.trim_matches(['[', ']']).to_owned();
        // There is none of these unless somebody wants one.
        if section == "listeners" {
            assert!(value.get("default").is_none(), "{key}");
            continue;
        }
        // What one rule says of itself is no default of the others.
        let default = match (section.as_str(), key.as_str()) {
            ("locks", "name") => Some(json!("default")),
            ("locks", "pattern") => Some(json!("lock:*")),
            _ => value.get("default").cloned(),
        };
        if let (Some(default), Some(section)) = (
            default,
            found.entry(section).or_insert_with(|| json!({})).as_object_mut(),
        ) {
            section.insert(key, default);
        }
    }
    if let Some(locks) = found.get_mut("locks") {
        *locks = json!([locks.clone()]);
    }
    assert_eq!(Value::Object(found), documented);
}

#[test]
fn every_key_says_what_it_is_for_and_of_what_type() {
    for (head, key, value) in keys() {
        let text = value["description"].as_str().unwrap_or_default();
        assert!(text.len() > 10 && text.ends_with('.'), "{head} {key}: {text:?}");
        let typed = ["type", "$ref", "oneOf", "const"]
            .iter()
            .any(|word| value.get(word).is_some());
        assert!(typed, "{head} {key} has no type");
    }
}

#[test]
fn words_and_bounds_are_those_of_the_reader() {
    for (head, key, value) in keys() {
        let slip = json!("no such word");
        for word in value["enum"].as_array().into_iter().flatten() {
            assert!(taken(&head, &key, word), "{head} {key} = {word}");
            assert!(!taken(&head, &key, &slip), "{head} {key}");
        }
        if let (Some(least), Some(most)) = (value["minimum"].as_i64(), value["maximum"].as_i64()) {
            for (number, good) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
                assert_eq!(taken(&head, &key, &json!(number)), good, "{head} {key} = {number}");
            }
        }
        if let Some(most) = value["maxLength"].as_u64() {
            let text = |length: u64| json!("x".repeat(usize::try_from(length).expect("a length")));
            assert!(taken(&head, &key, &text(most)), "{head} {key}: {most} letters");
            assert!(
                !taken(&head, &key, &text(most + 1)),
                "{head} {key}: more than {most} letters"
            );
        }
        if let Some(default) = value.get("default") {
            assert!(taken(&head, &key, default), "{head} {key} = {default}");
        }
        if value["type"] != "object" {
            assert!(!taken(&head, &key, &json!({})), "{head} {key} = a table");
        }
    }
}

#[test]
fn the_words_of_an_owner_are_those_of_the_reader() {
    let schema = schema();
    let words = schema["$defs"]["owner"]["enum"].as_array().expect("words");
    assert_eq!(words.len(), 6);
    for word in words {
        assert!(taken("[[locks]]", "owner", word), "{word}");
    }
    assert!(!taken("[[locks]]", "owner", &json!("nobody")));
    assert!(!taken("[[locks]]", "owner", &json!(["any", "user"])));
    assert!(!taken("[[locks]]", "owner", &json!(["user", "user"])));
    let patterns = |count: usize| (0..count).map(|number| format!("k{number}")).collect::<Vec<_>>();
    let most = schema["$defs"]["rule"]["properties"]["pattern"]["oneOf"][1]["maxItems"].as_u64();
    let most = usize::try_from(most.expect("a number")).expect("a number");
    assert!(taken("[[locks]]", "pattern", &json!(patterns(most))));
    assert!(!taken("[[locks]]", "pattern", &json!(patterns(most + 1))));
}
