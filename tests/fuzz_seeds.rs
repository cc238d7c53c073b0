//! What the fuzz targets check, over the seeds that are kept in `fuzz/seeds`: on a stable compiler and in a moment, so
//! that what fuzzing found stays found. Makes no new inputs; `make fuzz` does.

#[path = "../fuzz/oracles/mod.rs"]
mod oracles;

use std::path::{Path, PathBuf};

fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_oracle_holds_for_its_seeds() {
    for (target, check) in oracles::ALL {
        let seeds = seeds(target);
        assert!(seeds.len() >= 8, "{target} has only {} seeds", seeds.len());
        for path in seeds {
            let input = std::fs::read(&path).expect("a readable seed");
            let held = std::panic::catch_unwind(|| check(&input));
            assert!(
                held.is_ok(),
                "{target} does not hold for {} ({}); the words are above",
                path.display(),
                input.escape_ascii()
            );
        }
    }
}
