//! The OpenAPI file as a value: looks up references, makes samples of a schema and holds values against one. Reads the
//! part of JSON Schema that the file uses, and fails on anything else.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What a schema may say here.
const WORDS: [&str; 14] = [
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maximum",
    "minimum",
    "properties",
    "required",
    "type",
];

/// The file.
pub struct Spec(pub Value);

impl Spec {
    /// As it stands in the source.
    pub fn read() -> Spec {
        Spec(serde_json::from_str(include_str!("../../src/admin/openapi.json")).expect("the file is JSON"))
    }

    /// A schema of the components.
    pub fn schema(&self, name: &str) -> &Value {
        let schema = &self.0["components"]["schemas"][name];
        assert!(schema.is_object(), "no schema {name}");
        schema
    }

    /// Follows a reference, if it is one.
    pub fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(path) => {
                let found = self
                    .0
                    .pointer(path.strip_prefix('#').expect("a reference into this file"));
                found.unwrap_or_else(|| panic!("{path} leads nowhere"))
            }
            None => value,
        }
    }

    /// The properties of an object with those of all its parts, and which are required.
    fn properties<'a>(&'a self, schema: &'a Value) -> BTreeMap<&'a str, (&'a Value, bool)> {
        let mut found = BTreeMap::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            found.extend(self.properties(self.resolved(part)));
        }
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            found.insert(name, (property, required.contains(&name.as_str())));
        }
        found
    }

    /// A value of this schema: with every property and nothing null, or with only those that must be, and null where
    /// it may be.
    pub fn sample(&self, schema: &Value, full: bool) -> Value {
        let schema = self.resolved(schema);
        if let Some(fixed) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return fixed.clone();
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let chosen = if full { any.first() } else { any.last() };
            return self.sample(chosen.expect("something"), full);
        }
        let properties = self.properties(schema);
        if !properties.is_empty() {
            let chosen = properties.into_iter().filter(|(_, (_, required))| full || *required);
            return chosen
                .map(|(name, (property, _))| (name.to_owned(), self.sample(property, full)))
                .collect::<Map<_, _>>()
                .into();
        }
        let (kinds, nullable) = kinds(schema);
        if nullable && !full {
            return Value::Null;
        }
        match kinds[0] {
            "string" => json!("text"),
            "integer" => json!(7),
            "boolean" => json!(full),
            "array" if full => json!([self.sample(&schema["items"], true)]),
            "array" => json!([]),
            "object" => json!({}),
            other => panic!("no sample of {other}"),
        }
    }

    /// Whether the value is what the schema says, and has nothing that it does not say.
    pub fn check(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let schema = self.resolved(schema);
        let wrong = |what: &str| Err(format!("{place}: {what}: {value}"));
        for word in schema.as_object().into_iter().flat_map(Map::keys) {
            assert!(WORDS.contains(&word.as_str()), "{word} is not known here");
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let fits = any.iter().any(|part| self.check(part, value, place).is_ok());
            return if fits { Ok(()) } else { wrong("is none of them") };
        }
        if schema.get("const").is_some_and(|fixed| fixed != value) {
            return wrong("is another value");
        }
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            return wrong("is none of the words");
        }
        let number = |name: &str| schema[name].as_i64();
        if number("minimum")
            .zip(value.as_i64())
            .is_some_and(|(least, value)| value < least)
        {
            return wrong("is too small");
        }
        if schema.get("type").is_some() || schema.get("allOf").is_none() {
            let (kinds, nullable) = kinds(schema);
            let fits = match value {
                Value::Null => nullable,
                Value::Bool(_) => kinds.contains(&"boolean"),
                Value::Number(number) => kinds.contains(&"integer") && !number.is_f64(),
                Value::String(_) => kinds.contains(&"string"),
                Value::Array(_) => kinds.contains(&"array"),
                Value::Object(_) => kinds.contains(&"object"),
            };
            if !fits {
                return wrong("is of another type");
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.check(&schema["items"], item, &format!("{place}[{index}]"))?;
        }
        let properties = self.properties(schema);
        if let (Some(object), false) = (value.as_object(), properties.is_empty()) {
            if let Some(name) = object.keys().find(|name| !properties.contains_key(name.as_str())) {
                return wrong(&format!("{name} is not described"));
            }
            for (name, (property, required)) in properties {
                match object.get(name) {
                    Some(inner) => self.check(property, inner, &format!("{place}.{name}"))?,
                    None if required => return wrong(&format!("{name} is missing")),
                    None => {}
                }
            }
        }
        Ok(())
    }
}

fn kinds(schema: &Value) -> (Vec<&str>, bool) {
    let all: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    assert!(!all.is_empty(), "a schema without type: {schema}");
    let nullable = all.contains(&"null");
    (all.into_iter().filter(|kind| *kind != "null").collect(), nullable)
}

#[test]
fn everything_is_described_in_words() {
    let spec = Spec::read();
    let mut silent = Vec::new();
    for (name, schema) in spec.0["components"]["schemas"].as_object().unwrap() {
        let parts = schema["allOf"].as_array().cloned().unwrap_or_default();
        for schema in parts.iter().chain([schema]) {
            for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
                let flag = schema.get("const").is_some();
                if schema["description"].as_str().or(schema["$ref"].as_str()).is_none() && !flag {
                    silent.push(format!("{name}.{property}"));
                }
            }
        }
    }
    for (path, operations) in spec.0["paths"].as_object().unwrap() {
        for (method, operation) in operations
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, operation)| operation.is_object())
        {
            if operation["summary"].as_str().is_none_or(str::is_empty) {
                silent.push(format!("{method} {path}"));
            }
        }
    }
    assert!(silent.is_empty(), "without a description: {silent:?}");
}

#[test]
fn the_checker_finds_faults() {
    let spec = Spec::read();
    let schema = spec.schema("Dropped");
    assert_eq!(
        spec.check(schema, &json!({ "leases": 1, "waiters": 2, "histories": 0 }), "it"),
        Ok(())
    );
    for wrong in [
        json!({ "leases": 1, "waiters": 2 }),
        json!({ "leases": 1, "waiters": 2, "histories": 0, "more": 1 }),
        json!({ "leases": 1, "waiters": null, "histories": 0 }),
        json!({ "leases": 1, "waiters": -1, "histories": 0 }),
        json!({ "leases": "1", "waiters": 1, "histories": 0 }),
        json!([]),
    ] {
        assert!(spec.check(schema, &wrong, "it").is_err(), "{wrong}");
    }
}
