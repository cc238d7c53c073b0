//! Tests of what a client asks for about its own connection.

use super::*;
use crate::command::sample::Sample;

fn client(line: &str, check: impl Fn(ClientCall<'_>)) {
    check(ClientCall::read(Sample::line(line).args()));
}

#[test]
fn client_calls_in_any_case() {
    client("CLIENT SETNAME worker-7", |call| {
        assert_eq!(call, ClientCall::SetName(b"worker-7"))
    });
    client("client setName \"\"", |call| assert_eq!(call, ClientCall::SetName(b"")));
    client("client reply on", |call| assert_eq!(call, ClientCall::ReplyOn));
    client("CLIENT Reply OFF", |call| assert_eq!(call, ClientCall::ReplyOff));
    client("CLIENT REPLY Skip", |call| assert_eq!(call, ClientCall::ReplySkip));
    client("CLIENT TRACKING on BCAST PREFIX a", |call| {
        assert_eq!(call, ClientCall::Tracking)
    });
    client("CLIENT MAINT_NOTIFICATIONS ON", |call| {
        assert_eq!(call, ClientCall::MaintNotifications)
    });
    client("CLIENT maint_notifications", |call| {
        assert_eq!(call, ClientCall::MaintNotifications)
    });
}

#[test]
fn client_calls_that_the_server_refuses_are_others() {
    let lines = [
        "CLIENT",
        "CLIENT SETNAME",
        "CLIENT SETNAME a b",
        "CLIENT REPLY",
        "CLIENT REPLY OFF OFF",
        "CLIENT REPLY MAYBE",
        "CLIENT TRACKING",
        "CLIENT SETNAMES a",
        "CLIENT INFO",
        "CLIENT KILL TYPE normal",
    ];
    for line in lines {
        client(line, |call| assert_eq!(call, ClientCall::Other, "{line}"));
    }
}

#[test]
fn hello() {
    let read = |line: &str, check: &dyn Fn(Hello<'_>)| check(Hello::read(Sample::line(line).args()));
    read("HELLO", &|hello| assert_eq!(hello, Hello::default()));
    read("HELLO 3", &|hello| assert_eq!(hello.version, Some(3)));
    for refused in [
        "HELLO 4",
        "HELLO 03",
        "HELLO -3",
        "HELLO x",
        "HELLO 99999999999999999999",
    ] {
        read(refused, &|hello| assert_eq!(hello.version, None));
    }
    let all = Hello {
        version: Some(2),
        login: Some((b"u", b"p")),
        name: Some(b"n"),
    };
    read("hello 2 auth u p setname n", &|hello| assert_eq!(hello, all));
    read("HELLO 2 SETNAME n AUTH u p", &|hello| assert_eq!(hello, all));
    read("HELLO 2 SETNAME x SETNAME n AUTH v q AUTH u p", &|hello| {
        assert_eq!(hello, all)
    });
    // Values that are called like options.
    read("HELLO 3 AUTH setname auth", &|hello| {
        assert_eq!(
            (hello.login.map(|(user, _)| user), hello.name),
            (Some(&b"setname"[..]), None)
        )
    });
    read("HELLO 3 SETNAME auth", &|hello| {
        assert_eq!(
            (hello.login.map(|(user, _)| user), hello.name),
            (None, Some(&b"auth"[..]))
        )
    });
    // Too short: refused by the server.
    read("HELLO 3 AUTH u", &|hello| {
        assert_eq!((hello.login.map(|(user, _)| user), hello.name), (None, None))
    });
    read("HELLO 3 SETNAME", &|hello| {
        assert_eq!((hello.login.map(|(user, _)| user), hello.name), (None, None))
    });
}

#[test]
fn auth_and_select() {
    assert_eq!(
        auth_login(Sample::line("AUTH secret").args()),
        Some((&b"default"[..], &b"secret"[..]))
    );
    assert_eq!(
        auth_login(Sample::line("AUTH alice secret").args()),
        Some((&b"alice"[..], &b"secret"[..]))
    );
    assert_eq!(auth_login(Sample::line("AUTH").args()), None);
    assert_eq!(auth_login(Sample::line("AUTH a b c").args()), None);

    assert_eq!(selected(Sample::line("SELECT 0").args()), Some(0));
    assert_eq!(selected(Sample::line("SELECT 15").args()), Some(15));
    for refused in [
        "SELECT",
        "SELECT 1 2",
        "SELECT -1",
        "SELECT 01",
        "SELECT x",
        "SELECT 99999999999",
    ] {
        assert_eq!(selected(Sample::line(refused).args()), None, "{refused}");
    }
}
