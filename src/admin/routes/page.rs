//! The live page: files that are built in as they stand in `admin/page`. They load nothing from elsewhere and need no
//! build step.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// Each path with its type and text.
const FILES: [(&str, &str, &str); 14] = [
    ("/", HTML, include_str!("../page/index.html")),
    ("/page.css", STYLE, include_str!("../page/page.css")),
    ("/icon.svg", ICON, include_str!("../page/icon.svg")),
    ("/page.js", SCRIPT, include_str!("../page/page.js")),
    ("/live.js", SCRIPT, include_str!("../page/live.js")),
    ("/draw.js", SCRIPT, include_str!("../page/draw.js")),
    ("/locks.js", SCRIPT, include_str!("../page/locks.js")),
    ("/lock.js", SCRIPT, include_str!("../page/lock.js")),
    ("/timeline.js", SCRIPT, include_str!("../page/timeline.js")),
    ("/release.js", SCRIPT, include_str!("../page/release.js")),
    ("/rules.js", SCRIPT, include_str!("../page/rules.js")),
    ("/charts.js", SCRIPT, include_str!("../page/charts.js")),
    ("/suggestions.js", SCRIPT, include_str!("../page/suggestions.js")),
    ("/records.js", SCRIPT, include_str!("../page/records.js")),
];

/// The paths of the page.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, text)| {
        router.route(path, get(async move || ([(CONTENT_TYPE, kind)], text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/admin/page");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("the page's folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let mut served: Vec<&str> = FILES
            .iter()
            .map(|(path, ..)| if *path == "/" { "index.html" } else { &path[1..] })
            .collect();
        served.sort_unstable();
        assert_eq!(names, served);
    }

    #[test]
    fn the_page_names_nothing_outside() {
        for (path, _, text) in FILES {
            let outside = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("://"), "{path} names an address");
            assert!(!text.contains("innerHTML"), "{path} makes markup of text");
        }
    }
}
