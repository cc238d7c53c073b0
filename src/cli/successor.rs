//! The program that takes the place of this process: the file at the path that this one was started by, which may be
//! another one by now, with the same arguments and environment. Starts it; what the two say to each other is the proxy's
//! business.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::systemd::Manager;
use crate::proxy::Successor;

/// The first process of a container.
const FIRST: u32 = 1;

/// How this process was started.
pub(super) struct Itself {
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    with_server: bool,
}

impl Itself {
    /// To be called at the start: the file may be replaced later, and then `/proc/self/exe` is the old one.
    pub(super) fn find(with_server: bool) -> Itself {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_default();
        let path = env::var_os("PATH").unwrap_or_default();
        Itself {
            program: named(&name, &path).or_else(|| env::current_exe().ok()),
            arguments: arguments.collect(),
            with_server,
        }
    }
}

/// The file that a shell means by this name.
fn named(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let name = Path::new(name);
    if name.components().count() > 1 {
        return std::path::absolute(name).ok().filter(|file| file.is_file());
    }
    let found = env::split_paths(path).map(|folder| folder.join(name));
    found
        .filter_map(|file| std::path::absolute(file).ok())
        .find(|file| file.is_file())
}

impl Successor for Itself {
    fn command(&self) -> Result<Command, String> {
        if std::process::id() == FIRST {
            let text = "this lockward is the first process of its container (pid 1), which ends with it: start a new container \
                        beside it, and stop this one when that is ready";
            return Err(text.to_owned());
        }
        if self.with_server {
            return Err("the server that this lockward has started would end with it (--with-server)".to_owned());
        }
        let program = self.program.as_ref();
        let program = program.ok_or("it is not known which file this lockward was started from")?;
        let mut command = Command::new(program);
        command.args(&self.arguments);
        // It names this process, and the new one is to say by itself that it lives.
        if env::var("WATCHDOG_PID").is_ok_and(|pid| pid == std::process::id().to_string()) {
            command.env_remove("WATCHDOG_PID");
        }
        Ok(command)
    }

    fn is_main(&self, pid: u32) {
        Manager::find().is_main(pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_what_a_shell_would_start() {
        let shell = |name: &str, path: &str| named(OsStr::new(name), OsStr::new(path));
        assert_eq!(shell("sh", "/nowhere:/bin"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(shell("/bin/sh", ""), Some(PathBuf::from("/bin/sh")));
        assert_eq!(shell("sh", "/nowhere"), None);
        assert_eq!(shell("./no-such-file", "/bin"), None);
    }

    #[test]
    fn a_server_of_its_own_ends_with_its_lockward() {
        let error = Itself::find(true).command().unwrap_err();
        assert!(error.contains("--with-server"), "{error}");
    }
}
