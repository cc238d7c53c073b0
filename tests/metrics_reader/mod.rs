//! A strict reader of the Prometheus text format (0.0.4): takes only what the format and the naming conventions allow,
//! and says which line is wrong. Not a parser for foreign exporters.

// Each test program uses its part of this.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

pub mod scene;

type Labels = BTreeMap<String, String>;

/// All samples of one scrape.
pub struct Exposition {
    samples: BTreeMap<(String, Labels), f64>,
}

impl Exposition {
    /// The value of the sample with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels
            .iter()
            .map(|(label, value)| (label.to_string(), value.to_string()))
            .collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }
}

/// Reads a scrape.
///
/// # Panics
/// On the first thing that is wrong with it.
pub fn read(text: &str) -> Exposition {
    assert!(text.ends_with('\n'), "the last line does not end");
    let mut exposition = Exposition {
        samples: BTreeMap::new(),
    };
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    let mut family = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect(line);
            assert!(is_name(name) && !help.trim().is_empty(), "{line}");
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect(line);
            let kind = kind
                .strip_prefix(name)
                .and_then(|kind| kind.strip_prefix(' '))
                .expect(line);
            check_conventions(name, kind);
            assert!(
                families.insert(name.to_owned(), kind.to_owned()).is_none(),
                "twice: {line}"
            );
            family = name.to_owned();
            continue;
        }
        let (name, labels, value) = sample(line);
        let kind = families
            .get(&family)
            .unwrap_or_else(|| panic!("no TYPE before: {line}"));
        let suffix = name
            .strip_prefix(&family)
            .unwrap_or_else(|| panic!("not of {family}: {line}"));
        match (kind.as_str(), suffix) {
            ("histogram", "_bucket") => assert!(labels.contains_key("le"), "{line}"),
            ("histogram", "_sum" | "_count") | ("counter" | "gauge", "") => assert!(!labels.contains_key("le")),
            _ => panic!("{kind} with suffix {suffix}: {line}"),
        }
        assert!(kind == "gauge" || value >= 0.0, "{line}");
        assert!(
            exposition.samples.insert((name, labels), value).is_none(),
            "twice: {line}"
        );
    }
    check_histograms(&exposition, &families);
    exposition
}

fn check_conventions(name: &str, kind: &str) {
    assert!(name.starts_with("lockward_") || name.starts_with("process_"), "{name}");
    assert_eq!(name.ends_with("_total"), kind == "counter", "{name} {kind}");
    assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} {kind}");
    for suffix in ["_bucket", "_count", "_sum", "_milliseconds", "_ms", "_us", "_kilobytes"] {
        assert!(!name.ends_with(suffix), "{name}");
    }
}

fn check_histograms(exposition: &Exposition, families: &BTreeMap<String, String>) {
    for (name, _) in families.iter().filter(|(_, kind)| *kind == "histogram") {
        let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        let bucket = format!("{name}_bucket");
        for ((_, labels), value) in exposition.samples.iter().filter(|((name, _), _)| *name == bucket) {
            let mut labels = labels.clone();
            let bound = number(&labels.remove("le").unwrap());
            series.entry(labels).or_default().push((bound, *value));
        }
        assert!(!series.is_empty() || name.contains("_lock_"), "{name} has no series");
        for (labels, mut buckets) in series {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(
                buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1),
                "{name} {labels:?} is not cumulative"
            );
            let (last, all) = *buckets.last().unwrap();
            assert_eq!(last, f64::INFINITY, "{name} {labels:?}");
            assert_eq!(
                exposition.samples.get(&(format!("{name}_count"), labels.clone())),
                Some(&all)
            );
            assert!(exposition.samples.contains_key(&(format!("{name}_sum"), labels)));
        }
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("label: {line}"));
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let (value, after) = quoted(after, line);
            assert!(labels.insert(label.to_owned(), value).is_none(), "label twice: {line}");
            match after.split_at(1) {
                (",", after) => rest = after,
                ("}", after) => break rest = after,
                _ => panic!("after a label: {line}"),
            }
        }
    }
    let value = rest
        .strip_prefix(' ')
        .unwrap_or_else(|| panic!("no blank before the value: {line}"));
    assert!(!value.contains(' '), "{line}");
    (name.to_owned(), labels, number(value))
}

/// The text up to the closing quote, and what follows it.
fn quoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return (value, &text[index + 1..]),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '"'))) => c,
                other => panic!("escape {other:?}: {line}"),
            }),
            c => value.push(c),
        }
    }
    panic!("open quote: {line}");
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        text => {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
            assert!(plain, "value {text}");
            text.parse().unwrap_or_else(|_| panic!("value {text}"))
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let known: BTreeSet<u8> = (b'a'..=b'z').chain(*b"_").collect();
    bytes.next().is_some_and(|byte| known.contains(&byte))
        && bytes.all(|byte| known.contains(&byte) || byte.is_ascii_digit())
}
