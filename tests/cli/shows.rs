//! What a running lockward shows: `locks`, `top --once`, `suggest`, and `release`.

use lockward::admin::api::{LockList, Suggestions};

use crate::rig::{Lockward, Running, TOKEN, eventually, shell};

const RULES: &str = "[[locks]]\nname = \"jobs\"\npattern = \"lock:*\"\nowner = \"connection\"\n";

/// One lock is held and waited for, another has a name that a terminal would obey.
fn scene(lockward: &Lockward) -> Vec<crate::rig::Client> {
    let (mut holder, mut waiter) = (lockward.client(), lockward.client());
    assert_eq!(holder.ask("CLIENT SETNAME worker-1"), "+OK");
    assert_eq!(holder.ask("SET lock:a 1 NX PX 600000"), "+OK");
    assert_eq!(holder.ask("SET \"lock:\\x1b[2J,=1\\xff\" 1 NX"), "+OK");
    assert_eq!(waiter.ask("SET lock:a 1 NX"), "$-1");
    vec![holder, waiter]
}

#[test]
fn locks_for_people_and_machines() {
    let lockward = Lockward::start(RULES);
    let _clients = scene(&lockward);
    let table = lockward.run(&["locks"]);
    assert_eq!((table.code, table.err.as_str()), (Some(0), ""));
    let row = |key: &str| table.out.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    assert!(
        row("lock:a ").contains("(worker-1)") && row("lock:a ").contains(" 1"),
        "{}",
        table.out
    );
    assert!(row("lock:\\u{1b}[2J,=1\\xff ").contains("no TTL"), "{}", table.out);
    assert!(table.out.ends_with("2 locks held\n"), "{}", table.out);

    let json = lockward.run(&["locks", "lock:a", "-o", "json"]);
    let list: LockList = serde_json::from_str(&json.out).expect("the API's JSON");
    assert_eq!((list.total, list.matched, list.locks[0].waiters.len()), (2, 1, 1));

    let csv = lockward.run(&["locks", "--sort", "key", "--order", "desc", "-o", "csv"]);
    let mut rows = csv::Reader::from_reader(csv.out.as_bytes());
    let keys: Vec<String> = rows.records().map(|row| row.expect("good CSV")[2].to_owned()).collect();
    assert_eq!(keys, ["lock:a", "lock:%1B%5B2J%2C%3D1%FF"]);
    assert!(!csv.out.contains('\u{1b}'));

    assert!(
        lockward
            .run(&["locks", "--older-than", "1h"])
            .out
            .contains("0 shown of 0")
    );
    assert!(
        lockward
            .run(&["locks", "--warned", "--rule", "jobs"])
            .out
            .contains("1 shown of 1")
    );
    assert!(lockward.run(&["locks", "--db", "3"]).out.contains("0 shown of 0"));
}

#[test]
fn more_rows_than_one_answer_holds() {
    let lockward = Lockward::start(RULES);
    let mut holder = lockward.client();
    for number in 0..1_203 {
        assert_eq!(holder.ask(&format!("SET lock:{number:04} 1 NX")), "+OK");
    }
    let csv = lockward.run(&["locks", "--limit", "1100", "--sort", "key", "-o", "csv"]);
    let lines: Vec<&str> = csv.out.lines().collect();
    assert_eq!(lines.len(), 1_101);
    assert!(lines[1_100].contains("lock:1099"), "{}", lines[1_100]);
    let json = lockward.run(&["locks", "--limit", "5000", "-o", "json"]);
    let list: LockList = serde_json::from_str(&json.out).expect("the API's JSON");
    assert_eq!((list.locks.len(), list.matched), (1_203, 1_203));
}

#[test]
fn top_without_a_terminal_prints_the_table_once() {
    let lockward = Lockward::start(RULES);
    let _clients = scene(&lockward);
    for args in [&["top"][..], &["top", "--once"], &["top", "--sort", "waiters"]] {
        let top = lockward.run(args);
        assert_eq!((top.code, top.err.as_str()), (Some(0), ""), "{}", top.out);
        assert!(top.out.starts_with("2 held   1 waiting"), "{}", top.out);
        assert!(
            top.out.contains("lock:a ") && !top.out.contains('\u{1b}'),
            "{}",
            top.out
        );
    }
    assert!(!lockward.run(&["top", "lock:b"]).out.contains("lock:a "));
}

#[test]
fn suggestions_can_be_appended_to_the_configuration() {
    let lockward = Lockward::start(RULES);
    let json = lockward.run(&["suggest", "-o", "json"]);
    assert_eq!(json.code, Some(0), "{}", json.err);
    let _: Suggestions = serde_json::from_str(&json.out).expect("the API's JSON");
    assert!(lockward.run(&["suggest"]).out.starts_with("Traffic of the last "));
    let config = lockward.config.display();
    let appended = shell(&format!(
        "$L suggest -o toml --config {config} >> {config} && $L check --config {config}"
    ));
    assert_eq!(appended.code, Some(0), "{}", appended.err);
}

#[test]
fn a_release_takes_its_token_from_where_it_is() {
    let lockward = Lockward::start(RULES);
    let mut holder = lockward.client();
    let mut release = |how: &str, line: &str| {
        assert_eq!(holder.ask("SET lock:a 1 NX"), "+OK");
        let ran = shell(&line.replace("HERE", &lockward.admin));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{how}");
        assert!(ran.out.starts_with("lock:a: released"), "{how}: {}", ran.out);
    };
    let file = lockward.config.with_file_name("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("a file");
    release("--token", &format!("$L release lock:a --admin HERE --token {TOKEN}"));
    release(
        "the variable",
        &format!("LOCKWARD_ADMIN__TOKEN={TOKEN} $L release lock:a --admin http://HERE/"),
    );
    release(
        "a file",
        &format!("$L release lock:a --admin HERE --token-file {}", file.display()),
    );
    release(
        "standard input",
        &format!("echo {TOKEN} | $L release lock:a --admin HERE --token-file -"),
    );

    let absent = lockward.run(&["release", "lock:a"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.err.contains("no such lock in database 0"), "{}", absent.err);
}

/// A reader that has gone away is no error.
#[test]
fn a_closed_standard_output_ends_quietly() {
    let lockward = Lockward::start(RULES);
    let _clients = scene(&lockward);
    let config = lockward.config.display().to_string();
    for command in [
        "locks",
        "locks -o json",
        "locks -o csv",
        "top",
        "suggest",
        "explain 'SET lock:a 1 NX'",
    ] {
        // The subshell's output is a pipe that nobody reads any more by the time it writes.
        let line = format!("{{ sleep 0.2; $L {command} --config {config}; echo \"code $?\" >&2; }} | true");
        let ran = shell(&line);
        assert_eq!(ran.err, "code 0\n", "{command}");
    }
    let mut tap = Running::start_unread(&mut lockward.command(&["tap"]));
    drop(tap.lines());
    let ran = tap.ended();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    eventually("lockward still serves", || {
        (lockward.client().ask("PING") == "+PONG").then_some(())
    });
}
