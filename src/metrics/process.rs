//! The figures of the process, read from /proc when the metrics are read. They keep the names that every Prometheus
//! client library gives them, without the prefix. Where there is no /proc (or not all of it), what cannot be read is left
//! out.

use std::fs;

use super::catalog::Kind;
use super::text;

/// Clock ticks in a second if the kernel does not say: what Linux has shown to programs since 2.6.
const TICKS: f64 = 100.0;

/// The tag of the clock tick in the auxiliary vector (`AT_CLKTCK`, getauxval(3)).
const AT_CLKTCK: u64 = 17;

/// Writes what can be read of the figures.
pub(super) fn write(out: &mut String) {
    let ticks = fs::read("/proc/self/auxv")
        .ok()
        .and_then(|auxv| clock_ticks(&auxv))
        .unwrap_or(TICKS);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let times = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| times(&stat));
    let boot = fs::read_to_string("/proc/stat").ok().and_then(|stat| boot_time(&stat));
    let limits = fs::read_to_string("/proc/self/limits").ok();

    let mut single = |name, kind, help, value: Option<f64>| {
        if let Some(value) = value {
            text::write_single(out, name, kind, help, value);
        }
    };
    let cpu = times.map(|(used, _)| used / ticks);
    single(
        "process_cpu_seconds_total",
        Kind::Counter,
        "User and system CPU time spent.",
        cpu,
    );
    let max_fds = limits.and_then(|limits| open_files_limit(&limits));
    single(
        "process_max_fds",
        Kind::Gauge,
        "The most file descriptors the process may open.",
        max_fds,
    );
    // The count includes the descriptor of the directory being read.
    let fds = fs::read_dir("/proc/self/fd")
        .ok()
        .map(|entries| entries.count().saturating_sub(1) as f64);
    single("process_open_fds", Kind::Gauge, "Open file descriptors.", fds);
    let resident = kilobytes(&status, "VmRSS:");
    single(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Resident memory.",
        resident,
    );
    let start = times.zip(boot).map(|((_, start), boot)| boot + start / ticks);
    single(
        "process_start_time_seconds",
        Kind::Gauge,
        "When the process began, in seconds since 1970.",
        start,
    );
    let threads = field(&status, "Threads:");
    single("process_threads", Kind::Gauge, "Threads of the process.", threads);
    let virtual_memory = kilobytes(&status, "VmSize:");
    single(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Virtual memory.",
        virtual_memory,
    );
}

/// CPU time used and start of the process, both in ticks (fields 14, 15 and 22 of proc_pid_stat(5)). The name in field 2
/// may hold blanks and parentheses, so fields are counted from the last parenthesis.
fn times(stat: &str) -> Option<(f64, f64)> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some((field(14)? + field(15)?, field(22)?))
}

fn boot_time(stat: &str) -> Option<f64> {
    field(stat, "btime")
}

fn kilobytes(status: &str, name: &str) -> Option<f64> {
    Some(field(status, name)? * 1024.0)
}

fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn open_files_limit(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        number => number.parse().ok(),
    }
}

/// Pairs of tag and value, each as wide as a machine word.
fn clock_ticks(auxv: &[u8]) -> Option<f64> {
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?) as u64);
    auxv.chunks_exact(2 * WORD).find_map(|pair| {
        let (tag, value) = pair.split_at_checked(WORD)?;
        (word(tag)? == AT_CLKTCK)
            .then(|| word(value))
            .flatten()
            .filter(|ticks| *ticks > 0)
            .map(|ticks| ticks as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_any_name() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 9000 1 2";
        assert_eq!(times(stat), Some((300.0, 9000.0)));
        assert_eq!(times("7 (x"), None);
        assert_eq!(times(""), None);
    }

    #[test]
    fn other_files_are_read_as_they_are() {
        assert_eq!(kilobytes("VmSize:\t  10 kB\nVmRSS:\t   4 kB\n", "VmRSS:"), Some(4096.0));
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(
            open_files_limit("Max open files            1024      524288    files"),
            Some(1024.0)
        );
        assert_eq!(
            open_files_limit("Max open files            unlimited unlimited files"),
            Some(f64::INFINITY)
        );
        assert_eq!(clock_ticks(&[1, 2, 3]), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_figures() {
        let mut out = String::new();
        write(&mut out);
        let names: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(names.len(), 7, "{out}");
    }
}
