//! The Prometheus text format, version 0.0.4: recorder in, text out. Reads values once and changes none.

use std::fmt::Write;

use super::catalog::Kind;
use super::recorder::{Family, Recorder, Series};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes all metrics of the recorder.
pub(super) fn write(recorder: &Recorder, out: &mut String) {
    recorder.visit(|name, family| {
        head(out, name, family.kind, &family.help);
        samples(out, name, family);
    });
}

/// Writes a metric that has one value and no labels.
pub(super) fn write_single(out: &mut String, name: &str, kind: Kind, help: &str, value: f64) {
    head(out, name, kind, help);
    sample(out, name, "", &[], None, &number(value));
}

fn head(out: &mut String, name: &str, kind: Kind, help: &str) {
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn samples(out: &mut String, name: &str, family: &Family) {
    for (labels, series) in &family.series {
        match series {
            Series::Counter(count) => sample(out, name, "", labels, None, &count.value().to_string()),
            Series::Gauge(level) => sample(out, name, "", labels, None, &number(level.value())),
            Series::Histogram(buckets) => {
                let reading = buckets.read();
                for (bound, count) in &reading.cumulative {
                    sample(out, name, "_bucket", labels, Some(&number(*bound)), &count.to_string());
                }
                let count = reading.count.to_string();
                sample(out, name, "_bucket", labels, Some("+Inf"), &count);
                sample(out, name, "_sum", labels, None, &number(reading.sum));
                sample(out, name, "_count", labels, None, &count);
            }
        }
    }
}

fn sample(out: &mut String, name: &str, suffix: &str, labels: &[(String, String)], bound: Option<&str>, value: &str) {
    out.push_str(name);
    out.push_str(suffix);
    let mut open = '{';
    for (label, text) in labels {
        out.push(open);
        open = ',';
        out.push_str(label);
        out.push_str("=\"");
        escape(out, text);
        out.push('"');
    }
    if let Some(bound) = bound {
        let _ = write!(out, "{open}le=\"{bound}\"");
        open = ',';
    }
    if open == ',' {
        out.push('}');
    }
    out.push(' ');
    out.push_str(value);
    out.push('\n');
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            // Allowed by the format, but a carriage return in a rule's name breaks many a terminal.
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
}

/// Rust writes the shortest digits that read back the same, never an exponent: fine for Prometheus.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use metrics::{counter, describe_histogram, gauge, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn the_text_is_the_prometheus_format() {
        let recorder = Recorder::new(|_| &[0.5, 1.0]);
        with_local_recorder(&recorder, || {
            counter!("a_total", "rule" => "quo\"te\\ \n").increment(3);
            gauge!("b").set(-0.5);
            describe_histogram!("c_seconds", "two\nlines");
            histogram!("c_seconds", "k" => "v").record(0.7);
        });
        let mut out = String::new();
        write(&recorder, &mut out);
        assert_eq!(
            out,
            "# HELP a_total \n# TYPE a_total counter\na_total{rule=\"quo\\\"te\\\\ \\n\"} 3\n\
             # HELP b \n# TYPE b gauge\nb -0.5\n\
             # HELP c_seconds two\\nlines\n# TYPE c_seconds histogram\n\
             c_seconds_bucket{k=\"v\",le=\"0.5\"} 0\nc_seconds_bucket{k=\"v\",le=\"1\"} 1\n\
             c_seconds_bucket{k=\"v\",le=\"+Inf\"} 1\nc_seconds_sum{k=\"v\"} 0.7\nc_seconds_count{k=\"v\"} 1\n"
        );
    }
}
