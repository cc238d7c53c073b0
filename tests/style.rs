//! The shape of the code, checked: the arrow between the modules, what the core may not touch, the size of files, and
//! that each says what it is for. It reads text and knows no Rust, so it errs on the strict side; the size of
//! functions is clippy's business (clippy.toml).

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the core, from left to right: each may use those before it.
const ARROW: [&str; 5] = ["resp", "command", "event", "lock", "session"];
/// Lines of a file before its tests.
const LONGEST_FILE: usize = 400;
/// Columns of a comment, which are broken at 120 by hand: a word may stand out a little.
const WIDEST_LINE: usize = 120 + 4;
/// What the core may not name, and why not.
const BANNED_IN_CORE: [(&str, &str); 10] = [
    ("std::net", "sockets belong to the shells"),
    ("std::fs", "files belong to the shells"),
    ("std::env", "the environment belongs to the shells"),
    ("std::thread", "the core is called, it does not run"),
    ("tokio", "no async in the core"),
    ("async ", "no async in the core"),
    ("Instant::now", "time is handed in"),
    ("SystemTime", "time is handed in, or is the server's"),
    ("Uuid::new_v4", "randomness is handed in"),
    ("rand::", "randomness is handed in"),
];

struct Source {
    path: PathBuf,
    /// The lines before `#[cfg(test)]`.
    lines: Vec<String>,
}

impl Source {
    /// The top-level module that the file belongs to.
    fn module(&self) -> String {
        let inside = self.path.strip_prefix(root().join("src")).unwrap_or(&self.path);
        let first = inside
            .components()
            .next()
            .map(|part| part.as_os_str().to_string_lossy().into_owned());
        first.unwrap_or_default().trim_end_matches(".rs").to_owned()
    }

    /// Its lines of code with their numbers, without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self
            .lines
            .iter()
            .enumerate()
            .map(|(index, line)| (index + 1, line.as_str()));
        numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn at(&self, line: usize) -> String {
        format!(
            "{}:{line}",
            self.path.strip_prefix(root()).unwrap_or(&self.path).display()
        )
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// All files below `src`, `tests` or the like, in order of their paths.
fn sources(folder: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    rust_files(&root().join(folder), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a readable source file");
        let lines = text
            .lines()
            .take_while(|line| line.trim() != "#[cfg(test)]")
            .map(str::to_owned)
            .collect();
        Source { path, lines }
    };
    paths.into_iter().map(read).collect()
}

/// Tests beside the code, in files of their own: bound by none of the rules for the core.
fn is_test_file(source: &Source) -> bool {
    let folder_or_name =
        |part: std::path::Component<'_>| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name);
    source
        .path
        .strip_prefix(root())
        .unwrap_or(&source.path)
        .components()
        .any(folder_or_name)
}

fn assert_none(complaints: &[String], rule: &str) {
    assert!(complaints.is_empty(), "{rule}:\n  {}", complaints.join("\n  "));
}

#[test]
fn imports_go_from_right_to_left_only() {
    let mut complaints = Vec::new();
    for source in sources("src").iter().filter(|source| !is_test_file(source)) {
        let module = source.module();
        let Some(place) = ARROW.iter().position(|name| *name == module) else {
            continue;
        };
        for (number, line) in source.code() {
            for used in line.match_indices("crate::").map(|(at, word)| &line[at + word.len()..]) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let allowed = ARROW[..=place].contains(&name.as_str());
                if !allowed {
                    complaints.push(format!(
                        "{}: `{module}` uses crate::{name}{}",
                        source.at(number),
                        grouped(used)
                    ));
                }
            }
        }
    }
    assert_none(
        &complaints,
        "a module of the core uses only itself and what is left of it (resp, command, event, lock, session)",
    );
}

/// A hint for `use crate::{a, b}`, which this test does not take apart.
fn grouped(used: &str) -> &'static str {
    if used.starts_with('{') {
        " (write one `use crate::module` for each module)"
    } else {
        ""
    }
}

#[test]
fn the_core_touches_no_socket_clock_entropy_or_global() {
    let mut complaints = Vec::new();
    for source in sources("src")
        .iter()
        .filter(|source| ARROW.contains(&source.module().as_str()) && !is_test_file(source))
    {
        for (number, line) in source.code() {
            for (word, why) in BANNED_IN_CORE.iter().filter(|(word, _)| line.contains(word)) {
                complaints.push(format!("{}: {} ({why})", source.at(number), word.trim()));
            }
            if line.trim_start().trim_start_matches("pub ").starts_with("static mut ") {
                complaints.push(format!("{}: a global", source.at(number)));
            }
        }
    }
    assert_none(
        &complaints,
        "the core takes bytes and the time in and gives bytes, events and deadlines out",
    );
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let long = |source: &&Source| source.lines.len() > LONGEST_FILE && !is_test_file(source);
    let complaint = |source: &Source| format!("{}: {} lines", source.at(1), source.lines.len());
    let complaints: Vec<String> = sources("src").iter().filter(long).map(complaint).collect();
    assert_none(&complaints, "a file has at most 400 lines before its tests");
}

/// Of comments; code is rustfmt's business.
#[test]
fn no_comment_is_wide() {
    let mut complaints = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for source in sources(folder) {
            let wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > WIDEST_LINE;
            let lines = source.lines.iter().enumerate();
            complaints.extend(
                lines
                    .filter(|(_, line)| wide(line))
                    .map(|(index, _)| source.at(index + 1)),
            );
        }
    }
    assert_none(&complaints, "a comment has some 120 columns");
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let mut complaints = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        let silent = |source: &&Source| !source.lines.first().is_some_and(|line| line.starts_with("//! "));
        complaints.extend(sources(folder).iter().filter(silent).map(|source| source.at(1)));
    }
    assert_none(
        &complaints,
        "a file opens with `//!`: what it is for, what it deliberately does not do",
    );
}

#[test]
fn nothing_is_left_for_later() {
    let mut complaints = Vec::new();
    // Put together here, so that this file does not find itself.
    let words = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["todo", "!("].concat(),
        ["unimplemented", "!("].concat(),
        ["#[ig", "nore"].concat(),
    ];
    for folder in ["src", "tests", "benches"] {
        for source in sources(folder) {
            for (index, line) in source.lines.iter().enumerate() {
                if words.iter().any(|word| line.contains(word.as_str())) {
                    complaints.push(format!("{}: {}", source.at(index + 1), line.trim()));
                }
            }
        }
    }
    assert_none(&complaints, "no stubs, no ignored tests, no notes to oneself");
}

#[test]
fn no_module_is_a_drawer_for_leftovers() {
    let drawers = ["utils", "util", "helpers", "helper", "common", "misc"];
    let name_of = |source: &Source| source.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let is_drawer = |source: &&Source| {
        let folder = source
            .path
            .parent()
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned());
        [name_of(source), folder]
            .into_iter()
            .flatten()
            .any(|name| drawers.contains(&name.as_str()))
    };
    let complaints: Vec<String> = sources("src")
        .iter()
        .filter(is_drawer)
        .map(|source| source.at(1))
        .collect();
    assert_none(
        &complaints,
        "no utils, helpers or common: a thing has a place that says what it is",
    );
}
