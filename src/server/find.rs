//! Finds a server program: LOCKWARD_SERVER, PATH, then the cache that `scripts/get-server` fills. Runs nothing and
//! asks no version.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::ServerError;

/// The names to look for on PATH, in order.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
/// Where `scripts/get-server` puts its servers, below the cache.
const CACHED: [&str; 2] = ["valkey/valkey-server", "redis/redis-server"];

/// The server program to run: the one in `LOCKWARD_SERVER`, else the first on PATH, else one in the cache
/// (`LOCKWARD_CACHE`, else `.cache/servers` in a directory above the current one or above lockward's own program).
pub fn find_server() -> Result<PathBuf, ServerError> {
    if let Some(named) = std::env::var_os("LOCKWARD_SERVER").filter(|value| !value.is_empty()) {
        return runnable(PathBuf::from(named), "from LOCKWARD_SERVER");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    on_path(&path)
        .or_else(|| caches().iter().find_map(|cache| in_cache(cache)))
        .ok_or(ServerError::NotFound)
}

/// `path` as an absolute one, if it is a program: the server is started in a directory of its own. Links are kept:
/// Debian's redis-server is one to a program that goes by the name it is called by.
pub(super) fn runnable(path: PathBuf, named_by: &'static str) -> Result<PathBuf, ServerError> {
    match std::path::absolute(&path) {
        Ok(absolute) if is_program(&absolute) => Ok(absolute),
        _ => Err(ServerError::NotRunnable { path, named_by }),
    }
}

fn on_path(path: &OsStr) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .collect();
    PROGRAMS.iter().find_map(|name| {
        folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|program| is_program(program))
    })
}

fn caches() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("LOCKWARD_CACHE").filter(|value| !value.is_empty()) {
        return vec![PathBuf::from(named)];
    }
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(".cache/servers"))
        .collect()
}

fn in_cache(cache: &Path) -> Option<PathBuf> {
    CACHED
        .iter()
        .map(|name| cache.join(name))
        .find(|program| is_program(program))
        .and_then(|path| std::path::absolute(path).ok())
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_program_that_is_none_is_an_error_that_says_who_named_it() {
        let error = runnable(PathBuf::from("no/such/server"), "from LOCKWARD_SERVER").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no/such/server (from LOCKWARD_SERVER) is not a program that can be run"
        );
    }

    #[test]
    fn relative_folders_on_path_are_not_looked_into() {
        assert_eq!(on_path(OsStr::new(".:src:target")), None);
    }

    #[test]
    fn an_empty_cache_holds_nothing() {
        assert_eq!(in_cache(Path::new("no/such/cache")), None);
    }
}
